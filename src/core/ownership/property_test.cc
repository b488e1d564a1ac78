// Invariants that hold for every schema, object and order of writers. Each test generates random ones; a failure names
// its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "codec/json.h"
#include "ownership/engine.h"
#include "ownership/ownership.h"
#include "ownership/typed.h"
#include "ownership/unset.h"
#include "schema/schema.h"

namespace holdfast::ownership {
namespace {

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  size_t below(size_t n) { return engine_() % n; }
  bool chance(double p) { return static_cast<double>(engine_() % 10000) < p * 10000; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::mt19937 engine_;
};

// A CRD schema, and objects that match it.
class World {
 public:
  explicit World(uint32_t seed) : dice(seed) {
    MapBuilder root(arena), properties(arena);
    for (const char* name : {"p", "q", "r"}) properties.add(name, node(3));
    root.add("type", Value::string("object"));
    root.add("properties", properties.build());
    schema = schema::Schema::build(root.build(), false);
    type = &types.of(schema->root());
    FieldManagerOptions options;
    options.api_version = "e.com/v1";
    options.kind = "W";
    options.unset_markers = true;
    options.versions.push_back({"e.com/v1", type});
    manager = std::make_unique<FieldManager>(std::move(options));
  }

  // `nulls`: containers and leaves may be null. `names`: the members of the root that may be present.
  Value object(bool nulls, const std::vector<std::string_view>& names = {"p", "q", "r"}) {
    MapBuilder out(arena);
    out.add("apiVersion", Value::string("e.com/v1"));
    out.add("kind", Value::string("W"));
    for (const std::string_view name : names) {
      if (dice.chance(0.8)) out.add(name, value(*types::find_member(schema->root(), name)->type, nulls));
    }
    return out.build();
  }

  Arena arena;
  Dice dice;
  std::shared_ptr<const schema::Schema> schema;
  MergeTypes types;
  const MergeType* type = nullptr;
  std::unique_ptr<FieldManager> manager;

 private:
  Value text(std::string_view t) { return Value::string(t); }

  Value node(int depth) {
    MapBuilder out(arena);
    switch (depth == 0 ? dice.below(3) : dice.below(9)) {
      case 0:
        out.add("type", text("string"));
        break;
      case 1:
        out.add("type", text("integer"));
        break;
      case 2:
        out.add("x-kubernetes-int-or-string", Value::boolean(true));
        break;
      case 3:
      case 4: {
        out.add("type", text("object"));
        if (dice.chance(0.2)) out.add("x-kubernetes-map-type", text("atomic"));
        MapBuilder properties(arena);
        for (const char* name : {"a", "b", "c"}) properties.add(name, node(depth - 1));
        out.add("properties", properties.build());
        break;
      }
      case 5:
        out.add("type", text("object"));
        out.add("additionalProperties", node(depth - 1));
        break;
      case 6:
        out.add("type", text("array"));
        out.add("items", node(depth - 1));
        break;
      case 7: {
        out.add("type", text("array"));
        out.add("x-kubernetes-list-type", text("set"));
        MapBuilder items(arena);
        items.add("type", text("string"));
        out.add("items", items.build());
        break;
      }
      default: {
        out.add("type", text("array"));
        out.add("x-kubernetes-list-type", text("map"));
        Value* keys = arena.allocate_array<Value>(1);
        new (keys) Value(text("k"));
        out.add("x-kubernetes-list-map-keys", Value::list({keys, 1}));
        MapBuilder items(arena), properties(arena), key(arena);
        key.add("type", text("string"));
        properties.add("k", key.build());
        properties.add("v", node(depth - 1));
        properties.add("w", node(depth - 1));
        items.add("type", text("object"));
        items.add("properties", properties.build());
        out.add("items", items.build());
        break;
      }
    }
    return out.build();
  }

