#include "ownership/unset.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "ownership/typed.h"

namespace holdfast::ownership {
namespace {

class MarkerWalk {
 public:
  explicit MarkerWalk(Arena& arena) : arena_(arena), builder_(arena) {}

  // What is left of a value, and the markers below it. `unset`: the value itself is a marker.
  struct Taken {
    std::optional<Value> value;  // Nothing: it held nothing but markers.
    FieldSet paths;
    bool unset = false;
  };

  Result<Taken> node(const MergeType& type, const Value& v) {
    if (v.is_map()) {
      if (v.has(kUnsetKey)) return marker(v);
      if ((type.offers & MergeType::kMap) == 0) return plain(v);
      if (type.atomic_map) return untouched(v, "a marker cannot stand inside an atomic map or struct");
      return members(type, v);
    }
    if (v.is_list()) {
      if ((type.offers & MergeType::kList) == 0) return plain(v);
      if (type.atomic_list) return untouched(v, "a marker cannot stand inside an atomic list");
      return items(type, v);
    }
    return plain(v);
  }

  Error refuse(std::string_view why) const {
    return bad_request("invalid unset marker at " + (path_.empty() ? std::string(".") : to_text()) + ": " +
                       std::string(why));
  }

 private:
  static Taken plain(const Value& v) { return {v, {}, false}; }

  std::string to_text() const {
    std::string out;
    for (const std::string& step : path_) out += step;
    return out;
  }

  // The place of the first marker in `v` is part of the error.
  Result<Taken> untouched(const Value& v, std::string_view why) {
    if (v.is_map()) {
      if (v.has(kUnsetKey)) return refuse(why);
      for (const Member& m : v.members()) {
        path_.push_back("." + std::string(m.key));
        Result<Taken> below = untouched(m.value, why);
        if (!below) return below;
        path_.pop_back();
      }
    } else if (v.is_list()) {
      for (size_t i = 0; i < v.count(); ++i) {
        path_.push_back("[" + std::to_string(i) + "]");
        Result<Taken> below = untouched(v.items()[i], why);
        if (!below) return below;
        path_.pop_back();
      }
    }
    return plain(v);
  }

  std::optional<Error> bad_value(const Value& v) const {
    const Value& said = *v.find(kUnsetKey);
    if (said.is_string() && said.as_string() == kUnsetValue) return std::nullopt;
    std::string shown = said.is_string() ? go_quote(said.as_string()) : "a value of another kind";
    return refuse("the only value of " + std::string(kUnsetKey) + " is \"unset\", not " + shown);
  }

  Result<Taken> marker(const Value& v) {
    if (path_.empty()) return refuse("an object cannot be unset as a whole");
    const std::string at = to_text();
    for (const std::string_view fixed :
         {".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace"}) {
      if (at == fixed) return refuse("this field cannot be unset");
    }
    if (std::optional<Error> error = bad_value(v)) return *error;
    for (const Member& m : v.members()) {
      if (m.key != kUnsetKey) {
        return refuse("nothing may stand beside " + std::string(kUnsetKey) + ", but " + go_quote(m.key) + " does");
      }
    }
    return Taken{std::nullopt, {}, true};
  }

  Result<Taken> members(const MergeType& type, const Value& v) {
    const size_t level = builder_.open();
    MapBuilder left(arena_);
    bool taken = false;
    for (const Member& m : v.members()) {
      bool declared = false;
      const MergeType* child = type.member(m.key, declared);
      if (child == nullptr) {
        // Not in the schema at all: validation says so.
        left.add(m.key, m.value);
        continue;
      }
      path_.push_back("." + std::string(m.key));
      Result<Taken> below = node(*child, m.value);
      if (!below) return below;
      path_.pop_back();
      builder_.add(PathElement::field(m.key), below->unset, below->paths);
      taken |= below->unset || !below->paths.empty();
      if (below->value) left.add(m.key, *below->value);
    }
    const FieldSet paths = builder_.close(level);
    if (!taken) return plain(v);
    Taken out{std::nullopt, paths, false};
    if (left.count() != 0) out.value = left.build();
    return out;
  }

  Result<Taken> items(const MergeType& type, const Value& v) {
    const size_t level = builder_.open();
    ListBuilder left(arena_);
    bool taken = false;
    for (size_t i = 0; i < v.count(); ++i) {
      const Value& item = v.items()[i];
      if (type.keys.empty()) {
        if (item.is_map() && item.has(kUnsetKey)) {
          path_.push_back("[" + std::to_string(i) + "]");
          return refuse("an element of a set cannot be unset; leave it out, or unset the whole set");
        }
        left.add(item);
        continue;
      }
      PathElement element = PathElement::index(static_cast<int64_t>(i));
      const bool marked = item.is_map() && item.has(kUnsetKey);
      if (item.is_map()) {
        for (const std::string_view key : type.keys) {
          const Value* value = item.find(key);
          if (value != nullptr && has_marker(*value)) {
            path_.push_back("[" + std::to_string(i) + "]." + std::string(key));
            return refuse("a key of a list cannot be unset");
          }
        }
      }
      const bool named = item_element(arena_, type, item, element);
      path_.push_back(to_string(element));
      if (marked) {
        if (!named) return refuse("an item is unset by its keys, and none of them is there");
        if (std::optional<Error> error = bad_value(item)) return *error;
        for (const Member& m : item.members()) {
          const bool is_key = std::find(type.keys.begin(), type.keys.end(), m.key) != type.keys.end();
          if (m.key != kUnsetKey && !is_key) {
            return refuse("only the keys of the list may stand beside " + std::string(kUnsetKey) + ", but " +
                          go_quote(m.key) + " does");
          }
        }
        builder_.add(element, true, {});
        taken = true;
      } else {
        Result<Taken> below = node(*type.item, item);
        if (!below) return below;
        builder_.add(element, false, below->paths);
        taken |= !below->paths.empty();
        // Its keys stay, so there is something left.
        left.add(below->value ? *below->value : item);
      }
      path_.pop_back();
    }
    const FieldSet paths = builder_.close(level);
    if (!taken) return plain(v);
    Taken out{std::nullopt, paths, false};
    if (left.count() != 0) out.value = left.build();
    return out;
  }

  Arena& arena_;
  SetBuilder builder_;
  std::vector<std::string> path_;
};

}  // namespace

bool has_marker(const Value& value) {
  if (value.is_map()) {
    for (const Member& m : value.members()) {
      if (m.key == kUnsetKey || has_marker(m.value)) return true;
    }
  } else if (value.is_list()) {
    for (const Value& item : value.items()) {
      // Lists hold items of one kind: texts and numbers need no look.
      if (!item.is_map() && !item.is_list()) continue;
      if (has_marker(item)) return true;
    }
  }
  return false;
}

Result<Unset> take_markers(Arena& arena, const MergeType& type, const Value& config) {
  Result<MarkerWalk::Taken> taken = MarkerWalk(arena).node(type, config);
  if (!taken) return taken.take_error();
  return Unset{taken->value ? *taken->value : Value::empty_map(), taken->paths};
}

}  // namespace holdfast::ownership
