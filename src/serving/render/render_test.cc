// Objects, lists, Tables and watch events in every format and form, as clients receive them.
#include "render/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing.h"
#include "codec/cbor.h"
#include "codec/codec.h"
#include "codec/protobuf.h"
#include "codec/yaml.h"
#include "types/types.h"

namespace holdfast::render {
namespace {

using api::testing::InProcess;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";
const std::string kSecrets = "/api/v1/namespaces/default/secrets";
const std::string kTable = "application/json;as=Table;g=meta.k8s.io;v=v1";
const std::string kPartial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const std::string kPartialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
constexpr const char* kApply = "application/apply-patch+yaml";

class RenderTest : public ::testing::Test {
 protected:
  RenderTest() {
    for (const std::string name : {"a", "b", "c"}) {
      EXPECT_EQ(server
                    .call("PATCH", kMaps + "/" + name + "?fieldManager=m",
                          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name +
                              R"(","labels":{"app":"web"}},"data":{"k":"1","text":"a: \"b\"\n#c\t\u00e9"},)" +
                              R"("binaryData":{"raw":"AP8B"}})",
                          kApply)
                    .status,
                201);
    }
  }

  std::string get(const std::string& path, const std::string& accept) {
    net::ClientRequest request;
    request.method = "GET";
    request.target = path;
    request.headers = {{"accept", accept}, {"user-agent", "test/1"}};
    Result<net::ClientResponse> response = server.send(std::move(request));
    EXPECT_TRUE(response.ok());
    if (!response) return {};
    status = response->status;
    content_type.clear();
    for (const auto& [name, value] : response->headers) {
      if (name == "content-type" || name == "Content-Type") content_type = value;
    }
    return std::move(response->body);
  }
  std::string json(const std::string& path, const std::string& accept = "application/json") {
    return get(path, accept);
  }

  // A body in another format, as compact JSON with sorted members.
  std::string normal(const Result<Value>& value) {
    EXPECT_TRUE(value.ok());
    return value ? codec::encode_json_sorted(*value) : std::string();
  }
  std::string from_json(std::string_view body) { return normal(codec::decode_json(arena, arena.copy(body))); }
  std::string from_protobuf(std::string_view type, std::string_view body) {
    const Result<codec::ProtobufEnvelope> open = codec::open_envelope(arena.copy(body));
    EXPECT_TRUE(open.ok());
    if (!open) return {};
    return normal(codec::decode_protobuf(arena, *types::find_type(type), open->message, open->type));
  }

  Arena arena;
  InProcess server;
  int status = 0;
  std::string content_type;
};

TEST_F(RenderTest, FormatsHoldTheSameObject) {
  for (const auto& [path, type] : {std::pair<std::string, std::string_view>{kMaps + "/a", "core/v1.ConfigMap"},
                                   {kMaps, "core/v1.ConfigMapList"},
                                   {kMaps + "?limit=2", "core/v1.ConfigMapList"}}) {
    for (const std::string& extra : {"", "drop"}) {
      const std::string with = extra.empty() ? "" : ";drop=metadata.managedFields";
      const std::string want = from_json(json(path, "application/json" + with));
      EXPECT_THAT(want, HasSubstr(R"("k":"1")")) << path;
      EXPECT_EQ(want.find("managedFields") == std::string::npos, !with.empty()) << path;
      const std::string yaml = get(path, "application/yaml" + with);
      EXPECT_EQ(content_type, "application/yaml");
      EXPECT_EQ(normal(codec::decode_yaml(arena, arena.copy(yaml))), want) << path;
      const std::string protobuf = get(path, "application/vnd.kubernetes.protobuf" + with);
      EXPECT_EQ(content_type, "application/vnd.kubernetes.protobuf");
      EXPECT_EQ(from_protobuf(type, protobuf), want) << path;
    }
  }
}

TEST_F(RenderTest, IndentedJsonIsTheSameDocument) {
  for (const std::string& path : {kMaps + "/a", kMaps}) {
    const std::string compact = json(path);
    const std::string pretty = json(path + "?pretty=true");
    EXPECT_THAT(pretty, AllOf(StartsWith("{\n  \"kind\": \"ConfigMap"), HasSubstr("\n}")));
    EXPECT_EQ(from_json(pretty), from_json(compact));
    EXPECT_EQ(std::count(compact.begin(), compact.end(), '\n'), 1);
  }
}