  Value value(const types::Type& t, bool nulls) {
    if (nulls && dice.chance(0.05)) return Value();
    switch (t.shape) {
      case types::Shape::Int64:
        return Value::integer(static_cast<int64_t>(dice.below(3)));
      case types::Shape::String:
      case types::Shape::IntOrString:
        return text(dice.of<std::string_view>({"x", "y", "z"}));
      case types::Shape::List: {
        ListBuilder out(arena);
        std::set<std::string_view> seen;
        for (size_t i = dice.below(4); i > 0; --i) {
          const std::string_view key = dice.of<std::string_view>({"x", "y", "z"});
          if (t.list_kind == types::ListKind::Atomic) {
            out.add(value(*t.element, false));
          } else if (seen.insert(key).second) {
            if (t.list_kind == types::ListKind::Set) {
              out.add(text(key));
            } else {
              out.add(with_member(arena, value(*t.element, false), "k", text(key)));
            }
          }
        }
        return out.build();
      }
      default: {
        MapBuilder out(arena);
        if (t.shape == types::Shape::Map) {
          for (const char* name : {"x", "y"}) {
            if (dice.chance(0.5)) out.add(name, value(*t.element, nulls));
          }
        }
        for (const types::Field* f : t.members) {
          if (dice.chance(0.6)) out.add(f->name, value(*f->type, nulls));
        }
        return out.build();
      }
    }
  }
};

struct State {
  std::optional<Value> live;
  Managed managed;
};

std::string shown(const State& s) {
  std::string out = s.live ? codec::encode_json_sorted(*s.live) : "nothing";
  for (const ManagerEntry& entry : s.managed) out += "\n" + identity_text(entry) + to_fields_v1(entry.fields);
  return out;
}

// Whether it changed the object; empty if it failed.
std::optional<bool> apply(World& w, State& s, std::string_view who, const Value& config, bool force, int64_t now) {
  Result<ApplyResult> result = w.manager->apply(w.arena, {.live = s.live ? &*s.live : nullptr,
                                                          .live_managed = &s.managed,
                                                          .config = config,
                                                          .manager = who,
                                                          .force = force,
                                                          .now = {now, 0}});
  if (!result) return std::nullopt;
  const bool changed = result->changed;
  s = {result->object, result->managed};
  return changed;
}

void update(World& w, State& s, std::string_view who, const Value& object, int64_t now) {
  const UpdateResult result = w.manager->update(w.arena, {.live = s.live ? &*s.live : nullptr,
                                                          .live_managed = &s.managed,
                                                          .object = object,
                                                          .manager = who,
                                                          .now = {now, 0}});
  ASSERT_EQ(result.problem, "");
  s = {result.object, result.managed};
}

// A few writes before the invariant is checked.
State some_history(World& w, bool nulls) {
  State s;
  for (int i = 0; i < 4; ++i) {
    const std::string_view who = w.dice.of<std::string_view>({"alice", "bob", "carol"});
    if (w.dice.chance(0.3)) {
      update(w, s, who, w.object(nulls), i);
    } else {
      apply(w, s, who, w.object(nulls), w.dice.chance(0.5), i);
    }
  }
  return s;
}

// Lists sorted, so that the order of associative ones does not matter.
Value unordered(Arena& arena, const Value& v) {
  if (v.is_list()) {
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(unordered(arena, item));
    std::sort(items.begin(), items.end(), [](const Value& a, const Value& b) { return compare_values(a, b) < 0; });
    return Value::list(arena.copy(std::span<const Value>(items)));
  }
  if (v.is_map()) {
    MapBuilder out(arena);
    for (const Member& m : v.members()) out.add(m.key, unordered(arena, m.value));
    return out.build();
  }
  return v;
}

constexpr uint32_t kCases = 400;

bool holds_null(const Value& v) {
  if (v.is_list()) return std::any_of(v.items().begin(), v.items().end(), holds_null);
  if (!v.is_map()) return v.is_null();
  return std::any_of(v.members().begin(), v.members().end(), [](const Member& m) { return holds_null(m.value); });
}

// The configuration with markers in random places.
Value with_random_markers(World& w, const types::Type& type, const Value& v, bool root = true) {
  const auto marked = [&](const Value& keys) {
    return with_member(w.arena, keys, kUnsetKey, Value::string(kUnsetValue));
  };
  if (v.is_map() && type.map_kind == types::MapKind::Granular) {
    MapBuilder out(w.arena);
    for (const Member& m : v.members()) {
      const types::Field* field = types::find_member(type, m.key);
      const types::Type* child = field != nullptr ? field->type : type.element;
      if (child == nullptr || m.key == "k" || (root && (m.key == "apiVersion" || m.key == "kind"))) {
        out.add(m.key, m.value);
      } else {
        out.add(m.key,
                w.dice.chance(0.2) ? marked(Value::empty_map()) : with_random_markers(w, *child, m.value, false));
      }
    }
    return out.build();
  }
  if (v.is_list() && type.list_kind == types::ListKind::Keyed) {
    ListBuilder out(w.arena);
    for (const Value& item : v.items()) {
      const Value key = with_member(w.arena, Value::empty_map(), "k", *item.find("k"));
      out.add(w.dice.chance(0.25) ? marked(key) : with_random_markers(w, *type.element, item, false));
    }
    return out.build();
  }
  return v;
}

// The same state if only `who` owned unset fields.
State without_vacancies_of_others(World& w, const State& s, std::string_view who) {
  State out = s;
  for (ManagerEntry& entry : out.managed) {
    if (entry.manager == who) continue;
    entry.fields = recursive_difference(w.arena, entry.fields, vacancies(w.arena, *w.type, *s.live, entry.fields));
  }
  std::erase_if(out.managed, [](const ManagerEntry& entry) { return entry.fields.empty(); });
  return out;
}

// Kubernetes itself leaves null in a few places where an apply empties a container, which a server refuses to store.
// Fields unset by other managers add no such places.
TEST(Properties, ApplyNeverFailsBecauseOfFieldsUnsetByOthers) {
  int with_markers = 0, compared = 0;
  for (uint32_t seed = 0; seed < 4 * kCases; ++seed) {
    World w(seed);
    State s;
    for (int i = 0; i < 10; ++i) {
      const std::string_view who = w.dice.of<std::string_view>({"alice", "bob", "carol"});
      const Value plain = w.object(false);
      State next = s;
      if (s.live && w.dice.chance(0.15)) {
        update(w, next, who, plain, i);
        EXPECT_FALSE(holds_null(*next.live)) << "seed " << seed;
      } else {
        const Value config = w.dice.chance(0.5) ? with_random_markers(w, w.schema->root(), plain) : plain;
        const bool marks = has_marker(config);
        if (!apply(w, next, who, config, true, i)) FAIL() << "seed " << seed << " step " << i;
        with_markers += marks;
        if (s.live && holds_null(*next.live)) {
          State alone = without_vacancies_of_others(w, s, who);
          ASSERT_TRUE(apply(w, alone, who, config, true, i).has_value());
          EXPECT_TRUE(holds_null(*alone.live)) << "seed " << seed << " step " << i << "\n"
                                               << who << " applies " << codec::encode_json(config) << "\nto "
                                               << shown(s) << "\nwhich makes " << shown(next);
          ++compared;
        }
      }
      if (!holds_null(*next.live)) s = next;
    }
  }
  EXPECT_GT(with_markers, 1000);
  EXPECT_GT(compared, 10);
}

TEST(Properties, ThirdIdenticalApplyIsANoOp) {
  // Kubernetes needs a second apply if the first removed its last item of a list and left something behind.
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    State s = some_history(w, true);
    const Value config = w.object(true);
    if (!apply(w, s, "alice", config, true, 100)) continue;
    ASSERT_TRUE(apply(w, s, "alice", config, true, 101).has_value()) << "seed " << seed;
    const std::string before = shown(s);
    const Managed owners = s.managed;
    const std::optional<bool> changed = apply(w, s, "alice", config, false, 102);
    ASSERT_TRUE(changed.has_value()) << "seed " << seed;
    EXPECT_FALSE(*changed) << "seed " << seed;
    EXPECT_EQ(shown(s), before) << "seed " << seed;
    EXPECT_TRUE(equal(s.managed, owners)) << "seed " << seed;
  }
}

TEST(Properties, UpdateWithTheLiveObjectChangesNothing) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    State s = some_history(w, true);
    if (!s.live || s.managed.empty()) continue;
    const Managed owners = s.managed;
    update(w, s, "dave", deep_copy(w.arena, *s.live), 100);
    EXPECT_TRUE(equal(s.managed, owners)) << "seed " << seed;
  }
}

