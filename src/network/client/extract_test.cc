// Extracting what a manager applied and applying it again changes nothing: random configurations of every built-in kind
// and of a custom resource with defaults, with fields unset, applied by two managers that do not take each other's
// fields.
#include <gtest/gtest.h>

#include <random>

#include "client/client.h"
#include "ownership/ownership.h"
#include "schema/schema.h"
#include "types/types.h"

namespace holdfast::client {
namespace {

class RandomConfigs {
 public:
  explicit RandomConfigs(uint64_t seed) : random_(seed) {}

  Value config(Arena& arena, const types::Type& type, std::string_view api_version, std::string_view kind) {
    MapBuilder metadata(arena), config(arena);
    metadata.add("name", Value::string("a"));
    MapBuilder labels(arena);
    labels.add("l", chance(20) ? marker(arena) : Value::string(arena, std::to_string(below(3))));
    if (chance(50)) metadata.add("labels", labels.build());
    config.add("apiVersion", Value::string(arena, api_version));
    config.add("kind", Value::string(arena, kind));
    config.add("metadata", metadata.build());
    for (const types::Field* member : type.members) {
      if (member->name == "apiVersion" || member->name == "kind" || member->name == "metadata") continue;
      if (chance(70)) add(arena, config, *member, 0);
    }
    return config.build();
  }

 private:
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  bool chance(size_t percent) { return below(100) < percent; }

  static Value marker(Arena& arena) {
    MapBuilder map(arena);
    map.add(ownership::kUnsetKey, Value::string(ownership::kUnsetValue));
    return map.build();
  }

  void add(Arena& arena, MapBuilder& map, const types::Field& member, int depth) {
    if (member.gate != Gate::kCount) return;
    if (chance(15)) return map.add(member.name, marker(arena));
    if (const std::optional<Value> made = value(arena, *member.type, depth + 1)) map.add(member.name, *made);
  }

  std::optional<Value> value(Arena& arena, const types::Type& type, int depth) {
    using types::Shape;
    switch (type.shape) {
      case Shape::Bool:
        return Value::boolean(chance(50));
      case Shape::Int32:
      case Shape::Int64:
      case Shape::IntOrString:
        return Value::integer(static_cast<int64_t>(below(4)));
      case Shape::Double:
        return Value::number(1.5);
      case Shape::String:
        return Value::string(arena, "t" + std::to_string(below(4)));
      case Shape::Bytes:
        return Value::string("AAEC");
      case Shape::Quantity:
        return Value::string("1");
      case Shape::Time:
        return Value::string("2026-01-02T03:04:05Z");
      case Shape::List:
        return depth > 8 ? std::nullopt : non_empty(list(arena, type, depth));
      case Shape::Map: {
        MapBuilder map(arena);
        for (const std::string_view key : {"k1", "k.2/x"}) {
          if (chance(20)) {
            map.add(key, marker(arena));
          } else if (const std::optional<Value> made = value(arena, *type.element, depth + 1)) {
            map.add(key, *made);
          }
        }
        return non_empty(map.build());
      }
      case Shape::Struct: {
        if (type.members.empty() || depth > 8) return std::nullopt;
        MapBuilder map(arena);
        const size_t percent = std::max<size_t>(10, 300 / type.members.size());
        for (const types::Field* member : type.members) {
          if (chance(percent)) add(arena, map, *member, depth);
        }
        return non_empty(map.build());
      }
      default:
        return std::nullopt;
    }
  }

  static std::optional<Value> non_empty(Value value) {
    return value.count() == 0 ? std::nullopt : std::optional<Value>(value);
  }

