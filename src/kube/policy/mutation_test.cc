#include "policy/mutation.h"

#include <gtest/gtest.h>

#include "codec/codec.h"
#include "schema/schema.h"
#include "types/types.h"

namespace holdfast::policy {
namespace {

// Differing leaves, one per line: "spec.replicas: 2 -> 3", "spec.paused: - -> true".
void add_changes(const std::string& path, const Value* before, const Value* after, std::string& out) {
  if (before != nullptr && after != nullptr && equal(*before, *after)) return;
  const bool maps = (before == nullptr || before->is_map()) && (after == nullptr || after->is_map());
  const bool lists = (before == nullptr || before->is_list()) && (after == nullptr || after->is_list());
  const auto count = [](const Value* v) { return v == nullptr ? 0 : v->count(); };
  if (maps && before != nullptr && after != nullptr && count(before) + count(after) > 0) {
    for (const Member& m : before->members())
      add_changes(path + "." + std::string(m.key), &m.value, after->find(m.key), out);
    for (const Member& m : after->members())
      if (!before->has(m.key)) add_changes(path + "." + std::string(m.key), nullptr, &m.value, out);
    return;
  }
  if (lists && before != nullptr && after != nullptr) {
    for (size_t i = 0; i < std::max(count(before), count(after)); ++i)
      add_changes(path + "[" + std::to_string(i) + "]", i < count(before) ? &before->items()[i] : nullptr,
                  i < count(after) ? &after->items()[i] : nullptr, out);
    return;
  }
  const auto shown = [](const Value* v) { return v == nullptr ? "-" : codec::encode_json_sorted(*v); };
  out += (out.empty() ? "" : "\n") + path + ": " + shown(before) + " -> " + shown(after);
}

struct Case {
  std::string name, expression, want;
};

class Mutations : public testing::Test {
 protected:
  Arena arena_;  // Declared before the objects allocated in it.

  Value yaml(std::string_view text) {
    Result<Value> value = codec::decode_yaml(arena_, arena_.copy(text));
    EXPECT_TRUE(value.ok()) << text;
    return *value;
  }

  ownership::FieldManager deployments() {
    ownership::FieldManagerOptions options;
    options.api_version = "apps/v1";
    options.kind = "Deployment";
    options.versions.push_back(
        {"apps/v1", &ownership::builtin_merge_types().of(*types::find_kind("apps", "v1", "Deployment")->type)});
    return ownership::FieldManager(std::move(options));
  }
  const Value deployment_ = yaml(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {a: b}, finalizers: [x/y]}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers: [{name: c, image: i, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]}]
      nodeSelector: {disk: ssd}
      volumes: [{name: vol, emptyDir: {}}]
)");

