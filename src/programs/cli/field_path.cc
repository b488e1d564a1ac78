#include "cli/field_path.h"

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "codec/codec.h"
#include "ownership/ownership.h"
#include "ownership/path_pattern.h"

namespace holdfast::cli {

namespace {

bool is_json(const Value& value, std::string_view text) {
  Arena arena;
  Result<Value> wanted = codec::decode_json(arena, text);
  return wanted && equal(value, *wanted, Numbers::ByValue);
}

// At commas that are not in quotes.
std::vector<std::string> split_outside_quotes(std::string_view text) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' && !quoted) {
      parts.emplace_back();
      continue;
    }
    parts.back() += text[i];
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      parts.back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    }
  }
  return parts;
}

// [port=80,protocol="TCP"]. Keys that the item lacks may have their default value, provided that another key matches.
enum class Absent : uint8_t { Differs, Default };
bool has_keys(const Value& item, std::string_view keys, Absent absent) {
  bool some = false;
  while (!keys.empty()) {
    const size_t equals = keys.find('=');
    if (equals == std::string_view::npos) return false;
    size_t end = equals + 1;
    bool quoted = false;
    for (; end < keys.size() && (quoted || keys[end] != ','); ++end) {
      if (quoted && keys[end] == '\\') {
        ++end;
      } else if (keys[end] == '"') {
        quoted = !quoted;
      }
    }
    if (const Value* value = item.find(keys.substr(0, equals))) {
      if (!is_json(*value, keys.substr(equals + 1, end - equals - 1))) return false;
      some = true;
    } else if (absent == Absent::Differs) {
      return false;
    }
    keys = keys.substr(std::min(end + 1, keys.size()));
  }
  return some;
}

// The element of a set that an item is, or unsets.
const Value& element_of(const Value& item) {
  const Value* unset = item.is_map() && item.has(ownership::kUnsetKey) ? item.find(ownership::kUnsetElement) : nullptr;
  return unset == nullptr ? item : *unset;
}

bool find_from(const Value& value, std::string_view rest, std::vector<PathStep>& steps) {
  if (rest.empty()) return true;
  if (rest[0] == '.' && value.is_map()) {
    rest.remove_prefix(1);
    // Prefer the longest key with which the rest resolves: "app.kubernetes.io/name" before "app".
    std::vector<const Member*> fitting;
    for (const Member& member : value.members()) {
      if (!rest.starts_with(member.key)) continue;
      const char next = rest.size() > member.key.size() ? rest[member.key.size()] : '.';
      if (next == '.' || next == '[') fitting.push_back(&member);
    }
    std::sort(fitting.begin(), fitting.end(),
              [](const Member* a, const Member* b) { return a->key.size() > b->key.size(); });
    for (const Member* member : fitting) {
      steps.push_back({.key = member->key});
      if (find_from(member->value, rest.substr(member->key.size()), steps)) return true;
      steps.pop_back();
    }
    return false;
  }
  if (rest[0] != '[' || !value.is_list()) return false;
  const size_t end = ownership::end_of_brackets(rest);
  if (end == std::string_view::npos) return false;
  const std::string_view inside = rest.substr(1, end - 2);
  const std::optional<size_t> index = parse_number<size_t>(inside);
  // Prefer an item that has all the keys to one that omits some.
  for (const Absent absent : {Absent::Differs, Absent::Default}) {
    for (size_t i = 0; i < value.items().size(); ++i) {
      const Value& item = value.items()[i];
      const bool fits = index                     ? i == *index
                        : inside.starts_with('=') ? is_json(element_of(item), inside.substr(1))
                                                  : has_keys(item, inside, absent);
      if (!fits) continue;
      steps.push_back({.index = i, .in_list = true});
      if (find_from(item, rest.substr(end), steps)) return true;
      steps.pop_back();
    }
  }
  return false;
}

