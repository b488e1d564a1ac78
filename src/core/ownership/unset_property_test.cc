// Tests unsetting against a small model: random configurations of random managers, applied to the field manager and to
// a model written from docs/unsetting-fields.md alone. A failure names its seed.
//
// The model represents an object as a flat list of paths with their values, and an owner as a set of paths. It uses one
// schema with every kind of node, so that paths, parents and defaults are a table.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "codec/json.h"
#include "ownership/ownership.h"
#include "ownership/unset.h"
#include "schema/schema.h"

namespace holdfast::ownership {
namespace {

constexpr std::string_view kSchema = R"({"type":"object","properties":{
  "keep":{"type":"string"},
  "s":{"type":"string"},
  "d":{"type":"string","default":"0"},
  "e":{"type":"integer","default":1},
  "m":{"type":"object","additionalProperties":{"type":"string"}},
  "st":{"type":"object","properties":{"a":{"type":"string"},"in":{"type":"object","properties":{"x":{"type":"string"},"z":{"type":"string"}}}}},
  "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
       "items":{"type":"object","properties":{"name":{"type":"string"},"v":{"type":"string"}}}},
  "dst":{"type":"object","default":{"x":"0"},"properties":{"x":{"type":"string"},"z":{"type":"string"}}}}})";

using Path = std::string;  // ".st.in.x", ".k[a].v"

enum class NodeKind : uint8_t { Leaf, Struct, Key, List, Item };

// Everything that can be in the object. Parents come before children.
struct Node {
  Path path;
  NodeKind kind;
};
const std::vector<Node>& nodes() {
  static const std::vector<Node> all = {
      {".s", NodeKind::Leaf},       {".d", NodeKind::Leaf},         {".e", NodeKind::Leaf},
      {".m", NodeKind::Struct},     {".m.a", NodeKind::Key},        {".m.b", NodeKind::Key},
      {".st", NodeKind::Struct},    {".st.a", NodeKind::Leaf},      {".st.in", NodeKind::Struct},
      {".st.in.x", NodeKind::Leaf}, {".st.in.z", NodeKind::Leaf},   {".k", NodeKind::List},
      {".k[a]", NodeKind::Item},    {".k[a].name", NodeKind::Leaf}, {".k[a].v", NodeKind::Leaf},
      {".k[b]", NodeKind::Item},    {".k[b].name", NodeKind::Leaf}, {".k[b].v", NodeKind::Leaf},
      {".dst", NodeKind::Struct},   {".dst.x", NodeKind::Leaf},     {".dst.z", NodeKind::Leaf},
  };
  return all;
}
bool is_container(NodeKind kind) {
  return kind == NodeKind::Struct || kind == NodeKind::List || kind == NodeKind::Item;
}
bool is_below(const Path& path, const Path& root) {
  return path.size() > root.size() && path.starts_with(root) && (path[root.size()] == '.' || path[root.size()] == '[');
}
bool at_or_below(const Path& path, const Path& root) { return path == root || is_below(path, root); }

// What one manager applies: values and unset paths.
struct Configuration {
  std::map<Path, std::string> set;  // Leaves, and the containers above them and above unset paths.
  std::set<Path> unset;
};

// --- The model ---

struct Model {
  std::map<Path, std::string> object;  // Containers have the value "{}".
  std::map<std::string, std::set<Path>> owners;

  static void add_defaults(std::map<Path, std::string>& object) {
    object.try_emplace(".d", "0");
    object.try_emplace(".e", "1");
    if (object.try_emplace(".dst", "{}").second) object[".dst.x"] = "0";
  }

  // The paths owned by a configuration, before defaults: leaves, keys and items that it sets, and paths that it unsets.
  static std::set<Path> owned_by(const Configuration& config) {
    std::set<Path> out = config.unset;
    for (const Node& node : nodes()) {
      if (config.set.contains(node.path) && node.kind != NodeKind::Struct && node.kind != NodeKind::List) {
        out.insert(node.path);
      }
    }
    return out;
  }