  ownership::FieldManager widgets() {
    schema_ = schema::Schema::build(yaml(R"({type: object, properties: {spec: {type: object, properties: {
        size: {type: integer, default: 1}, enabled: {type: boolean}, opts: {type: object, additionalProperties: {type: string}},
        any: {x-kubernetes-preserve-unknown-fields: true}, inner: {type: object, properties: {a: {type: string}}},
        set: {type: array, x-kubernetes-list-type: set, items: {type: string}},
        whole: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}},
        list: {type: array, items: {type: object, properties: {a: {type: string}}}},
        l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, p], items: {type: object,
            required: [k], properties: {k: {type: string}, p: {type: string, default: TCP}, v: {type: string},
            m: {type: object, additionalProperties: {type: string}}}}}}}}})"),
                                    false);
    ownership::FieldManagerOptions options;
    options.api_version = "e.com/v1";
    options.kind = "W";
    options.versions.push_back({"e.com/v1", &types_.of(schema_->root())});
    return ownership::FieldManager(std::move(options));
  }
  const Value widget_ = yaml(R"(
apiVersion: e.com/v1
kind: W
metadata: {name: w, annotations: {x: z}}
spec: {size: 3, enabled: true, opts: {a: x, b: z}, any: {deep: {er: 1}}, set: [p, q], whole: {a: c, b: d}, list: [{a: b}],
  l: [{k: one, p: TCP, v: q, m: {t: o}}, {k: one, p: UDP}, {k: two, p: TCP}]}
)");

  std::string changes(const Value& object, const ownership::FieldManager& fields, Mutation::Kind kind,
                      const std::string& expression, int64_t* left = nullptr) {
    MapBuilder source(arena_);
    source.add("expression", Value::string(arena_, expression));
    MapBuilder item(arena_);
    const bool patch = kind == Mutation::Kind::JsonPatch;
    item.add("patchType", Value::string(patch ? "JSONPatch" : "ApplyConfiguration"));
    item.add(patch ? "jsonPatch" : "applyConfiguration", source.build());
    const expressions::Scope scope{.variables = true, .params = false};
    expressions::Compiler compiler(scope);
    compiler.add_variable("half", "object.spec.replicas / 2");
    const Mutation mutation = compile_mutation(compiler, item.build());
    const std::vector<expressions::NamedExpression> variables = compiler.take_variables();
    expressions::Inputs inputs;
    inputs.object = cel::Val::data(object);
    expressions::Activation activation(arena_, scope, variables, inputs);
    int64_t budget = left == nullptr ? cel::kRuntimeBudget : *left;
    const Result<Value> result = apply_mutation(arena_, mutation, activation, budget, object, &fields);
    if (left != nullptr) *left = budget;
    if (!result) return "error: " + result.error().message;
    std::string out;
    add_changes("", &object, &*result, out);
    return out;
  }

  void expect(const Value& object, const ownership::FieldManager& fields, Mutation::Kind kind,
              const std::vector<Case>& cases) {
    for (const Case& c : cases) EXPECT_EQ(changes(object, fields, kind, c.expression), c.want) << c.name;
  }

  std::shared_ptr<const schema::Schema> schema_;
  ownership::MergeTypes types_;
};

const std::string kMisfit = "error: error applying patch: failed to convert patch object to typed object: ";

TEST_F(Mutations, ApplyConfigurationIsMerged) {
  expect(
      deployment_, deployments(), Mutation::Kind::ApplyConfiguration,
      {
          {"nothing", "Object{}", ""},
          {"a scalar", "Object{spec: Object.spec{replicas: 3}}", ".spec.replicas: 2 -> 3"},
          {"a variable of the policy", "Object{spec: Object.spec{replicas: variables.half}}", ".spec.replicas: 2 -> 1"},
          {"an integral double", "Object{spec: Object.spec{replicas: 3.0}}", ".spec.replicas: 2 -> 3"},
          {"a map merges by key", R"(Object{metadata: Object.metadata{labels: {"n": "x"}}})",
           R"(.metadata.labels.n: - -> "x")"},
          {"an optional field without a value is omitted", "Object{spec: Object.spec{?replicas: object.?spec.?nope}}",
           ""},
          {"an optional is replaced by its value",
           R"(Object{metadata: Object.metadata{labels: {"n": optional.of("x")}}})", R"(.metadata.labels.n: - -> "x")"},
          {"an empty optional is null", R"(Object{metadata: Object.metadata{labels: {"n": optional.none()}}})",
           R"(.metadata.labels.n: - -> null)"},
          {"a type is replaced by its name", R"(Object{metadata: Object.metadata{labels: {"n": type(1)}}})",
           R"(.metadata.labels.n: - -> "int")"},
          {"a set is merged", R"(Object{metadata: Object.metadata{finalizers: ["a/b", "x/y"]}})",
           ".metadata.finalizers[0]: \"x/y\" -> \"a/b\"\n.metadata.finalizers[1]: - -> \"x/y\""},
          {"a list merges by key",
           R"(Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{volumes: [
                 Object.spec.template.spec.volumes{name: "z"}]}}}})",
           R"(.spec.template.spec.volumes[1]: - -> {"name":"z"})"},
          {"a list of the object can be extended",
           R"(Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{volumes:
                 object.spec.template.spec.volumes + [Object.spec.template.spec.volumes{name: "z"}]}}}})",
           R"(.spec.template.spec.volumes[1]: - -> {"name":"z"})"},
          {"apiVersion and kind stay", R"(Object{apiVersion: "v1", kind: "Pod"})", ""},
      });
}

