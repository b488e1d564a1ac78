// cost_driver CASE SIZE: one operation on the worst known input of that size; tests/cost/cost_test.py counts its
// instructions. Without arguments, prints the names of all cases.
// cost_driver --sweep: validates an object for every list and map of every built-in kind, short and long, and prints
// those whose time grows faster than their size. For finding new cases; times depend on the machine.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "crd/crd.h"
#include "kinds/kinds.h"
#include "ownership/ownership.h"
#include "patch/patch.h"
#include "rbac/rbac.h"
#include "request/negotiate.h"
#include "schema/schema.h"
#include "types/types.h"

using namespace holdfast;  // NOLINT

namespace {

using Work = std::function<void(size_t size)>;

[[noreturn]] void fail(const std::string& why) {
  fprintf(stderr, "%s\n", why.c_str());
  exit(1);
}

// The results of `each` for 0 to count - 1, separated by commas.
std::string listed(size_t count, const std::function<std::string(size_t)>& each) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += (i > 0 ? "," : "") + each(i);
  return out;
}
std::string quoted(const std::string& text) { return '"' + text + '"'; }
std::string number(size_t i) { return std::to_string(i); }

std::string distinct_keys(size_t count) {
  return "{" + listed(count, [](size_t i) { return quoted("k" + number(i)) + ":1"; }) + "}";
}

// Keys that would crowd a linearly probed table into an eighth of its slots, if it used an unseeded hash.
std::string colliding_keys(size_t count) {
  const size_t slots = std::bit_ceil(2 * count), crowded = std::max<size_t>(slots / 8, 1);
  size_t tried = 0;
  return "{" +
         listed(count,
                [&](size_t) {
                  std::string key;
                  do key = number(tried++);
                  while (hash_bytes(key) % slots >= crowded);
                  return quoted(key) + ":1";
                }) +
         "}";
}

Value json(Arena& arena, const std::string& text, const codec::JsonOptions& options = {}) {
  Result<Value> value = codec::decode_json(arena, arena.copy(text), options);
  if (!value) fail(value.error().message);
  return *value;
}

std::string ports(size_t count, const std::string& prefix) {
  return "{\"spec\":{\"ports\":[" +
         listed(
             count,
             [&](size_t i) { return "{\"name\":" + quoted(prefix + number(i)) + ",\"port\":" + number(i + 1) + "}"; }) +
         "]}}";
}

void strategic(size_t size, const std::string& patch_prefix) {
  Arena arena;
  const types::Resource* services = types::find_kind("", "v1", "Service");
  Result<Value> merged = patch::apply_strategic_patch(arena, json(arena, ports(size, "p")),
                                                      json(arena, ports(size, patch_prefix)), *services->type);
  if (!merged) fail(merged.error().message);
}

// {"k0":"value",...}
std::string data(size_t count, const std::string& value) {
  return "{" + listed(count, [&](size_t i) { return quoted("k" + number(i)) + ":" + quoted(value); }) + "}";
}

// Entries of distinct managers, each of which owns one field: .member.k0, .member.k1, ...
ownership::Managed managers(Arena& arena, size_t count, ownership::Operation operation, std::string_view api_version,
                            const std::string& member) {
  ownership::Managed out;
  for (size_t i = 0; i < count; ++i) {
    Result<ownership::FieldSet> set = ownership::parse_fields_v1(
        arena, arena.copy(std::string_view("{\"f:" + member + "\":{\"f:k" + number(i) + "\":{}}}")));
    if (!set) fail(set.error().message);
    out.push_back({.manager = arena.copy(std::string_view("m" + number(i))),
                   .operation = operation,
                   .api_version = api_version,
                   .time = static_cast<int64_t>(i),
                   .fields = *set});
  }
  return out;
}

