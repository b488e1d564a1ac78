// Lists, sets and optionals: cel-go's extensions and those of Kubernetes.
#include <algorithm>

#include "cel/functions.h"

namespace holdfast::cel {
namespace {

using Args = std::span<const Val>;

std::vector<Val> items_of(Context& c, const Val& list) {
  std::vector<Val> items;
  const uint64_t count = list_size(list);
  items.reserve(std::min<uint64_t>(count, 4096));
  for (uint64_t i = 0; i < count; ++i) items.push_back(list_at(c.arena, list, i));
  return items;
}

Val is_sorted(Context& c, Args a) {
  const uint64_t count = list_size(a[0]);
  Val previous;
  for (uint64_t i = 0; i < count; ++i) {
    const Val next = list_at(c.arena, a[0], i);
    if (!has_order(next)) return next.is_error() ? next : no_such_overload();
    if (i > 0) {
      const Val order = compare(c.arena, previous, next);
      if (!order.is_error() && order.as_int() == 1) return Val::boolean(false);
    }
    previous = next;
  }
  return Val::boolean(true);
}

Val sum_from(Context& c, Args a, Val total) {
  const Function* plus = find_function("_+_", false);
  const uint64_t count = list_size(a[0]);
  for (uint64_t i = 0; i < count; ++i) {
    const Val next = list_at(c.arena, a[0], i);
    if (!has_trait(next, Trait::Add)) return next.is_error() ? next : no_such_overload();
    const Val both[] = {total, next};
    total = plus->singleton(c, both);
    if (total.is_error()) return total;
  }
  return total;
}
Val sum_int(Context& c, Args a) { return sum_from(c, a, Val::integer(0)); }
Val sum_uint(Context& c, Args a) { return sum_from(c, a, Val::unsigned_integer(0)); }
Val sum_double(Context& c, Args a) { return sum_from(c, a, Val::number(0)); }
Val sum_duration(Context& c, Args a) { return sum_from(c, a, Rep::duration(0)); }

Val extreme(Context& c, Args a, int64_t replace_when, std::string_view name) {
  const uint64_t count = list_size(a[0]);
  if (count == 0) return error(c.arena, std::string(name) + " called on empty list");
  Val best;
  for (uint64_t i = 0; i < count; ++i) {
    const Val next = list_at(c.arena, a[0], i);
    if (!has_order(next)) return next.is_error() ? next : no_such_overload();
    if (i > 0) {
      const Val order = compare(c.arena, best, next);
      if (order.is_error() || order.as_int() != replace_when) continue;
    }
    best = next;
  }
  return best;
}
Val min(Context& c, Args a) { return extreme(c, a, 1, "min"); }
Val max(Context& c, Args a) { return extreme(c, a, -1, "max"); }

Val index_of(Context& c, Args a) {
  const uint64_t count = list_size(a[0]);
  for (uint64_t i = 0; i < count; ++i) {
    if (equal_to(c.arena, list_at(c.arena, a[0], i), a[1]).is_true()) return Val::integer(static_cast<int64_t>(i));
  }
  return Val::integer(-1);
}
Val last_index_of(Context& c, Args a) {
  for (uint64_t i = list_size(a[0]); i > 0; --i) {
    if (equal_to(c.arena, list_at(c.arena, a[0], i - 1), a[1]).is_true())
      return Val::integer(static_cast<int64_t>(i) - 1);
  }
  return Val::integer(-1);
}

Val slice(Context& c, Args a) {
  const int64_t start = a[1].as_int(), end = a[2].as_int();
  const auto length = static_cast<int64_t>(list_size(a[0]));
  const std::string call = "cannot slice(" + std::to_string(start) + ", " + std::to_string(end) + "), ";
  if (start < 0 || end < 0) return error(c.arena, call + "negative indexes not supported");
  if (start > end) return error(c.arena, call + "start index must be less than or equal to end index");
  if (length < end) return error(c.arena, call + "list is length " + std::to_string(length));
  std::vector<Val> items;
  for (int64_t i = start; i < end; ++i) items.push_back(list_at(c.arena, a[0], static_cast<uint64_t>(i)));
  return list_of(c.arena, items);
}

void flatten_into(Context& c, const Val& list, int64_t depth, std::vector<Val>& out) {
  const uint64_t count = list_size(list);
  for (uint64_t i = 0; i < count; ++i) {
    const Val item = list_at(c.arena, list, i);
    if (item.kind() == Kind::List && depth > 0) {
      flatten_into(c, item, depth - 1, out);
    } else {
      out.push_back(item);
    }
  }
}
Val flatten(Context& c, Args a) {
  const int64_t depth = a.size() == 2 && a[1].kind() == Kind::Int ? a[1].as_int() : 1;
  if (a[0].kind() != Kind::List || (a.size() == 2 && a[1].kind() != Kind::Int)) {
    const std::string receiver(a[0].kind() == Kind::Map ? "map(dyn, dyn)" : a[0].type_name());
    return error(c.arena, "no such overload: " + receiver + ".flatten(" +
                              (a.size() == 2 ? std::string(a[1].type_name()) : "") + ")");
  }
  if (depth < 0) return Val::error("level must be non-negative");
  std::vector<Val> out;
  flatten_into(c, a[0], depth, out);
  return list_of(c.arena, out);
}

Val sort_by_keys(Context& c, const Val& list, const Val& keys) {
  const uint64_t count = list_size(list), key_count = list_size(keys);
  if (count != key_count) {
    return error(c.arena,
                 "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got " +
                     std::to_string(count) + " and " + std::to_string(key_count) + " elements respectively");
  }
  if (count == 0) return list;
  const std::vector<Val> by = items_of(c, keys);
  if (!has_order(by[0])) return Val::error("list elements must be comparable");
  if (count > 1) {
    for (const Val& key : by) {
      if (key.kind() != by[0].kind()) return Val::error("list elements must have the same type");
    }
  }
  std::vector<uint64_t> order(count);
  for (uint64_t i = 0; i < count; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint64_t x, uint64_t y) {
    const Val o = compare(c.arena, by[x], by[y]);
    return !o.is_error() && o.as_int() < 0;
  });
  std::vector<Val> sorted;
  sorted.reserve(order.size());
  for (const uint64_t i : order) sorted.push_back(list_at(c.arena, list, i));
  return list_of(c.arena, sorted);
}
Val sort(Context& c, Args a) { return sort_by_keys(c, a[0], a[0]); }
Val sort_by_associated_keys(Context& c, Args a) {
  return a[1].kind() == Kind::List ? sort_by_keys(c, a[0], a[1]) : no_such_overload();
}

Val range(Context& c, Args a) {
  const int64_t count = a[0].as_int();
  // The cost would exceed the limit, too.
  if (count > 0 && static_cast<uint64_t>(count) > c.limit) {
    c.charge(static_cast<uint64_t>(count) + 11);
    return Val::error(kCostLimitExceeded);
  }
  std::vector<Val> items;
  items.reserve(static_cast<size_t>(std::max<int64_t>(count, 0)));
  for (int64_t i = 0; i < count; ++i) items.push_back(Val::integer(i));
  return list_of(c.arena, items);
}
Val reverse(Context& c, Args a) {
  std::vector<Val> items = items_of(c, a[0]);
  std::reverse(items.begin(), items.end());
  return list_of(c.arena, items);
}
Val distinct(Context& c, Args a) {
  std::vector<Val> seen;
  const uint64_t count = list_size(a[0]);
  if (count == 0) return a[0];
  for (uint64_t i = 0; i < count; ++i) {
    const Val item = list_at(c.arena, a[0], i);
    if (std::none_of(seen.begin(), seen.end(), [&](const Val& v) { return equal_to(c.arena, item, v).is_true(); }))
      seen.push_back(item);
  }
  return list_of(c.arena, seen);
}

// --- Sets ---

Val sets_contains_all(Context& c, const Val& list, const Val& part) {
  const uint64_t count = list_size(part);
  for (uint64_t i = 0; i < count; ++i) {
    Val failed;
    if (!list_contains(c.arena, list, list_at(c.arena, part, i), failed))
      return failed.is_error() ? failed : Val::boolean(false);
  }
  return Val::boolean(true);
}
Val sets_contains(Context& c, Args a) { return sets_contains_all(c, a[0], a[1]); }
Val sets_equivalent(Context& c, Args a) {
  const Val one_way = sets_contains_all(c, a[0], a[1]);
  return one_way.is_true() ? sets_contains_all(c, a[1], a[0]) : one_way;
}
Val sets_intersects(Context& c, Args a) {
  const uint64_t count = list_size(a[0]);
  for (uint64_t i = 0; i < count; ++i) {
    Val failed;
    if (list_contains(c.arena, a[1], list_at(c.arena, a[0], i), failed)) return Val::boolean(true);
  }
  return Val::boolean(false);
}

// --- Optionals ---

Val optional_of(Context& c, Args a) { return Val::optional_of(c.arena, a[0]); }
Val optional_of_non_zero(Context& c, Args a) {
  return is_zero_value(a[0]) ? Val::optional_none() : Val::optional_of(c.arena, a[0]);
}
Val optional_none(Context&, Args) { return Val::optional_none(); }
Val optional_value(Context&, Args a) {
  return a[0].has_value() ? Rep::inner(a[0]) : Val::error("optional.none() dereference");
}
Val optional_has_value(Context&, Args a) { return Val::boolean(a[0].has_value()); }
Val first(Context& c, Args a) {
  return list_size(a[0]) == 0 ? Val::optional_none() : Val::optional_of(c.arena, list_at(c.arena, a[0], 0));
}
Val last(Context& c, Args a) {
  const uint64_t count = list_size(a[0]);
  return count == 0 ? Val::optional_none() : Val::optional_of(c.arena, list_at(c.arena, a[0], count - 1));
}
Val unwrap(Context& c, Args a) {
  std::vector<Val> out;
  const uint64_t count = list_size(a[0]);
  for (uint64_t i = 0; i < count; ++i) {
    const Val item = list_at(c.arena, a[0], i);
    if (item.kind() != Kind::Optional) return error(c.arena, "value " + go_text(item) + " is not optional");
    if (item.has_value()) out.push_back(Rep::inner(item));
  }
  return list_of(c.arena, out);
}

Val map_insert_entry(Context& c, Args a) { return map_insert(c.arena, a[0], a[1], a[2]); }
Val map_insert_map(Context& c, Args a) {
  Val result = a[0];
  a[1].for_each_entry(c.arena, [&](const Val& key, const Val& value) {
    if (!result.is_error()) result = map_insert(c.arena, result, key, value);
  });
  return result;
}

struct Named {
  std::string_view name, go_name;
};
constexpr Named kComparable[] = {{"int", "int"},
                                 {"uint", "uint"},
                                 {"double", "double"},
                                 {"bool", "bool"},
                                 {"duration", "google.protobuf.Duration"},
                                 {"timestamp", "google.protobuf.Timestamp"},
                                 {"string", "string"},
                                 {"bytes", "bytes"}};

}  // namespace