Value changed(Arena& arena, const Value& value, std::span<const PathStep> steps, const Value* to) {
  const PathStep& step = steps[0];
  const bool last = steps.size() == 1;
  if (!step.in_list) {
    if (last && to == nullptr) return without_member(arena, value, step.key);
    return with_member(arena, value, step.key,
                       last ? *to : changed(arena, *value.find(step.key), steps.subspan(1), to));
  }
  ListBuilder items(arena);
  for (size_t i = 0; i < value.items().size(); ++i) {
    if (i != step.index) {
      items.add(value.items()[i]);
    } else if (!last) {
      items.add(changed(arena, value.items()[i], steps.subspan(1), to));
    } else if (to != nullptr) {
      items.add(*to);
    }
  }
  return items.build();
}

}  // namespace

std::optional<std::vector<PathStep>> find_path(const Value& root, std::string_view path) {
  std::vector<PathStep> steps;
  if (path.empty() || !find_from(root, path, steps)) return std::nullopt;
  return steps;
}

const Value* value_at(const Value& root, std::string_view path) {
  const std::optional<std::vector<PathStep>> steps = find_path(root, path);
  if (!steps) return nullptr;
  const Value* value = &root;
  for (const PathStep& step : *steps) value = step.in_list ? &value->items()[step.index] : value->find(step.key);
  return value;
}

Value with_value_at(Arena& arena, const Value& root, std::string_view path, const Value* value) {
  const std::optional<std::vector<PathStep>> steps = find_path(root, path);
  return steps ? changed(arena, root, *steps, value) : root;
}

std::vector<std::string> split_paths(const std::vector<std::string>& values) {
  std::vector<std::string> paths;
  for (const std::string& value : values) {
    const std::string_view text = value;
    size_t from = 0;
    for (size_t at = 0; at <= text.size();) {
      if (at < text.size() && text[at] == '[') {
        const size_t end = ownership::end_of_brackets(text.substr(at));
        at = end == std::string_view::npos ? text.size() : at + end;
      } else if (at == text.size() || text[at] == ',') {
        if (at > from) paths.emplace_back(text.substr(from, at - from));
        from = ++at;
      } else {
        ++at;
      }
    }
    if (paths.empty() || paths.back() != value) paths.push_back(value);
  }
  return paths;
}

namespace {

Value marker(Arena& arena) {
  MapBuilder map(arena);
  map.add(ownership::kUnsetKey, Value::string(ownership::kUnsetValue));
  return map.build();
}

// The keys of [port=80,protocol="TCP"] as a map; null if they cannot be read.
Value keys_of(Arena& arena, std::string_view inside) {
  MapBuilder keys(arena);
  for (const std::string& pair : split_outside_quotes(inside)) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) return Value();
    Result<Value> value = codec::decode_json(arena, arena.copy(pair.substr(equals + 1)));
    if (!value) return Value();
    keys.add_copy(pair.substr(0, equals), *value);
  }
  return keys.build();
}

// An element of a set, such as [="example.com/f"], is unset by a marker with its value. `config` has the elements that
// are set.
Result<Value> with_unset_element(Arena& arena, const Value* config, const Value* live, std::string_view text) {
  Result<Value> element = codec::decode_json(arena, arena.copy(text));
  for (const Value* list : {config, live}) {
    if (list == nullptr || !list->is_list()) continue;
    for (const Value& item : list->items()) {
      if (item.is_map() && !item.has(ownership::kUnsetKey)) {
        return bad_request("its items are named by their keys, as in [name=\"web\"]");
      }
    }
  }
  if (!element || !element->is_scalar()) return bad_request("an element of a set is written as JSON: [=\"text\"]");
  ListBuilder elements(arena);
  if (config != nullptr && config->is_list()) {
    for (const Value& other : config->items()) {
      if (!equal(element_of(other), *element, Numbers::ByValue)) elements.add(other);
    }
  }
  elements.add(with_member(arena, marker(arena), ownership::kUnsetElement, *element));
  return elements.build();
}

