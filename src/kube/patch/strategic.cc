// Strategic merge patch like k8s.io/apimachinery/pkg/util/strategicpatch: the patch and the object are walked together,
// and the declared types determine which lists merge by which key.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/api_error.h"
#include "base/hash.h"
#include "codec/codec.h"
#include "patch/patch.h"
#include "patch/unfold.h"

namespace holdfast::patch {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDeleteFromList = "$deleteFromPrimitiveList";
constexpr std::string_view kSetOrder = "$setElementOrder";

// --- Errors ---

// Go's %s of a value.
std::string go_print_as_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::String:
      return std::string(value.as_string());
    case Value::Kind::Null:
      return "%!s(<nil>)";
    case Value::Kind::List: {
      std::string out = "[";
      for (const Value& item : value.items()) out += (out.size() > 1 ? " " : "") + go_print_as_text(item);
      return out + "]";
    }
    case Value::Kind::Map: {
      std::string out = "map[";
      for (const Member& member : value.members()) {
        out += (out.size() > 4 ? " " : "") + std::string(member.key) + ":" + go_print_as_text(member.value);
      }
      return out + "]";
    }
    default:
      return "%!s(" + std::string(codec::go_type(value)) + "=" + codec::go_text(value) + ")";
  }
}

Error bad_retain_keys() { return bad_request("invalid patch format of retainKeys"); }
Error bad_primitive_list() { return bad_request("invalid patch format of primitive list"); }
Error bad_element_order() { return bad_request("invalid patch format of setElementOrder list"); }

Error no_merge_key(const Value& map, std::string_view key) {
  return untyped("map: " + codec::go_text(map) + " does not contain declared merge key: " + std::string(key));
}
Error unknown_directive(const Value& directive, const Value& map) {
  return untyped("unknown patch type: " + go_print_as_text(directive) + " in map: " + codec::go_text(map));
}
Error bad_type(std::string_view expected, const Value& actual) {
  return untyped("expected a " + std::string(expected) + ", but received a " +
                 std::string(actual.is_null() ? "%!s(<nil>)" : codec::go_type(actual)));
}

// --- Declared types ---

struct Meta {
  const types::Type* type = nullptr;  // Type of the field's value.
  uint8_t strategy = types::kPatchNone;
  std::string_view merge_key;
};

std::string_view go_kind(const types::Type* type) {
  if (type == nullptr) return "interface";
  switch (type->shape) {
    case types::Shape::Map:
      return "map";
    case types::Shape::List:
    case types::Shape::Bytes:
      return "slice";
    case types::Shape::String:
      return "string";
    case types::Shape::Bool:
      return "bool";
    case types::Shape::Int32:
      return "int32";
    case types::Shape::Int64:
      return "int64";
    default:
      return "struct";
  }
}

Result<Meta> look_up(const types::Type* type, std::string_view key) {
  const bool is_struct = type != nullptr && (type->shape == types::Shape::Struct || type->shape == types::Shape::Raw);
  if (!is_struct) {
    return untyped("merging an object in json but data type is not struct, instead is: " + std::string(go_kind(type)));
  }
  const types::Field* field = types::find_member(*type, key);
  if (field == nullptr) {
    const size_t dot = type->name.rfind('.');
    return untyped("unable to find api field in struct " +
                   std::string(dot == std::string_view::npos ? type->name : type->name.substr(dot + 1)) +
                   " for the json field \"" + std::string(key) + "\"");
  }
  return Meta{field->type, field->patch_strategy, field->patch_merge_key};
}

const types::Type* element_of(const Meta& meta) { return meta.type == nullptr ? nullptr : meta.type->element; }

// --- Merge ---

using Items = std::vector<Value>;

Items items_of(const Value& list) { return {list.items().begin(), list.items().end()}; }

bool is_directive(const Value& value) { return value.is_map() && value.has(kDirective); }
bool says(const Value& directive, std::string_view word) {
  return directive.is_string() && directive.as_string() == word;
}

