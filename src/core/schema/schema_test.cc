#include "schema/schema.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "codec/codec.h"

namespace holdfast::schema {
namespace {

constexpr const char* kWidget = R"({"type":"object","properties":{
  "spec":{"type":"object","required":["size"],"properties":{
    "size":{"type":"integer","default":3,"minimum":1},
    "color":{"type":"string","nullable":true,"default":"red"},
    "note":{"type":"string"},
    "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["num","proto"],
      "items":{"type":"object","properties":{"num":{"type":"integer"},"proto":{"type":"string","default":"TCP"}}}},
    "extra":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"known":{"type":"object","properties":{"a":{"type":"string"}}}}},
    "opts":{"type":"object","additionalProperties":{"type":"string"}},
    "empty":{"type":"object"},
    "inner":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"x":{"type":"string"}}}}},
    "limit":{"x-kubernetes-int-or-string":true}}}}})";

struct Fixture : testing::Test {
  Arena arena;
  std::shared_ptr<const Schema> widget;
  Fixture() { widget = Schema::build(parse(kWidget), false); }
  Value parse(const char* json) {
    const auto value = codec::decode_json(arena, json);
    EXPECT_TRUE(value) << json;
    return value ? *value : Value();
  }
  std::string pruned(const char* json, std::vector<std::string>* unknown = nullptr) {
    return codec::encode_json(prune(arena, widget->root(), parse(json), unknown));
  }
};
using SchemaTest = Fixture;

TEST_F(SchemaTest, TypesKeepListKindsKeysAndDefaults) {
  const types::Type& spec = *types::find_member(widget->root(), "spec")->type;
  const types::Type& ports = *types::find_member(spec, "ports")->type;
  EXPECT_EQ(ports.list_kind, types::ListKind::Keyed);
  EXPECT_EQ(ports.list_keys.size(), 2u);
  EXPECT_EQ(types::find_member(*ports.element, "proto")->default_value->as_string(), "TCP");
  EXPECT_EQ(types::find_member(spec, "tags")->type->list_kind, types::ListKind::Set);
  EXPECT_EQ(types::find_member(spec, "limit")->type->shape, types::Shape::IntOrString);
  EXPECT_EQ(types::find_member(spec, "opts")->type->shape, types::Shape::Map);
  EXPECT_TRUE(types::find_member(spec, "extra")->type->preserve_unknown);
  EXPECT_EQ(*types::find_member(spec, "size")->type->constraints->minimum, 1.0);
  EXPECT_EQ(types::find_member(widget->root(), "metadata")->type->name, "meta/v1.ObjectMeta");
}

TEST_F(SchemaTest, UnknownMembersArePrunedAndReported) {
  std::vector<std::string> unknown;
  EXPECT_EQ(
      pruned(
          R"({"apiVersion":"v1","kind":"W","metadata":{"name":"w"},"spec":{"size":1,"zzz":1,"ports":[{"num":1,"bad":2}],"empty":{"x":1}},"top":1})",
          &unknown),
      R"({"apiVersion":"v1","kind":"W","metadata":{"name":"w"},"spec":{"size":1,"ports":[{"num":1}],"empty":{}}})");
  EXPECT_EQ(unknown, (std::vector<std::string>{"spec.empty.x", "spec.ports[0].bad", "spec.zzz", "top"}));
}