TEST_F(RenderTest, EmptyListsHaveItemsExceptOfMetadata) {
  EXPECT_THAT(json(kSecrets), HasSubstr(R"("items":[])"));
  EXPECT_THAT(json(kSecrets, kPartialList), HasSubstr(R"("items":null)"));
  EXPECT_THAT(json(kSecrets, kTable), HasSubstr(R"("rows":[])"));
}

TEST_F(RenderTest, PageTellsWhatRemains) {
  const std::string body = json(kMaps + "?limit=2");
  const Result<Value> page = codec::decode_json(arena, body);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->items_at("items").size(), 2u);
  EXPECT_EQ(page->get("metadata", "remainingItemCount")->as_int(), 1);
  EXPECT_FALSE(page->text_at("metadata", "continue").empty());
  const std::string rest = json(kMaps + "?limit=2&continue=" + std::string(page->text_at("metadata", "continue")));
  EXPECT_THAT(rest,
              AllOf(HasSubstr(R"("name":"c")"), Not(HasSubstr("remainingItemCount")), Not(HasSubstr("continue"))));
}

TEST_F(RenderTest, BytesAreBase64InJsonAndAByteStringInCbor) {
  EXPECT_THAT(json(kMaps + "/a"), HasSubstr(R"("binaryData":{"raw":"AP8B"})"));
  call::Settings settings;
  settings.gates = settings.gates.with(Gate::CBORServingAndStorage, true);
  InProcess with_cbor(api::Options{.settings = settings});
  ASSERT_EQ(with_cbor.call("POST", kMaps, R"({"metadata":{"name":"a"},"binaryData":{"raw":"AP8B"}})").status, 201);
  net::ClientRequest request;
  request.method = "GET";
  request.target = kMaps + "/a";
  request.headers = {{"accept", "application/cbor"}};
  const Result<net::ClientResponse> response = with_cbor.send(std::move(request));
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->body, StartsWith("\xd9\xd9\xf7"));
  EXPECT_THAT(response->body, HasSubstr(std::string("\x43\x00\xff\x01", 4)));
}

TEST_F(RenderTest, TableHasColumnsRowsAndMetadata) {
  const std::string body = json(kMaps, kTable);
  const Result<Value> table = codec::decode_json(arena, body);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->text_at("kind"), "Table");
  EXPECT_EQ(table->text_at("apiVersion"), "meta.k8s.io/v1");
  std::vector<std::string> columns;
  for (const Value& column : table->items_at("columnDefinitions")) {
    columns.emplace_back(column.text_at("name"));
    EXPECT_FALSE(column.text_at("description").empty());
  }
  EXPECT_EQ(columns, (std::vector<std::string>{"Name", "Data", "Age"}));
  ASSERT_EQ(table->items_at("rows").size(), 3u);
  const Value& row = table->items_at("rows")[0];
  EXPECT_EQ(codec::encode_json(*row.find("cells")), R"(["a",3,"0s"])");
  EXPECT_EQ(row.text_at("object", "kind"), "PartialObjectMetadata");
  EXPECT_EQ(row.get("object", "data"), nullptr);
}

TEST_F(RenderTest, RowsIncludeWhatWasAskedFor) {
  EXPECT_THAT(json(kMaps + "?includeObject=None", kTable), Not(HasSubstr("PartialObjectMetadata")));
  EXPECT_THAT(json(kMaps + "?includeObject=Object", kTable),
              AllOf(HasSubstr(R"("k":"1")"), HasSubstr(R"("kind":"ConfigMap")")));
  const std::string refused = json(kMaps + "?includeObject=All", kTable);
  EXPECT_EQ(status, 400);
  EXPECT_THAT(refused, HasSubstr("includeObject"));
}