// Finds the positions of values in a growing list: by the value itself, or by the value of a key in each item. Items
// without the key are not found.
class Places {
 public:
  explicit Places(std::string_view key = {}) : key_(key) {}
  Places(const Items& items, std::string_view key) : key_(key) {
    for (const Value& item : items) add(item);
  }

  void add(const Value& item) {
    const Value* value = key_.empty() ? &item : item.find(key_);
    // One of several equal values is enough.
    if (value != nullptr && !find(*value)) places_.emplace(hash(*value), Place{*value, count_});
    ++count_;
  }
  // The first equal value.
  std::optional<size_t> find(const Value& value) const {
    for (auto [at, end] = places_.equal_range(hash(value)); at != end; ++at) {
      if (equal(at->second.value, value)) return at->second.index;
    }
    return std::nullopt;
  }
  // The same for the key of an item.
  std::optional<size_t> find_item(const Value& item) const {
    const Value* value = key_.empty() ? &item : item.find(key_);
    return value == nullptr ? std::nullopt : find(*value);
  }

 private:
  struct Place {
    Value value;
    size_t index;
  };
  std::string_view key_;
  size_t count_ = 0;
  std::unordered_multimap<uint64_t, Place> places_;
};

class Merger {
 public:
  explicit Merger(Arena& arena) : arena_(arena) {}

  Result<Value> merge_map(const Value& original, const Value& patch, const types::Type* type) {
    if (const Value* directive = patch.find(kDirective)) {
      if (says(*directive, "replace")) return without_member(arena_, patch, kDirective);
      if (says(*directive, "delete")) return Value::empty_map();
      return unknown_directive(*directive, patch);
    }
    MapBuilder result(arena_);
    Result<Unit> kept = start_with(original, patch, result);
    if (!kept) return kept.take_error();

    // Lists with an order directive are merged first; the rest of the patch follows.
    std::vector<std::string_view> done;
    for (const Member& member : patch.members()) {
      if (!member.key.starts_with(kSetOrder)) continue;
      Result<Unit> ordered = merge_ordered(member, patch, type, result, done);
      if (!ordered) return ordered.take_error();
    }
    for (const Member& member : patch.members()) {
      if (member.key == kRetainKeys || member.key.starts_with(kSetOrder) ||
          std::find(done.begin(), done.end(), member.key) != done.end()) {
        continue;
      }
      Result<Unit> merged = merge_member(member, type, result);
      if (!merged) return merged.take_error();
    }
    return finish(result);
  }

  // The remainder of the patch after merging: Kubernetes' merge modifies the patch, and errors print the result. The
  // patch must be valid.
  Value left_of_map(const Value& original, const Value& patch, const types::Type* type) {
    if (const Value* directive = patch.find(kDirective)) {
      return says(*directive, "replace") ? without_member(arena_, patch, kDirective) : patch;
    }
    MapBuilder start(arena_);
    (void)start_with(original, patch, start);
    MapBuilder left(arena_);
    for (const Member& member : patch.members()) {
      if (member.key == kRetainKeys || member.key.starts_with(kSetOrder) ||
          patch.has(std::string(kSetOrder) + "/" + std::string(member.key))) {
        continue;
      }
      left.add(member.key, member.key.starts_with(kDeleteFromList)
                               ? member.value
                               : left_of_member(start.find(member.key), member, type));
    }
    return left.build();
  }

