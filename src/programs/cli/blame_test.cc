#include "cli/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

codec::Document parse(std::string_view yaml) {
  Result<codec::Document> document = codec::parse_yaml(std::string(yaml));
  EXPECT_TRUE(document) << document.error().message;
  return std::move(*document);
}

// The piped output without timestamps, which are the same everywhere.
std::string blamed(std::string_view yaml, BlameOptions options = {}) {
  const codec::Document document = parse(yaml);
  Result<std::string> text = blame_text(document.root(), options, Terminal{});
  EXPECT_TRUE(text) << text.error().message;
  // The output is always YAML; without a filter it is the object itself.
  Result<codec::Document> again = codec::parse_yaml(*text);
  EXPECT_TRUE(again) << *text;
  if (again && options.owner.empty() && !options.since) {
    Arena arena;
    constexpr std::string_view kPath[] = {"metadata", "managedFields"};
    EXPECT_TRUE(equal(again->root(), without_path(arena, document.root(), kPath))) << *text;
  }
  return text ? *text : "";
}

TEST(Blame, NamesOfOthersDoNotActOnTerminals) {
  // Managers, keys and owned fields that do not exist, with escape sequences, C1 and bidirectional controls.
  codec::Document document = parse(R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  managedFields:
  - {manager: "evil\e[2J\x9b31m\u202e\nx: y", operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {
      "f:data": {"f:k\e\x85\u202e": {}, "f:gone\e[1m\u2066\n": {}}}}
data: {"k\e\x85\u202e": "v\e]0;title\a\x9d\u2028"}
)");
  Terminal terminal;
  const std::string piped = *blame_text(document.root(), {}, terminal);
  EXPECT_TRUE(codec::parse_yaml(piped)) << piped;
  EXPECT_THAT(piped, HasSubstr("# evil^[[2J\\u009b31m\\u202e^Jx: y (Apply)"));
  EXPECT_THAT(piped, HasSubstr("# gone^[[1m\\u2066^J: unset"));
  terminal.interactive = true;
  const std::string columns = *blame_text(document.root(), {}, terminal);
  const std::string json = *blame_json(document.root(), {});
  EXPECT_TRUE(codec::parse_json(json)) << json;
  for (const std::string& text : {piped, columns, json}) {
    for (const std::string_view hidden :
         {"\x1b", "\x07", "\x7f", "\xc2\x9b", "\xc2\x85", "\xe2\x80\xae", "\xe2\x81\xa6"}) {
      EXPECT_EQ(text.find(hidden), std::string::npos) << text;
    }
  }
}

std::string line_with(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at == std::string::npos) return "no line with " + part + " in\n" + text;
  const size_t begin = text.rfind('\n', at) + 1;
  std::string line = text.substr(begin, text.find('\n', at) - begin);
  // Ignore the alignment of comments.
  if (const size_t comment = line.find("  # ", line.find_first_not_of(' ')); comment != std::string::npos) {
    const size_t end = line.find_last_not_of(' ', comment);
    line = line.substr(0, end + 1) + line.substr(line.find("# ", comment) - 1);
  }
  return line;
}

