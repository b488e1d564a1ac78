#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "cache/pod_codec.h"

namespace holdfast::cache {
namespace {

using ownership::ManagedEntry;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kFields = R"({"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:nodeName":{}}})";

class AtRestTest : public testing::Test {
 protected:
  // A canonical body.
  static std::string body(const char* json) {
    Arena arena;
    const types::Type& type = *types::find_resource("", "v1", "pods")->type;
    Result<Value> typed = codec::to_typed(arena, type, *codec::decode_json(arena, json));
    EXPECT_TRUE(typed);
    std::string out;
    EXPECT_TRUE(codec::encode_enveloped(type, *typed, out));
    return out;
  }
  static constexpr const char* kNormal =
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"a","uid":"u-1","resourceVersion":"7","labels":{"app":"web","tier":"front"}},
          "spec":{"nodeName":"n1","restartPolicy":"Never","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}})";

  static std::vector<ManagedEntry> managed(std::string_view fields = kFields) {
    return {{.manager = "alice",
             .operation = "Apply",
             .api_version = "v1",
             .subresource = "status",
             .time = UnixTime{1700000000, 0},
             .fields_type = ownership::kFieldsV1,
             .fields = fields}};
  }
  static std::string text(const ManagedEntry& entry) {
    return std::string(entry.manager) + "/" + std::string(entry.operation) + "/" + std::string(entry.api_version) +
           "/" + std::string(entry.subresource) + "/" + (entry.time ? format_rfc3339(*entry.time) : "") + "/" +
           std::string(entry.fields_type);
  }

  std::shared_ptr<const Codec> plain = std::make_shared<PodCodec>();
  std::shared_ptr<const Codec> embedded = embedded_codec(plain, {});
};

TEST_F(AtRestTest, CopyingAStoredValueGivesTheSameResultAsDecodingIt) {
  const std::string stored = *embedded->encode(body(kNormal), managed());
  EXPECT_THAT(stored, HasSubstr("holdfast/"));
  EXPECT_THAT(stored, Not(HasSubstr("f:metadata")));
  const Result<Decoded> copied = embedded->decode("k", stored, Revision{42});
  ASSERT_TRUE(copied);
  const std::string as_kubernetes = *plain->encode(body(kNormal), managed());
  const Result<Decoded> decoded = plain->decode("k", as_kubernetes, Revision{42});
  ASSERT_TRUE(decoded);
  EXPECT_EQ(copied->body, decoded->body);
  EXPECT_EQ(copied->uid, decoded->uid);
  EXPECT_EQ(copied->labels, decoded->labels);
  EXPECT_EQ(copied->fields, decoded->fields);
  ASSERT_EQ(copied->managed.size(), 1u);
  EXPECT_EQ(text(copied->managed[0]), "alice/Apply/v1/status/2023-11-14T22:13:20Z/FieldsV2");
  EXPECT_EQ(text(decoded->managed[0]), "alice/Apply/v1/status/2023-11-14T22:13:20Z/FieldsV1");
  Arena arena;
  EXPECT_EQ(ownership::to_fields_v1(*ownership::parse_fields_v2(arena, *copied->managed[0].fields)), kFields);
}

TEST_F(AtRestTest, EncodeNormalWritesTheSameBytesAsEncode) {
  const std::string as_kubernetes = *plain->encode(body(kNormal), {});
  const Result<Decoded> decoded = plain->decode("k", as_kubernetes, Revision{1});
  ASSERT_TRUE(decoded);
  std::vector<ManagedEntry> with_set = managed();
  Arena arena;
  with_set[0].set = *ownership::parse_fields_v1(arena, kFields);
  EXPECT_EQ(*embedded->encode_normal(body(kNormal), with_set, decoded->fields),
            *embedded->encode(body(kNormal), managed()));
}

TEST_F(AtRestTest, CopyingToEtcdGivesTheBytesOfKubernetes) {
  const std::string stored = *embedded->encode(body(kNormal), managed());
  const std::string as_kubernetes = *plain->encode(body(kNormal), managed());
  EXPECT_EQ(*kubernetes_value(stored), as_kubernetes);
  EXPECT_EQ(*kubernetes_value(as_kubernetes), as_kubernetes);
  EXPECT_EQ(*kubernetes_value("{\"kind\":\"Widget\"}\n"), "{\"kind\":\"Widget\"}\n");
}

TEST_F(AtRestTest, CopyingCustomResourcesToEtcdConvertsToFieldsV1) {
  Arena arena;
  const std::string_view fields = R"({"f:spec":{"f:replicas":{},"f:template":{"f:containers":{}}}})";
  const std::string binary = ownership::to_fields_v2(*ownership::parse_fields_v1(arena, fields));
  const std::string stored = R"({"kind":"Widget","metadata":{"managedFields":[{"fieldsType":"FieldsV2","fieldsV2":")" +
                             base64_encode(binary) + R"(","manager":"m"}],"name":"w"}})" + "\n";
  EXPECT_EQ(*kubernetes_value(stored),
            R"({"kind":"Widget","metadata":{"managedFields":[{"fieldsType":"FieldsV1","fieldsV1":)" +
                std::string(fields) + R"(,"manager":"m"}],"name":"w"}})" + "\n");
  const std::string broken = R"({"metadata":{"managedFields":[{"fieldsType":"FieldsV2","fieldsV2":"//8="}]}})";
  EXPECT_FALSE(kubernetes_value(broken));
}