// An update of a ConfigMap with these owners.
void update_config_map(Arena& arena, const ownership::Managed& owners, const std::string& before,
                       const std::string& after) {
  ownership::FieldManagerOptions options{.api_version = "v1", .kind = "ConfigMap"};
  options.versions.push_back(
      {"v1", &ownership::builtin_merge_types().of(*types::find_kind("", "v1", "ConfigMap")->type)});
  const ownership::FieldManager manager(std::move(options));
  const auto object = [&](const std::string& data) {
    return json(arena, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"1"},"data":)" +
                           (data.empty() ? "{}" : data) + "}");
  };
  const Value live = object(before);
  const ownership::UpdateResult updated = manager.update(
      arena,
      {.live = &live, .live_managed = &owners, .object = object(after), .manager = "me", .now = {1700000000, 0}});
  if (!updated.problem.empty()) fail(updated.problem);
}

// Defaults, validation and warnings, as for a create and for an update without changes. The findings do not matter.
void validate(Arena& arena, const types::Resource& resource, const Value& tree) {
  Result<Value> typed = codec::to_typed(arena, *resource.type, tree);
  if (!typed) fail(typed.error().message);
  Draft draft(arena, *typed);
  kinds::set_defaults(arena, resource, draft.root());
  kinds::Context context{.arena = arena, .resource = resource, .now = {1700000000, 0}};
  const Value object = draft.value();
  (void)kinds::validate_create(context, object);
  (void)kinds::validate_update(context, kinds::Endpoint::Main, object, object);
  if (kinds::rules_of(resource).has_status)
    (void)kinds::validate_update(context, kinds::Endpoint::Status, object, object);
  Warnings warnings;
  kinds::add_warnings(context, object, nullptr, kinds::Endpoint::Main, warnings);
}
void validate(std::string_view group, std::string_view version, std::string_view kind, const std::string& text) {
  Arena arena;
  validate(arena, *types::find_kind(group, version, kind), json(arena, text));
}
void validate_pod(const std::string& spec) {
  validate("", "v1", "Pod", R"({"metadata":{"name":"p","namespace":"n"},"spec":{)" + spec + "}}");
}
// Validates a pod with one container that has these members.
void validate_container(const std::string& members) {
  validate_pod(R"("containers":[{"name":"c","image":"i",)" + members + "}]");
}

// An item of a list or a map: string and number members make it unique.
Value filled(Arena& arena, const types::Type& type, size_t i) {
  using types::Shape;
  switch (type.shape) {
    case Shape::Struct: {
      MapBuilder map(arena);
      for (const types::Field* field : type.members) {
        const Shape shape = field->type->shape;
        if (shape == Shape::String || shape == Shape::Int32 || shape == Shape::Int64) {
          map.add(field->name, filled(arena, *field->type, i));
        }
      }
      return map.build();
    }
    case Shape::Int32:
    case Shape::Int64:
      return Value::integer(static_cast<int64_t>(i % 60000 + 1));
    case Shape::Quantity:
    case Shape::IntOrString:
      return Value::string(arena, number(i % 1000 + 1));
    case Shape::String:
    case Shape::Any:
      return Value::string(arena, "x" + number(i));
    default:
      return Value::null();
  }
}

struct Place {
  const types::Resource* resource;
  std::vector<const types::Field*> path;  // The last one is a list or a map.
};

Value object_with(Arena& arena, const Place& place, size_t count) {
  const types::Type& last = *place.path.back()->type;
  Value value;
  if (last.shape == types::Shape::List) {
    ListBuilder list(arena);
    for (size_t i = 0; i < count; ++i) list.add(filled(arena, *last.element, i));
    value = list.build();
  } else {
    MapBuilder map(arena);
    for (size_t i = 0; i < count; ++i) map.add(arena.copy("k" + number(i)), filled(arena, *last.element, i));
    value = map.build();
  }
  for (size_t i = place.path.size(); i-- > 0;) {
    MapBuilder map(arena);
    if (i > 0) {
      // The list above has one item of this type.
      const types::Type& parent = *place.path[i - 1]->type;
      map.add(place.path[i]->name, value);
      value = map.build();
      if (parent.shape == types::Shape::List) {
        ListBuilder one(arena);
        one.add(value);
        value = one.build();
      } else if (parent.shape == types::Shape::Map) {
        MapBuilder one(arena);
        one.add("k", value);
        value = one.build();
      }
    } else {
      map.add(place.path[0]->name, value);
      value = map.build();
    }
  }
  const Value name = json(arena, R"({"name":"x","namespace":"n"})");
  if (place.path[0]->name == "metadata") {
    Draft draft(arena, value);
    draft.root().child("metadata").set("name", Value::string("x"));
    return draft.value();
  }
  return with_member(arena, value, "metadata", name);
}

