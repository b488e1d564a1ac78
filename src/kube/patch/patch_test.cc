#include "patch/patch.h"

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::patch {
namespace {

using Apply = Result<Value> (*)(Arena&, const Value&, const Value&);

std::string patched(Apply apply, const std::string& object, const std::string& patch) {
  Arena arena;
  Result<Value> decoded_object = codec::decode_json(arena, object);
  Result<Value> decoded_patch = codec::decode_json(arena, patch);
  Result<Value> result = apply(arena, *decoded_object, *decoded_patch);
  return result ? codec::encode_json_sorted(*result) : "error: " + result.error().message;
}

struct Case {
  const char* name;
  const char* object;
  const char* patch;
  const char* want;
};

constexpr const char* kRefused = "error: the server rejected our request due to an error in our request";

constexpr Case kJsonCases[] = {
    {"all operations", R"({"a":"1","b":"2","c":[1,2]})",
     R"([{"op":"test","path":"/a","value":"1"},{"op":"add","path":"/c/-","value":3},{"op":"remove","path":"/b"},
         {"op":"copy","from":"/a","path":"/d"},{"op":"move","from":"/d","path":"/e"},
         {"op":"replace","path":"/c/-1","value":9}])",
     R"({"a":"1","c":[1,2,9],"e":"1"})"},
    {"replacing a missing member adds it", R"({"a":{}})", R"([{"op":"replace","path":"/a/b","value":1}])",
     R"({"a":{"b":1}})"},
    {"copying a missing member adds null", R"({"a":{}})", R"([{"op":"copy","from":"/a/x","path":"/a/b"}])",
     R"({"a":{"b":null}})"},
    {"moving a missing member fails", R"({"a":{}})", R"([{"op":"move","from":"/a/x","path":"/a/b"}])", kRefused},
    {"escapes", R"({"a/b":{"~":1}})", R"([{"op":"remove","path":"/a~1b/~0"}])", R"({"a/b":{}})"},
    {"1 is not 1.0", R"({"a":1})", R"([{"op":"test","path":"/a","value":1.0}])", kRefused},
    {"null equals a missing member", R"({})", R"([{"op":"test","path":"/a","value":null}])", R"({})"},
    {"an index beyond the end", R"({"a":[1]})", R"([{"op":"add","path":"/a/2","value":1}])", kRefused},
    {"an unknown operation", R"({})", R"([{"op":"invent","path":"/a"}])", kRefused},
};

TEST(JsonPatchTest, Cases) {
  for (const Case& c : kJsonCases) EXPECT_EQ(patched(apply_json_patch, c.object, c.patch), c.want) << c.name;
}

// RawExtensions are stored as text.
TEST(JsonPatchTest, PatchesContentOfRawJson) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"([{"op":"add","path":"/raw/a/1/b","value":2}])", R"({"raw":{"a":[1,{"b":2,"x":3}]}})"},
      {R"([{"op":"copy","from":"/raw/a","path":"/raw/a/1/-"}])", R"({"raw":{"a":[1,{"-":[1,{"x":3}],"x":3}]}})"},
      {R"([{"op":"test","path":"/raw","value":{"a":[1,{"x":3}]}},{"op":"remove","path":"/raw/a/0"}])",
       R"({"raw":{"a":[{"x":3}]}})"},
      {R"([{"op":"test","path":"","value":{"raw":{"a":[1,{"x":3}]}}}])", R"({"raw":{"a":[1,{"x":3}]}})"},
  };
  for (const auto& [patch, want] : cases) {
    Arena arena;
    MapBuilder object(arena);
    object.add("raw", Value::raw(R"({"a":[1,{"x":3}]})"));
    Result<Value> result = apply_json_patch(arena, object.build(), *codec::decode_json(arena, patch));
    ASSERT_TRUE(result) << patch;
    EXPECT_EQ(codec::encode_json_sorted(*result), want);
  }
}

TEST(MergePatchTest, PatchesContentOfRawJson) {
  Arena arena;
  MapBuilder object(arena);
  object.add("raw", Value::raw(R"({"a":{"x":1},"b":2})"));
  Result<Value> result = apply_merge_patch(arena, object.build(),
                                           *codec::decode_json(arena, R"({"raw":{"a":{"y":null,"z":3},"b":null}})"));
  ASSERT_TRUE(result);
  EXPECT_EQ(codec::encode_json_sorted(*result), R"({"raw":{"a":{"x":1,"z":3}}})");
}