constexpr std::string_view kService = R"(
apiVersion: v1
kind: Service
metadata:
  name: web
  finalizers: [a.io/x, b.io/y]
  managedFields:
  - {manager: alice, operation: Apply, apiVersion: v1, time: "2026-01-02T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {
      "f:metadata": {"f:finalizers": {"v:\"a.io/x\"": {}}},
      "f:spec": {"f:type": {}, "f:sessionAffinityConfig": {"f:clientIP": {"f:timeoutSeconds": {}}},
        "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}}}}}
  - {manager: bob, operation: Apply, apiVersion: v1, time: "2026-01-03T03:04:05Z", fieldsType: FieldsV1, fieldsV1: {
      "f:metadata": {"f:finalizers": {"v:\"b.io/y\"": {}, "v:\"gone.io/z\"": {}}},
      "f:spec": {"f:type": {}, "f:ports": {"k:{\"port\":443,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                                           "k:{\"port\":99,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}}}}}}
  - {manager: cloud, operation: Update, subresource: status, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {
      "f:status": {"f:loadBalancer": {"f:ingress": {}}}}}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.1
  ports:
  - {port: 80, protocol: TCP, name: http}
  - {port: 443, protocol: TCP}
status:
  loadBalancer:
    ingress: [{ip: 1.2.3.4}]
)";

TEST(Blame, EveryLineNamesItsOwners) {
  const std::string text = blamed(kService);
  EXPECT_EQ(line_with(text, "type: L"),
            "  type: LoadBalancer # alice (Apply, 2026-01-02T03:04:05Z), bob (Apply, 2026-01-03T03:04:05Z)");
  EXPECT_EQ(line_with(text, "clusterIP:"), "  clusterIP: 10.0.0.1 # unowned");
  EXPECT_EQ(line_with(text, "name: web"), "  name: web");
  EXPECT_EQ(line_with(text, "- a.io/x"), "  - a.io/x # alice (Apply, 2026-01-02T03:04:05Z)");
  EXPECT_EQ(line_with(text, "- b.io/y"), "  - b.io/y # bob (Apply, 2026-01-03T03:04:05Z)");
  EXPECT_EQ(line_with(text, "port: 80"), "    port: 80 # alice (Apply, 2026-01-02T03:04:05Z)");
  EXPECT_EQ(line_with(text, "- port: 443"), "  - port: 443 # bob (Apply, 2026-01-03T03:04:05Z)");
}

TEST(Blame, OwnedFieldsThatDoNotExistAreComments) {
  const std::string text = blamed(kService);
  EXPECT_EQ(line_with(text, "gone.io"), "  # - [=\"gone.io/z\"]: unset # bob (Apply, 2026-01-03T03:04:05Z)");
  EXPECT_EQ(line_with(text, "timeoutSeconds"),
            "  # sessionAffinityConfig.clientIP.timeoutSeconds: unset # alice (Apply, 2026-01-02T03:04:05Z)");
  EXPECT_EQ(line_with(text, "port=99,protocol=\"UDP\"]: unset"),
            "  # - [port=99,protocol=\"UDP\"]: unset # bob (Apply, 2026-01-03T03:04:05Z)");
}

TEST(Blame, WhatAnUpdateLostWasNotUnset) {
  const std::string text = blamed(R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  managedFields:
  - {manager: a, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:x": {}, "f:z": {}}}}
  - {manager: b, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:y": {}, "f:z": {}}}}
data: {k: v}
)");
  EXPECT_EQ(line_with(text, "# x:"), "  # x: taken out # a (Update)");
  EXPECT_EQ(line_with(text, "# y:"), "  # y: unset # b (Apply)");
  EXPECT_THAT(line_with(text, "# z:"), HasSubstr("z: unset # "));
}

TEST(Blame, OwnersOfAtomicValuesOwnTheirContent) {
  const std::string text = blamed(kService);
  EXPECT_EQ(line_with(text, "ip: 1.2.3.4"), "    - ip: 1.2.3.4 # cloud (Update, status)");
}

TEST(Blame, OwnerOfAMapDoesNotOwnKeysOfOtherManagers) {
  const std::string text = blamed(R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  managedFields:
  - {manager: a, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}}
  - {manager: b, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:labels": {"f:x": {}}}}}
  labels: {x: "1"}
data: {k: v}
)");
  EXPECT_EQ(line_with(text, "data:"), "data: # a (Update)");
  EXPECT_EQ(line_with(text, "k: v"), "  k: v # unowned");
}

TEST(Blame, NestedKeyedListsOfAKindWithoutASchema) {
  const std::string text = blamed(R"(
apiVersion: example.com/v1
kind: Rack
metadata:
  name: r
  managedFields:
  - {manager: a, operation: Apply, apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:rows": {
      "k:{\"id\":1}": {".": {}, "f:id": {}, "f:slots": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:size": {}}}}}}}}
  - {manager: b, operation: Apply, apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:rows": {
      "k:{\"id\":1}": {"f:slots": {"k:{\"name\":\"z\"}": {".": {}, "f:name": {}}}},
      "k:{\"id\":2}": {".": {}, "f:id": {}}}}}}
spec:
  rows:
  - id: 1
    slots: [{name: x, size: 3}, {name: z, size: 4}]
  - id: 2
)");
  EXPECT_EQ(line_with(text, "id: 1"), "  - id: 1 # a (Apply)");
  EXPECT_EQ(line_with(text, "id: 2"), "  - id: 2 # b (Apply)");
  EXPECT_EQ(line_with(text, "size: 3"), "      size: 3 # a (Apply)");
  EXPECT_EQ(line_with(text, "name: z"), "    - name: z # b (Apply)");
  EXPECT_EQ(line_with(text, "size: 4"), "      size: 4 # unowned");
}

TEST(Blame, LongAndMultilineStringsAreUnchanged) {
  const std::string text = blamed(R"(
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  managedFields:
  - {manager: "a\nb", operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:many": {}, "f:long": {}, "f:odd": {}}}}
data:
  many: "one\ntwo\n"
  odd: "ends with |"
  "a # b": "c # d"
  long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb cccccccccccccccccc ddd
)");
  EXPECT_THAT(text, HasSubstr("many: |"));
  EXPECT_THAT(text, Not(HasSubstr("two  #")));
}

TEST(Blame, ShowsOnlyFieldsOfOneManager) {
  const std::string text = blamed(kService, {.owner = "bob"});
  EXPECT_THAT(text, HasSubstr("port: 443"));
  EXPECT_THAT(text, HasSubstr("gone.io/z"));
  EXPECT_THAT(text, Not(HasSubstr("port: 80")));
  EXPECT_THAT(text, Not(HasSubstr("clusterIP")));
}

TEST(Blame, ShowsOnlyFieldsWrittenSince) {
  const std::string text = blamed(kService, {.since = *parse_since("2026-01-03T00:00:00Z", {})});
  EXPECT_THAT(text, HasSubstr("port: 443"));
  EXPECT_THAT(text, Not(HasSubstr("port: 80")));
  EXPECT_EQ(*parse_since("2d", {.seconds = 1'000'000}), 1'000'000 - 2 * 86400);
  EXPECT_EQ(*parse_since("90m", {.seconds = 1'000'000}), 1'000'000 - 5400);
  EXPECT_FALSE(parse_since("yesterday", {}));
}

TEST(Blame, OwnersAreAColumnWithinTheTerminalWidth) {
  const codec::Document document = parse(kService);
  Terminal terminal{.interactive = true, .colours = false, .columns = 80};
  Result<std::string> text = blame_text(document.root(), {.now = {.seconds = 1767495845}}, terminal);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("cloud Update/status"));
  EXPECT_THAT(*text, HasSubstr("│     - ip: 1.2.3.4\n"));
  EXPECT_THAT(*text, HasSubstr("alice Apply 2d, bob Apply 24h"));
  EXPECT_THAT(*text, Not(HasSubstr("\x1b[")));
  terminal.colours = true;
  EXPECT_THAT(*blame_text(document.root(), {}, terminal), HasSubstr("\x1b[36m"));
}

TEST(Blame, JsonNamesPathsStatesAndManagers) {
  const codec::Document document = parse(kService);
  Result<std::string> text = blame_json(document.root(), {});
  ASSERT_TRUE(text);
  const codec::Document json = std::move(*codec::parse_json(*text));
  EXPECT_EQ(json.root().items_at("managers").size(), 3u);
  std::map<std::string, std::string> states;
  for (const Value& field : json.root().items_at("fields")) {
    states[std::string(field.text_at("path"))] = field.text_at("state");
  }
  EXPECT_EQ(states[".spec.type"], "shared");
  EXPECT_EQ(states[".spec.clusterIP"], "unowned");
  EXPECT_EQ(states[".spec.ports[port=80,protocol=\"TCP\"].name"], "owned");
  EXPECT_EQ(states[".spec.ports[port=99,protocol=\"UDP\"].port"], "unset");
  EXPECT_EQ(states[".metadata.name"], "server");
}

}  // namespace
}  // namespace holdfast::cli
