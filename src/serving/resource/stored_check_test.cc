#include "resource/stored_check.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "codec/codec.h"
#include "resource/builtin_codec.h"
#include "resource/object_codec.h"
#include "resource/outdated.h"

namespace holdfast::resource {
namespace {

using ::testing::HasSubstr;

std::string stored_pod(std::string_view json, std::span<const ownership::ManagedEntry> managed, bool embedded) {
  const types::Resource& pods = *types::find_resource("", "v1", "pods");
  auto codec = make_builtin_codec(pods, Gates());
  Arena arena;
  Result<Value> tree = codec::decode_json(arena, json);
  EXPECT_TRUE(tree);
  Result<std::string> body = codec->body_of(arena, *tree);
  EXPECT_TRUE(body);
  std::shared_ptr<const cache::Codec> at_rest = codec;
  if (embedded) at_rest = cache::embedded_codec(codec, {});
  return *at_rest->encode(*body, managed);
}

constexpr std::string_view kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","uid":"u"},"spec":{"nodeName":"x"}})";

std::string wrong(std::string_view key, std::string_view value) {
  static const StoredCheck check = make_stored_check("/registry");
  return check(key, value).value_or("");
}

ownership::ManagedEntry entry(std::string_view fields) {
  return {.manager = "me",
          .operation = "Update",
          .api_version = "v1",
          .subresource = {},
          .time = std::nullopt,
          .fields_type = ownership::kFieldsV1,
          .fields = fields};
}

TEST(StoredCheck, AcceptsObjectsInBothFormats) {
  const ownership::ManagedEntry owners[] = {entry(R"({"f:spec":{"f:nodeName":{}}})")};
  for (bool embedded : {false, true}) EXPECT_EQ(wrong("/registry/pods/n/a", stored_pod(kPod, owners, embedded)), "");
}

TEST(StoredCheck, ReportsObjectUnderWrongKey) {
  EXPECT_EQ(wrong("/registry/pods/n/b", stored_pod(kPod, {}, false)), "it holds the object n/a");
}

TEST(StoredCheck, ReportsTruncatedAndInvalidValues) {
  const std::string value = stored_pod(kPod, {}, true);
  EXPECT_NE(wrong("/registry/pods/n/a", value.substr(0, value.size() / 2)), "");
  EXPECT_NE(wrong("/registry/pods/n/a", "{}"), "");
  EXPECT_THAT(wrong("/registry/pods/n/a", "k8s:enc:aescbc:v1:key:xx"), HasSubstr("encrypted"));
}

TEST(StoredCheck, InvalidFieldSetNamesTheManager) {
  const ownership::ManagedEntry owners[] = {entry(R"({"k:nojson":{}})")};
  EXPECT_THAT(wrong("/registry/pods/n/a", stored_pod(kPod, owners, false)), HasSubstr("the fields of manager \"me\""));
}

TEST(StoredCheck, CustomResourcesAreCheckedWithoutTheirDefinition) {
  constexpr std::string_view kKey = "/registry/example.com/widgets/n/w";
  EXPECT_EQ(wrong(kKey, R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"n"}})"),
            "");
  EXPECT_THAT(wrong(kKey, R"({"apiVersion":"other/v1","kind":"Widget","metadata":{"name":"w","namespace":"n"}})"),
              HasSubstr("other/v1"));
  EXPECT_EQ(wrong(kKey, R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}})"),
            "it holds the object w");
  EXPECT_NE(wrong(kKey, "{"), "");
}

TEST(StoredCheck, ReportsWrongNormalFormMark) {
  auto codec = make_builtin_codec(*types::find_resource("", "v1", "pods"), Gates());
  auto embedded = cache::embedded_codec(codec, {});
  Result<cache::Decoded> normal = codec->decode("", stored_pod(kPod, {}, false), Revision{1});
  ASSERT_TRUE(normal);
  std::string value = *embedded->encode(normal->body, {});
  EXPECT_EQ(wrong("/registry/pods/n/a", value), "");
  // The mark at the end of the value repeats the selectable fields, including spec.nodeName.
  const size_t node = value.rfind(std::string("\x01x"));
  ASSERT_NE(node, std::string::npos);
  value[node + 1] = 'y';
  EXPECT_EQ(wrong("/registry/pods/n/a", value), "it is marked as being in normal form, but is not");
}