 private:
  Value left_of_member(const Value* original, const Member& change, const types::Type* type) {
    const Value& patch = change.value;
    if (!patch.is_map() && !patch.is_list()) return patch;
    const Value tree = original != nullptr ? unfolded(arena_, *original) : Value::null();
    if (tree.kind() != patch.kind()) return stripped_inside(without_nulls(patch));
    const Result<Meta> meta = look_up(type, change.key);
    if (!meta) return patch;
    if (patch.is_map()) {
      return (meta->strategy & types::kPatchReplace) != 0 ? patch : left_of_map(tree, patch, meta->type);
    }
    return (meta->strategy & types::kPatchMerge) != 0 && !meta->merge_key.empty()
               ? left_of_list(items_of(tree), patch, *meta)
               : patch;
  }
  Value left_of_list(Items original, const Value& patch, const Meta& meta) {
    Items plain = items_of(patch);
    if (!apply_list_directives(original, plain, meta.merge_key)) return patch;
    const Places places(original, meta.merge_key);
    ListBuilder left(arena_);
    for (const Value& item : patch.items()) {
      // With {$patch: replace}, nothing is merged.
      const std::optional<size_t> at = plain.empty() || is_directive(item) ? std::nullopt : places.find_item(item);
      left.add(at ? left_of_map(original[*at], item, element_of(meta)) : item);
    }
    return left.build();
  }
  // Upstream removes directives from maps in place, but copies lists.
  Value stripped_inside(const Value& value) {
    if (value.is_list()) {
      ListBuilder list(arena_);
      for (const Value& item : value.items()) list.add(stripped_inside(item));
      return list.build();
    }
    Value kept;
    return strip_directives(value, kept) ? kept : value;
  }

  // A removed member stays in the builder as a placeholder until the end, so that positions do not change.
  static constexpr Value removed() { return Value::string(std::string_view(kRemovedMark, 1)); }
  static bool is_removed(const Value& value) { return value.is_string() && value.as_string().data() == kRemovedMark; }
  static constexpr char kRemovedMark[] = "x";

  static const Value* find(const MapBuilder& map, std::string_view key) {
    const Value* found = map.find(key);
    return found == nullptr || is_removed(*found) ? nullptr : found;
  }
  static void remove(MapBuilder& map, std::string_view key) {
    if (map.find(key) != nullptr) map.set(key, removed());
  }
  Value finish(MapBuilder& map) {
    const Value all = map.build();
    MapBuilder kept(arena_);
    for (const Member& member : all.members()) {
      if (!is_removed(member.value)) kept.add(member.key, member.value);
    }
    return kept.build();
  }

  // The original's members, without those not named by $retainKeys.
  Result<Unit> start_with(const Value& original, const Value& patch, MapBuilder& result) {
    const Value* retain = patch.find(kRetainKeys);
    std::unordered_set<std::string_view, KeyHash> keys;
    const auto retained = [&keys](std::string_view key) { return keys.contains(key); };
    if (retain != nullptr) {
      if (!retain->is_list()) return bad_retain_keys();
      for (const Value& key : retain->items()) {
        if (key.is_string()) keys.insert(key.as_string());
      }
      for (const Member& member : patch.members()) {
        if (member.key == kRetainKeys || member.value.is_null() || member.key.starts_with(kDeleteFromList) ||
            member.key.starts_with(kSetOrder)) {
          continue;
        }
        if (!retained(member.key)) return bad_retain_keys();
      }
    }
    if (original.is_map()) {
      for (const Member& member : original.members()) {
        if (retain == nullptr || retained(member.key)) result.add(member.key, member.value);
      }
    }
    return Unit{};
  }

  Result<Unit> merge_member(const Member& change, const types::Type* type, MapBuilder& result) {
    std::string_view key = change.key;
    const bool deletes = key.starts_with(kDeleteFromList);
    if (deletes) {
      const size_t slash = key.find('/');
      if (slash == std::string_view::npos || key.substr(0, slash) != kDeleteFromList) return bad_primitive_list();
      key = key.substr(slash + 1);
    }
    const Value& patch = change.value;
    if (patch.is_null()) {
      remove(result, key);
      return Unit{};
    }
    const Value* original = find(result, key);
    const Value tree = original != nullptr ? unfolded(arena_, *original) : Value::null();
    if (original == nullptr || tree.kind() != patch.kind()) {
      if (deletes) return Unit{};
      put_without_directives(result, key, without_nulls(patch));
      return Unit{};
    }
    if (patch.is_map()) {
      Result<Meta> meta = look_up(type, key);
      if (!meta) return meta.take_error();
      if ((meta->strategy & types::kPatchReplace) != 0) {
        result.set(key, patch);
        return Unit{};
      }
      Result<Value> merged = merge_map(tree, patch, meta->type);
      if (!merged) return merged.take_error();
      result.set(key, *merged);
      return Unit{};
    }
    if (patch.is_list()) {
      Result<Meta> meta = look_up(type, key);
      if (!meta) return meta.take_error();
      Result<Items> merged = merge_list(items_of(tree), items_of(patch), *meta, deletes);
      if (!merged) return merged.take_error();
      result.set(key, list_of(*merged));
      return Unit{};
    }
    put_without_directives(result, key, patch);
    return Unit{};
  }