void add_list_functions(LibraryBuilder& l) {
  l.global("sets.contains", "list_sets_contains_list", "list<T>, list<T> -> bool", sets_contains);
  l.global("sets.equivalent", "list_sets_equivalent_list", "list<T>, list<T> -> bool", sets_equivalent);
  l.global("sets.intersects", "list_sets_intersects_list", "list<T>, list<T> -> bool", sets_intersects);

  l.global("cel.@mapInsert", "@mapInsert_map_key_value", "map<K, V>, K, V -> map<K, V>", map_insert_entry);
  l.global("cel.@mapInsert", "@mapInsert_map_map", "map<K, V>, map<K, V> -> map<K, V>", map_insert_map);

  l.member("slice", "list_slice", "list<T>, int, int -> list<T>", slice);
  l.member("flatten", "list_flatten", "list<list<T>> -> list<T>", flatten);
  l.member("flatten", "list_flatten_int", "list<dyn>, int -> list<dyn>", flatten);
  l.function("flatten").unguarded = true;
  for (const Named& t : kComparable) {
    const std::string list = "list<" + std::string(t.name) + ">";
    l.member("sort", l.arena.copy("list_" + std::string(t.go_name) + "_sort"), list + " -> " + list, nullptr);
    l.member("@sortByAssociatedKeys", l.arena.copy("list_" + std::string(t.go_name) + "_sortByAssociatedKeys"),
             "list<T>, " + list + " -> list<T>", nullptr);
  }
  l.singleton("sort", Binding::Unary, Trait::List, sort);
  l.singleton("@sortByAssociatedKeys", Binding::Binary, Trait::List, sort_by_associated_keys);
  l.global("lists.range", "lists_range", "int -> list<int>", range);
  l.member("reverse", "list_reverse", "list<T> -> list<T>", reverse);
  l.member("distinct", "list_distinct", "list<T> -> list<T>", distinct);
}