TEST(Properties, AppliesOfDisjointFieldsCommute) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    const State start = some_history(w, false);
    const Value one = w.object(false, {"p"}), two = w.object(false, {"q"});
    State ab = start, ba = start;
    // New managers, so that nothing is pruned.
    const bool first = apply(w, ab, "one", one, true, 100) && apply(w, ab, "two", two, true, 100);
    const bool second = apply(w, ba, "two", two, true, 100) && apply(w, ba, "one", one, true, 100);
    ASSERT_EQ(first, second) << "seed " << seed;
    if (!first) continue;
    EXPECT_TRUE(equal(unordered(w.arena, *ab.live), unordered(w.arena, *ba.live))) << "seed " << seed;
    State x{std::nullopt, ab.managed}, y{std::nullopt, ba.managed};
    for (ManagerEntry& entry : x.managed) entry.time = {};
    for (ManagerEntry& entry : y.managed) entry.time = {};
    sort_managed(x.managed);
    sort_managed(y.managed);
    EXPECT_EQ(shown(x), shown(y)) << "seed " << seed;
  }
}

TEST(Properties, AfterForceNobodyElseOwnsChangedFields) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    State s = some_history(w, true);
    if (!s.live) continue;
    const Value before = *s.live;
    if (!apply(w, s, "zoe", w.object(true), true, 100)) continue;
    const Comparison change = compare(w.arena, *w.type, before, *s.live);
    const FieldSet touched = union_of(w.arena, union_of(w.arena, change.modified, change.added), change.removed);
    for (const ManagerEntry& entry : s.managed) {
      if (entry.manager == "zoe") continue;
      EXPECT_EQ(to_fields_v1(intersection(w.arena, entry.fields, touched)), "{}")
          << "seed " << seed << " " << identity_text(entry);
    }
  }
}

