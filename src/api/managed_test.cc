#include "api/managed.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::api {
namespace {

using ownership::ManagedEntry;

std::vector<ManagedEntry> all_kinds() {
  ManagedEntry applied;
  applied.manager = "alice \"<a>\"";
  applied.operation = "Apply";
  applied.api_version = "apps/v1";
  applied.time = UnixTime{.seconds = 1700000000, .nanos = 0};
  applied.fields_type = ownership::kFieldsV1;
  applied.fields = R"({"f:metadata":{"f:labels":{"f:a":{}}}})";
  ManagedEntry updated = applied;
  updated.manager = std::string_view("kubelet");
  updated.operation = "Update";
  updated.subresource = "status";
  updated.time.reset();
  ManagedEntry binary = updated;
  binary.fields_type = ownership::kFieldsV2;
  binary.fields = std::string_view("\x01\x00\xff", 3);
  ManagedEntry bare;
  bare.manager = "bare";
  return {applied, updated, binary, bare};
}

TEST(ManagedTest, TheTextIsThatOfTheTree) {
  Arena arena;
  const std::vector<ManagedEntry> entries = all_kinds();
  std::string text;
  append_managed_json(entries, text);
  EXPECT_EQ(text, codec::encode_json(managed_fields_value(arena, entries)));
}

}  // namespace
}  // namespace holdfast::api
