#include "cli/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<std::string> run(std::string_view tool, std::string_view body) {
  return console_tools().find(tool)->second(body);
}

constexpr std::string_view kLive =
    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared","managedFields":[
  {"manager":"alice","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1",
   "fieldsV1":{"f:data":{"f:color":{},"f:size":{}}}}]},"data":{"color":"red","size":"3"}})";
constexpr std::string_view kConfig =
    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"color":"blue","size":"4"}})";

TEST(ConsoleTools, AManifestBecomesItsObjects) {
  const Result<std::string> read = run(
      "manifest", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, HasSubstr(R"("object":{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}})"));
  EXPECT_THAT(*read, HasSubstr(R"("kind":"B")"));
}

TEST(ConsoleTools, AnUnreadableManifestNamesTheLine) {
  const Result<std::string> read = run("manifest", "apiVersion: v1\nkind: [\n");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("manifest:"));
}

TEST(ConsoleTools, ConflictsShowValuesOwnersAndTimes) {
  const std::string status =
      R"({"details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"alice\"","field":".data.color"}]}})";
  const Result<std::string> told =
      run("conflicts", "{\"config\":" + std::string(kConfig) + ",\"live\":" + std::string(kLive) +
                           ",\"status\":" + status + ",\"manager\":\"bob\"}");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(*told, R"({"conflicts":[{"path":".data.color","ours":"blue","live":"red","owners":[{"manager":"alice",)"
                   R"("operation":"Apply","subresource":"","time":"2026-01-02T03:04:05Z"}]}]})");
}

TEST(ConsoleTools, DecisionsChangeTheConfiguration) {
  const Result<std::string> config =
      run("resolve",
          "{\"config\":" + std::string(kConfig) + ",\"live\":" + std::string(kLive) +
              R"(,"decisions":[{"path":".data.color","decision":"share"},{"path":".data.size","decision":"yield"}]})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"color":"red"}})");
}

TEST(ConsoleTools, WhatAManagerOwnsBecomesAManifest) {
  const Result<std::string> owned = run("owned", "{\"object\":" + std::string(kLive) + ",\"manager\":\"alice\"}");
  ASSERT_TRUE(owned) << owned.error().message;
  EXPECT_THAT(*owned, HasSubstr("color: red"));
  EXPECT_THAT(*owned, Not(HasSubstr("managedFields")));
}

TEST(ConsoleTools, BadRequestsAreNamed) {
  for (const auto& [tool, body, message] :
       {std::tuple("conflicts", "{}", "needs a map \"config\""), std::tuple("conflicts", "[1]", "needs a map"),
        std::tuple("conflicts", "{", "JSON"), std::tuple("owned", "{\"object\":3}", "needs a map \"object\""),
        std::tuple("resolve", R"({"config":{},"live":{},"decisions":[{"path":".a","decision":"keep"}]})",
                   ".a: decide take, share or yield")}) {
    const Result<std::string> result = run(tool, body);
    ASSERT_FALSE(result) << tool << body;
    EXPECT_THAT(result.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace holdfast::cli