  Value list(Arena& arena, const types::Type& type, int depth) {
    ListBuilder items(arena);
    const size_t count = below(3);
    for (size_t i = 0; i < count; ++i) {
      if (type.list_kind != types::ListKind::Keyed) {
        // The items of a set differ.
        const types::Shape shape = type.element->shape;
        if (shape == types::Shape::String) {
          items.add(Value::string(arena, "s" + std::to_string(i)));
        } else if (type.list_kind == types::ListKind::Atomic) {
          if (const std::optional<Value> made = value(arena, *type.element, depth + 1)) items.add(plain(arena, *made));
        }
        continue;
      }
      MapBuilder item(arena);
      for (const std::string_view key : type.list_keys) {
        const types::Field* member = types::find_member(*type.element, key);
        if (member == nullptr) continue;
        item.add(key, member->type->shape == types::Shape::String ? Value::string(arena, "key" + std::to_string(i))
                                                                  : Value::integer(static_cast<int64_t>(i) + 1));
      }
      if (chance(20)) {
        item.add(ownership::kUnsetKey, Value::string(ownership::kUnsetValue));
      } else {
        for (const types::Field* member : type.element->members) {
          const bool key =
              std::find(type.list_keys.begin(), type.list_keys.end(), member->name) != type.list_keys.end();
          if (!key && chance(std::max<size_t>(10, 200 / type.element->members.size()))) {
            add(arena, item, *member, depth + 1);
          }
        }
      }
      items.add(item.build());
    }
    return items.build();
  }

  // Markers are not allowed inside atomic lists.
  static Value plain(Arena& arena, const Value& value) {
    if (value.is_list()) {
      ListBuilder items(arena);
      for (const Value& item : value.items()) items.add(plain(arena, item));
      return items.build();
    }
    if (!value.is_map()) return value;
    MapBuilder map(arena);
    for (const Member& member : value.members()) {
      if (member.value.is_map() && member.value.has(ownership::kUnsetKey)) continue;
      if (member.key != ownership::kUnsetKey) map.add(member.key, plain(arena, member.value));
    }
    return map.build();
  }