void collect(const types::Resource& resource, const types::Type& type, std::vector<const types::Field*>& path,
             std::set<const types::Field*>& seen, std::vector<Place>& out) {
  if (path.size() > 12) return;
  for (const types::Field* field : type.members) {
    if (!field->exists(nullptr) || !seen.insert(field).second) continue;
    path.push_back(field);
    const types::Type* below = field->type;
    if (below->shape == types::Shape::List || below->shape == types::Shape::Map) {
      out.push_back({&resource, path});
      below = below->element;
    }
    if (below->shape == types::Shape::Struct) collect(resource, *below, path, seen, out);
    path.pop_back();
  }
}

int sweep() {
  std::vector<Place> places;
  std::set<const types::Field*> seen;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (resource.type == nullptr || resource.storage_prefix.empty()) continue;
    std::vector<const types::Field*> path;
    collect(resource, *resource.type, path, seen, places);
  }
  const auto seconds = [](const Place& place, size_t count) {
    Arena arena;
    const Value object = object_with(arena, place, count);
    const auto begin = std::chrono::steady_clock::now();
    validate(arena, *place.resource, object);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (const Place& place : places) {
    std::string name(place.resource->kind);
    for (const types::Field* field : place.path) name += "." + std::string(field->name);
    const double few = seconds(place, 1000), many = seconds(place, 8000);
    if (many > 0.01 && many > 20 * few) printf("%-90s %7.3f s %7.3f s  %.0fx\n", name.c_str(), few, many, many / few);
  }
  printf("%zu lists and maps\n", places.size());
  return 0;
}

rbac::Rule wide_rule(size_t size) {
  rbac::Rule rule;
  for (size_t i = 0; i < size; ++i) {
    rule.verbs.push_back("v" + number(i));
    rule.groups.push_back("g" + number(i));
    rule.resources.push_back("r" + number(i));
    rule.names.push_back("n" + number(i));
  }
  return rule;
}