TEST_F(SchemaTest, ReportedPathsOfUnknownMembersAreBounded) {
  // A long key, which each path below it repeats.
  const auto map = Schema::build(
      parse(
          R"({"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}}}})"),
      false);
  std::string object = "{\"spec\":{\"" + std::string(100'000, 'x') + "\":{\"u\":1";
  for (int i = 0; i < 1000; ++i) object += ",\"u" + std::to_string(i) + "\":1";
  std::vector<std::string> unknown;
  prune(arena, map->root(), parse((object + "}}}").c_str()), &unknown);
  size_t bytes = 0;
  for (const std::string& path : unknown) bytes += path.size();
  EXPECT_GE(bytes, limits::kReportedBytes);
  EXPECT_LT(bytes, limits::kReportedBytes + 200'000);
}

TEST_F(SchemaTest, DeclaredPropertiesBelowAPreservingNodeArePruned) {
  EXPECT_EQ(pruned(R"({"spec":{"extra":{"any":{"x":1},"known":{"a":"1","b":2}}}})"),
            R"({"spec":{"extra":{"any":{"x":1},"known":{"a":"1"}}}})");
}

TEST_F(SchemaTest, EmbeddedResourceKeepsApiVersionKindAndMetadata) {
  EXPECT_EQ(
      pruned(
          R"({"spec":{"inner":{"apiVersion":"v1","kind":"X","metadata":{"labels":{"a":"b"}},"spec":{"x":"1","y":2},"z":3}}})"),
      R"({"spec":{"inner":{"apiVersion":"v1","kind":"X","metadata":{"labels":{"a":"b"}},"spec":{"x":"1"}}}})");
}

TEST_F(SchemaTest, ObjectThatNeedsNoPruningIsShared) {
  const Value object = parse(R"({"spec":{"size":1}})");
  EXPECT_TRUE(prune(arena, widget->root(), object).same(object));
}

TEST_F(SchemaTest, NullsThatAreNotAllowedAreDropped) {
  const Value object = parse(
      R"({"spec":{"size":null,"color":null,"note":null,"opts":{"a":null,"b":"1"},"extra":{"x":null},"tags":[null]}})");
  EXPECT_EQ(codec::encode_json(drop_nulls(arena, widget->root(), object)),
            R"({"spec":{"size":null,"color":null,"opts":{"b":"1"},"extra":{"x":null},"tags":[null]}})");
}

TEST_F(SchemaTest, DefaultsReplaceAbsentAndDisallowedNullMembers) {
  EXPECT_EQ(codec::encode_json(apply_defaults(arena, widget->root(),
                                              parse(R"({"spec":{"size":null,"color":null,"ports":[{"num":1}]}})"))),
            R"({"spec":{"size":3,"color":null,"ports":[{"num":1,"proto":"TCP"}]}})");
  EXPECT_EQ(codec::encode_json(apply_defaults(arena, widget->root(), parse(R"({"spec":{}})"))),
            R"({"spec":{"size":3,"color":"red"}})");
  EXPECT_EQ(codec::encode_json(apply_defaults(arena, widget->root(), parse(R"({"metadata":{}})"))),
            R"({"metadata":{}})");
}

TEST_F(SchemaTest, NothingIsPrunedWithoutASchema) {
  const auto any = Schema::build(Value::null(), false);
  const Value object = parse(R"({"spec":{"x":[1,null]},"y":1})");
  EXPECT_TRUE(prune(arena, any->root(), object).same(object));
  EXPECT_TRUE(any->root().preserve_unknown);
}

TEST_F(SchemaTest, EqualSchemasAreShared) {
  EXPECT_EQ(Schema::build(parse(kWidget), false), widget);
  EXPECT_NE(Schema::build(parse(kWidget), true), widget);
  EXPECT_NE(Schema::build(parse(R"({"type":"object"})"), false), widget);
}

TEST_F(SchemaTest, EqualSchemaCanBeBuiltAfterTheLastOneIsDestroyed) {
  const Value other = parse(R"({"type":"object","properties":{"once":{"type":"string"}}})");
  EXPECT_NE(types::find_member(Schema::build(other, false)->root(), "once"), nullptr);
  EXPECT_NE(types::find_member(Schema::build(other, false)->root(), "once"), nullptr);
}

TEST_F(SchemaTest, TypesAreBuiltLazilyAndSourceIsKept) {
  const auto fresh =
      Schema::build(parse(R"({"type":"object","properties":{"lazy":{"type":"string","pattern":"^a$"}}})"), false);
  const size_t before = fresh->bytes();
  EXPECT_NE(types::find_member(fresh->root(), "lazy"), nullptr);
  EXPECT_GT(fresh->bytes(), before);
  Arena arena;
  EXPECT_EQ(codec::encode_json(fresh->written(arena)),
            R"({"type":"object","properties":{"lazy":{"type":"string","pattern":"^a$"}}})");
  EXPECT_TRUE(Schema::build(Value::null(), false)->written(arena).is_null());
}

}  // namespace
}  // namespace holdfast::schema