// Messages of evanphx/json-patch, copied from a kube-apiserver.
TEST(JsonPatch, ReportsWhyOperationFailed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"op":"replace","path":"/s/nope/x","value":1})",
       "replace operation does not apply: doc is missing path: /s/nope/x: missing value"},
      {R"({"op":"replace","path":"/l/7","value":1})",
       "replace operation does not apply: doc is missing key: /l/7: missing value"},
      {R"({"op":"replace","path":"","value":2})", "replace operation value must be object or array: %!w(<nil>)"},
      {R"({"op":"add","path":"/l/x","value":1})",
       R"(error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax)"},
      {R"({"op":"add","value":1})", "add operation failed to decode path: missing value"},
      {R"({"op":"remove","path":"/l/x"})",
       R"(error in remove for path: '/l/x': strconv.Atoi: parsing "x": invalid syntax)"},
      {R"({"op":"remove","path":"/s/nope"})",
       "error in remove for path: '/s/nope': Unable to remove nonexistent key: nope: missing value"},
      {R"({"op":"remove","path":"/s/nope/x"})",
       R"(remove operation does not apply: doc is missing path: "/s/nope/x": missing value)"},
      {R"({"op":"move","path":"/s/x","from":"/s/nope/x"})",
       "move operation does not apply: doc is missing from path: /s/nope/x: missing value"},
      {R"({"op":"move","path":"/s/nope/x","from":"/s/r"})",
       "move operation does not apply: doc is missing destination path: /s/nope/x: missing value"},
      {R"({"op":"move","path":"/s/r"})",
       "move operation failed to decode from: operation, missing from field: missing value"},
      {R"({"op":"copy","path":"/s/m","from":"/s/nope/x"})",
       "copy operation does not apply: doc is missing from path: /s/nope/x: missing value"},
      {R"({"op":"test","path":"/s/nope/x","value":1})",
       "test operation does not apply: is missing path: /s/nope/x: missing value"},
      {R"({"op":"test","path":"/s/r","value":1})", "testing value /s/r failed: test failed"},
      {R"({"path":"/s/r"})", "Unexpected kind: unknown"},
  };
  Arena arena;
  const Value object = *codec::decode_json(arena, R"({"s":{"r":2},"l":[1]})");
  for (const auto& [operation, want] : cases) {
    const Value patch = *codec::decode_json(arena, arena.copy("[" + std::string(operation) + "]"));
    const JsonPatched patched = run_json_patch(arena, object, patch);
    EXPECT_FALSE(patched.value) << operation;
    EXPECT_EQ(patched.problem, want);
    EXPECT_EQ(patched.test_failed, want.ends_with(": test failed")) << operation;
  }
}

TEST(JsonPatchTest, CopiesCannotGrowWithoutBound) {
  std::string patch = "[";
  for (int i = 0; i < 40; ++i) patch += R"({"op":"copy","from":"/a","path":"/a/)" + std::to_string(i) + "\"},";
  patch.back() = ']';
  EXPECT_EQ(patched(apply_json_patch, R"({"a":{}})", patch), kRefused);
}

TEST(JsonPatchTest, CopiesCannotNestWithoutBound) {
  // Each operation copies the document into its own innermost map: the depth doubles.
  std::string patch = "[", path = "/a";
  for (int i = 0, levels = 1; i < 16; ++i, levels *= 2) {
    patch += R"({"op":"copy","from":"/a","path":")" + path + "/a\"},";
    for (int level = 0; level < levels; ++level) path += "/a";
  }
  patch.back() = ']';
  EXPECT_EQ(patched(apply_json_patch, R"({"a":{}})", patch), kRefused);
}

TEST(JsonPatchTest, MovesCannotNestWithoutBound) {
  std::string deep = "{}";
  for (int i = 0; i < 600; ++i) deep = "{\"a\":" + deep + "}";
  std::string patch = R"([{"op":"move","from":"/x","path":"/y)";
  for (int i = 0; i < 599; ++i) patch += "/a";
  patch += R"("}])";
  EXPECT_EQ(patched(apply_json_patch, "{\"x\":" + deep + ",\"y\":" + deep + "}", patch), kRefused);
}