void add_optional_functions(LibraryBuilder& l) {
  // Kubernetes' list functions come first.
  for (const Named& t : kComparable) {
    const std::string name(t.name), list = "list<" + name + ">";
    l.member("isSorted", l.arena.copy("list_" + name + "_is_sorted_bool"), list + " -> bool", is_sorted);
    l.member("max", l.arena.copy("list_" + name + "_max_" + name), list + " -> " + name, max);
    l.member("min", l.arena.copy("list_" + name + "_min_" + name), list + " -> " + name, min);
  }
  l.member("sum", "list_int_sum_int", "list<int> -> int", sum_int);
  l.member("sum", "list_uint_sum_uint", "list<uint> -> uint", sum_uint);
  l.member("sum", "list_double_sum_double", "list<double> -> double", sum_double);
  l.member("sum", "list_duration_sum_duration", "list<duration> -> duration", sum_duration);
  l.member("indexOf", "list_a_index_of_int", "list<A>, A -> int", index_of);
  l.member("lastIndexOf", "list_a_last_index_of_int", "list<A>, A -> int", last_index_of);

  l.global("optional.of", "optional_of", "V -> optional<V>", optional_of);
  l.global("optional.ofNonZeroValue", "optional_ofNonZeroValue", "V -> optional<V>", optional_of_non_zero);
  l.global("optional.none", "optional_none", "-> optional<V>", optional_none);
  l.member("value", "optional_value", "optional<V> -> V", optional_value);
  l.member("hasValue", "optional_hasValue", "optional<V> -> bool", optional_has_value);
  l.member("or", "optional_or_optional", "optional<V>, optional<V> -> optional<V>", nullptr);
  l.member("orValue", "optional_orValue_value", "optional<V>, V -> V", nullptr);
  l.global("_?._", "select_optional_field", "dyn, string -> optional<V>", nullptr);
  l.global("_[?_]", "list_optindex_optional_int", "list<V>, int -> optional<V>", nullptr);
  l.global("_[?_]", "optional_list_optindex_optional_int", "optional<list<V>>, int -> optional<V>", nullptr);
  l.global("_[?_]", "map_optindex_optional_value", "map<K, V>, K -> optional<V>", nullptr);
  l.global("_[?_]", "optional_map_optindex_optional_value", "optional<map<K, V>>, K -> optional<V>", nullptr);
  l.global("_[_]", "optional_list_index_int", "optional<list<V>>, int -> optional<V>", nullptr);
  l.global("_[_]", "optional_map_index_value", "optional<map<K, V>>, K -> optional<V>", nullptr);
  l.member("last", "list_last", "list<V> -> optional<V>", last);
  l.member("first", "list_first", "list<V> -> optional<V>", first);
  l.global("optional.unwrap", "optional_unwrap", "list<optional<V>> -> list<V>", unwrap);
  l.member("unwrapOpt", "optional_unwrapOpt", "list<optional<V>> -> list<V>", unwrap);
}

}  // namespace holdfast::cel
