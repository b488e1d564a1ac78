// Tests unsetting against a small model: random writes of random managers, applied to the field manager and to a model
// written from docs/unsetting-fields.md alone. A failure names its seed.
//
// The model represents an object as a flat list of paths with their values, and an owner as a set of paths. It uses one
// schema with every kind of node, so that paths, parents and defaults are a table. The object has two versions in which
// some fields have different names; two of its fields are aliases, which the server keeps in step; and writes that no
// manager is told of, as by admission, change it in between.
//
// `./dev markers` runs 100,000 sequences instead of a few hundred; HOLDFAST_SEQUENCES and HOLDFAST_SEED (the first
// seed) choose others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "codec/json.h"
#include "ownership/merge_type.h"
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
  "p":{"type":"string"},
  "q":{"type":"string"},
  "m":{"type":"object","additionalProperties":{"type":"string"}},
  "st":{"type":"object","properties":{"a":{"type":"string"},"in":{"type":"object","properties":{"x":{"type":"string"},"z":{"type":"string"}}}}},
  "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
       "items":{"type":"object","properties":{"name":{"type":"string"},"v":{"type":"string"}}}},
  "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
  "box":{"type":"object","properties":{"dflt":{"type":"string","default":"0"},"free":{"type":"string"},
         "l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
              "items":{"type":"object","properties":{"name":{"type":"string"},"v":{"type":"string"}}}}}},
  "deep":{"type":"object","properties":{"p":{"type":"string"},
          "l1":{"type":"object","default":{"l2":{"x":"0"}},
                "properties":{"l2":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}}}}}}},
  "dst":{"type":"object","default":{"x":"0"},"properties":{"x":{"type":"string"},"z":{"type":"string"}}}}})";
// The names of root members in version v2, where they differ.
const std::map<std::string, std::string, std::less<>>& renamed() {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"s", "text"}, {"m", "options"}, {"box", "crate"}, {"k", "parts"}, {"dst", "target"}};
  return names;
}

using Path = std::string;  // ".st.in.x", ".k[a].v"

enum class NodeKind : uint8_t { Leaf, Struct, Key, List, Item, Set, Element };

// Everything that can be in the object. Parents come before children.
struct Node {
  Path path;
  NodeKind kind;
  // A leaf's default; of a struct, the path below it that its default sets, to "0", and the containers above that.
  std::string standard = {};
};
const std::vector<Node>& nodes() {
  static const std::vector<Node> all = {
      {".s", NodeKind::Leaf},
      {".d", NodeKind::Leaf, "0"},
      {".e", NodeKind::Leaf, "1"},
      {".p", NodeKind::Leaf},
      {".q", NodeKind::Leaf},
      {".m", NodeKind::Struct},
      {".m.a", NodeKind::Key},
      {".m.b", NodeKind::Key},
      {".st", NodeKind::Struct},
      {".st.a", NodeKind::Leaf},
      {".st.in", NodeKind::Struct},
      {".st.in.x", NodeKind::Leaf},
      {".st.in.z", NodeKind::Leaf},
      {".k", NodeKind::List},
      {".k[a]", NodeKind::Item},
      {".k[a].name", NodeKind::Leaf},
      {".k[a].v", NodeKind::Leaf},
      {".k[b]", NodeKind::Item},
      {".k[b].name", NodeKind::Leaf},
      {".k[b].v", NodeKind::Leaf},
      {".set", NodeKind::Set},
      {".set[a]", NodeKind::Element},
      {".set[b]", NodeKind::Element},
      {".box", NodeKind::Struct},
      {".box.dflt", NodeKind::Leaf, "0"},
      {".box.free", NodeKind::Leaf},
      {".box.l", NodeKind::List},
      {".box.l[a]", NodeKind::Item},
      {".box.l[a].name", NodeKind::Leaf},
      {".box.l[a].v", NodeKind::Leaf},
      {".deep", NodeKind::Struct},
      {".deep.p", NodeKind::Leaf},
      {".deep.l1", NodeKind::Struct, ".deep.l1.l2.x"},
      {".deep.l1.l2", NodeKind::Struct},
      {".deep.l1.l2.x", NodeKind::Leaf},
      {".deep.l1.l2.y", NodeKind::Leaf},
      {".dst", NodeKind::Struct, ".dst.x"},
      {".dst.x", NodeKind::Leaf},
      {".dst.z", NodeKind::Leaf},
  };
  return all;
}
const Node& node_at(const Path& path) {
  return *std::find_if(nodes().begin(), nodes().end(), [&](const Node& node) { return node.path == path; });
}
bool is_list(NodeKind kind) { return kind == NodeKind::List || kind == NodeKind::Set; }
bool is_container(NodeKind kind) { return kind == NodeKind::Struct || kind == NodeKind::Item || is_list(kind); }
bool is_below(const Path& path, const Path& root) {
  return path.size() > root.size() && path.starts_with(root) && (path[root.size()] == '.' || path[root.size()] == '[');
}
bool at_or_below(const Path& path, const Path& root) { return path == root || is_below(path, root); }
// Two fields that the server keeps in step, like serviceAccountName and serviceAccount of a Pod.
const std::pair<Path, Path> kAliases = {".p", ".q"};
Path alias_of(const Path& path) {
  return path == kAliases.first ? kAliases.second : path == kAliases.second ? kAliases.first : Path();
}
Path parent_of(const Path& path) { return path.substr(0, path.find_last_of(".[")); }

