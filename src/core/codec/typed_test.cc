#include "codec/typed.h"
#include "base/api_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"
#include "codec/protobuf.h"
#include "codec/vectors.h"

namespace holdfast::codec {
namespace {

using testing::ElementsAre;

const types::Type* type_of(const Value& object) {
  const auto [group, version] = split_api_version(object.text_at("apiVersion"));
  return types::find_type_of(group, version, object.text_at("kind"));
}

// The JSON that a body is converted to, or the error.
std::string typed(std::string_view type_name, std::string_view json, bool from_json = true) {
  Arena arena;
  Result<Value> tree = decode_json(arena, json, {.keep_huge_numbers = true});
  if (!tree) return tree.error().message;
  TypedOptions options;
  if (from_json) options.json_source = json;
  Result<Value> result = to_typed(arena, *types::find_type(type_name), *tree, options);
  return result ? encode_json(*result) : result.error().message;
}

TEST(Typed, LeavesEveryVectorUnchanged) {
  int count = 0;
  for (const Vector& vector : all_vectors()) {
    if (vector.protobuf.empty()) continue;
    Arena arena;
    Result<Value> tree = decode_json(arena, vector.json);
    ASSERT_TRUE(tree);
    TypedReport report;
    Result<Value> result = to_typed(arena, *type_of(*tree), *tree, {.json_source = vector.json}, &report);
    ASSERT_TRUE(result) << vector.name << ": " << result.error().message;
    EXPECT_EQ(encode_json(*result), vector.json) << vector.name;
    EXPECT_FALSE(report.has_unknown) << vector.name;
    ++count;
  }
  EXPECT_GT(count, 100);
}

// White space in a RawExtension is lost in JSON.
std::string without_raw_spaces(const types::Type& type, const ProtobufEnvelope& envelope) {
  Arena arena;
  Result<Value> value = decode_protobuf(arena, type, envelope.message, envelope.type);
  EXPECT_TRUE(value);
  std::string json = encode_json(*value), bytes;
  Result<Value> again = decode_json(arena, json);
  Result<Value> compact = to_typed(arena, type, *again, {.json_source = json});
  EXPECT_TRUE(encode_enveloped(type, *compact, bytes));
  return bytes;
}

TEST(Typed, EncodesEveryVectorsJsonAsItsProtobuf) {
  size_t exact = 0, all = 0;
  for (const Vector& vector : all_vectors()) {
    if (vector.protobuf.empty()) continue;
    Arena arena;
    Result<Value> tree = decode_json(arena, vector.json);
    const types::Type& type = *type_of(*tree);
    Result<Value> result = to_typed(arena, type, *tree, {.json_source = vector.json});
    ASSERT_TRUE(result) << vector.name;
    std::string bytes;
    Result<Unit> encoded = encode_enveloped(type, *result, bytes);
    ASSERT_TRUE(encoded) << vector.name << ": " << encoded.error().message;
    ++all;
    if (bytes == vector.protobuf) {
      ++exact;
    } else {
      EXPECT_EQ(bytes, without_raw_spaces(type, *open_envelope(vector.protobuf))) << vector.name;
    }
  }
  EXPECT_GE(exact + 5, all);
}

struct TypedCase {
  std::string_view name, type, sent, want;
};

constexpr TypedCase kCases[] = {
    {"unknown members are dropped, the rest is in declaration order", "core/v1.ContainerPort",
     R"({"containerPort":80,"x":{"y":1},"name":"web"})", R"({"name":"web","containerPort":80})"},
    {"keys are case-sensitive", "core/v1.ContainerPort", R"({"ContainerPort":80})", R"({"containerPort":0})"},
    {"zero values follow the omit rules", "core/v1.ContainerPort", R"({"name":"","hostPort":0,"containerPort":0})",
     R"({"containerPort":0})"},
    {"structs appear even when they are empty", "core/v1.Container", R"({"name":"a"})",
     R"({"name":"a","resources":{}})"},
    {"null is the zero value", "core/v1.Container", R"({"name":null,"resources":null,"env":null,"livenessProbe":null})",
     R"({"name":"","resources":{}})"},
    {"a pointer to zero is kept", "apps/v1.DeploymentSpec",
     R"({"replicas":0,"selector":null,"template":{"spec":{"containers":null}},"paused":false})",
     R"({"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}})"},
    {"embedded structs are flat", "core/v1.Volume", R"({"emptyDir":{},"name":"v"})", R"({"name":"v","emptyDir":{}})"},
    {"maps are sorted, null values are zero", "core/v1.ConfigMap", R"({"data":{"b":"2","a":null}})",
     R"({"metadata":{},"data":{"a":"","b":"2"}})"},
    {"null items are zero values", "core/v1.Container", R"({"args":["x",null],"ports":[null]})",
     R"({"name":"","args":["x",""],"ports":[{"containerPort":0}],"resources":{}})"},
    {"quantities become canonical", "core/v1.ResourceRequirements",
     R"({"limits":{"cpu":"1000m","memory":"1024Mi","a":1,"b":1.500,"c":1e3,"d":null}})",
     R"({"limits":{"a":"1","b":"1.500","c":"1e3","cpu":"1","d":"0","memory":"1Gi"}})"},
    {"times become UTC with whole seconds", "meta/v1.ObjectMeta",
     R"({"creationTimestamp":"2026-01-02T03:04:05.9+01:00","deletionTimestamp":"0001-01-01T00:00:00Z"})",
     R"({"creationTimestamp":"2026-01-02T02:04:05Z","deletionTimestamp":null})"},
    {"an unset creationTimestamp is omitted", "meta/v1.ObjectMeta", R"({"creationTimestamp":null})", "{}"},
    {"other unset times are null", "core/v1.Event", R"({})",
     R"({"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,)"
     R"("reportingComponent":"","reportingInstance":""})"},
    {"base64 is encoded again", "core/v1.Secret", R"({"data":{"a":"aGVs\nbG8=","b":"","c":[104,105]}})",
     R"({"metadata":{},"data":{"a":"aGVsbG8=","b":"","c":"aGk="}})"},
    {"raw values keep the sender's text", "apps/v1.ControllerRevision", R"({"data":{"b": 2.50, "a":1E3},"revision":1})",
     R"({"metadata":{},"data":{"b":2.50,"a":1E3},"revision":1})"},
    {"an int or string is either", "core/v1.HTTPGetAction", R"({"port":"http"})", R"({"port":"http"})"},
    {"an int or string that is null is 0", "core/v1.HTTPGetAction", R"({"port":null})", R"({"port":0})"},
    {"schemas or booleans", "apiextensions/v1.JSONSchemaProps",
     R"({"additionalProperties":false,"items":[{"x":1}],"not":{},"default":{"b":1,"a":2}})",
     R"({"default":{"a":2,"b":1},"items":[{}],"not":{},"additionalProperties":false})"},
    {"lists of list kinds are never null", "core/v1.PodList", R"({})", R"({"metadata":{},"items":[]})"},

    {"a wrong type names the field's path without positions", "core/v1.Pod", R"({"spec":{"containers":[{"name":1}]}})",
     "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string"},
    {"a wrong type inside an embedded struct", "core/v1.PodSpec", R"({"volumes":[{"emptyDir":"x"}]})",
     "json: cannot unmarshal string into Go struct field Volume.volumes.VolumeSource.emptyDir of type "
     "v1.EmptyDirVolumeSource"},
    {"named types have their name", "core/v1.ContainerPort", R"({"protocol":true})",
     "json: cannot unmarshal bool into Go struct field ContainerPort.protocol of type v1.Protocol"},
    {"a list where a map belongs", "core/v1.ConfigMap", R"({"data":[]})",
     "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"},
    {"a map's value", "core/v1.ConfigMap", R"({"data":{"a":1}})",
     "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"},
    {"an object where a list belongs", "core/v1.PodSpec", R"({"containers":{}})",
     "json: cannot unmarshal object into Go struct field PodSpec.containers of type []v1.Container"},
    {"the number as it was sent", "apps/v1.Deployment", R"({"spec":{"replicas":2.0}})",
     "json: cannot unmarshal number 2.0 into Go struct field DeploymentSpec.spec.replicas of type int32"},
    {"a number that is too large", "apps/v1.Deployment", R"({"spec":{"replicas":3000000000}})",
     "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32"},
    {"a number beyond the range of a double", "apps/v1.Deployment", R"({"spec":{"replicas":1e999}})",
     "json: cannot unmarshal number 1e999 into Go struct field DeploymentSpec.spec.replicas of type int32"},
    {"the first wrong type is reported", "core/v1.ContainerPort", R"({"name":1,"protocol":2})",
     "json: cannot unmarshal number into Go struct field ContainerPort.name of type string"},
    {"errors of a type's own unmarshaler come first", "core/v1.Container",
     R"({"name":1,"resources":{"limits":{"cpu":"x"}}})",
     "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
    {"an int or string that is neither", "core/v1.HTTPGetAction", R"({"port":true})",
     "json: cannot unmarshal bool into Go struct field HTTPGetAction.port of type int32"},
    {"a time that is a number", "meta/v1.ObjectMeta", R"({"creationTimestamp":1})",
     "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string"},
    {"an invalid time", "meta/v1.ObjectMeta", R"({"creationTimestamp":"today"})",
     R"(parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006")"},
    {"a day that does not exist", "meta/v1.ObjectMeta", R"({"creationTimestamp":"2026-02-30T00:00:00Z"})",
     R"(parsing time "2026-02-30T00:00:00Z": day out of range)"},
    {"a micro time without its six digits", "coordination/v1.LeaseSpec", R"({"renewTime":"2026-02-03T00:00:00Z"})",
     R"(parsing time "2026-02-03T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000")"},
    {"invalid base64", "core/v1.Secret", R"({"data":{"a":"!"}})", "illegal base64 data at input byte 0"},
    {"neither schema nor boolean", "apiextensions/v1.JSONSchemaProps", R"({"additionalProperties":1})",
     "boolean or JSON schema expected"},
    {"the root itself", "core/v1.Pod", "[]", "json: cannot unmarshal array into Go value of type v1.Pod"},
};