TEST_F(Mutations, InvalidApplyConfigurationIsRejected) {
  expect(
      deployment_, deployments(), Mutation::Kind::ApplyConfiguration,
      {
          {"does not compile", "Object{spec: nope}",
           "error: compilation failed: ERROR: <input>:1:14: undeclared reference to 'nope' (in container '')\n"
           " | Object{spec: nope}\n"
           " | .............^"},
          {"not an Object", R"({"a": "b"})", "error: must evaluate to Object but got map(string, string)"},
          {"a part of an Object", "Object.spec{}", "error: must evaluate to Object but got Object.spec"},
          {"evaluation fails", R"(Object{metadata: Object.metadata{labels: {"x": string(1/0)}}})",
           R"(error: expression 'Object{metadata: Object.metadata{labels: {"x": string(1/0)}}}' resulted in error: division by zero)"},
          {"a type name that does not match its path", "Object{spec: Object.spec{selector: Object.spec.wrong{}}}",
           R"(error: type mismatch: unexpected type name "Object.spec.wrong", expected "Object.spec.selector", which matches field name path from root Object type)"},
          {"an unknown field", "Object{spec: Object.spec{nope: 3}}",
           kMisfit + ".spec.nope: field not declared in schema"},
          {"a string for a number", R"(Object{spec: Object.spec{replicas: "x"}})",
           kMisfit + ".spec.replicas: expected numeric (int or float), got string"},
          {"several errors", R"(Object{spec: Object.spec{paused: "x", replicas: true}})",
           kMisfit + "errors:\n  .spec.paused: expected boolean, got &{x}\n  .spec.replicas: expected numeric (int or "
                     "float), got bool"},
          {"a string for a map", R"(Object{metadata: "x"})", kMisfit + ".metadata: expected map, got &{x}"},
          {"a string for a list", R"(Object{metadata: Object.metadata{finalizers: "x"}})",
           kMisfit + ".metadata.finalizers: expected list, got &{x}"},
          {"a duplicate element", R"(Object{metadata: Object.metadata{finalizers: ["a/b", "a/b"]}})",
           kMisfit + R"(.metadata.finalizers: duplicate entries for key [="a/b"])"},
          {"an atomic struct", R"(Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"a": "c"}}}})",
           "error: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
           ".spec.selector"},
          {"an atomic list in an item of a list",
           R"(Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
              Object.spec.template.spec.containers{name: "c", args: ["x"]}]}}}})",
           "error: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
           ".spec.template.spec.containers[0].args"},
          {"null for a number", "Object{spec: Object.spec{replicas: null}}",
           kMisfit + ".spec.replicas: expected numeric (int or float), got structpb.NullValue"},
          {"null for a string", R"(Object{metadata: Object.metadata{labels: {"a": null}}})",
           kMisfit + ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:0}"},
          {"an unsigned number", "Object{spec: Object.spec{replicas: 3u}}",
           kMisfit + ".spec.replicas: expected numeric (int or float), got uint64"},
          {"a time", R"(Object{metadata: Object.metadata{creationTimestamp: timestamp("2020-01-01T00:00:00Z")}})",
           kMisfit + ".metadata.creationTimestamp: expected any scalar, got &{2020-01-01 00:00:00 +0000 UTC}"},
          {"a duration", R"(Object{metadata: Object.metadata{labels: {"a": duration("1s")}}})",
           kMisfit + ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1000000000}"},
          {"bytes", R"(Object{metadata: Object.metadata{labels: {"a": b"xx"}}})",
           kMisfit + ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:[]uint8{0x78, 0x78}}"},
          {"a map in a map", R"(Object{metadata: Object.metadata{labels: {"a": {"b": "c"}}}})",
           kMisfit +
               R"(.metadata.labels.a: expected string, got &value.valueUnstructured{Value:map[ref.Val]ref.Val{"b":"c"}})"},
          {"a map in a map, for a map", R"(Object{metadata: {"labels": {"x": "y"}}})",
           kMisfit + ".metadata.labels: expected map, got &{map[x:y]}"},
          {"a map as an item of a keyed list",
           R"(Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{volumes: [{"name": "z"}]}}}})",
           kMisfit +
               ".spec.template.spec.volumes: element 0: associative list with keys may not have non-map elements"},
          {"a list in a list", R"(Object{metadata: Object.metadata{finalizers: [["a/b"]]}})",
           kMisfit +
               R"(.metadata.finalizers[={{undefined}}]: expected string, got &value.valueUnstructured{Value:[]ref.Val{"a/b"}})"},
          {"a key that is not a string", R"(Object{metadata: Object.metadata{labels: {1: "x"}}})",
           kMisfit +
               R"(.metadata: expected map, got &{fail to convert field "labels": map key '\x01' is of type types.Int, not string})"},
      });
}