  // Returns the conflicts as "manager path". Without conflicts, or with force, the model becomes the state after the
  // apply.
  std::set<std::string> apply(const std::string& who, const Configuration& config, bool force) {
    std::map<Path, std::string> next = object;
    for (const auto& [path, value] : config.set) {
      // An existing container stays as it is.
      if (value == "{}") {
        next.try_emplace(path, value);
      } else {
        next[path] = value;
      }
    }
    std::erase_if(next, [&](const auto& entry) {
      return std::any_of(config.unset.begin(), config.unset.end(),
                         [&](const Path& unset) { return at_or_below(entry.first, unset); });
    });
    const std::set<Path> own = owned_by(config);
    if (const auto last = owners.find(who); last != owners.end()) release(next, last->second, own, who);

    std::set<Path> mine = own;
    std::map<Path, std::string> before_defaults = next;
    add_defaults(next);
    for (const auto& [path, value] : next) {
      if (before_defaults.contains(path)) continue;
      for (const Path& unset : config.unset) {
        if (at_or_below(path, unset)) mine.insert(path);
      }
    }

    std::set<Path> gone;  // Removed by a marker.
    for (const auto& [path, value] : object) {
      for (const Path& unset : config.unset) {
        if (at_or_below(path, unset) && !next.contains(path)) gone.insert(path);
      }
    }
    std::set<std::string> conflicts;
    std::map<std::string, std::set<Path>> others = owners;
    others.erase(who);
    for (auto& [manager, paths] : others) {
      std::erase_if(paths, [&](const Path& path) {
        const auto was = object.find(path), is = next.find(path);
        const bool set = is != next.end() && (was == object.end() || was->second != is->second);
        const bool removed = was != object.end() && is == next.end();
        // Removal by a marker includes everything that is owned below it, even unset fields.
        const bool by_marker =
            std::any_of(gone.begin(), gone.end(), [&](const Path& p) { return at_or_below(path, p); });
        if (set || by_marker) conflicts.insert(manager + " " + path);
        if (by_marker) return true;
        return set || removed;
      });
    }
    if (!conflicts.empty() && !force) return conflicts;
    object = next;
    owners = others;
    owners[who] = mine;
    std::erase_if(owners, [](const auto& entry) { return entry.second.empty(); });
    return conflicts;
  }

  // A field that `who` owned and no longer applies is removed unless someone else owns it; a container is removed if
  // nobody owns anything in it. A manager that owns a container itself has unset it, and its default came back: when
  // the container loses what someone else put into it, the default comes back again; if it was empty, it stays.
  void release(std::map<Path, std::string>& next, const std::set<Path>& last, const std::set<Path>& own,
               const std::string& who) const {
    const auto held = [&](const Path& path, bool below) {
      const auto holds = [&](const std::set<Path>& paths) {
        return std::any_of(paths.begin(), paths.end(),
                           [&](const Path& p) { return below ? is_below(p, path) : p == path; });
      };
      if (holds(own)) return true;
      return std::any_of(owners.begin(), owners.end(),
                         [&](const auto& entry) { return entry.first != who && holds(entry.second); });
    };
    for (const Node& node : nodes()) {
      const bool concerns_below = node.kind == NodeKind::Struct || node.kind == NodeKind::List;
      const bool owned = std::any_of(last.begin(), last.end(), [&](const Path& p) {
        return concerns_below ? at_or_below(p, node.path) : p == node.path;
      });
      if (!owned || held(node.path, concerns_below)) continue;
      const bool empty =
          std::none_of(next.begin(), next.end(), [&](const auto& e) { return is_below(e.first, node.path); });
      if (concerns_below && empty && held(node.path, false)) continue;
      std::erase_if(next, [&](const auto& entry) { return at_or_below(entry.first, node.path); });
    }
  }
};

// --- Model and field manager side by side ---

class Two {
 public:
  explicit Two(uint32_t seed) : dice_(seed) {
    schema_ = schema::Schema::build(*codec::decode_json(arena_, kSchema), false);
    FieldManagerOptions options;
    options.api_version = "e.com/v1";
    options.kind = "W";
    options.unset_markers = true;
    options.versions.push_back({"e.com/v1", &types_.of(schema_->root())});
    options.declared_defaults = [this](Arena& arena, const Value& object) {
      return schema::apply_defaults(arena, schema_->root(), object);
    };
    manager_ = std::make_unique<FieldManager>(std::move(options));
    // So that the object is never empty.
    Configuration base;
    step("base", base, false);
  }