TEST(Typed, ConvertsLikeGo) {
  for (const TypedCase& row : kCases) EXPECT_EQ(typed(row.type, row.sent), row.want) << row.name;
}

TEST(Typed, WithoutJsonSourceNumbersAreUsedAsPrinted) {
  EXPECT_EQ(typed("core/v1.ContainerPort", R"({"containerPort":80.0})", false), R"({"containerPort":80})");
  EXPECT_EQ(typed("core/v1.ContainerPort", R"({"containerPort":1e3})", false), R"({"containerPort":1000})");
  EXPECT_EQ(typed("core/v1.ContainerPort", R"({"containerPort":1.5})", false),
            "json: cannot unmarshal number 1.5 into Go struct field ContainerPort.containerPort of type int32");
  EXPECT_EQ(typed("apps/v1.ControllerRevision", R"({"data":{"b": 2.50, "a":1E3},"revision":1})", false),
            R"({"metadata":{},"data":{"a":1000,"b":2.5},"revision":1})");
}

TEST(Typed, SingleValueErrorsNameNoField) {
  const auto error = [](std::string_view type_name, std::string_view json) {
    Arena arena;
    Result<Value> tree = decode_json(arena, json);
    const TypedOptions options{.errors = TypedOptions::Errors::OfSingleValue};
    return to_typed(arena, *types::find_type(type_name), *tree, options).error().message;
  };
  EXPECT_EQ(error("apps/v1.Deployment", R"({"spec":{"replicas":"a"}})"),
            "json: cannot unmarshal string into Go value of type int32");
  EXPECT_EQ(error("core/v1.Secret", R"({"data":{"a":"!"}})"),
            "error decoding from json: illegal base64 data at input byte 0");
}