TEST_F(Mutations, JsonPatchIsApplied) {
  expect(
      deployment_, deployments(), Mutation::Kind::JsonPatch,
      {
          {"a number", R"([JSONPatch{op: "replace", path: "/spec/replicas", value: 3}])", ".spec.replicas: 2 -> 3"},
          {"an unsigned number", R"([JSONPatch{op: "replace", path: "/spec/replicas", value: 3u}])",
           ".spec.replicas: 2 -> 3"},
          {"an integral double", R"([JSONPatch{op: "replace", path: "/spec/replicas", value: 3.0}])",
           ".spec.replicas: 2 -> 3"},
          {"a number that JSON cannot represent", R"([JSONPatch{op: "add", path: "/spec/x", value: 9007199254740993}])",
           R"(.spec.x: - -> "9007199254740993")"},
          {"null", R"([JSONPatch{op: "add", path: "/spec/replicas", value: null}])", ".spec.replicas: 2 -> null"},
          {"a duration", R"([JSONPatch{op: "add", path: "/spec/x", value: duration("90s")}])",
           R"(.spec.x: - -> "90s")"},
          {"bytes", R"([JSONPatch{op: "add", path: "/spec/x", value: b"xx"}])", R"(.spec.x: - -> "eHg=")"},
          {"an optional", R"([JSONPatch{op: "add", path: "/spec/x", value: optional.of("x")}])",
           R"(.spec.x: - -> "x")"},
          {"an Object", R"([JSONPatch{op: "add", path: "/spec/template/spec/volumes/-",
               value: Object.spec.template.spec.volumes{name: "z", emptyDir: Object.spec.template.spec.volumes.emptyDir{}}}])",
           R"(.spec.template.spec.volumes[1]: - -> {"emptyDir":{},"name":"z"})"},
          {"Objects in a list", R"([JSONPatch{op: "add", path: "/spec/x", value: [Object.spec.x{name: "z"}]}])",
           R"(.spec.x: - -> [{"name":"z"}])"},
          {"a key with a slash",
           R"([JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b~c"), value: "x"}])",
           R"(.metadata.labels.a/b~c: - -> "x")"},
          {"a move", R"([JSONPatch{op: "move", from: "/spec/replicas", path: "/spec/minReadySeconds"}])",
           ".spec.replicas: 2 -> -\n.spec.minReadySeconds: - -> 2"},
          {"a test that fails", R"([JSONPatch{op: "test", path: "/spec/replicas", value: 7},
               JSONPatch{op: "remove", path: "/spec/replicas"}])",
           ""},
          {"a test that holds", R"([JSONPatch{op: "test", path: "/spec/replicas", value: 2},
               JSONPatch{op: "remove", path: "/spec/replicas"}])",
           ".spec.replicas: 2 -> -"},
          {"no operation", "[JSONPatch{}].filter(p, false)", ""},
      });
}

