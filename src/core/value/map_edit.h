// Changes to many members of one map, which is copied once: with_member() for each of them would copy it each time.
//
//   MapEdit edit(arena, map);
//   for (...) edit.replace(*map.find(key), changed);
//   return edit.build();  // `map` itself if nothing changed.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "value/value.h"

namespace holdfast {

class MapEdit {
 public:
  // `map` is a map, and stays as it is.
  MapEdit(Arena& arena, const Value& map) : arena_(arena), map_(map) {}
  MapEdit(const MapEdit&) = delete;
  MapEdit& operator=(const MapEdit&) = delete;

  // `member` is the value of a member as find() returned it, or in members().
  void replace(const Value& member, Value value) { changed()[place_of(member)].value = value; }
  void remove(const Value& member) {
    removed_.resize(map_.count());
    removed_[place_of(member)] = true;
  }
  // The map has no such member, and none was added.
  void add(std::string_view key, Value value) { changed().push_back({key, value}); }

  // Call once.
  Value build();

 private:
  size_t place_of(const Value& member) const {
    const auto* const at =
        reinterpret_cast<const Member*>(reinterpret_cast<const char*>(&member) - offsetof(Member, value));
    return static_cast<size_t>(at - map_.members().data());
  }
  // All members, as they will be; those that were added are behind those of the map.
  std::vector<Member>& changed() {
    if (members_.empty()) members_.assign(map_.members().begin(), map_.members().end());
    return members_;
  }

  Arena& arena_;
  const Value map_;
  std::vector<Member> members_;
  std::vector<bool> removed_;  // Members of the map; empty if none is.
};

}  // namespace holdfast