TEST(Typed, SharesATreeThatIsAlreadyTyped) {
  Arena arena;
  Result<Value> tree = decode_json(arena, R"({"name":"a","image":"b","resources":{},"tty":true})");
  Result<Value> result = to_typed(arena, *types::find_type("core/v1.Container"), *tree);
  EXPECT_TRUE(result->same(*tree));
}

TEST(Typed, ConvertsOnlyWhatDiffersFromATypedTree) {
  Arena arena;
  const types::Type& type = *types::find_type("core/v1.PodSpec");
  const Value before = *to_typed(
      arena, type,
      *decode_json(arena,
                   R"({"containers":[{"name":"a","resources":{}},{"name":"b","resources":{}}],"nodeName":"x"})"));
  const auto with_second = [&](std::string_view container) {
    const Value items[] = {before.items_at("containers")[0], *decode_json(arena, container)};
    return with_member(arena, before, "containers", Value::list(arena.copy(std::span<const Value>(items))));
  };
  const Value changed = with_second(R"({"image":"c","name":"b"})");
  const Result<Value> typed = to_typed(arena, type, changed, {.derived_from = &before});
  EXPECT_EQ(encode_json(*typed), encode_json(*to_typed(arena, type, changed)));
  EXPECT_TRUE(typed->items_at("containers")[0].same(before.items_at("containers")[0]));
  EXPECT_EQ(to_typed(arena, type, with_second(R"({"name":1})"), {.derived_from = &before}).error().message,
            "json: cannot unmarshal number into Go struct field Container.containers.name of type string");
}