TEST_F(Mutations, InvalidJsonPatchIsRejected) {
  const std::string no_json = "error: JSONPath valueExpression evaluated to a type that could not marshal to JSON: ";
  expect(
      deployment_, deployments(), Mutation::Kind::JsonPatch,
      {
          {"one operation", R"(JSONPatch{op: "add"})", "error: must evaluate to list(JSONPatch) but got JSONPatch"},
          {"a list of anything", "[]", "error: must evaluate to list(JSONPatch) but got list(dyn)"},
          {"an unknown operation", R"([JSONPatch{op: "bogus", path: "/spec/replicas"}])",
           "error: JSON Patch: Unexpected kind: bogus"},
          {"a missing op", R"([JSONPatch{path: "/spec/replicas"}])", "error: JSON Patch: Unexpected kind: "},
          {"a missing path", R"([JSONPatch{op: "add", path: "/spec/nope/x", value: 1}])",
           R"(error: JSON Patch: add operation does not apply: doc is missing path: "/spec/nope/x": missing value)"},
          {"an index out of range", R"([JSONPatch{op: "add", path: "/spec/template/spec/volumes/7", value: 1}])",
           "error: JSON Patch: error in add for path: '/spec/template/spec/volumes/7': Unable to access invalid index: "
           "7: invalid index referenced"},
          {"an unreadable path", R"([JSONPatch{op: "add", path: "/metadata/labels/\u0000x", value: "y"}])",
           "error: JSON Patch: add operation failed to decode path: missing value"},
          {"a type", R"([JSONPatch{op: "add", path: "/spec/x", value: type(1)}])",
           no_json + "type conversion not supported for 'type'"},
          {"a quantity", R"([JSONPatch{op: "add", path: "/spec/x", value: quantity("1")}])",
           no_json + "type conversion error from 'Quantity' to '*structpb.Value'"},
          {"an optional without a value", R"([JSONPatch{op: "add", path: "/spec/x", value: optional.none()}])",
           no_json + "optional.none() dereference"},
          {"a map with int keys", R"([JSONPatch{op: "add", path: "/spec/x", value: {1: "x"}}])",
           no_json + "unsupported type conversion from 'int' to string"},
          {"a map with bool keys", R"([JSONPatch{op: "add", path: "/spec/x", value: {true: "x"}}])",
           no_json + "type conversion error from bool to 'string'"},
          {"not a number", R"([JSONPatch{op: "add", path: "/spec/x", value: 0.0/0.0}])",
           no_json + "json: error calling MarshalJSON for type *structpb.Value: proto: "
                     "google.protobuf.Value.number_value: invalid NaN value"},
          {"an operation", R"([JSONPatch{op: "add", path: "/spec/x", value: JSONPatch{}}])",
           no_json + "cannot convert to native type: *structpb.Value"},
          {"null in an Object", R"([JSONPatch{op: "add", path: "/spec", value: Object.spec{replicas: null}}])",
           no_json + "proto: invalid type: structpb.NullValue"},
          {"a wrong type name", R"([JSONPatch{op: "add", path: "/spec", value: Object.spec{x: Object.wrong{}}}])",
           R"(error: type mismatch: unexpected type name "Object.wrong", expected "Object.spec.x", which matches field name path from root Object type)"},
      });
}