// What one manager applies: values and unset paths.
struct Configuration {
  std::map<Path, std::string> set;  // Leaves, and the containers above them.
  std::set<Path> unset;
  // Containers above unset paths that hold nothing else: written, but they mean nothing.
  std::set<Path> hollow;
};

// --- The model ---

struct Model {
  using Object = std::map<Path, std::string>;  // Containers have the value "{}".
  using Paths = std::set<Path>;
  Object object;
  std::map<std::string, Paths> owners;
  // The last apply left null where a container lost everything but an owner of the container itself, as Kubernetes
  // does; a server refuses the object.
  bool refused = false;

  static void add_defaults(Object& object) {
    for (const Node& node : nodes()) {
      if (node.standard.empty() || object.contains(node.path)) continue;
      if (const Path parent = parent_of(node.path); !parent.empty() && !object.contains(parent)) continue;
      if (node.kind == NodeKind::Leaf) {
        object[node.path] = node.standard;
        continue;
      }
      object[node.standard] = "0";
      for (Path at = parent_of(node.standard); at_or_below(at, node.path); at = parent_of(at)) object[at] = "{}";
    }
  }

  // What the server does after every write: whichever alias is absent is set from the other, and the first one counts.
  static void keep_in_step(Object& object) {
    const auto& [one, other] = kAliases;
    const auto first = object.find(one), second = object.find(other);
    if (first != object.end()) {
      object[other] = first->second;
    } else if (second != object.end()) {
      object[one] = second->second;
    }
  }

  // Unsetting a field unsets its alias as well, unless the configuration sets that.
  static Configuration with_aliases(Configuration config) {
    for (const Path& path : std::set<Path>(config.unset)) {
      const Path alias = alias_of(path);
      if (!alias.empty() && !config.set.contains(alias)) config.unset.insert(alias);
    }
    return config;
  }

  static bool any_at_or_below(const Paths& paths, const Path& root) {
    return std::any_of(paths.begin(), paths.end(), [&](const Path& p) { return at_or_below(p, root); });
  }
  static bool any_below(const Paths& paths, const Path& root) {
    return std::any_of(paths.begin(), paths.end(), [&](const Path& p) { return is_below(p, root); });
  }
  static bool covered(const Path& path, const Paths& roots) {
    return std::any_of(roots.begin(), roots.end(), [&](const Path& root) { return at_or_below(path, root); });
  }
  static void erase_covered(Object& object, const Paths& roots) {
    std::erase_if(object, [&](const auto& entry) { return covered(entry.first, roots); });
  }
  static Paths present(const Paths& paths, const Object& object) {
    Paths out;
    for (const Path& path : paths) {
      if (object.contains(path)) out.insert(path);
    }
    return out;
  }