// A sample object of a type: every struct is set, lists and maps have one element, scalars are left to defaults.
Value sample(Arena& arena, const types::Type& type, int depth) {
  switch (type.shape) {
    case types::Shape::Struct: {
      MapBuilder members(arena);
      for (const types::Field* field : type.members) {
        if (!field->exists(nullptr) || depth == 0) continue;
        const Value value = sample(arena, *field->type, depth - 1);
        if (!value.is_null()) members.add(field->name, value);
      }
      return members.build();
    }
    case types::Shape::List: {
      const Value item = depth == 0 ? Value::null() : sample(arena, *type.element, depth - 1);
      if (item.is_null()) return Value::null();
      ListBuilder items(arena);
      items.add(item);
      return items.build();
    }
    case types::Shape::Map: {
      const Value item = depth == 0 ? Value::null() : sample(arena, *type.element, depth - 1);
      if (item.is_null()) return Value::null();
      MapBuilder members(arena);
      members.add("key", item);
      return members.build();
    }
    case types::Shape::Quantity:
      return Value::string("1");
    case types::Shape::Time:  // If absent, it may default to the current time.
      return Value::string("2026-01-01T00:00:00Z");
    case types::Shape::MicroTime:
      return Value::string("2026-01-01T00:00:00.000000Z");
    default:
      return Value::null();
  }
}

TEST(BuiltinCodec, StoredOptionsAreDroppedOnDecode) {
  auto codec = make_builtin_codec(*types::find_kind("", "v1", "ConfigMap"), Gates());
  Result<cache::Decoded> decoded = codec->decode(
      "k", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","options":{"bogus":"x"}}})", Revision{1});
  ASSERT_TRUE(decoded) << decoded.error().message;
  Arena arena;
  Result<Value> tree = codec->tree(arena, decoded->body);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->text_at("metadata", "name"), "a");
  EXPECT_EQ(tree->get("metadata", "options"), nullptr);
}

TEST(BuiltinCodec, WebhooksStoredAsV1beta1GetV1beta1Defaults) {
  auto codec = make_builtin_codec(
      *types::find_kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), Gates());
  Result<cache::Decoded> decoded = codec->decode(
      "k",
      R"({"apiVersion":"admissionregistration.k8s.io/v1beta1","kind":"ValidatingWebhookConfiguration",)"
      R"("metadata":{"name":"a"},"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://a"}},)"
      R"({"name":"b.example.com","clientConfig":{"url":"https://b"},"failurePolicy":"Fail"}]})",
      Revision{1});
  ASSERT_TRUE(decoded) << decoded.error().message;
  Arena arena;
  Result<Value> tree = codec->tree(arena, decoded->body);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->text_at("apiVersion"), "admissionregistration.k8s.io/v1");
  const auto hooks = tree->items_at("webhooks");
  ASSERT_EQ(hooks.size(), 2u);
  EXPECT_EQ(hooks[0].text_at("failurePolicy"), "Ignore");
  EXPECT_EQ(hooks[0].text_at("matchPolicy"), "Exact");
  EXPECT_EQ(hooks[0].text_at("sideEffects"), "Unknown");
  EXPECT_EQ(hooks[0].int_at_or(0, "timeoutSeconds"), 30);
  EXPECT_EQ(hooks[0].items_at("admissionReviewVersions").size(), 1u);
  EXPECT_EQ(hooks[1].text_at("failurePolicy"), "Fail");
}

// A Protobuf value in this version, from the message's bytes.
std::string stored_as(std::string_view api_version, std::string_view kind, std::string_view message) {
  std::string value;
  codec::write_envelope_head({api_version, kind}, message.size(), value);
  value += message;
  value += codec::kEnvelopeTail;
  return value;
}

std::string read_as_json(const types::Resource& resource, std::string_view value) {
  auto codec = make_builtin_codec(resource, Gates());
  Result<cache::Decoded> decoded = codec->decode("k", value, Revision{1});
  if (!decoded) return decoded.error().message;
  Arena arena;
  Result<Value> tree = codec->tree(arena, decoded->body);
  return tree ? codec::encode_json(*tree) : tree.error().message;
}

