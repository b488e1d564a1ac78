// Merges other servers' v2 documents into ours.
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "openapi/model.h"

namespace holdfast::openapi {
namespace {

constexpr std::string_view kDefinitions = "#/definitions/", kParameters = "#/parameters/";

void visit_references(const Value& value, const std::function<void(std::string_view)>& seen) {
  if (value.is_list()) {
    for (const Value& item : value.items()) visit_references(item, seen);
  } else if (value.is_map()) {
    for (const Member& member : value.members()) {
      if (member.key == "$ref" && member.value.is_string()) {
        seen(member.value.as_string());
      } else {
        visit_references(member.value, seen);
      }
    }
  }
}

using Names = std::map<std::string, std::string, std::less<>>;  // The name used here for each reference.

Value with_references(Arena& arena, const Value& value, const Names& renamed) {
  if (value.is_list()) {
    ListBuilder list(arena);
    for (const Value& item : value.items()) list.add(with_references(arena, item, renamed));
    return list.build();
  }
  if (!value.is_map()) return value;
  MapBuilder map(arena);
  for (const Member& member : value.members()) {
    if (member.key == "$ref" && member.value.is_string()) {
      const auto known = renamed.find(member.value.as_string());
      map.add(member.key, known == renamed.end() ? member.value : Value::string(arena, known->second));
    } else {
      map.add(member.key, with_references(arena, member.value, renamed));
    }
  }
  return map.build();
}

using Members = std::map<std::string, Value, std::less<>>;

Members members_of(const Value& document, std::string_view key) {
  Members all;
  for (const Member& member : document.members_at(key)) all.emplace(member.key, member.value);
  return all;
}

Value map_of(Arena& arena, const Members& members) {
  MapBuilder map(arena);
  for (const auto& [name, value] : members) map.add_copy(name, value);
  return map.build();
}

struct Merger {
  Arena& arena;
  Members paths, definitions, parameters;

  void add(const Remote& remote) {
    Members taken;
    for (const auto& [path, item] : members_of(remote.document, "paths")) {
      if (path.starts_with(remote.path_prefix) && !paths.contains(path)) taken.emplace(path, item);
    }
    // Everything they refer to, directly or indirectly.
    const Members theirs = members_of(remote.document, "definitions"),
                  their_parameters = members_of(remote.document, "parameters");
    std::set<std::string, std::less<>> wanted;
    std::vector<const Value*> to_visit;
    for (const auto& [path, item] : taken) to_visit.push_back(&item);
    while (!to_visit.empty()) {
      const Value* next = to_visit.back();
      to_visit.pop_back();
      visit_references(*next, [&](std::string_view reference) {
        if (!wanted.emplace(reference).second) return;
        if (const Value* target = find(reference, theirs, their_parameters)) to_visit.push_back(target);
      });
    }

    Names renamed;
    for (const std::string& reference : wanted) {
      const Value* target = find(reference, theirs, their_parameters);
      if (target == nullptr) continue;
      const bool definition = reference.starts_with(kDefinitions);
      const std::string_view prefix = definition ? kDefinitions : kParameters;
      renamed[reference] = std::string(prefix) + free_name(definition ? definitions : parameters,
                                                           std::string(reference.substr(prefix.size())), *target);
    }
    for (const auto& [reference, name] : renamed) {
      const Value target = with_references(arena, *find(reference, theirs, their_parameters), renamed);
      const bool definition = reference.starts_with(kDefinitions);
      (definition ? definitions : parameters)
          .emplace(name.substr(definition ? kDefinitions.size() : kParameters.size()), target);
    }
    for (const auto& [path, item] : taken) paths.emplace(path, with_references(arena, item, renamed));
  }

  static const Value* find(std::string_view reference, const Members& definitions, const Members& parameters) {
    const bool definition = reference.starts_with(kDefinitions);
    if (!definition && !reference.starts_with(kParameters)) return nullptr;
    const Members& members = definition ? definitions : parameters;
    const auto found = members.find(reference.substr(definition ? kDefinitions.size() : kParameters.size()));
    return found == members.end() ? nullptr : &found->second;
  }

  // The name itself if it is free or has the same definition here; otherwise the first such name of name_v2, name_v3,
  // ...
  static std::string free_name(const Members& known, const std::string& name, const Value& meaning) {
    std::string candidate = name;
    for (int i = 2;; ++i) {
      const auto found = known.find(candidate);
      if (found == known.end() || equal(found->second, meaning)) return candidate;
      candidate = name + "_v" + std::to_string(i);
    }
  }
};

}  // namespace

Value with_remotes(Arena& arena, const Value& document, std::span<const Remote> remotes) {
  if (remotes.empty()) return document;
  Merger merger{arena, members_of(document, "paths"), members_of(document, "definitions"),
                members_of(document, "parameters")};
  for (const Remote& remote : remotes) merger.add(remote);
  Value merged = with_member(arena, document, "paths", map_of(arena, merger.paths));
  merged = with_member(arena, merged, "definitions", map_of(arena, merger.definitions));
  return with_member(arena, merged, "parameters", map_of(arena, merger.parameters));
}

}  // namespace holdfast::openapi
