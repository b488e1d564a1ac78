// The merge engine's operations on the objects written by bench/merge_inputs.py, and the cost of searching for unset
// markers. bench/peer/engine runs the same operations with the Go engine.
//
//   ownership_bench FOLDER [seconds per case]
//
// One line per case: name, operation, nanoseconds. Objects are parsed beforehand, each operand separately; ApplyTwice,
// Update and UpdateVersion are two operations each.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <sstream>
#include <vector>

#include "base/files.h"
#include "codec/codec.h"
#include "ownership/engine.h"
#include "ownership/ownership.h"
#include "ownership/smd_schema.h"
#include "ownership/unset.h"

namespace holdfast::ownership {
namespace {

std::string read(const std::filesystem::path& path) {
  Result<std::string> text = read_file(path);
  if (text) return std::move(*text);
  std::fprintf(stderr, "ownership_bench: %s\n", text.error().message.c_str());
  std::exit(1);
}

Value load(Arena& arena, const std::filesystem::path& path) {
  Result<Value> value = codec::decode_yaml(arena, arena.copy(std::string_view(read(path))));
  if (!value) {
    std::fprintf(stderr, "ownership_bench: %s: %s\n", path.c_str(), value.error().message.c_str());
    std::exit(1);
  }
  return *value;
}

// Objects are the same in every version.
struct SameVersions final : Versions {
  VersionView v1, v2;
  explicit SameVersions(const MergeType& type) : v1{"v1", &type, nullptr}, v2{"v2", &type, nullptr} {}
  const VersionView* find(std::string_view version) const override { return version == "v1" ? &v1 : &v2; }
  Result<std::optional<Value>> convert(Arena&, const Value& object, const VersionView&,
                                       const VersionView&) const override {
    return std::optional<Value>(object);
  }
};

struct State {
  Value live = Value();
  Managed managed;
};

void check(bool ok, const char* what) {
  if (!ok) {
    std::fprintf(stderr, "ownership_bench: %s failed\n", what);
    std::exit(1);
  }
}

void update(Arena& arena, const SameVersions& versions, State& state, const Value& object, std::string_view manager,
            const VersionView& version) {
  Engine engine(arena, versions, version);
  Result<Engine::Updated> updated = engine.update(state.live, object, state.managed);
  check(updated.ok(), "update");
  state.managed = std::move(updated->managed);
  if (!updated->gained.empty()) {
    ManagerEntry entry;
    entry.manager = manager;
    entry.api_version = version.api_version;
    entry.fields = updated->gained;
    state.managed.push_back(entry);
  }
  state.live = object;
}

void apply(Arena& arena, const SameVersions& versions, State& state, const Value& written, std::string_view manager) {
  Value config = written;
  Engine::ApplyOptions options;
  if (has_marker(written)) {
    Result<Unset> unset = take_markers(arena, *versions.v1.type, written);
    check(unset.ok(), "markers");
    config = unset->config;
    options.unset = unset->paths;
  }
  Engine engine(arena, versions, versions.v1);
  ManagerEntry applier;
  applier.manager = manager;
  applier.operation = Operation::Apply;
  applier.api_version = "v1";
  Result<Engine::Applied> applied = engine.apply(state.live, config, state.managed, applier, options);
  check(applied.ok() && applied->conflicts.empty(), "apply");
  state.live = applied->object;
  state.managed = std::move(applied->managed);
}

// The configuration with a marker for one in `apart` of the scalars that can have one.
Value with_sampled_markers(Arena& arena, const MergeType& type, const Value& v, int apart, int& scalars) {
  if (v.is_map() && (type.offers & MergeType::kMap) != 0 && !type.atomic_map) {
    MapBuilder out(arena);
    for (const Member& m : v.members()) {
      bool declared = false;
      const MergeType* child = type.member(m.key, declared);
      const bool fixed = child == nullptr || m.key == "name" || m.key == "apiVersion" || m.key == "kind";
      if (!fixed && m.value.is_scalar() && ++scalars % apart == 0) {
        out.add(m.key, with_member(arena, Value::empty_map(), kUnsetKey, Value::string(kUnsetValue)));
      } else {
        out.add(m.key, fixed ? m.value : with_sampled_markers(arena, *child, m.value, apart, scalars));
      }
    }
    return out.build();
  }
  if (v.is_list() && (type.offers & MergeType::kList) != 0 && !type.atomic_list && !type.keys.empty()) {
    ListBuilder out(arena);
    for (const Value& item : v.items()) {
      Value marked = with_sampled_markers(arena, *type.item, item, apart, scalars);
      for (const std::string_view key : type.keys) {
        if (const Value* value = item.find(key)) marked = with_member(arena, marked, key, *value);
      }
      out.add(marked);
    }
    return out.build();
  }
  return v;
}

// The mean, like Go's benchmarks, so that a busy machine slows both alike.
double nanoseconds(double seconds, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  work();
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  int64_t count = 0;
  int64_t batch = 1;
  auto now = start;
  while (now < end) {
    for (int64_t i = 0; i < batch; ++i) work();
    count += batch;
    now = Clock::now();
    const double each = std::chrono::duration<double, std::nano>(now - start).count() / static_cast<double>(count);
    batch = std::clamp<int64_t>(static_cast<int64_t>(1e6 / each), 1, 1000);
  }
  return std::chrono::duration<double, std::nano>(now - start).count() / static_cast<double>(count);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ownership_bench FOLDER [seconds per case [operation]]\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const double seconds = argc > 2 ? std::stod(argv[2]) : 0.3;
  const std::string_view only = argc > 3 ? argv[3] : "";  // One operation, for a profiler.
  Arena data;
  const Value schema_text = load(data, folder / "schema.yaml");
  SchemaLoader schema(data, schema_text);
  MergeTypes types;
  std::istringstream cases(read(folder / "cases"));
  for (std::string name; std::getline(cases, name);) {
    const MergeType& type = types.of(*schema.named(name));
    const SameVersions versions(type);
    // Parsed twice: equal objects that share no memory.
    const std::filesystem::path file = folder / (name + ".yaml");
    const Value first = load(data, file), second = load(data, file);
    const std::string problem = validate(type, first, Duplicates::Tolerated);
    if (!problem.empty()) std::fprintf(stderr, "ownership_bench: %s: %s\n", name.c_str(), problem.c_str());
    auto print = [&](const char* operation, const std::function<void()>& work) {
      if (!only.empty() && only != operation) return;
      std::printf("%s/%s %.0f\n", name.c_str(), operation, nanoseconds(seconds, work));
      std::fflush(stdout);
    };
    print("Create", [&] {
      Arena arena;
      State state;
      update(arena, versions, state, first, "controller", versions.v1);
    });
    print("Apply", [&] {
      Arena arena;
      State state;
      apply(arena, versions, state, first, "controller");
    });
    print("ApplyTwice", [&] {
      Arena arena;
      State state;
      apply(arena, versions, state, first, "controller");
      apply(arena, versions, state, second, "other-controller");
    });
    print("Update", [&] {
      Arena arena;
      State state;
      update(arena, versions, state, first, "controller", versions.v1);
      update(arena, versions, state, second, "other-controller", versions.v1);
    });
    print("UpdateVersion", [&] {
      Arena arena;
      State state;
      update(arena, versions, state, first, "controller", versions.v1);
      update(arena, versions, state, second, "other-controller", versions.v2);
    });
    // A manager applies its last configuration again: without markers, with a few, and with many.
    auto again = [&](const char* operation, const Value& before, const Value& config) {
      State applied;
      apply(data, versions, applied, before, "controller");
      print(operation, [&] {
        Arena arena;
        State state = applied;
        apply(arena, versions, state, config, "controller");
      });
    };
    again("ApplyAgain", first, second);
    for (const auto& [operation, apart] : {std::pair("ApplyAgainUnset", 20), std::pair("ApplyAgainUnsetMany", 4)}) {
      int scalars = 0;
      const Value marked = with_sampled_markers(data, type, first, apart, scalars);
      again(operation, marked, marked);
    }
    // The same with owners read from the pool and interned again, as a server does: once into an empty pool each time,
    // and once into a pool that already has the sets.
    auto through_pool = [&](Pool& pool) {
      Arena arena;
      State state;
      OwnersRef owners;
      for (const auto& [who, config] : {std::pair("controller", &first), std::pair("other-controller", &second)}) {
        Result<Managed> stored = decode_managed(arena, owners.view());
        check(stored.ok(), "pool");
        state.managed = std::move(*stored);
        apply(arena, versions, state, *config, who);
        owners = pool.intern(pool.kind(name, MemberOrder::Canonical), entries_of(arena, state.managed));
      }
    };
    print("ApplyTwicePoolCold", [&] {
      Pool pool{Gates()};
      through_pool(pool);
    });
    Pool warm{Gates()};
    print("ApplyTwicePoolWarm", [&] { through_pool(warm); });
    print("MarkerScan", [&] { check(!has_marker(first), "scan"); });
    print("Validate", [&] { check(validate(type, first, Duplicates::Tolerated).empty(), "validate"); });
    Arena arena;
    State state;
    apply(arena, versions, state, first, "controller");
    const std::string text = to_fields_v1(state.managed[0].fields);
    print("ReadFieldsV1", [&] {
      Arena scratch;
      check(parse_fields_v1(scratch, text).ok(), "read");
    });
    print("WriteFieldsV1", [&] { check(to_fields_v1(state.managed[0].fields).size() == text.size(), "write"); });
  }
  return 0;
}

}  // namespace
}  // namespace holdfast::ownership

int main(int argc, char** argv) { return holdfast::ownership::run(argc, argv); }