  // Handles $setElementOrder/x together with x.
  Result<Unit> merge_ordered(const Member& directive, const Value& patch, const types::Type* type, MapBuilder& result,
                             std::vector<std::string_view>& done) {
    if (!directive.value.is_list()) return bad_type("[]interface {}", directive.value);
    const size_t slash = directive.key.find('/');
    if (slash == std::string_view::npos || directive.key.substr(0, slash) != kSetOrder) return bad_element_order();
    const std::string_view key = directive.key.substr(slash + 1);
    const Value* original = find(result, key);
    const Value* change = patch.find(key);
    if (original != nullptr && !original->is_list()) return bad_type("[]interface {}", *original);
    if (change != nullptr && !change->is_list()) return bad_type("[]interface {}", *change);
    Result<Meta> meta = look_up(type, key);
    if (!meta) return meta.take_error();
    const Items order = items_of(directive.value);
    const Items old_items = original == nullptr ? Items{} : items_of(*original);
    const Items new_items = change == nullptr ? Items{} : items_of(*change);
    Result<Unit> consistent = check_order(new_items, order, meta->merge_key, change, directive.value);
    if (!consistent) return consistent;
    if (original == nullptr && change == nullptr) return Unit{};

    Items merged = old_items;
    if (original == nullptr) {
      merged.clear();
      for (const Value& item : new_items) {
        Value kept;
        if (strip_directives(item, kept)) merged.push_back(kept);
      }
    } else if (change != nullptr) {
      Result<Items> both = merge_list(old_items, new_items, *meta, false);
      if (!both) return both.take_error();
      merged = std::move(*both);
    }
    Result<bool> maps = element_kind(old_items, new_items);
    if (!maps) return maps.take_error();
    Result<Items> sorted = in_order(merged, order, old_items, meta->merge_key, *maps);
    if (!sorted) return sorted.take_error();
    result.set(key, list_of(*sorted));
    done.push_back(key);
    return Unit{};
  }

  Result<Items> merge_list(Items original, Items patch, const Meta& meta, bool deletes) {
    if ((meta.strategy & types::kPatchMerge) == 0 && !deletes) return patch;
    if (original.empty() && patch.empty()) return original;
    Result<bool> maps = element_kind(original, patch);
    if (!maps) return maps.take_error();
    if (!*maps) {
      if (deletes) {
        const Places dropped(patch, {});
        std::erase_if(original, [&](const Value& item) { return dropped.find(item).has_value(); });
        return original;
      }
      Items both;
      Places known;
      for (const Items* list : {&original, &patch}) {
        for (const Value& item : *list) {
          if (known.find(item)) continue;
          both.push_back(item);
          known.add(item);
        }
      }
      return in_order(both, patch, original, meta.merge_key, false);
    }
    if (meta.merge_key.empty()) return untyped("cannot merge lists without merge key for struct");
    Result<Unit> special = apply_list_directives(original, patch, meta.merge_key);
    if (!special) return special.take_error();
    Items merged = original;
    Places places(merged, meta.merge_key);
    for (const Value& item : patch) {
      const Value* key = item.find(meta.merge_key);
      if (key == nullptr) return no_merge_key(item, meta.merge_key);
      const std::optional<size_t> at = places.find(*key);
      if (!at) {
        merged.push_back(item);
        places.add(item);
        continue;
      }
      Result<Value> both = merge_map(merged[*at], item, element_of(meta));
      if (!both) return both.take_error();
      merged[*at] = *both;
    }
    return in_order(merged, patch, original, meta.merge_key, true);
  }