  // The containers that a manager owns as well as something in them, and that have their default: it unset them.
  static Paths defaulted_containers(const Paths& owned, const Object& object) {
    Paths out;
    for (const Path& path : owned) {
      const Node& node = node_at(path);
      if (node.kind != NodeKind::Struct || !any_below(owned, path) || covered(path, out)) continue;
      if (has_default(path, object)) out.insert(path);
    }
    return out;
  }
  // Whether the part of the object at the path is as defaults make it.
  static bool has_default(const Path& path, const Object& object) {
    Object without = object;
    erase_covered(without, {path});
    add_defaults(without);
    const auto part = [&](const Object& whole) {
      Object below;
      for (const auto& entry : whole) {
        if (at_or_below(entry.first, path)) below.insert(entry);
      }
      return below;
    };
    return part(without) == part(object);
  }

  // The paths owned by a configuration, before defaults: leaves, keys and items that it sets, and paths that it unsets.
  static Paths owned_by(const Configuration& config) {
    Paths out = config.unset;
    for (const Node& node : nodes()) {
      const bool own_path = node.kind != NodeKind::Struct && !is_list(node.kind);
      if (config.set.contains(node.path) && own_path) out.insert(node.path);
    }
    return out;
  }

  // Defaults of an object that lost what a configuration unsets: a container above it is made if a default below the
  // container applies.
  static void add_defaults_of_unset(Object& next, const Paths& unset) {
    add_defaults(next);
    const Object before = next;
    for (const Path& path : unset) {
      std::vector<Path> above;
      for (Path at = parent_of(path); !at.empty(); at = parent_of(at)) above.push_back(at);
      for (auto at = above.rbegin(); at != above.rend(); ++at) {
        if (!next.contains(*at) && node_at(*at).kind != NodeKind::Struct) break;
        if (next.try_emplace(*at, "{}").second) add_defaults(next);
      }
    }
    for (auto node = nodes().rbegin(); node != nodes().rend(); ++node) {
      const bool made = next.contains(node->path) && !before.contains(node->path) && is_container(node->kind);
      const bool empty =
          std::none_of(next.begin(), next.end(), [&](const auto& e) { return is_below(e.first, node->path); });
      if (made && empty) next.erase(node->path);
    }
  }

  // Returns the conflicts as "manager path". Without conflicts, or with force, the model becomes the state after the
  // apply. `gate` is that of markers.
  std::set<std::string> apply(const std::string& who, const Configuration& sent, bool force, bool gate) {
    const Configuration config = with_aliases(sent);
    Object next = object;
    refused = false;
    for (const auto& [path, value] : config.set) {
      // An existing container stays as it is.
      if (value == "{}") {
        next.try_emplace(path, value);
      } else {
        next[path] = value;
      }
    }
    const Paths own = owned_by(config);
    Paths emptied;
    if (const auto last = owners.find(who); last != owners.end()) {
      emptied = release(next, last->second, own, config.unset, who, gate);
    }
    erase_covered(next, config.unset);

    Paths mine = own;
    if (!config.unset.empty()) {
      const Object bare = next;
      add_defaults_of_unset(next, config.unset);
      // The default of a container may set what is unset in it, which is removed; its own default comes back.
      erase_covered(next, config.unset);
      add_defaults_of_unset(next, config.unset);
      Object usual = bare;
      add_defaults(usual);
      for (const Node& node : nodes()) {
        const bool hollow = std::none_of(next.begin(), next.end(), [&](const auto& entry) {
          return at_or_below(entry.first, node.path) && entry.second != "{}";
        });
        if (hollow && !usual.contains(node.path) && !config.set.contains(node.path)) erase_covered(next, {node.path});
      }
      for (const auto& [path, value] : next) {
        if (!bare.contains(path) && covered(path, config.unset)) mine.insert(path);
      }
    }

    Paths touched, gone;  // Added or changed; removed by a marker.
    for (const auto& [path, value] : next) {
      const auto was = object.find(path);
      if (was == object.end() || was->second != value) touched.insert(path);
    }
    for (const auto& [path, value] : object) {
      if (covered(path, config.unset) && !next.contains(path)) gone.insert(path);
    }
    std::set<std::string> conflicts;
    std::map<std::string, Paths> others = owners;
    others.erase(who);
    for (auto& [manager, paths] : others) {
      Paths lost;
      for (const Path& path : paths) {
        // Removal by a marker includes everything that is owned below it, even unset fields.
        if (touched.contains(path) || covered(path, gone)) lost.insert(path);
      }
      // What is set next to the default of a container that the manager unset.
      for (const Path& container : defaulted_containers(paths, object)) {
        const bool disturbed = std::any_of(touched.begin(), touched.end(), [&](const Path& path) {
          return at_or_below(path, container) && !covered(path, lost);
        });
        if (disturbed) lost.insert(container);
      }
      for (const Path& path : lost) conflicts.insert(manager + " " + path);
      std::erase_if(paths, [&](const Path& path) {
        return lost.contains(path) || (object.contains(path) && !next.contains(path) && !emptied.contains(path));
      });
    }
    if (!conflicts.empty() && !force) return conflicts;
    object = next;
    add_defaults(object);
    keep_in_step(object);
    owners = others;
    owners[who] = mine;
    std::erase_if(owners, [](const auto& entry) { return entry.second.empty(); });
    return conflicts;
  }

