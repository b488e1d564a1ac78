#include "ownership/field_changes.h"

#include <gtest/gtest.h>

#include "codec/codec.h"

namespace holdfast::ownership {
namespace {

class FieldChangesTest : public ::testing::Test {
 protected:
  Value tree(std::string_view json) {
    Result<Value> value = codec::decode_json(arena, arena.copy(json));
    EXPECT_TRUE(value) << json;
    return value ? *value : Value();
  }
  FieldSet set(std::string_view json) {
    Result<FieldSet> parsed = parse_fields_v1(arena, arena.copy(json));
    EXPECT_TRUE(parsed) << json;
    return parsed ? *parsed : FieldSet();
  }
  static std::string text(FieldSet set) {
    std::string all;
    set.for_each([&](Path path) { all += (all.empty() ? "" : " ") + to_string(path); });
    return all;
  }
  static const MergeType& service() { return builtin_merge_types().of(*types::find_type("core/v1.Service")); }

  Arena arena;
};

TEST_F(FieldChangesTest, ItemsOfKeyedListsAreComparedByTheirKeys) {
  const FieldChanges changes = changes_between(
      arena, service(), tree(R"({"spec":{"ports":[{"port":80,"name":"a"},{"port":81}],"type":"ClusterIP"}})"),
      tree(R"({"spec":{"ports":[{"port":82},{"port":80,"name":"b"}],"type":"ClusterIP"}})"));
  EXPECT_EQ(text(leaves(arena, changes.added)), R"(.spec.ports[port=82,protocol="TCP"].port)");
  EXPECT_EQ(text(changes.modified), R"(.spec.ports[port=80,protocol="TCP"].name)");
  EXPECT_EQ(text(leaves(arena, changes.removed)), R"(.spec.ports[port=81,protocol="TCP"].port)");
}

TEST_F(FieldChangesTest, ValuesAreFoundByPathAlsoInLongLists) {
  std::string json = R"({"spec":{"ports":[)";
  for (int i = 1; i <= 2000; ++i) json += (i > 1 ? "," : "") + (R"({"port":)" + std::to_string(i) + "}");
  const Value object = tree(json + "]}}");
  FieldValues values(arena, service(), object);
  size_t found = 0;
  fields_of(arena, service(), object).for_each([&](Path path) { found += values.at(path) != nullptr; });
  EXPECT_EQ(found, 4000u);
  size_t missing = 0;
  const Value other = tree(R"({"spec":{"ports":[{"port":9000}],"type":"x"}})");
  fields_of(arena, service(), other).for_each([&](Path path) { missing += values.at(path) == nullptr; });
  EXPECT_EQ(missing, 3u);
}

TEST_F(FieldChangesTest, WhatIsMissingHasNothingBelowItEither) {
  EXPECT_EQ(text(missing_from(arena, set(R"({"f:a":{},"f:b":{".":{},"f:c":{}},"f:d":{"f:e":{}},"f:g":{}})"),
                              set(R"({"f:a":{"f:x":{}},"f:b":{},"f:d":{"f:f":{}}})"))),
            ".g .d.e");
}

}  // namespace
}  // namespace holdfast::ownership