const std::map<std::string, Work>& cases() {
  static const std::map<std::string, Work> all = {
      {"json, distinct keys",
       [](size_t n) {
         Arena arena;
         json(arena, distinct_keys(n));
       }},
      {"json, keys that collide",
       [](size_t n) {
         Arena arena;
         const Value map = json(arena, colliding_keys(n));
         for (const Member& member : map.members()) {
           if (!map.has(member.key)) fail("a key is lost");
         }
       }},
      {"json, one key again and again",
       [](size_t n) {
         Arena arena;
         std::vector<std::string> found;
         json(arena, "{" + listed(n, [](size_t i) { return "\"a\":{\"k" + number(i) + "\":1}"; }) + "}",
              {.duplicates = &found, .merge_duplicate_maps = true});
       }},
      {"json, keys given twice below a long path",
       [](size_t n) {
         Arena arena;
         std::vector<std::string> found;
         json(arena,
              "{\"" + std::string(n, 'x') + "\":{" + listed(n, [](size_t) { return "\"b\":{\"a\":1,\"a\":2}"; }) + "}}",
              {.duplicates = &found});
       }},
      {"json, escapes",
       [](size_t n) {
         Arena arena;
         json(arena, "[" + listed(n, [](size_t) { return R"("\u00e4\n\"\\x")"; }) + "]");
       }},
      {"yaml, distinct keys",
       [](size_t n) {
         Arena arena;
         std::string text;
         for (size_t i = 0; i < n; ++i) text += "k" + number(i) + ": 1\n";
         if (!codec::decode_yaml(arena, text)) fail("yaml");
       }},
      {"cbor, distinct keys",
       [](size_t n) {
         Arena arena;
         if (!codec::decode_cbor(arena, codec::encode_cbor(json(arena, distinct_keys(n))))) fail("cbor");
       }},
      {"typed, unknown fields with their errors",
       [](size_t n) {
         Arena arena;
         const types::Resource* pods = types::find_kind("", "v1", "Pod");
         const std::string text = "{\"spec\":" + distinct_keys(n) + "}";
         if (!codec::to_typed(arena, *pods->type, json(arena, text))) fail("typed");
         codec::strict_json_errors(*pods->type, text);
       }},
      {"json patch, additions and tests",
       [](size_t n) {
         Arena arena;
         const std::string patch = "[" +
                                   listed(n,
                                          [](size_t i) {
                                            return "{\"op\":\"add\",\"path\":\"/a/k" + number(i) +
                                                   "\",\"value\":{}},{\"op\":\"test\",\"path\":\"\",\"value\":{}}";
                                          }) +
                                   "]";
         (void)patch::apply_json_patch(arena, json(arena, "{\"a\":" + distinct_keys(n) + "}"), json(arena, patch));
       }},
      {"json patch, moves between deep places",
       [](size_t n) {
         Arena arena;
         std::string deep = "{}", path;
         for (int i = 0; i < 500; ++i) deep = "{\"a\":" + deep + "}", path += "/a";
         const std::string patch =
             "[" +
             listed(n,
                    [&](size_t i) {
                      return i % 2 == 0 ? "{\"op\":\"move\",\"from\":\"/s\",\"path\":\"/d" + path + "/s\"}"
                                        : "{\"op\":\"move\",\"from\":\"/d" + path + "/s\",\"path\":\"/s\"}";
                    }) +
             "]";
         (void)patch::apply_json_patch(arena, json(arena, "{\"s\":" + deep + ",\"d\":" + deep + "}"),
                                       json(arena, patch));
       }},
      {"merge patch",
       [](size_t n) {
         Arena arena;
         if (!patch::apply_merge_patch(arena, json(arena, distinct_keys(n)), json(arena, distinct_keys(n))))
           fail("merge");
       }},
      {"strategic patch, the same items", [](size_t n) { strategic(n, "p"); }},
      {"strategic patch, other items", [](size_t n) { strategic(n, "q"); }},
      {"FieldsV1, values that are maps",
       [](size_t n) {
         Arena arena;
         std::string key;
         codec::encode_json_string("v:" + distinct_keys(n), key);
         if (!ownership::parse_fields_v1(arena, "{" + key + ":{}}")) fail("FieldsV1");
       }},
      {"FieldsV1, values in no order",
       [](size_t n) {
         Arena arena;
         const std::string text =
             "{" +
             listed(
                 n,
                 [&](size_t i) { return "\"v:" + number((i * 7919) % n) + "\":{},\"f:x" + number(n - i) + "\":{}"; }) +
             "}";
         Result<ownership::FieldSet> set = ownership::parse_fields_v1(arena, std::string_view(text));
         if (!set || !ownership::parse_fields_v2(arena, arena.copy(ownership::to_fields_v2(*set)))) fail("FieldsV1");
       }},
      {"pruning, unknown fields below a long key",
       [](size_t n) {
         Arena arena;
         const auto schema = schema::Schema::build(
             json(arena,
                  R"({"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}})"),
             false);
         std::vector<std::string> unknown;
         schema::prune(arena, schema->root(), json(arena, "{\"" + std::string(n, 'x') + "\":" + distinct_keys(n) + "}"),
                       &unknown);
       }},
      {"pod, containers",
       [](size_t n) {
         const auto containers = [&](const char* prefix) {
           return "[" +
                  listed(n,
                         [&](size_t i) {
                           return "{\"name\":" + quoted(prefix + number(i)) +
                                  ",\"image\":\"i\",\"ports\":[{\"containerPort\":80,"
                                  "\"hostPort\":" +
                                  number(i % 60000 + 1) + ",\"name\":" + quoted("p" + number(i)) + "}]}";
                         }) +
                  "]";
         };
         validate_pod("\"containers\":" + containers("c") + ",\"initContainers\":" + containers("i"));
       }},
      {"pod, volumes and their mounts",
       [](size_t n) {
         validate_pod(R"("containers":[{"name":"c","image":"i","volumeMounts":[)" +
                      listed(n,
                             [](size_t i) {
                               return "{\"name\":" + quoted("v" + number(i)) +
                                      ",\"mountPath\":" + quoted("/m" + number(i)) + "}";
                             }) +
                      R"(],"volumeDevices":[)" +
                      listed(n,
                             [](size_t i) {
                               return "{\"name\":" + quoted("d" + number(i)) +
                                      ",\"devicePath\":" + quoted("/d" + number(i)) + "}";
                             }) +
                      R"(]}],"volumes":[)" +
                      listed(n,
                             [](size_t i) {
                               return "{\"name\":" + quoted("v" + number(i)) +
                                      ",\"persistentVolumeClaim\":{\"claimName\":\"p-c\"}},"
                                      "{\"name\":" +
                                      quoted("d" + number(i)) +
                                      ",\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{}}}}";
                             }) +
                      "]");
       }},
      {"pod, environment and ports",
       [](size_t n) {
         validate_container("\"env\":[" +
                            listed(n, [](size_t i) { return "{\"name\":" + quoted("E" + number(i)) + "}"; }) +
                            "],\"ports\":[" +
                            listed(n,
                                   [](size_t i) {
                                     return "{\"name\":" + quoted("p" + number(i)) +
                                            ",\"containerPort\":" + number(i % 60000 + 1) + "}";
                                   }) +
                            "],\"resources\":{\"claims\":[" +
                            listed(n, [](size_t i) { return "{\"name\":" + quoted("c" + number(i)) + "}"; }) + "]}");
       }},
      {"pod, tolerations and gates",
       [](size_t n) {
         validate_pod(
             "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}],\"tolerations\":[" +
             listed(n, [](size_t i) { return "{\"key\":" + quoted("k" + number(i)) + ",\"operator\":\"Exists\"}"; }) +
             "],\"schedulingGates\":[" +
             listed(n, [](size_t i) { return "{\"name\":" + quoted("g" + number(i)) + "}"; }) + "]");
       }},
      {"pod, files of a volume with one path",
       [](size_t n) {
         validate_pod(
             R"("containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","configMap":{"name":"c","items":[)" +
             listed(n, [](size_t) { return std::string(R"({"key":"k","path":"p"})"); }) + "]}}]");
       }},
      {"pod, files of a volume below each other",
       [](size_t n) {
         validate_pod(
             R"("containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","configMap":{"name":"c","items":[)" +
             listed(
                 n,
                 [](size_t i) { return R"({"key":"k","path":)" + quoted(i % 2 == 0 ? "p" : "q/" + number(i)) + "}"; }) +
             "]}}]");
       }},
      {"pod, topology spread constraints",
       [](size_t n) {
         validate_pod(R"("containers":[{"name":"c","image":"i"}],"topologySpreadConstraints":[)" +
                      listed(n,
                             [](size_t i) {
                               return R"({"maxSkew":1,"whenUnsatisfiable":"DoNotSchedule","topologyKey":)" +
                                      quoted("k" + number(i)) + R"(,"labelSelector":{"matchLabels":{"a":"b"}}})";
                             }) +
                      "]");
       }},
      {"Accept, quotes without an end",
       [](size_t n) {
         std::string header = "a/b;x=\"";
         for (size_t i = 0; i < n; ++i) header += "\\\";";
         (void)request::parse_accept(header);
         (void)request::check_accept_route(header, true, Gates());
       }},
      {"Accept, different parameters",
       [](size_t n) {
         std::string header = "a/b";
         for (size_t i = 0; i < n; ++i) header += ";p" + number(i) + "=1";
         (void)request::parse_accept(header);
       }},
      {"secret, texts",
       [](size_t n) {
         validate("", "v1", "Secret",
                  R"({"metadata":{"name":"s","namespace":"n"},"data":{"k0":"eA=="},"stringData":{)" +
                      listed(n, [](size_t i) { return quoted("k" + number(i)) + R"(:"x")"; }) + "}}");
       }},
      {"service, node ports",
       [](size_t n) {
         validate("", "v1", "Service",
                  R"({"metadata":{"name":"s","namespace":"n"},"spec":{"type":"NodePort","ports":[)" +
                      listed(n,
                             [](size_t i) {
                               return "{\"name\":" + quoted("p" + number(i)) + ",\"port\":" + number(i % 60000 + 1) +
                                      ",\"nodePort\":" + number(i % 60000 + 1) + "}";
                             }) +
                      "]}}");
       }},
      {"job, exit codes",
       [](size_t n) {
         validate(
             "batch", "v1", "Job",
             R"({"metadata":{"name":"j","namespace":"n"},"spec":{"template":{"spec":{"restartPolicy":"Never",)"
             R"("containers":[{"name":"c","image":"i"}]}},"podFailurePolicy":{"rules":[{"action":"Ignore","onExitCodes":)"
             R"({"operator":"In","values":[)" +
                 listed(n, [](size_t i) { return number(i + 1); }) + "]}}]}}}");
       }},
      {"certificate request, usages",
       [](size_t n) {
         validate("certificates.k8s.io", "v1", "CertificateSigningRequest",
                  R"({"metadata":{"name":"r"},"spec":{"request":"eA==","signerName":"a.b/c","usages":[)" +
                      listed(n, [](size_t i) { return quoted("u" + number(i)); }) + "]}}");
       }},
      {"finalizers and owners",
       [](size_t n) {
         validate("", "v1", "ConfigMap",
                  R"({"metadata":{"name":"c","namespace":"n","deletionTimestamp":"2026-01-01T00:00:00Z",)"
                  R"("finalizers":[)" +
                      listed(n, [](size_t i) { return quoted("a.b/f" + number(i)); }) + R"(],"ownerReferences":[)" +
                      listed(n,
                             [](size_t i) {
                               return "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":" +
                                      quoted("u" + number(i)) + "}";
                             }) +
                      "]}}");
       }},
      {"managedFields of many managers",
       [](size_t n) {
         Arena arena;
         const Value entries =
             json(arena, "[" + listed(n, [](size_t i) {
                           return "{\"manager\":" + quoted("m" + number(i)) +
                                  R"(,"operation":"Update",)"
                                  R"("apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",)"
                                  R"("fieldsV1":{"f:data":{"f:a":{}}}})";
                         }) + "]");
         if (!ownership::decode_managed(arena, entries)) fail("managedFields");
       }},
      {"managedFields in reverse order",
       [](size_t n) {
         Arena arena;
         ownership::Managed managed = managers(arena, n, ownership::Operation::Apply, "v1", "data");
         std::reverse(managed.begin(), managed.end());
         ownership::sort_managed(managed);
       }},
      {"managedFields, more update managers than are kept",
       [](size_t n) {
         Arena arena;
         update_config_map(arena, managers(arena, n, ownership::Operation::Update, "v1", "data"), {}, {});
       }},
      {"managedFields, many managers of many fields that change",
       [](size_t n) {
         Arena arena;
         update_config_map(arena, managers(arena, n, ownership::Operation::Apply, "v1", "data"), data(n, "x"),
                           data(n, "y"));
       }},
      {"managedFields, scale of an object with many managers",
       [](size_t n) {
         Arena arena;
         const ownership::ReplicasPath paths[] = {{"apps/v1", "spec.replicas"}};
         const std::string fields = R"({"f:spec":{"f:replicas":{}}})";
         ownership::Managed parent = managers(arena, n, ownership::Operation::Apply, "apps/v1", "spec");
         for (ownership::ManagerEntry& entry : parent) entry.fields = *ownership::parse_fields_v1(arena, fields);
         const ownership::Managed scale = ownership::scale_entries(arena, parent, paths);
         if (scale.size() != n || ownership::parent_entries(arena, parent, scale, "apps/v1", paths).size() != n) {
           fail("scale");
         }
       }},
      {"apply with many conflicts under a long key",
       [](size_t n) {
         Arena arena;
         const ownership::MergeType& type = ownership::MergeTypes::deduced();
         ownership::FieldManagerOptions options{.api_version = "e.com/v1", .kind = "W"};
         options.versions.push_back({"e.com/v1", &type});
         const ownership::FieldManager manager(std::move(options));
         const auto object = [&](const char* value) {
           return json(arena, R"({"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"w"},"spec":{)" +
                                  quoted(std::string(n * 10, 'k')) + ":" + data(n, value) + "}}");
         };
         const Value before = object("x"), after = object("y");
         ownership::Managed owners;
         const std::string other = "other", me = "me";
         Result<ownership::ApplyResult> first =
             manager.apply(arena, {.config = before, .manager = other, .now = {1, 0}});
         if (!first) fail(first.error().message);
         if (manager.apply(arena, {.live = &first->object,
                                   .live_managed = &first->managed,
                                   .config = after,
                                   .manager = me,
                                   .now = {2, 0}})) {
           fail("no conflict");
         }
       }},
      {"apply that unsets the fields of many managers",
       [](size_t n) {
         Arena arena;
         const ownership::MergeType& type = ownership::MergeTypes::deduced();
         ownership::FieldManagerOptions options{.api_version = "e.com/v1", .kind = "W"};
         options.versions.push_back({"e.com/v1", &type});
         const ownership::FieldManager manager(std::move(options));
         const auto object = [&](const std::string& map) {
           return json(arena, R"({"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"w"},"data":)" + map + "}");
         };
         const Value live = object(data(n, "x"));
         const Value config = object(
             "{" + listed(n, [](size_t i) { return quoted("k" + number(i)) + R"(:{"k8s_io__value":"unset"})"; }) + "}");
         const ownership::Managed owners = managers(arena, n, ownership::Operation::Apply, "e.com/v1", "data");
         const std::string me = "me";
         Result<ownership::ApplyResult> applied = manager.apply(
             arena,
             {.live = &live, .live_managed = &owners, .config = config, .manager = me, .force = true, .now = {2, 0}});
         if (!applied) fail(applied.error().message);
       }},
      {"schema, required properties",
       [](size_t n) {
         Arena arena;
         const std::string names = listed(n, [](size_t i) { return quoted("p" + number(i)); });
         (void)schema::Schema::build(
             json(arena, R"({"type":"object","required":[)" + names + R"(],"properties":{)" +
                             listed(n, [](size_t i) { return quoted("p" + number(i)) + R"(:{"type":"string"})"; }) +
                             "}}"),
             false);
       }},
      {"RBAC, roles that are gathered",
       [](size_t n) {
         Arena arena;
         rbac::Index::Objects roles;
         for (size_t i = 0; i < n; ++i) {
           roles.emplace(number(i), json(arena, R"({"metadata":{"name":"r)" + number(i) +
                                                    R"(","labels":{"a":"b"}},"rules":[{)"
                                                    R"("verbs":["get"],"apiGroups":[""],"resources":["r)" +
                                                    number(i) + R"("]}]})"));
         }
         (void)rbac::aggregate(arena,
                               json(arena, R"({"metadata":{"name":"all"},"aggregationRule":{"clusterRoleSelectors":)"
                                           R"([{"matchLabels":{"a":"b"}}]}})"),
                               roles);
       }},
      {"RBAC, a rule that is held",
       [](size_t n) {
         if (!rbac::covers({wide_rule(n)}, {wide_rule(n)})) fail("covers");
       }},
      {"RBAC, many rules that are held",
       [](size_t n) {
         std::vector<rbac::Rule> rules;
         for (size_t i = 0; i < n; ++i) rules.push_back({{"get"}, {""}, {"pods"}, {"n" + number(i)}, {}});
         if (!rbac::covers(rules, rules)) fail("covers");
       }},
      {"RBAC, a rule that is not held",
       [](size_t n) {
         std::vector<rbac::Rule> missing;
         if (rbac::covers(std::vector<rbac::Rule>(), {wide_rule(n)}, &missing)) fail("covers");
       }},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--sweep") return sweep();
  if (argc < 3) {
    for (const auto& [name, work] : cases()) puts(name.c_str());
    return 0;
  }
  const auto found = cases().find(argv[1]);
  if (found == cases().end()) fail(std::string("there is no case ") + argv[1]);
  found->second(static_cast<size_t>(atoll(argv[2])));
  return 0;
}