  // {$patch: delete, key: v} removes from the original; {$patch: replace} replaces everything with the patch's plain
  // items.
  static Result<Unit> apply_list_directives(Items& original, Items& patch, std::string_view merge_key) {
    Items plain;
    Places dropped;
    bool replaces = false;
    for (const Value& item : patch) {
      const Value* directive = item.find(kDirective);
      if (directive == nullptr) {
        plain.push_back(item);
      } else if (says(*directive, "delete")) {
        const Value* key = item.find(merge_key);
        if (key == nullptr) return no_merge_key(item, merge_key);
        dropped.add(*key);
      } else if (says(*directive, "replace")) {
        replaces = true;
      } else if (says(*directive, "merge")) {
        return untyped("merging lists cannot yet be specified in the patch");
      } else {
        return unknown_directive(*directive, item);
      }
    }
    std::erase_if(original, [&](const Value& candidate) {
      const Value* found = candidate.find(merge_key);
      return found != nullptr && dropped.find(*found);
    });
    if (replaces) {
      original = std::move(plain);
      patch.clear();
    } else {
      patch = std::move(plain);
    }
    return Unit{};
  }

  // Orders the patch's items as it says; other items keep their positions relative to their old neighbours.
  Result<Items> in_order(const Items& merged, const Items& patch_order, const Items& server_order,
                         std::string_view merge_key, bool maps) {
    if (maps) {
      for (const Items* list : {&merged, &patch_order, &server_order}) {
        for (const Value& item : *list) {
          if (!item.is_map()) return bad_type("map[string]interface {}", item);
          if (!item.has(merge_key)) return no_merge_key(item, merge_key);
        }
      }
    }
    const Places in_patch(patch_order, maps ? merge_key : std::string_view());
    const Places on_server(server_order, maps ? merge_key : std::string_view());
    const auto index = [](const Places& places, const Value& item) -> ptrdiff_t {
      const std::optional<size_t> at = places.find_item(item);
      return at ? static_cast<ptrdiff_t>(*at) : -1;
    };
    const auto sort_by = [&](Items& items, const Places& order) {
      std::vector<std::pair<ptrdiff_t, size_t>> ranks;
      ranks.reserve(items.size());
      for (size_t i = 0; i < items.size(); ++i) ranks.emplace_back(index(order, items[i]), i);
      std::sort(ranks.begin(), ranks.end());
      Items sorted;
      for (const auto& [rank, i] : ranks) sorted.push_back(items[i]);
      items = std::move(sorted);
    };
    Items from_patch, from_server;
    for (const Value& item : merged) (index(in_patch, item) >= 0 ? from_patch : from_server).push_back(item);
    sort_by(from_patch, in_patch);
    sort_by(from_server, on_server);
    Items all;
    size_t server = 0, patched = 0;
    while (server < from_server.size() || patched < from_patch.size()) {
      bool take_server = patched >= from_patch.size();
      if (!take_server && server < from_server.size()) {
        const ptrdiff_t a = index(on_server, from_server[server]);
        const ptrdiff_t b = index(on_server, from_patch[patched]);
        take_server = a >= 0 && b >= 0 && a < b;
      }
      all.push_back(take_server ? from_server[server++] : from_patch[patched++]);
    }
    return all;
  }