  // A field that `who` set and no longer applies is removed unless someone else owns it; a container is removed if
  // nobody owns anything in it that exists. Giving up a field that is absent, or that has its default, removes nothing;
  // what the configuration unsets is not given up here. A manager that owns a container itself has unset it, and its
  // default came back: when the container loses what someone else put into it, the default comes back again; if it was
  // empty, it stays.
  // Returns such containers.
  Paths release(Object& next, const Paths& last, const Paths& own, const Paths& unset, const std::string& who,
                bool gate) {
    Paths emptied;
    Paths given_up = present(last, object);
    std::erase_if(given_up, [&](const Path& path) { return covered(path, unset); });
    if (gate) {
      const Paths whole = defaulted_containers(given_up, next);
      const Paths before = given_up;
      std::erase_if(given_up, [&](const Path& path) {
        if (covered(path, whole)) return true;
        return !node_at(path).standard.empty() && !any_below(before, path) && has_default(path, next);
      });
    }
    // What the configuration sets, and what it unsets as long as it is there.
    Paths holding = own;
    std::erase_if(holding, [&](const Path& path) { return covered(path, unset) && !next.contains(path); });
    for (const auto& [manager, paths] : owners) {
      if (manager == who) continue;
      // A container that was unset as a whole, and those below it, hold nothing by themselves.
      Paths whole;
      for (const Path& path : paths) {
        if (node_at(path).kind == NodeKind::Struct && any_below(paths, path)) whole.insert(path);
      }
      for (const Path& path : present(paths, object)) {
        if (node_at(path).kind != NodeKind::Struct || !covered(path, whole)) holding.insert(path);
      }
    }
    const auto filled = [&](const Path& path) {
      return std::any_of(next.begin(), next.end(), [&](const auto& e) { return is_below(e.first, path); });
    };
    for (const Node& node : nodes()) {
      const bool concerns_below = node.kind == NodeKind::Struct || is_list(node.kind);
      if (!(concerns_below ? any_at_or_below(given_up, node.path) : given_up.contains(node.path))) continue;
      if (concerns_below ? any_below(holding, node.path) : holding.contains(node.path)) continue;
      if (concerns_below && holding.contains(node.path)) {
        if (filled(node.path)) emptied.insert(node.path);
        continue;
      }
      std::erase_if(next, [&](const auto& entry) { return at_or_below(entry.first, node.path); });
    }
    std::erase_if(emptied, filled);
    for (const Path& path : emptied) {
      next.erase(path);
      refused |= node_at(path).standard.empty();
    }
    return emptied;
  }
};