TEST(JsonPatchTest, OverestimatedDepthIsCounted) {
  std::string deep = "{}";
  for (int i = 0; i < 600; ++i) deep = "{\"a\":" + deep + "}";
  std::string path = "/y";
  for (int i = 0; i < 599; ++i) path += "/a";
  // `s` is shallow, but next to a deep value.
  const std::string moved = patched(apply_json_patch, "{\"s\":1,\"y\":" + deep + "}",
                                    R"([{"op":"move","from":"/s","path":")" + path + R"(/s"}])");
  EXPECT_NE(moved, kRefused);
}

constexpr Case kMergeCases[] = {
    {"sets, deletes, replaces lists", R"({"a":{"x":1,"y":2},"l":[1,2]})", R"({"a":{"x":null,"z":3},"l":[9]})",
     R"({"a":{"y":2,"z":3},"l":[9]})"},
    {"nulls in new subtrees are removed, even in objects inside lists", R"({})",
     R"({"a":{"b":null,"l":[null,{"q":null}]}})", R"({"a":{"l":[null,{}]}})"},
    {"a scalar becomes a map", R"({"a":1})", R"({"a":{"b":null,"c":1}})", R"({"a":{"c":1}})"},
};

TEST(MergePatchTest, Cases) {
  for (const Case& c : kMergeCases) EXPECT_EQ(patched(apply_merge_patch, c.object, c.patch), c.want) << c.name;
}

Result<Value> strategic(Arena& arena, const Value& object, const Value& patch) {
  return apply_strategic_patch(arena, object, patch, *types::find_type("core/v1.Pod"));
}

constexpr Case kStrategicCases[] = {
    {"containers merge by name, the patch's order first",
     R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}})",
     R"({"spec":{"containers":[{"name":"c","image":"3"},{"name":"a","image":"2"}]}})",
     R"({"spec":{"containers":[{"image":"3","name":"c"},{"image":"2","name":"a"},{"image":"1","name":"b"}]}})"},
    {"delete removes one item", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
     R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})", R"({"spec":{"containers":[{"name":"b"}]}})"},
    {"replace removes all others", R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
     R"({"spec":{"containers":[{"$patch":"replace"},{"name":"c"}]}})", R"({"spec":{"containers":[{"name":"c"}]}})"},
    {"a map can be emptied", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"$patch":"delete"}}})",
     R"({"metadata":{"labels":{}}})"},
    {"scalar lists are merged", R"({"metadata":{"finalizers":["a","b"]}})", R"({"metadata":{"finalizers":["c","a"]}})",
     R"({"metadata":{"finalizers":["c","a","b"]}})"},
    {"scalars can be deleted from a list", R"({"metadata":{"finalizers":["a","b"]}})",
     R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}})", R"({"metadata":{"finalizers":["b"]}})"},
    {"order directive", R"({"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}})",
     R"({"spec":{"$setElementOrder/containers":[{"name":"c"},{"name":"n"},{"name":"a"}],"containers":[{"name":"n"}]}})",
     R"({"spec":{"containers":[{"name":"b"},{"name":"c"},{"name":"n"},{"name":"a"}]}})"},
    {"an item without its key", R"({"spec":{"containers":[{"name":"a"}]}})",
     R"({"spec":{"containers":[{"image":"x:1"}]}})",
     "error: map: map[image:x:1] does not contain declared merge key: name"},
    {"retainKeys", R"({"spec":{"securityContext":{"runAsUser":1,"runAsGroup":2}}})",
     R"({"spec":{"securityContext":{"$retainKeys":["runAsUser"],"runAsUser":3}}})",
     R"({"spec":{"securityContext":{"runAsUser":3}}})"},
    {"retainKeys must name all fields of the patch", R"({"spec":{}})", R"({"spec":{"$retainKeys":["a"],"b":3}})",
     "error: invalid patch format of retainKeys"},
    {"lists without a strategy are replaced", R"({"spec":{"containers":[{"name":"a","args":["1","2"]}]}})",
     R"({"spec":{"containers":[{"name":"a","args":["3"]}]}})",
     R"({"spec":{"containers":[{"args":["3"],"name":"a"}]}})"},
    {"null removes", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"a":null,"b":null}}})",
     R"({"metadata":{"labels":{}}})"},
    {"an unknown directive", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"$patch":"invent"}}})",
     "error: unknown patch type: invent in map: map[$patch:invent]"},
};