  // The patch's list must be a subsequence of the order it declares.
  static Result<Unit> check_order(const Items& items, const Items& order, std::string_view merge_key,
                                  const Value* patch_list, const Value& order_list) {
    if (items.empty() || order.empty()) return Unit{};
    Items plain;
    for (const Value& item : items) {
      if (!merge_key.empty()) {
        if (!item.is_map()) return bad_type("map[string]interface {}", item);
        const Value* directive = item.find(kDirective);
        if (directive != nullptr && says(*directive, "delete")) continue;
      }
      plain.push_back(item);
    }
    size_t at = 0, in_order = 0;
    while (at < plain.size() && in_order < order.size()) {
      if (is_directive(plain[at])) {
        ++at;
        continue;
      }
      bool same = false;
      if (merge_key.empty()) {
        same = equal(plain[at], order[in_order]);
      } else {
        if (!order[in_order].is_map()) return bad_type("map[string]interface {}", order[in_order]);
        const Value* left = plain[at].find(merge_key);
        const Value* right = order[in_order].find(merge_key);
        if (left == nullptr) return no_merge_key(plain[at], merge_key);
        if (right == nullptr) return no_merge_key(order[in_order], merge_key);
        same = equal(*left, *right);
      }
      if (same) ++at;
      ++in_order;
    }
    if (at < plain.size() && in_order >= order.size()) {
      return untyped("The order in patch list:\n" + codec::go_text(*patch_list) + "\n doesn't match " +
                     std::string(kSetOrder) + " list:\n" + codec::go_text(order_list) + "\n");
    }
    return Unit{};
  }

  // Whether the elements are maps; all must have the same kind, and must not be lists.
  static Result<bool> element_kind(const Items& a, const Items& b) {
    const Value* first = nullptr;
    for (const Items* list : {&a, &b}) {
      for (const Value& item : *list) {
        if (first == nullptr) {
          first = &item;
          if (item.is_list()) {
            Error error{Reason::Invalid, "the server rejected our request due to an error in our request"};
            error.details.emplace();
            return error;
          }
        } else if (first->kind() != item.kind()) {
          const auto shown = [](const Items& items) {
            std::string out = "[";
            for (const Value& value : items) out += (out.size() > 1 ? " " : "") + codec::go_text(value);
            return out + "]";
          };
          return untyped("list element types are not identical: [" + shown(a) + " " + shown(b) + "]");
        }
      }
    }
    if (first == nullptr) return untyped("no elements in any of the given slices");
    return first->is_map();
  }

  Value list_of(const Items& items) { return Value::list(arena_.copy(std::span<const Value>(items))); }

  Value without_nulls(const Value& value) {
    if (value.is_map()) {
      MapBuilder map(arena_);
      for (const Member& member : value.members()) {
        if (!member.value.is_null()) map.add(member.key, without_nulls(member.value));
      }
      return map.build();
    }
    if (value.is_list()) {
      ListBuilder list(arena_);
      for (const Value& item : value.items()) list.add(without_nulls(item));
      return list.build();
    }
    return value;
  }

  // False if the value is itself a directive and must be dropped.
  bool strip_directives(const Value& value, Value& out) {
    out = value;
    if (value.is_map()) {
      if (value.has(kDirective)) return false;
      MapBuilder map(arena_);
      for (const Member& member : value.members()) {
        Value kept;
        if (strip_directives(member.value, kept)) map.add(member.key, kept);
      }
      out = map.build();
    } else if (value.is_list()) {
      ListBuilder list(arena_);
      for (const Value& item : value.items()) {
        Value kept;
        if (strip_directives(item, kept)) list.add(kept);
      }
      out = list.build();
    }
    return true;
  }
  void put_without_directives(MapBuilder& result, std::string_view key, const Value& value) {
    Value kept;
    if (strip_directives(value, kept)) {
      result.set(key, kept);
    } else {
      remove(result, key);
    }
  }

  Arena& arena_;
};

}  // namespace

Result<Value> apply_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type) {
  assert(patch.is_map());
  return Merger(arena).merge_map(object, patch, &type);
}

Value remaining_strategic_patch(Arena& arena, const Value& object, const Value& patch, const types::Type& type) {
  return Merger(arena).left_of_map(object, patch, &type);
}

}  // namespace holdfast::patch