TEST_F(Mutations, EachMutationHasItsOwnBudget) {
  int64_t left = 100;
  const std::string adds = R"(Object{spec: Object.spec{replicas: variables.half}})";
  EXPECT_EQ(changes(deployment_, deployments(), Mutation::Kind::ApplyConfiguration, adds, &left),
            ".spec.replicas: 2 -> 1");
  const int64_t cost = 100 - left;
  EXPECT_GT(cost, 80);  // Two structs plus the variable.
  left = cost;
  EXPECT_EQ(changes(deployment_, deployments(), Mutation::Kind::ApplyConfiguration, adds, &left),
            ".spec.replicas: 2 -> 1");
  EXPECT_EQ(left, 0);
  left = cost - 1;
  EXPECT_EQ(changes(deployment_, deployments(), Mutation::Kind::ApplyConfiguration, adds, &left),
            "error: validation failed due to running out of cost budget, no further validation rules will be run");
  EXPECT_EQ(left, -1);
}

// --- Unset markers ---

TEST_F(Mutations, MarkerUnsetsFieldOfBuiltInKind) {
  const std::string below = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{";
  expect(
      deployment_, deployments(), Mutation::Kind::ApplyConfiguration,
      {
          {"a scalar, with its own type name",
           R"(Object{spec: Object.spec{replicas: Object.spec.replicas{k8s_io__value: "unset"}}})",
           ".spec.replicas: 2 -> -"},
          {"a scalar, as a map", R"(Object{spec: Object.spec{replicas: {"k8s_io__value": "unset"}}})",
           ".spec.replicas: 2 -> -"},
          {"an absent field", R"(Object{spec: Object.spec{paused: {"k8s_io__value": "unset"}}})", ""},
          {"a key of a map", R"(Object{metadata: Object.metadata{labels: {"a": {"k8s_io__value": "unset"}}}})",
           R"(.metadata.labels.a: "b" -> -)"},
          {"a key of a map, with its own type name",
           R"(Object{metadata: Object.metadata{labels: {"a": Object.metadata.labels{k8s_io__value: "unset"}}}})",
           R"(.metadata.labels.a: "b" -> -)"},
          {"a key next to one that is set",
           R"(Object{metadata: Object.metadata{labels: {"a": dyn({"k8s_io__value": "unset"}), "b": dyn("c")}}})",
           ".metadata.labels.a: \"b\" -> -\n.metadata.labels.b: - -> \"c\""},
          {"a whole map", R"(Object{metadata: Object.metadata{labels: {"k8s_io__value": "unset"}}})",
           R"(.metadata.labels: {"a":"b"} -> -)"},
          {"a whole set", R"(Object{metadata: Object.metadata{finalizers: {"k8s_io__value": "unset"}}})",
           R"(.metadata.finalizers: ["x/y"] -> -)"},
          {"something atomic", R"(Object{spec: Object.spec{selector: {"k8s_io__value": "unset"}}})",
           R"(.spec.selector: {"matchLabels":{"a":"b"}} -> -)"},
          {"an atomic map", below + R"(nodeSelector: {"k8s_io__value": "unset"}}}}})",
           R"(.spec.template.spec.nodeSelector: {"disk":"ssd"} -> -)"},
          {"an item of a keyed list, which stays as an empty list",
           below + R"(volumes: [Object.spec.template.spec.volumes{name: "vol", k8s_io__value: "unset"}]}}}})",
           R"(.spec.template.spec.volumes[0]: {"emptyDir":{},"name":"vol"} -> -)"},
          {"an item as a map", below + R"(volumes: [{"name": "vol", "k8s_io__value": "unset"}]}}}})",
           R"(.spec.template.spec.volumes[0]: {"emptyDir":{},"name":"vol"} -> -)"},
          {"an item by one key of two, where the other has a default",
           below + R"(containers: [Object.spec.template.spec.containers{name: "c", ports: [
             Object.spec.template.spec.containers.ports{containerPort: 80, k8s_io__value: "unset"}]}]}}}})",
           ".spec.template.spec.containers[0].ports[0].protocol: \"TCP\" -> \"UDP\"\n"
           ".spec.template.spec.containers[0].ports[1]: {\"containerPort\":80,\"protocol\":\"UDP\"} -> -"},
          {"a field of an item",
           below +
               R"(containers: [Object.spec.template.spec.containers{name: "c", image: {"k8s_io__value": "unset"}}]}}}})",
           R"(.spec.template.spec.containers[0].image: "i" -> -)"},
          {"a struct with only markers is not created",
           R"(Object{spec: Object.spec{strategy: Object.spec.strategy{type: {"k8s_io__value": "unset"}}}})", ""},
          {"an element of a set",
           R"(Object{metadata: Object.metadata{finalizers: [Object.metadata.finalizers{k8s_io__value: "unset", value: "x/y"}]}})",
           R"(.metadata.finalizers[0]: "x/y" -> -)"},
      });
}

