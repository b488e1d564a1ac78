// Arbitrary sequences of applies and updates on a custom resource with every kind of field: nothing crashes, and
// accepted writes keep the invariants. The input is YAML texts, one per line; the first byte of each line selects the
// operation and the manager.
#include <cstdlib>
#include <memory>

#include "codec/codec.h"
#include "ownership/ownership.h"
#include "schema/schema.h"

using namespace holdfast;
using namespace holdfast::ownership;

namespace {

constexpr std::string_view kSchema = R"({type: object, properties: {
  s: {type: string}, i: {type: integer, default: 1}, b: {type: boolean}, io: {x-kubernetes-int-or-string: true},
  any: {x-kubernetes-preserve-unknown-fields: true},
  st: {type: object, properties: {a: {type: string}, c: {type: integer}}},
  at: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}},
  m: {type: object, additionalProperties: {type: string}},
  l: {type: array, items: {type: string}},
  se: {type: array, x-kubernetes-list-type: set, items: {type: string}},
  k: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, p], items: {type: object,
      properties: {k: {type: string}, p: {type: string, default: T}, v: {type: integer}, m: {type: object, additionalProperties: {type: string}}}}}}})";

struct World {
  Arena arena;
  std::shared_ptr<const schema::Schema> schema;
  MergeTypes types;
  std::unique_ptr<FieldManager> manager;
  World() {
    schema = schema::Schema::build(*codec::decode_yaml(arena, kSchema), false);
    FieldManagerOptions options;
    options.api_version = "e.com/v1";
    options.kind = "W";
    options.versions.push_back({"e.com/v1", &types.of(schema->root())});
    options.unset_markers = true;
    options.declared_defaults = [this](Arena& a, const Value& object) {
      return schema::apply_defaults(a, schema->root(), object);
    };
    manager = std::make_unique<FieldManager>(std::move(options));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World& world = *new World;
  Arena arena;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Value live;
  bool exists = false;
  Managed managed;
  for (int steps = 0; steps < 16 && !rest.empty(); ++steps) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (line.empty()) continue;
    const Result<Value> body = codec::decode_yaml(arena, line.substr(1));
    if (!body || !body->is_map()) continue;
    Value object = with_member(arena, *body, "apiVersion", Value::string("e.com/v1"));
    object = with_member(arena, object, "kind", Value::string("W"));
    const std::string_view names[] = {"a", "b", "kubectl"};
    const std::string_view who = names[static_cast<unsigned char>(line[0]) / 4 % 3];
    const Value* current = exists ? &live : nullptr;
    if (line[0] % 4 < 3) {
      ApplyRequest request{
          .live = current, .live_managed = &managed, .config = object, .manager = who, .now = {steps, 0}};
      request.force = line[0] % 4 == 2;
      Result<ApplyResult> result = world.manager->apply(arena, request);
      if (!result) continue;
      // Applying the same again changes nothing from the third time on: Kubernetes needs two more applies where a list
      // was emptied.
      live = result->object;
      managed = result->managed;
      exists = true;
      request.live = &live;
      request.force = true;
      for (int again = 0; again < 3; ++again) {
        Result<ApplyResult> twice = world.manager->apply(arena, request);
        if (!twice) std::abort();
        if (again == 2 && (twice->changed || !equal(twice->managed, managed)) && who != "kubectl") std::abort();
        live = twice->object;
        managed = twice->managed;
      }
    } else {
      UpdateRequest request{
          .live = current, .live_managed = &managed, .object = object, .manager = who, .now = {steps, 0}};
      UpdateResult result = world.manager->update(arena, request);
      if (!result.problem.empty()) continue;
      live = result.object;
      managed = result.managed;
      exists = true;
    }
    const Value list = encode_managed(arena, managed);
    Result<Managed> back = decode_managed(arena, list);
    if (!back || back->size() != managed.size()) std::abort();
  }
  return 0;
}