TEST(Properties, FailedApplyChangesNothingAndForcedApplyDoesNotFail) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    State s = some_history(w, true);
    const std::string before = shown(s);
    const Value config = w.object(true);
    if (!apply(w, s, "zoe", config, false, 100)) {
      EXPECT_EQ(shown(s), before) << "seed " << seed;
      EXPECT_TRUE(apply(w, s, "zoe", config, true, 100).has_value()) << "seed " << seed;
    }
  }
}

TEST(Properties, MergingAValueWithItselfReturnsThatValue) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    const Value object = w.object(true);
    EXPECT_TRUE(merge(w.arena, *w.type, object, deep_copy(w.arena, object)).same(object)) << "seed " << seed;
    EXPECT_TRUE(compare(w.arena, *w.type, object, deep_copy(w.arena, object)).same()) << "seed " << seed;
  }
}

TEST(Properties, ExtractReturnsEverythingASoleManagerApplied) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    State s;
    const Value config = w.object(false);
    ASSERT_TRUE(apply(w, s, "alice", config, false, 1).has_value());
    const Result<Value> found = w.manager->extract(w.arena, *s.live, s.managed, "alice");
    ASSERT_TRUE(found.ok());
    if (s.managed.empty()) continue;
    // Nobody owns an empty associative list, so it is not extracted; owning the same paths is enough.
    EXPECT_EQ(to_fields_v1(to_set(w.arena, *w.type, *found)), to_fields_v1(to_set(w.arena, *w.type, config)))
        << "seed " << seed;
  }
}

TEST(Properties, SetsAreTheSameInEveryFormat) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    const State s = some_history(w, true);
    Pool pool{Gates()};
    const OwnersRef owners = pool.intern(pool.kind("w", MemberOrder::Bytewise), entries_of(w.arena, s.managed));
    const Result<Managed> pooled = decode_managed(w.arena, owners.view());
    ASSERT_TRUE(pooled.ok());
    EXPECT_TRUE(equal(*pooled, s.managed)) << "seed " << seed;
    for (const ManagerEntry& entry : s.managed) {
      const std::string v1 = to_fields_v1(entry.fields), v2 = to_fields_v2(entry.fields);
      EXPECT_TRUE(*parse_fields_v1(w.arena, v1) == entry.fields) << v1;
      EXPECT_TRUE(*parse_fields_v2(w.arena, v2) == entry.fields) << v1;
      const std::string sorted = to_fields_v1(entry.fields, MemberOrder::Bytewise);
      EXPECT_TRUE(*parse_fields_v1(w.arena, sorted) == entry.fields) << sorted;
    }
  }
}

TEST(Properties, SetAlgebraHolds) {
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    World w(seed);
    Arena& arena = w.arena;
    const FieldSet a = to_set(arena, *w.type, w.object(true)), b = to_set(arena, *w.type, w.object(true));
    const FieldSet both = intersection(arena, a, b), only_a = difference(arena, a, b);
    EXPECT_TRUE(union_of(arena, only_a, both) == a) << "seed " << seed;
    EXPECT_TRUE(intersection(arena, only_a, b).empty()) << "seed " << seed;
    EXPECT_TRUE(union_of(arena, a, b) == union_of(arena, b, a)) << "seed " << seed;
    EXPECT_EQ(union_of(arena, a, b).size() + both.size(), a.size() + b.size()) << "seed " << seed;
    EXPECT_EQ(a.includes(b), difference(arena, b, a).empty()) << "seed " << seed;
    EXPECT_TRUE(only_a.includes(recursive_difference(arena, a, b))) << "seed " << seed;
    EXPECT_EQ(hash(union_of(arena, a, b)), hash(union_of(arena, b, a))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holdfast::ownership