// --- Model and field manager side by side ---

class Two {
 public:
  explicit Two(uint32_t seed) : dice_(seed) {
    schema_ = schema::Schema::build(*codec::decode_json(arena_, kSchema), false);
    renamed_schema_ = schema::Schema::build(renamed_schema(), false);
    // Schemas cannot declare aliases, which only built-in types have.
    for (const bool second : {false, true}) {
      roots_[second] = types_.of((second ? renamed_schema_ : schema_)->root());
      fields_[second].assign(roots_[second].fields.begin(), roots_[second].fields.end());
      for (MergeField& field : fields_[second]) {
        field.alias = arena_.copy(alias_of("." + std::string(field.name)));
        if (!field.alias.empty()) field.alias.remove_prefix(1);
      }
      roots_[second].fields = fields_[second];
      roots_[second].has_aliases = true;
    }
    for (const bool second : {false, true}) {
      for (const bool gate : {false, true}) managers_[second][gate] = make(second, gate);
    }
    // So that the object is never empty.
    Configuration base;
    step("base", base, false, false, true);
  }

  void play(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      if (below(6) == 0) {
        unowned_change();
        continue;
      }
      const std::string who(1, static_cast<char>('x' + static_cast<char>(below(3))));
      const bool gate = below(6) != 0;
      const Configuration config = random_configuration(gate);
      const bool force = below(2) == 0, second = below(4) == 0;
      step(who, config, force, second, gate);
      // The same request again changes nothing. If it sets one alias and unsets the other, the server puts that back,
      // and the request unsets it each time.
      if (below(3) == 0 && !contradicts_itself(config)) {
        const Model before = model_;
        step(who, config, force, second, gate);
        if (!testing::Test::HasFailure()) {
          EXPECT_EQ(model_.object, before.object);
          EXPECT_EQ(model_.owners, before.owners);
        }
      }
    }
  }

 private:
  // Whether it asks for aliases that differ.
  static bool contradicts_itself(const Configuration& config) {
    const auto said = [&](const Path& path) {
      const auto set = config.set.find(path);
      return set != config.set.end() ? set->second : Path(config.unset.contains(path) ? "unset" : "");
    };
    const Path one = said(kAliases.first), other = said(kAliases.second);
    return !one.empty() && !other.empty() && one != other;
  }

  static constexpr std::string_view kVersions[] = {"e.com/v1", "e.com/v2"};

  size_t below(size_t n) { return dice_() % n; }

  std::unique_ptr<FieldManager> make(bool second, bool gate) {
    FieldManagerOptions options;
    options.api_version = kVersions[second];
    options.kind = "W";
    options.unset_markers = gate;
    for (const bool version : {false, true}) {
      options.versions.push_back({std::string(kVersions[version]), &roots_[version]});
    }
    options.convert = [](Arena& arena, const Value& object, std::string_view, std::string_view to) {
      return Result<Value>(convert(arena, object, to == kVersions[1]));
    };
    const schema::Schema* schema = second ? renamed_schema_.get() : schema_.get();
    options.declared_defaults = [schema](Arena& arena, const Value& object) {
      return schema::apply_defaults(arena, schema->root(), object);
    };
    return std::make_unique<FieldManager>(std::move(options));
  }

  Value renamed_schema() {
    const Value schema = *codec::decode_json(arena_, kSchema);
    return with_member(arena_, schema, "properties", with_names(arena_, *schema.find("properties"), true));
  }
  static Value with_names(Arena& arena, const Value& members, bool second) {
    MapBuilder out(arena);
    for (const Member& m : members.members()) {
      std::string_view key = m.key;
      for (const auto& [first_name, second_name] : renamed()) {
        if (key == (second ? first_name : second_name)) {
          key = second ? second_name : first_name;
          break;
        }
      }
      out.add(key, m.value);
    }
    return out.build();
  }
  static Value convert(Arena& arena, const Value& object, bool second) {
    return with_member(arena, with_names(arena, object, second), "apiVersion", Value::string(kVersions[second]));
  }

  Configuration random_configuration(bool gate) {
    Configuration config;
    for (const Node& node : nodes()) {
      const Path parent = parent_of(node.path);
      if (!parent.empty() && !config.set.contains(parent)) continue;
      if (node.path.ends_with(".name")) {
        config.set[node.path] = node.path.substr(node.path.find('[') + 1, 1);
        continue;
      }
      const size_t choice = below(10);
      if (choice < 4) continue;
      if (choice < 6) {
        if (gate) config.unset.insert(node.path);
      } else if (is_container(node.kind)) {
        config.set[node.path] = "{}";
      } else if (node.kind == NodeKind::Element) {
        config.set[node.path] = node.path.substr(node.path.find('[') + 1, 1);
      } else {
        config.set[node.path] = node.path == ".e" ? std::to_string(below(3)) : std::string(1, "012"[below(3)]);
      }
    }
    // {} and [] mean here that there is something below. Otherwise they are dropped, or hollow.
    for (auto node = nodes().rbegin(); node != nodes().rend(); ++node) {
      if (!is_container(node->kind) || node->kind == NodeKind::Item || !config.set.contains(node->path)) continue;
      if (std::any_of(config.set.begin(), config.set.end(),
                      [&](const auto& e) { return is_below(e.first, node->path); })) {
        continue;
      }
      config.set.erase(node->path);
      if (Model::any_below(config.unset, node->path)) config.hollow.insert(node->path);
    }
    return config;
  }

  // Like a policy's: adds a field that is absent, or removes one.
  void unowned_change() {
    const Node& node = nodes()[below(nodes().size())];
    if (is_container(node.kind) || node.path.ends_with(".name")) return;
    if (const Path parent = parent_of(node.path); !parent.empty() && !model_.object.contains(parent)) return;
    if (!model_.object.erase(node.path)) {
      const bool element = node.kind == NodeKind::Element;
      model_.object[node.path] = element ? node.path.substr(node.path.find('[') + 1, 1) : node.path == ".e" ? "2" : "1";
    }
    Model::add_defaults(model_.object);
    Model::keep_in_step(model_.object);
    live_ = object_of(model_.object);
  }

  Value keep_in_step(const Value& object) {
    const std::string_view one = std::string_view(kAliases.first).substr(1);
    const std::string_view other = std::string_view(kAliases.second).substr(1);
    if (const Value* first = object.find(one)) return with_member(arena_, object, other, *first);
    if (const Value* second = object.find(other)) return with_member(arena_, object, one, *second);
    return object;
  }

  static bool holds_null(const Value& v) {
    if (v.is_map()) {
      return std::any_of(v.members().begin(), v.members().end(), [](const Member& m) { return holds_null(m.value); });
    }
    return v.is_null();
  }

  Value text(std::string_view t) { return Value::string(arena_, t); }
  Value marker() { return with_member(arena_, Value::empty_map(), kUnsetKey, Value::string(kUnsetValue)); }

  Value leaf(const Path& path, const std::string& value) {
    return path == ".e" ? Value::integer(std::stoi(value)) : text(value);
  }

  // The members or items of `root` in the configuration.
  Value tree(const Configuration& config, const Path& root, NodeKind kind) {
    MapBuilder map(arena_);
    ListBuilder items(arena_);
    for (const Node& node : nodes()) {
      const size_t cut = node.path.find_last_of(".[");
      if (node.path.substr(0, cut) != root) continue;
      const bool unset = config.unset.contains(node.path);
      if (!unset && !config.set.contains(node.path) && !config.hollow.contains(node.path)) continue;
      if (is_list(kind)) {
        const Value name = text(std::string_view(node.path).substr(cut + 1, 1));
        const bool set = kind == NodeKind::Set;
        items.add(unset ? with_member(arena_, marker(), set ? kUnsetElement : "name", name)
                  : set ? name
                        : tree(config, node.path, node.kind));
      } else {
        map.add(arena_.copy(std::string_view(node.path).substr(cut + 1)),
                unset                     ? marker()
                : is_container(node.kind) ? tree(config, node.path, node.kind)
                                          : leaf(node.path, config.set.at(node.path)));
      }
    }
    return is_list(kind) ? items.build() : map.build();
  }

  Value configuration(const std::string& who, const Configuration& config, bool second) {
    MapBuilder out(arena_);
    out.add("apiVersion", Value::string(kVersions[0]));
    out.add("kind", Value::string("W"));
    if (who == "base") out.add("keep", Value::string("here"));
    for (const Member& m : tree(config, "", NodeKind::Struct).members()) out.add(m.key, m.value);
    const Value whole = out.build();
    return second ? convert(arena_, whole, true) : whole;
  }

  Value object_of(const Model::Object& object) {
    Configuration all;
    all.set = object;
    return configuration("base", all, false);
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
      for (const Value& item : v.items()) {
        flatten(item, at + "[" + std::string(item.is_string() ? item.as_string() : item.text_at("name")) + "]", out);
      }
    } else {
      EXPECT_FALSE(v.is_null()) << "a null at " << at;
      out[at] = v.is_int() ? std::to_string(v.as_int()) : v.is_string() ? std::string(v.as_string()) : "null";
    }
  }

  // A path as the model has it: [name="a"] and [="a"] are [a], in the names of v1.
  static Path shown(Path out, std::string_view version) {
    for (const std::string_view form : {"[name=\"", "[=\""}) {
      for (size_t at = out.find(form); at != Path::npos; at = out.find(form)) {
        out.replace(at, form.size() + 3, std::string("[") + out[at + form.size()] + "]");
      }
    }
    if (version != kVersions[1]) return out;
    for (const auto& [first_name, second_name] : renamed()) {
      if (at_or_below(out, "." + second_name)) return "." + first_name + out.substr(second_name.size() + 1);
    }
    return out;
  }

  void step(const std::string& who, const Configuration& config, bool force, bool second, bool gate) {
    const Value sent = configuration(who, config, second);
    SCOPED_TRACE(who + (force ? " forces " : " applies ") + codec::encode_json(sent) + (gate ? "" : " (gate off)"));
    std::string before = live_ ? codec::encode_json(*live_) : "nothing";
    for (const ManagerEntry& entry : managed_) {
      before += "\n" + std::string(entry.manager) + " " + to_fields_v1(entry.fields);
    }
    std::optional<Value> live;
    if (live_) live = second ? convert(arena_, *live_, true) : *live_;
    Result<ApplyResult> result = managers_[second][gate]->apply(arena_, {.live = live ? &*live : nullptr,
                                                                         .live_managed = &managed_,
                                                                         .config = sent,
                                                                         .manager = who,
                                                                         .force = force,
                                                                         .now = {++now_, 0}});
    std::map<std::string, std::string> versions;  // Of each manager's entry.
    for (const ManagerEntry& entry : managed_) versions[std::string(entry.manager)] = entry.api_version;
    const Model last = model_;
    const std::set<std::string> expected = model_.apply(who, config, force, gate);
    if (expected.empty() || force) {
      ASSERT_TRUE(result.ok()) << result.error().message << "\nto " << before;
      if (model_.refused) {
        EXPECT_TRUE(holds_null(result->object)) << codec::encode_json(result->object) << "\nwas " << before;
        model_ = last;
        return;
      }
      const Value next = second ? convert(arena_, result->object, false) : result->object;
      live_ = keep_in_step(schema::apply_defaults(arena_, schema_->root(), next));
      managed_ = result->managed;
    } else {
      ASSERT_FALSE(result.ok()) << "no conflict\nwith " << before;
      std::set<std::string> conflicts;
      for (const Cause& cause : result.error().causes) {
        const std::string name = cause.message.substr(std::string_view("conflict with \"").size(), 1);
        conflicts.insert(name + " " + shown(cause.field, versions[name]));
      }
      ASSERT_EQ(conflicts, expected) << result.error().message << "\nwith " << before;
    }
    std::map<Path, std::string> object;
    if (live_) flatten(*live_, "", object);
    ASSERT_EQ(object, model_.object) << "was " << before;
    std::map<std::string, std::set<Path>> owners;
    for (const ManagerEntry& entry : managed_) {
      entry.fields.for_each([&](ownership::Path path) {
        const Path at = shown(to_string(path), entry.api_version);
        if (at != ".keep") owners[std::string(entry.manager)].insert(at);
      });
    }
    ASSERT_EQ(owners, model_.owners) << "object was " << before;
    for (const ManagerEntry& entry : managed_) {
      if (entry.manager == who) check_extract_releases_nothing(who, entry.api_version == kVersions[1]);
    }
  }

  // Extracting and applying again changes nothing, unless somebody has removed a container in which a default applies
  // next to an unset field.
  void check_extract_releases_nothing(const std::string& who, bool second) {
    const FieldManager& manager = *managers_[second][true];
    const Value live = second ? convert(arena_, *live_, true) : *live_;
    std::set<Path> absent = model_.owners[who];
    std::erase_if(absent, [&](const Path& path) { return model_.object.contains(path); });
    Model::Object refilled = model_.object;
    Model::add_defaults_of_unset(refilled, absent);
    if (refilled != model_.object) return;
    // What others changed in a container that `who` unset as a whole is no configuration's result.
    const std::set<Path> whole = Model::defaulted_containers(model_.owners[who], model_.object);
    for (const Path& path : Model::present(model_.owners[who], model_.object)) {
      if (node_at(path).kind == NodeKind::Struct && !Model::covered(path, whole)) return;
    }
    const Result<Value> found = manager.extract(arena_, live, managed_, who);
    ASSERT_TRUE(found.ok());
    if (found->is_null()) return;
    Result<ApplyResult> again = manager.apply(
        arena_,
        {.live = &live, .live_managed = &managed_, .config = *found, .manager = who, .force = false, .now = {now_, 0}});
    ASSERT_TRUE(again.ok()) << again.error().message << "\nextracted " << codec::encode_json(*found);
    EXPECT_FALSE(again->changed) << codec::encode_json(*found) << "\nmakes of " << codec::encode_json(live) << "\n"
                                 << codec::encode_json(again->object);
    const auto comparable = [&](const Managed& managed) {
      std::map<std::string, std::set<Path>> owners;
      for (const ManagerEntry& entry : managed) {
        std::set<Path>& paths = owners[std::string(entry.manager)];
        entry.fields.for_each([&](ownership::Path path) { paths.insert(shown(to_string(path), entry.api_version)); });
      }
      return owners;
    };
    std::map<std::string, std::set<Path>> after = comparable(again->managed), before = comparable(managed_);
    // A container that somebody else has set to its default is extracted as a marker, which owns all of it.
    EXPECT_TRUE(std::includes(after[who].begin(), after[who].end(), before[who].begin(), before[who].end()))
        << codec::encode_json(*found);
    before[who] = after[who];
    EXPECT_EQ(after, before) << codec::encode_json(*found);
  }

  Arena arena_;
  std::mt19937 dice_;
  std::shared_ptr<const schema::Schema> schema_, renamed_schema_;
  MergeTypes types_;
  MergeType roots_[2];  // By version.
  std::vector<MergeField> fields_[2];
  std::unique_ptr<FieldManager> managers_[2][2];  // By version and gate.
  std::optional<Value> live_;                     // In v1.
  Managed managed_;
  Model model_;
  int64_t now_ = 0;
};

uint32_t number_from(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

TEST(UnsetProperties, UnsetReleaseAndDefaultMatchTheModel) {
  const uint32_t first = number_from("HOLDFAST_SEED", 0), count = number_from("HOLDFAST_SEQUENCES", 300);
  for (uint32_t seed = first; seed - first < count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Two two(seed);
    two.play(12);
  }
}

}  // namespace
}  // namespace holdfast::ownership