TEST_F(AtRestTest, ReadsValuesWrittenByKubernetes) {
  const std::string as_kubernetes = *plain->encode(body(kNormal), managed());
  const Result<Decoded> decoded = embedded->decode("k", as_kubernetes, Revision{42});
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->body, plain->decode("k", as_kubernetes, Revision{42})->body);
  EXPECT_EQ(*decoded->managed[0].fields, kFields);
}

TEST_F(AtRestTest, ValuesNotInNormalFormHaveNoMarkAndAreNormalisedWhenRead) {
  const std::string lacks_default =
      body(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[]}})");
  const std::string stored = *embedded->encode(lacks_default, managed());
  EXPECT_THAT(stored, Not(HasSubstr("holdfast/")));
  EXPECT_THAT(embedded->decode("k", stored, Revision{1})->body, HasSubstr("Always"));
}

TEST_F(AtRestTest, TheMarkOfAnotherVersionIsNotTrustedButItsFieldsAreRead) {
  std::string stored = *embedded->encode(body(kNormal), managed());
  const size_t mark = stored.find("holdfast/");
  stored[mark + 9] = '9';
  const Result<Decoded> decoded = embedded->decode("k", stored, Revision{42});
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->body, plain->decode("k", *plain->encode(body(kNormal), managed()), Revision{42})->body);
  EXPECT_EQ(*decoded->managed[0].fields, kFields);
}

TEST_F(AtRestTest, WithTheGateOffFieldsV1IsWrittenAndBothAreRead) {
  const auto off = embedded_codec(plain, {.fields_v2 = false});
  const std::string v1 = *off->encode(body(kNormal), managed()), v2 = *embedded->encode(body(kNormal), managed());
  EXPECT_THAT(v1, HasSubstr("f:metadata"));
  EXPECT_LT(v2.size(), v1.size());
  EXPECT_EQ(off->decode("k", v2, Revision{3})->body, embedded->decode("k", v1, Revision{3})->body);
  EXPECT_EQ(*kubernetes_value(v1), *kubernetes_value(v2));
}

TEST_F(AtRestTest, ManagedFieldsThatAreNotAFieldSetAreKeptUnchanged) {
  const std::string odd = R"({"x:unknown":{}, "f:a":{}})";
  const std::string stored = *embedded->encode(body(kNormal), managed(odd));
  EXPECT_EQ(*embedded->decode("k", stored, Revision{1})->managed[0].fields, odd);
  EXPECT_EQ(*kubernetes_value(stored), *plain->encode(body(kNormal), managed(odd)));
}

}  // namespace
}  // namespace holdfast::cache