  void play(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      const std::string who(1, static_cast<char>('x' + static_cast<char>(below(3))));
      step(who, random_configuration(), below(2) == 0);
    }
  }

 private:
  size_t below(size_t n) { return dice_() % n; }

  Configuration random_configuration() {
    Configuration config;
    for (const Node& node : nodes()) {
      const bool in_set_parent = parent_allows(config, node.path);
      if (!in_set_parent) continue;
      if (node.path.ends_with(".name")) {
        config.set[node.path] = node.path.substr(3, 1);
        continue;
      }
      const size_t choice = below(10);
      if (choice < 4) continue;
      if (choice < 6) {
        config.unset.insert(node.path);
      } else if (is_container(node.kind)) {
        config.set[node.path] = "{}";
      } else {
        config.set[node.path] = node.path == ".e" ? std::to_string(below(3)) : std::string(1, "012"[below(3)]);
      }
    }
    // {} and [] mean here that there is something below. Otherwise they are dropped.
    for (auto node = nodes().rbegin(); node != nodes().rend(); ++node) {
      if (!is_container(node->kind) || node->kind == NodeKind::Item) continue;
      const auto says = [&](const auto& path) { return is_below(path, node->path); };
      const bool used =
          std::any_of(config.set.begin(), config.set.end(), [&](const auto& e) { return says(e.first); }) ||
          std::any_of(config.unset.begin(), config.unset.end(), says);
      if (!used) config.set.erase(node->path);
    }
    return config;
  }

  static bool parent_allows(const Configuration& config, const Path& path) {
    const size_t cut = path.find_last_of(".[");
    return cut == 0 || config.set.contains(path.substr(0, cut));
  }

  Value text(std::string_view t) { return Value::string(arena_, t); }
  Value marker() { return with_member(arena_, Value::empty_map(), kUnsetKey, Value::string(kUnsetValue)); }

  Value leaf(const Path& path, const std::string& value) {
    return path == ".e" ? Value::integer(std::stoi(value)) : text(value);
  }

  // The members or items of `root` in the configuration.
  Value tree(const Configuration& config, const Path& root, bool list) {
    MapBuilder map(arena_);
    ListBuilder items(arena_);
    for (const Node& node : nodes()) {
      const size_t cut = node.path.find_last_of(".[");
      if (node.path.substr(0, cut) != root) continue;
      const bool unset = config.unset.contains(node.path);
      if (!unset && !config.set.contains(node.path)) continue;
      if (list) {
        const std::string_view name = std::string_view(node.path).substr(cut + 1, 1);
        items.add(unset ? with_member(arena_, marker(), "name", text(name)) : tree(config, node.path, false));
      } else {
        map.add(arena_.copy(std::string_view(node.path).substr(cut + 1)),
                unset                     ? marker()
                : is_container(node.kind) ? tree(config, node.path, node.kind == NodeKind::List)
                                          : leaf(node.path, config.set.at(node.path)));
      }
    }
    return list ? items.build() : map.build();
  }

  Value configuration(const std::string& who, const Configuration& config) {
    MapBuilder out(arena_);
    out.add("apiVersion", Value::string("e.com/v1"));
    out.add("kind", Value::string("W"));
    if (who == "base") out.add("keep", Value::string("here"));
    for (const Member& m : tree(config, "", false).members()) out.add(m.key, m.value);
    return out.build();
  }

  void flatten(const Value& v, const Path& at, std::map<Path, std::string>& out) {
    if (v.is_map()) {
      if (!at.empty()) out[at] = "{}";
      for (const Member& m : v.members()) {
        if (at.empty() && (m.key == "apiVersion" || m.key == "kind" || m.key == "keep")) continue;
        flatten(m.value, at + "." + std::string(m.key), out);
      }
    } else if (v.is_list()) {
      out[at] = "{}";
      for (const Value& item : v.items()) flatten(item, at + "[" + std::string(item.text_at("name")) + "]", out);
    } else {
      EXPECT_FALSE(v.is_null()) << "a null at " << at;
      out[at] = v.is_int() ? std::to_string(v.as_int()) : v.is_string() ? std::string(v.as_string()) : "null";
    }
  }

  static Path shown(ownership::Path path) {
    Path out = to_string(path);
    for (const char c : {'a', 'b'}) {
      const std::string long_form = std::string("[name=\"") + c + "\"]";
      if (const size_t at = out.find(long_form); at != Path::npos) {
        out.replace(at, long_form.size(), std::string("[") + c + "]");
      }
    }
    return out;
  }

  void step(const std::string& who, const Configuration& config, bool force) {
    const Value sent = configuration(who, config);
    const std::string said = who + (force ? " forces " : " applies ") + codec::encode_json(sent);
    SCOPED_TRACE(said);
    std::string before = live_ ? codec::encode_json(*live_) : "nothing";
    for (const ManagerEntry& entry : managed_) {
      before += "\n" + std::string(entry.manager) + " " + to_fields_v1(entry.fields);
    }
    Result<ApplyResult> result = manager_->apply(arena_, {.live = live_ ? &*live_ : nullptr,
                                                          .live_managed = &managed_,
                                                          .config = sent,
                                                          .manager = who,
                                                          .force = force,
                                                          .now = {++now_, 0}});
    const std::set<std::string> expected = model_.apply(who, config, force);
    if (expected.empty() || force) {
      ASSERT_TRUE(result.ok()) << result.error().message << "\nto " << before;
      live_ = schema::apply_defaults(arena_, schema_->root(), result->object);
      managed_ = result->managed;
    } else {
      ASSERT_FALSE(result.ok()) << "no conflict\nwith " << before;
      std::set<std::string> conflicts;
      for (const Cause& cause : result.error().causes) {
        const std::string name = cause.message.substr(std::string_view("conflict with \"").size(), 1);
        Path path = cause.field;
        for (const char c : {'a', 'b'}) {
          const std::string long_form = std::string("[name=\"") + c + "\"]";
          if (const size_t at = path.find(long_form); at != Path::npos) {
            path.replace(at, long_form.size(), std::string("[") + c + "]");
          }
        }
        conflicts.insert(name + " " + path);
      }
      ASSERT_EQ(conflicts, expected) << "with " << before;
    }
    std::map<Path, std::string> object;
    if (live_) flatten(*live_, "", object);
    ASSERT_EQ(object, model_.object) << "was " << before;
    std::map<std::string, std::set<Path>> owners;
    for (const ManagerEntry& entry : managed_) {
      entry.fields.for_each([&](ownership::Path path) {
        if (shown(path) != ".keep") owners[std::string(entry.manager)].insert(shown(path));
      });
    }
    ASSERT_EQ(owners, model_.owners) << "object was " << before;
    check_extract_releases_nothing(who);
  }

  // Extracting and applying again changes nothing.
  void check_extract_releases_nothing(const std::string& who) {
    const Result<Value> found = manager_->extract(arena_, *live_, managed_, who);
    ASSERT_TRUE(found.ok());
    if (found->is_null()) return;
    Result<ApplyResult> again = manager_->apply(arena_, {.live = &*live_,
                                                         .live_managed = &managed_,
                                                         .config = *found,
                                                         .manager = who,
                                                         .force = false,
                                                         .now = {now_, 0}});
    ASSERT_TRUE(again.ok()) << again.error().message << "\nextracted " << codec::encode_json(*found);
    EXPECT_FALSE(again->changed) << codec::encode_json(*found);
    // If others have set something in a struct that `who` unset as a whole, a marker would conflict with them. The rest
    // of the default is then extracted as values, which do not own the struct itself.
    const bool shared = std::any_of(model_.owners.begin(), model_.owners.end(), [&](const auto& entry) {
      return entry.first != who && std::any_of(entry.second.begin(), entry.second.end(),
                                               [](const Path& path) { return is_below(path, ".dst"); });
    });
    const PathElement dst = PathElement::field("dst");
    Managed before = managed_;
    for (Managed* managed : {&again->managed, &before}) {
      for (ManagerEntry& entry : *managed) {
        if (shared && entry.manager == who) entry.fields = difference(arena_, entry.fields, single(arena_, {&dst, 1}));
      }
    }
    EXPECT_TRUE(equal(again->managed, before)) << codec::encode_json(*found);
  }

  Arena arena_;
  std::mt19937 dice_;
  std::shared_ptr<const schema::Schema> schema_;
  MergeTypes types_;
  std::unique_ptr<FieldManager> manager_;
  std::optional<Value> live_;
  Managed managed_;
  Model model_;
  int64_t now_ = 0;
};

TEST(UnsetProperties, UnsetReleaseAndDefaultMatchTheModel) {
  for (uint32_t seed = 0; seed < 600 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Two two(seed);
    two.play(12);
  }
}

}  // namespace
}  // namespace holdfast::ownership