TEST_F(RenderTest, PartialMetadataHasNothingElse) {
  const std::string one = json(kMaps + "/a", kPartial);
  EXPECT_THAT(
      one, AllOf(StartsWith(R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a")"),
                 HasSubstr(R"("labels":{"app":"web"})"), HasSubstr("managedFields"), Not(HasSubstr(R"("data")"))));
  const std::string list = json(kMaps, kPartialList);
  EXPECT_THAT(list, AllOf(StartsWith(R"({"kind":"PartialObjectMetadataList")"), HasSubstr(R"("name":"c")"),
                          Not(HasSubstr(R"("data")"))));
}

TEST_F(RenderTest, OwnershipIsOmittedInEveryForm) {
  const std::string drop = ";drop=metadata.managedFields";
  for (const std::string& accept : {kTable + drop, kPartialList + drop, "application/json" + drop}) {
    EXPECT_THAT(json(kMaps, accept), AllOf(HasSubstr(R"("name":"b")"), Not(HasSubstr("managedFields")))) << accept;
  }
  EXPECT_THAT(json(kMaps + "?showManagedFields=false"), Not(HasSubstr("managedFields")));
}

TEST_F(RenderTest, WatchFramesEndWithALineInJson) {
  const std::string watch = kMaps + "?watch=1&timeoutSeconds=1&resourceVersion=0";
  const std::string body = json(watch);
  EXPECT_EQ(content_type, "application/json");
  EXPECT_EQ(std::count(body.begin(), body.end(), '\n'), 3);
  size_t at = 0;
  for (const std::string name : {"a", "b", "c"}) {
    const std::string line = body.substr(at, body.find('\n', at) - at);
    at += line.size() + 1;
    EXPECT_THAT(
        line,
        StartsWith(R"({"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")" + name));
    EXPECT_EQ(from_json(line.substr(25, line.size() - 26)), from_json(json(kMaps + "/" + name)));
  }
}

TEST_F(RenderTest, WatchFramesHaveALengthInProtobuf) {
  // A length of more than two bytes.
  ASSERT_EQ(
      server.call("POST", kMaps, R"({"metadata":{"name":"large"},"data":{"k":")" + std::string(70'000, 'x') + R"("}})")
          .status,
      201);
  const std::string body =
      get(kMaps + "?watch=1&timeoutSeconds=1&resourceVersion=0", "application/vnd.kubernetes.protobuf;stream=watch");
  EXPECT_EQ(content_type, "application/vnd.kubernetes.protobuf;stream=watch");
  size_t at = 0;
  int frames = 0;
  while (at + 4 <= body.size()) {
    size_t bytes = 0;
    for (int i = 0; i < 4; ++i) bytes = bytes << 8 | static_cast<uint8_t>(body[at + i]);
    ASSERT_LE(at + 4 + bytes, body.size());
    const std::string event = body.substr(at + 4, bytes);
    EXPECT_THAT(event, AllOf(StartsWith("\x0a\x05"
                                        "ADDED\x12"),
                             HasSubstr(std::string("k8s\0", 4))));
    at += 4 + bytes;
    ++frames;
  }
  EXPECT_EQ(at, body.size());
  EXPECT_EQ(frames, 4);
}

TEST_F(RenderTest, OnlyTheFirstTableOfAWatchHasColumns) {
  const std::string body = json(kMaps + "?watch=1&timeoutSeconds=1&resourceVersion=0", kTable);
  const size_t first = body.find('\n');
  EXPECT_THAT(body.substr(0, first), HasSubstr(R"("columnDefinitions":[{)"));
  EXPECT_THAT(body.substr(first),
              AllOf(HasSubstr(R"("columnDefinitions":null)"), Not(HasSubstr(R"("columnDefinitions":[{)"))));
}

TEST_F(RenderTest, InitialEventsEndWithAnAnnotatedBookmark) {
  const std::string body = json(kMaps +
                                "?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&"
                                "resourceVersionMatch=NotOlderThan");
  const size_t bookmark = body.find(R"({"type":"BOOKMARK")");
  ASSERT_NE(bookmark, std::string::npos);
  EXPECT_THAT(body.substr(bookmark), AllOf(HasSubstr(R"("k8s.io/initial-events-end":"true")"),
                                           HasSubstr(R"("kind":"ConfigMap")"), Not(HasSubstr(R"("name":"a")"))));
}

}  // namespace
}  // namespace holdfast::render