TEST(BuiltinCodec, ReadsProtobufOfVersionsThatAreNotServed) {
  // Role: metadata.name "a"; a rule with verbs 1, apiGroups 3 and resources 4, which are 1, 2 and 3 in v1.
  const std::string role("\x0a\x03\x0a\x01\x61\x12\x0f\x0a\x03get\x1a\x01g\x22\x05pods2", 22);
  const std::string value = stored_as("rbac.authorization.k8s.io/v1alpha1", "Role", role);
  EXPECT_EQ(
      read_as_json(*types::find_kind("rbac.authorization.k8s.io", "v1", "Role"), value),
      R"({"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a","resourceVersion":"1"},)"
      R"("rules":[{"verbs":["get"],"apiGroups":["g"],"resources":["pods2"]}]})");
  EXPECT_EQ(outdated_version(value), "rbac.authorization.k8s.io/v1alpha1 Role");
  // The wrong kind for the resource, and versions that Kubernetes cannot read either.
  EXPECT_EQ(read_as_json(*types::find_kind("", "v1", "Pod"), value),
            "stored object k: no kind Role in version rbac.authorization.k8s.io/v1alpha1");
  const std::string unknown = stored_as("scheduling.k8s.io/v1alpha1", "PriorityClass", "");
  EXPECT_EQ(read_as_json(*types::find_kind("scheduling.k8s.io", "v1", "PriorityClass"), unknown),
            "stored object k: no kind PriorityClass in version scheduling.k8s.io/v1alpha1");
  EXPECT_EQ(outdated_version(unknown), "");
}

TEST(BuiltinCodec, ReadsJsonOfVersionsThatAreNotServed) {
  const std::string event =
      R"({"apiVersion":"events.k8s.io/v1beta1","kind":"Event","metadata":{"name":"e","namespace":"n"},"note":"text","regarding":{"kind":"Pod"}})";
  const std::string json = read_as_json(*types::find_kind("", "v1", "Event"), event);
  Arena arena;
  Result<Value> tree = codec::decode_json(arena, json);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->text_at("apiVersion"), "v1");
  EXPECT_EQ(tree->text_at("message"), "text");
  EXPECT_EQ(tree->text_at("involvedObject", "kind"), "Pod");
  EXPECT_EQ(outdated_version(event), "events.k8s.io/v1beta1 Event");
  EXPECT_EQ(outdated_version(R"({"apiVersion":"v1","kind":"Event"})"), "");
  EXPECT_EQ(outdated_version("not an object"), "");
}

TEST(BuiltinCodec, OldServicesGetTheFamiliesOfTheServer) {
  const types::Resource& services = *types::find_kind("", "v1", "Service");
  auto codec = make_builtin_codec(services, Gates(), "IPv6");
  Result<cache::Decoded> decoded = codec->decode(
      "k", R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"None"}})", Revision{1});
  ASSERT_TRUE(decoded) << decoded.error().message;
  Arena arena;
  Result<Value> tree = codec->tree(arena, decoded->body);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(codec::encode_json(*tree->get("spec", "ipFamilies")), R"(["IPv6","IPv4"])");
  EXPECT_EQ(codec::encode_json(*tree->get("spec", "clusterIPs")), R"(["None"])");
}

TEST(NormalForm, VersionNumberMustChangeWithTheContent) {
  const std::string path = HOLDFAST_SOURCE_DIR "/catalog/normal_form";
  std::ifstream file(path);
  uint64_t number = 0, recorded = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) std::istringstream(line) >> std::dec >> number >> std::hex >> recorded;
  }
  ASSERT_GT(number, 0u) << path;
  uint64_t digest = number;
  size_t kinds = 0;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (resource.storage_prefix.empty() || &stored_version(resource) != &resource) continue;
    auto codec = make_builtin_codec(resource, Gates());
    for (const int depth : {1, 12}) {
      Arena arena;
      Draft draft(arena, sample(arena, *resource.type, depth));
      draft.root().set("apiVersion", Value::string(arena, api_version_of(resource)));
      draft.root().set("kind", Value::string(resource.kind));
      Draft::Node metadata = draft.root().child("metadata");
      metadata.remove("managedFields");
      metadata.set("name", Value::string("sample"));
      Result<std::string> body = codec->body_of(arena, draft.value());
      ASSERT_TRUE(body) << resource.kind << ": " << body.error().message;
      Result<std::string> stored = codec->encode(*body, {});
      ASSERT_TRUE(stored) << resource.kind << ": " << stored.error().message;
      Result<cache::Decoded> normal = codec->decode("", *stored, Revision{1});
      ASSERT_TRUE(normal) << resource.kind << ": " << normal.error().message;
      digest = hash_combine(digest, hash_bytes(normal->body));
    }
    ++kinds;
  }
  EXPECT_GT(kinds, 50u);
  EXPECT_EQ(digest, recorded) << "the normal form of built-in objects has changed: raise the number in " << path
                              << ", run this again and record " << std::hex << digest;
}

}  // namespace
}  // namespace holdfast::resource