Result<Value> marked(Arena& arena, const Value* config, const Value* live, std::string_view rest) {
  if (rest.empty()) return marker(arena);
  if (rest[0] == '.') {
    rest.remove_prefix(1);
    std::string_view key = rest.substr(0, rest.find_first_of(".["));
    // As in find_path, the longest key that fits.
    for (const Value* map : {live, config}) {
      if (map == nullptr || !map->is_map()) continue;
      for (const Member& member : map->members()) {
        const bool fits =
            rest.starts_with(member.key) &&
            (rest.size() == member.key.size() || rest[member.key.size()] == '.' || rest[member.key.size()] == '[');
        if (fits && member.key.size() > key.size()) key = rest.substr(0, member.key.size());
      }
    }
    if (key.empty()) return bad_request("a field name is missing");
    const bool has = config != nullptr && config->is_map();
    const bool doubled = key == ownership::kUnsetKey;  // In configurations, because it is data.
    const Value* configured = has ? config->find(key) : nullptr;
    if (doubled && configured != nullptr) configured = configured->find(key);
    Result<Value> child = marked(arena, configured, live != nullptr && live->is_map() ? live->find(key) : nullptr,
                                 rest.substr(key.size()));
    if (!child) return child;
    if (doubled) child = with_member(arena, Value::empty_map(), ownership::kUnsetKey, *child);
    return with_member(arena, has ? *config : Value::empty_map(), arena.copy(key), *child);
  }
  const size_t end = rest[0] == '[' ? ownership::end_of_brackets(rest) : std::string_view::npos;
  if (end == std::string_view::npos) return bad_request("expected .FIELD or [KEY=VALUE] at " + std::string(rest));
  const std::string_view inside = rest.substr(1, end - 2);
  if (inside.starts_with('=') && rest.size() == end) return with_unset_element(arena, config, live, inside.substr(1));
  const Value keys = keys_of(arena, inside);
  if (!keys.is_map() || keys.count() == 0) {
    return bad_request("an item of a list is unset by its keys, as in .spec.ports[port=80,protocol=\"TCP\"]");
  }
  const auto item_of = [&](const Value* list) -> const Value* {
    if (list == nullptr || !list->is_list()) return nullptr;
    for (const Absent absent : {Absent::Differs, Absent::Default}) {
      for (const Value& item : list->items()) {
        if (item.is_map() && has_keys(item, inside, absent)) return &item;
      }
    }
    return nullptr;
  };
  const Value* own = item_of(config);
  Value item = own == nullptr || rest.size() == end ? keys : *own;
  if (rest.size() == end) {
    item = with_member(arena, item, ownership::kUnsetKey, Value::string(ownership::kUnsetValue));
  } else {
    Result<Value> below = marked(arena, &item, item_of(live), rest.substr(end));
    if (!below) return below;
    item = *below;
  }
  ListBuilder items(arena);
  if (config != nullptr && config->is_list()) {
    for (const Value& other : config->items()) {
      if (&other != own) items.add(other);
    }
  }
  items.add(item);
  return items.build();
}

}  // namespace

Result<Value> with_marker_at(Arena& arena, const Value& config, const Value& live, std::string_view path) {
  Result<Value> result =
      marked(arena, &config, &live, path.starts_with('.') ? std::string(path) : "." + std::string(path));
  if (!result) return bad_request(std::string(path) + ": " + result.error().message);
  return deep_copy(arena, *result);
}

bool is_within(std::string_view path, std::string_view outer) {
  const std::string absolute = outer.starts_with('.') ? std::string(outer) : "." + std::string(outer);
  if (!path.starts_with(absolute)) return false;
  return path.size() == absolute.size() || path[absolute.size()] == '.' || path[absolute.size()] == '[';
}

}  // namespace holdfast::cli