TEST_F(Mutations, MarkerUnsetsFieldOfCustomResource) {
  expect(
      widget_, widgets(), Mutation::Kind::ApplyConfiguration,
      {
          {"a scalar", R"(Object{spec: Object.spec{size: {"k8s_io__value": "unset"}, enabled: false}})",
           ".spec.enabled: true -> false\n.spec.size: 3 -> -"},
          {"a key of a map", R"(Object{spec: Object.spec{opts: {"a": {"k8s_io__value": "unset"}}}})",
           R"(.spec.opts.a: "x" -> -)"},
          {"the last keys of a map, which stays empty",
           R"(Object{spec: Object.spec{opts: {"a": {"k8s_io__value": "unset"}, "b": {"k8s_io__value": "unset"}}}})",
           ".spec.opts.a: \"x\" -> -\n.spec.opts.b: \"z\" -> -"},
          {"a struct", R"(Object{spec: Object.spec{k8s_io__value: "unset"}})",
           R"(.spec: {"any":{"deep":{"er":1}},"enabled":true,"l":[{"k":"one","m":{"t":"o"},"p":"TCP","v":"q"},{"k":"one","p":"UDP"},{"k":"two","p":"TCP"}],"list":[{"a":"b"}],"opts":{"a":"x","b":"z"},"set":["p","q"],"size":3,"whole":{"a":"c","b":"d"}} -> -)"},
          {"a set", R"(Object{spec: Object.spec{set: {"k8s_io__value": "unset"}}})", R"(.spec.set: ["p","q"] -> -)"},
          {"an atomic struct", R"(Object{spec: Object.spec{whole: Object.spec.whole{k8s_io__value: "unset"}}})",
           R"(.spec.whole: {"a":"c","b":"d"} -> -)"},
          {"an atomic list", R"(Object{spec: Object.spec{list: {"k8s_io__value": "unset"}}})",
           R"(.spec.list: [{"a":"b"}] -> -)"},
          {"something untyped", R"(Object{spec: Object.spec{any: {"k8s_io__value": "unset"}}})",
           R"(.spec.any: {"deep":{"er":1}} -> -)"},
          {"an item by all its keys",
           R"(Object{spec: Object.spec{l: [Object.spec.l{k: "one", p: "UDP", k8s_io__value: "unset"}]}})",
           ".spec.l[1].k: \"one\" -> \"two\"\n.spec.l[1].p: \"UDP\" -> \"TCP\"\n.spec.l[2]: "
           "{\"k\":\"two\",\"p\":\"TCP\"} -> -"},
          {"an item whose other key has a default",
           R"(Object{spec: Object.spec{l: [Object.spec.l{k: "two", k8s_io__value: "unset"}]}})",
           R"(.spec.l[2]: {"k":"two","p":"TCP"} -> -)"},
          {"a key of a map in an item",
           R"(Object{spec: Object.spec{l: [Object.spec.l{k: "one", p: "TCP", m: {"t": {"k8s_io__value": "unset"}}}]}})",
           R"(.spec.l[0].m.t: "o" -> -)"},
          {"a struct with only markers is not created",
           R"(Object{spec: Object.spec{inner: Object.spec.inner{a: {"k8s_io__value": "unset"}}}})", ""},
      });
  // JSON patches treat it as data.
  EXPECT_EQ(changes(widget_, widgets(), Mutation::Kind::JsonPatch,
                    R"([JSONPatch{op: "add", path: "/spec/any", value: {"k8s_io__value": "unset"}}])"),
            ".spec.any.deep: {\"er\":1} -> -\n.spec.any.k8s_io__value: - -> \"unset\"");
}