TEST(Typed, HoldfastFieldsAreUnknownWhileTheirGateIsOff) {
  const Gates on = Gates().with(Gate::DeclarativeFieldManager, true);
  constexpr std::string_view kPod =
      R"({"metadata":{"options":{"fieldManager":"x"}},"spec":{"containers":null},"status":{}})";
  constexpr std::string_view kDeployment = R"({"spec":{"template":{"metadata":{"options":{"fieldManager":"x"}}}}})";
  Arena arena;
  Result<Value> pod = decode_json(arena, kPod);
  const types::Type& type = *types::find_type("core/v1.Pod");
  TypedReport report;
  EXPECT_EQ(encode_json(*to_typed(arena, type, *pod, {.gates = &on}, &report)), kPod);
  EXPECT_FALSE(report.has_unknown);
  EXPECT_FALSE(to_typed(arena, type, *pod, {}, &report)->get("metadata")->has("options"));
  EXPECT_TRUE(report.has_unknown);
  EXPECT_THAT(strict_json_errors(type, kPod, &on), ElementsAre());
  EXPECT_THAT(strict_json_errors(type, kPod), ElementsAre(R"(unknown field "metadata.options")"));
  EXPECT_THAT(strict_json_errors(*types::find_type("apps/v1.Deployment"), kDeployment, &on),
              ElementsAre(R"(unknown field "spec.template.metadata.options")"));
}

TEST(Strict, ReportsInDocumentOrder) {
  constexpr std::string_view kBody =
      R"({"kind":"Pod","zoo":{"a":1,"a":2},"spec":{"containers":[{"name":"a","name":"b","y":1},{"x":1}],)"
      R"("nodeSelector":{"k":"1","k":"2"},"volumes":[{"emptyDir":{"sizeLimit":"1"},"emptyDir":{"q":1}}]},"kind":"Pod"})";
  const types::Type& type = *types::find_type("core/v1.Pod");
  EXPECT_THAT(strict_json_errors(type, kBody),
              ElementsAre(R"(unknown field "zoo")", R"(duplicate field "spec.containers[0].name")",
                          R"(unknown field "spec.containers[0].y")", R"(unknown field "spec.containers[1].x")",
                          R"(duplicate field "spec.nodeSelector.k")", R"(duplicate field "spec.volumes[0].emptyDir")",
                          R"(unknown field "spec.volumes[0].emptyDir.q")", R"(duplicate field "kind")"));
  Arena arena;
  EXPECT_THAT(strict_tree_errors(type, *decode_json(arena, kBody)),
              ElementsAre(R"(unknown field "spec.containers[0].y")", R"(unknown field "spec.containers[1].x")",
                          R"(unknown field "spec.volumes[0].emptyDir.q")", R"(unknown field "zoo")"));
}

TEST(Typed, RawTextOfAPatchedDocumentIsEncodedAgain) {
  const types::Type& type = *types::find_type("apps/v1.ControllerRevision");
  using RawText = TypedOptions::RawText;
  for (const auto& [how, want] : {std::pair<RawText, std::string_view>{RawText::AsIs, R"({"b": 1, "a": 2.50})"},
                                  {RawText::Compact, R"({"b":1,"a":2.50})"},
                                  {RawText::Sorted, R"({"a":2.5,"b":1})"}}) {
    Arena arena;
    MapBuilder revision(arena);
    revision.add("data", Value::raw(R"({"b": 1, "a": 2.50})"));
    const Result<Value> typed = to_typed(arena, type, revision.build(), {.raw_text = how});
    ASSERT_TRUE(typed);
    EXPECT_EQ(typed->find("data")->raw_json(), want);
  }
}

TEST(Strict, PathsCanHideKeysOfMaps) {
  const types::Type& type = *types::find_type("resource/v1.Device");
  Arena arena;
  const Value tree = *decode_json(arena, R"({"name":"d","attributes":{"a":{"x":1}}})");
  EXPECT_THAT(strict_tree_errors(type, tree), ElementsAre(R"(unknown field "attributes.a.x")"));
  EXPECT_THAT(strict_tree_errors(type, tree, nullptr, true), ElementsAre(R"(unknown field "attributes.x")"));
}

TEST(Strict, SkipsTypesWithTheirOwnUnmarshaler) {
  const types::Type& type = *types::find_type("apiextensions/v1.JSONSchemaProps");
  EXPECT_THAT(strict_json_errors(type, R"({"items":{"x":1},"properties":{"a":{"y":1}},"default":{"a":1,"a":2}})"),
              ElementsAre(R"(unknown field "properties.a.y")"));
}

}  // namespace
}  // namespace holdfast::codec