  std::mt19937_64 random_;
};

// The server's part.
struct Server {
  ownership::FieldManager manager;
  const types::Type& type;
  apply::KindSource kind;
  std::function<Value(Arena&, const Value&)> defaulted = [](Arena&, const Value& object) { return object; };
};

// Without empty containers: whether the parents of an unset field exist is for the server to say.
Value without_empty(Arena& arena, const Value& value) {
  const auto is_empty = [](const Value& one) {
    return one.is_null() || ((one.is_map() || one.is_list()) && one.count() == 0);
  };
  if (value.is_list()) {
    ListBuilder items(arena);
    for (const Value& item : value.items()) items.add(without_empty(arena, item));
    return items.build();
  }
  if (!value.is_map()) return value;
  MapBuilder map(arena);
  for (const Member& member : value.members()) {
    const Value kept = without_empty(arena, member.value);
    if (!is_empty(kept)) map.add(member.key, kept);
  }
  return map.build();
}

// Returns how many configurations were accepted.
size_t check_kind(const Server& server, uint64_t seed, int rounds) {
  RandomConfigs configs(seed);
  size_t checked = 0;
  for (int round = 0; round < rounds; ++round) {
    Arena arena;
    std::optional<Value> live;
    std::optional<ownership::Managed> managed;
    const auto write = [&](const Value& config, std::string_view by, bool force) {
      return server.manager.apply(arena, {.live = live ? &*live : nullptr,
                                          .live_managed = managed ? &*managed : nullptr,
                                          .config = config,
                                          .manager = by,
                                          .force = force,
                                          .now = {1'700'000'000, 0}});
    };
    for (const std::string_view by : {"me", "you", "me", "you"}) {
      const Value config = configs.config(arena, server.type, server.kind.api_version, server.kind.kind);
      Result<ownership::ApplyResult> applied = write(config, by, false);
      if (!applied) continue;  // A conflict, or a marker where none may be.
      live = server.defaulted(arena, applied->object);
      managed = applied->managed;
    }
    if (!live || !managed) continue;
    codec::Document document;
    constexpr std::string_view kPath[] = {"metadata", "managedFields"};
    document.set_root(
        deep_copy(document.arena(), with_path(arena, *live, kPath, ownership::encode_managed(arena, *managed))));
    const Object object(std::move(document));
    const Result<std::optional<apply::Fields>> extracted = apply::extract(server.kind, object, "me", "");
    EXPECT_TRUE(extracted) << server.kind.kind << ": " << extracted.error().message;
    if (!extracted || !*extracted) continue;
    const Value again = (**extracted).to_value(arena);
    Result<ownership::ApplyResult> same = write(again, "me", false);
    EXPECT_TRUE(same) << server.kind.kind << ": " << same.error().message << "\n" << codec::encode_json(again);
    if (!same) continue;
    const Value after = server.defaulted(arena, same->object);
    EXPECT_TRUE(equal(same->managed, *managed) && codec::encode_json_sorted(without_empty(arena, after)) ==
                                                      codec::encode_json_sorted(without_empty(arena, *live)))
        << server.kind.kind << "\nlive   " << object.json() << "\nconfig " << codec::encode_json(again) << "\nafter  "
        << codec::encode_json(same->object) << "\nowned  "
        << codec::encode_json(ownership::encode_managed(arena, same->managed));
    ++checked;
  }
  return checked;
}

TEST(ExtractProperty, EveryBuiltInKindAppliesToItself) {
  size_t checked = 0, kinds = 0;
  for (const types::Resource& resource : types::builtin_resources()) {
    if (resource.type == nullptr || resource.type->members.empty()) continue;
    if (std::find(resource.verbs.begin(), resource.verbs.end(), "patch") == resource.verbs.end()) continue;
    const std::string api_version = api_version_of(resource.group, resource.version);
    ownership::FieldManagerOptions options;
    options.api_version = api_version;
    options.kind = resource.kind;
    options.versions.push_back({api_version, &ownership::builtin_merge_types().of(*resource.type), {}});
    options.unset_markers = true;
    const Server server{ownership::FieldManager(std::move(options)), *resource.type, {api_version, resource.kind, {}}};
    ++kinds;
    checked += check_kind(server, 1000 + kinds, 8);
  }
  EXPECT_GT(kinds, 40u);
  EXPECT_GT(checked, kinds * 2);
}

constexpr std::string_view kSchema = R"({"type":"object","properties":{"spec":{"type":"object","properties":{
  "dflt":{"type":"string","default":"d"},"size":{"type":"integer"},
  "box":{"type":"object","default":{"in":"x"},"properties":{"in":{"type":"string","default":"x"},
    "deep":{"type":"object","default":{},"properties":{"er":{"type":"integer","default":3}}},"free":{"type":"string"}}},
  "map":{"type":"object","default":{"k1":"d"},"additionalProperties":{"type":"string"}},
  "set":{"type":"array","default":["s0"],"x-kubernetes-list-type":"set","items":{"type":"string"}},
  "keyed":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",
    "required":["name"],"properties":{"name":{"type":"string"},"v":{"type":"string","default":"vd"},
    "w":{"type":"object","default":{"z":1},"properties":{"z":{"type":"integer"}}}}}},
  "atom":{"type":"object","default":{"p":"q"},"x-kubernetes-map-type":"atomic","properties":{"p":{"type":"string"}}}}}}})";

TEST(ExtractProperty, CustomResourceWithDefaultsAppliesToItself) {
  Arena arena;
  const Result<Value> written = codec::decode_json(arena, kSchema);
  ASSERT_TRUE(written);
  const std::shared_ptr<const schema::Schema> schema = schema::Schema::build(*written, false);
  ownership::MergeTypes merge_types;
  ownership::FieldManagerOptions options;
  options.api_version = "x.io/v1";
  options.kind = "Box";
  options.versions.push_back({"x.io/v1", &merge_types.of(schema->root()), {}});
  options.unset_markers = true;
  options.declared_defaults = [schema](Arena& arena, const Value& object) {
    return schema::apply_defaults(arena, schema->root(), object);
  };
  const auto defaulted = options.declared_defaults;
  const Server server{
      ownership::FieldManager(std::move(options)), schema->root(), {"x.io/v1", "Box", kSchema}, defaulted};
  EXPECT_GT(check_kind(server, 7, 400), 100u);
}

}  // namespace
}  // namespace holdfast::client