TEST_F(Mutations, MisplacedMarkerIsRejected) {
  const std::string refused = "error: error applying patch: invalid unset marker at ";
  expect(
      widget_, widgets(), Mutation::Kind::ApplyConfiguration,
      {
          {"another value", R"(Object{spec: Object.spec{size: {"k8s_io__value": "set"}}})",
           refused + R"(.spec.size: the only value of k8s_io__value is "unset", not "set")"},
          {"a value of another kind", R"(Object{spec: Object.spec{size: Object.spec.size{k8s_io__value: true}}})",
           refused + R"(.spec.size: the only value of k8s_io__value is "unset", not a value of another kind)"},
          {"another value in a map of a map", R"(Object{spec: Object.spec{opts: {"a": {"k8s_io__value": "x"}}}})",
           refused + R"(.spec.opts.a: the only value of k8s_io__value is "unset", not "x")"},
          {"another field next to it", R"(Object{spec: Object.spec{size: {"k8s_io__value": "unset", "more": "x"}}})",
           refused + R"(.spec.size: nothing may stand beside k8s_io__value, but "more" does)"},
          {"another field next to it that is not a key",
           R"(Object{spec: Object.spec{l: [Object.spec.l{k: "one", v: "x", k8s_io__value: "unset"}]}})",
           refused +
               R"(.spec.l[k="one",p="TCP"]: only the keys of the list may stand beside k8s_io__value, but "v" does)"},
          {"a missing key", R"(Object{spec: Object.spec{l: [Object.spec.l{p: "TCP", k8s_io__value: "unset"}]}})",
           refused + R"(.spec.l[0]: an item is unset by its keys, but "k" is missing and has no default)"},
          {"in an atomic struct",
           R"(Object{spec: Object.spec{whole: Object.spec.whole{a: {"k8s_io__value": "unset"}}}})",
           refused + ".spec.whole.a: a marker cannot stand inside an atomic map or struct"},
          {"in an atomic list", R"(Object{spec: Object.spec{list: [Object.spec.list{a: {"k8s_io__value": "unset"}}]}})",
           refused + ".spec.list[0].a: a marker cannot stand inside an atomic list"},
          {"an element of a set", R"(Object{spec: Object.spec{set: [{"k8s_io__value": "unset"}]}})",
           refused + ".spec.set[0]: an element of a set cannot be unset; leave it out, or unset the whole set"},
          {"a key of a list", R"(Object{spec: Object.spec{l: [Object.spec.l{k: {"k8s_io__value": "unset"}, v: "x"}]}})",
           refused + ".spec.l[0].k: a key of a list cannot be unset"},
          {"the kind", R"(Object{kind: {"k8s_io__value": "unset"}})", refused + ".kind: this field cannot be unset"},
          {"the version", R"(Object{apiVersion: Object.apiVersion{k8s_io__value: "unset"}})",
           refused + ".apiVersion: this field cannot be unset"},
          {"the object itself", R"(Object{k8s_io__value: "unset"})",
           refused + ".: an object cannot be unset as a whole"},
          {"an item that is set too",
           R"(Object{spec: Object.spec{l: [Object.spec.l{k: "two", v: "x"}, Object.spec.l{k: "two", k8s_io__value: "unset"}]}})",
           refused + R"(.spec.l[k="two",p="TCP"]: the configuration names this item twice)"},
      });
}

}  // namespace
}  // namespace holdfast::policy