TEST(StrategicPatchTest, Cases) {
  for (const Case& c : kStrategicCases) EXPECT_EQ(patched(strategic, c.object, c.patch), c.want) << c.name;
}

Result<Value> left(Arena& arena, const Value& object, const Value& patch) {
  return remaining_strategic_patch(arena, object, patch, *types::find_type("core/v1.Pod"));
}

constexpr Case kLeft[] = {
    {"nulls in added values are removed", R"({"metadata":{}})", R"({"metadata":{"labels":{"a":null,"b":"c"}}})",
     R"({"metadata":{"labels":{"b":"c"}}})"},
    {"nulls that delete are kept", R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"a":null}}})",
     R"({"metadata":{"labels":{"a":null}}})"},
    {"merged items follow the same rules", R"({"spec":{"containers":[{"name":"a"}]}})",
     R"({"spec":{"containers":[{"name":"a","resources":{"limits":null}},{"name":"b","image":null}]}})",
     R"({"spec":{"containers":[{"name":"a","resources":{}},{"image":null,"name":"b"}]}})"},
    {"directives are removed with the lists that they order", R"({"spec":{"containers":[{"name":"a"}]}})",
     R"({"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a"}],"hostname":1,)"
     R"("securityContext":{"$patch":"replace","runAsUser":"x"},"$retainKeys":["containers","securityContext","hostname"]}})",
     R"({"spec":{"hostname":1,"securityContext":{"$patch":"replace","runAsUser":"x"}}})"},
    {"replace directives are removed", R"({"metadata":{"labels":{"a":"1"}}})",
     R"({"metadata":{"labels":{"$patch":"replace"}}})", R"({"metadata":{"labels":{}}})"},
};

TEST(StrategicPatchTest, RemainderOfPatch) {
  for (const Case& c : kLeft) EXPECT_EQ(patched(left, c.object, c.patch), c.want) << c.name;
}

constexpr struct {
  const char* name;
  const char* tree;
  const char* want;
} kConversions[] = {
    {"integral doubles become integers", R"({"spec":{"replicas":2.0}})", R"({"spec":{"replicas":2}})"},
    {"fractions are rejected", R"({"spec":{"replicas":2.5}})", "error: cannot convert float64 to int32"},
    {"strings are not numbers", R"({"spec":{"replicas":"2"}})", "error: unrecognized type: int32"},
    {"integers are not strings, but convertible in Go", R"({"metadata":{"name":5}})",
     "error: cannot convert int64 to string"},
    {"named strings", R"({"spec":{"strategy":{"type":5}}})",
     "error: cannot convert int64 to v1.DeploymentStrategyType"},
    {"lists are not strings", R"({"metadata":{"name":[]}})", "error: unrecognized type: string"},
    {"lists", R"({"spec":{"template":{"spec":{"containers":{}}}}})", "error: cannot restore slice from map"},
    {"maps", R"({"metadata":{"labels":5}})", "error: cannot restore map from int64"},
    {"structs", R"({"spec":"x"})", "error: cannot restore struct from: string"},
    {"the first field in struct order is reported", R"({"spec":{"paused":1,"replicas":"x"}})",
     "error: unrecognized type: int32"},
    {"null is always valid", R"({"spec":null})", R"({"spec":null})"},
};

TEST(ConversionTest, ConvertsLikeGo) {
  const types::Type& deployment = *types::find_type("apps/v1.Deployment");
  for (const auto& row : kConversions) {
    SCOPED_TRACE(row.name);
    Arena arena;
    Result<Value> tree = codec::decode_json(arena, row.tree);
    ASSERT_TRUE(tree.ok());
    Result<Value> converted = with_converted_numbers(arena, deployment, *tree);
    EXPECT_EQ(converted ? codec::encode_json_sorted(*converted) : "error: " + converted.error().message, row.want);
  }
}

}  // namespace
}  // namespace holdfast::patch
