#include "ownership/engine.h"

#include <algorithm>

#include "ownership/unions.h"
#include "ownership/unset.h"

namespace holdfast::ownership {
namespace {

FieldSet filtered(Arena& arena, const VersionView& view, FieldSet set) {
  return view.reset == nullptr ? set : view.reset->apply(arena, set);
}

void drop_empty(Managed& managed) {
  std::erase_if(managed, [](const ManagerEntry& entry) { return entry.fields.empty(); });
}

}  // namespace

Result<std::optional<Value>> Engine::convert(const Value& object, const VersionView& from, const VersionView& to) {
  if (from.api_version == to.api_version) return std::optional<Value>(object);
  Result<std::optional<Value>> converted = versions_.convert(arena_, object, from, to);
  if (!converted || !*converted) return converted;
  if (from.type == to.type && (*converted)->same(object)) return converted;  // Unchanged, hence still valid.
  const Value value = unfold_raw(arena_, *to.type, **converted);
  // The result of a conversion is validated like a configuration: duplicates are rejected too.
  if (std::string problem = validate(*to.type, value, Duplicates::Refused); !problem.empty()) {
    return internal_error(std::move(problem));
  }
  return std::optional<Value>(value);
}

Result<Engine::InVersion*> Engine::in_version(const Value& live, std::string_view api_version) {
  for (InVersion& known : seen_) {
    if (known.view != nullptr && known.view->api_version == api_version) return &known;
  }
  const VersionView* view = api_version == version_.api_version ? &version_ : versions_.find(api_version);
  if (view == nullptr) return static_cast<InVersion*>(nullptr);
  Result<std::optional<Value>> converted = convert(live, version_, *view);
  if (!converted) return converted.take_error();
  return &seen_.emplace_back(InVersion{view, *converted, std::nullopt, std::nullopt});
}

Comparison Engine::compare_filtered(const VersionView& view, const Value& left, const Value& right) {
  Comparison c = compare(arena_, *view.type, left, right);
  if (view.reset != nullptr) {
    c.added = view.reset->apply(arena_, c.added);
    c.modified = view.reset->apply(arena_, c.modified);
    c.removed = view.reset->apply(arena_, c.removed);
  }
  return c;
}

Result<const Comparison*> Engine::compared(InVersion& version, const Value& live, const Value& next) {
  if (!version.comparison) {
    if (version.view == &version_) {
      version.comparison = compare_filtered(version_, live, next);
    } else {
      Result<std::optional<Value>> converted = convert(next, version_, *version.view);
      if (!converted) {
        Error error = converted.take_error();
        error.message = "failed to convert new object: " + error.message;
        return error;
      }
      if (!*converted) return static_cast<const Comparison*>(nullptr);
      version.comparison = compare_filtered(*version.view, *version.live, **converted);
    }
  }
  return &*version.comparison;
}

// 1. Adapts all entries to the current types; drops entries of versions that are no longer served.
Result<Managed> Engine::reconcile_all(const Value& live, const Managed& managed) {
  Managed out;
  out.reserve(managed.size() + 1);
  for (const ManagerEntry& entry : managed) {
    Result<InVersion*> version = in_version(live, entry.api_version);
    if (!version) return version.take_error();
    if (*version == nullptr || !(*version)->live) continue;
    out.push_back(entry);
    out.back().fields = reconcile(arena_, *(*version)->view->type, entry.fields);
  }
  return out;
}

Result<Engine::Updated> Engine::update(const Value& live, const Value& next, const Managed& managed) {
  seen_.reserve(managed.size() + 2);  // Pointers to its elements are kept.
  Result<Managed> reconciled = reconcile_all(live, managed);
  if (!reconciled) return reconciled.take_error();

  // 2. Compute the changes in the request's version.
  Result<InVersion*> own = in_version(live, version_.api_version);
  if (!own) return own.take_error();
  Result<const Comparison*> mine = compared(**own, live, next);
  if (!mine) return mine.take_error();

  // 3. Every manager loses what was modified, added or removed, in the version of its entry.
  for (ManagerEntry& entry : *reconciled) {
    Result<InVersion*> version = in_version(live, entry.api_version);
    if (!version) return version.take_error();
    Result<const Comparison*> change = compared(**version, live, next);
    if (!change) return change.take_error();
    if (*change == nullptr) {
      entry.fields = {};
      continue;
    }
    entry.fields = difference(arena_, entry.fields, (*change)->modified);
    entry.fields = difference(arena_, entry.fields, (*change)->added);
    entry.fields = difference(arena_, entry.fields, (*change)->removed);
  }
  drop_empty(*reconciled);

  // 4. The fields that the writer gains.
  const FieldSet gained = union_of(arena_, (*mine)->modified, (*mine)->added);
  return Updated{std::move(*reconciled), gained};
}

// The members of `set` that are in the live object.
FieldSet Engine::present(const InVersion& version, FieldSet set) {
  if (!version.live) return set;
  const FieldSet absent = vacancies(arena_, *version.view->type, *version.live, set);
  return absent.empty() ? set : recursive_difference(arena_, set, absent);
}

// Defaults are known in the request's version only.
Result<Value> Engine::with_defaults_in(const VersionView& view, const Value& object, const Defaults& defaults) {
  Result<std::optional<Value>> here = convert(object, view, version_);
  if (!here) return here.take_error();
  if (!*here) return object;
  Result<std::optional<Value>> there = convert(defaults(arena_, **here), version_, view);
  if (!there) return there.take_error();
  return *there ? **there : object;
}

// What pruning may remove of the applier's last set: not what is absent, because giving up the absence of a field
// removes nothing, and not what the configuration unsets, because that is removed afterwards without its parents.
Result<FieldSet> Engine::given_up(const InVersion& version, const Value& merged, const Value& base, FieldSet last,
                                  const ApplyOptions& options) {
  const VersionView& view = *version.view;
  const MergeType& type = *view.type;
  FieldSet out = present(version, last);
  if (!options.unset.empty() && !out.empty()) {
    FieldSet unset = options.unset;
    if (view.api_version != version_.api_version) {
      // Paths cannot be converted, objects can.
      const Value without = remove(arena_, *version_.type, merged, options.unset, Emptied::Keep);
      Result<std::optional<Value>> converted = convert(without, version_, view);
      if (!converted) return converted.take_error();
      unset = *converted ? compare(arena_, type, base, **converted).removed : FieldSet();
    }
    out = recursive_difference(arena_, out, unset);
  }
  // A field that was unset and got its default cannot be told from one that was set to it. If it were removed, it would
  // come back, but in between its container could be removed with everything else in it.
  if (options.unset_markers && options.defaults != nullptr && *options.defaults && !out.empty()) {
    const FieldSet whole = defaulted_containers(
        arena_, type, base, out, [&](const Value& bare) { return with_defaults_in(view, bare, *options.defaults); });
    out = recursive_difference(arena_, out, whole);
    out = difference(arena_, out, default_valued(arena_, type, base, out));
  }
  return out;
}

// Removes what the applier gave up. Only fields of the live object take part: an owned but unset field keeps no
// container in the object, and giving it up removes none. `merged` still has the fields that the configuration unsets.
Result<Value> Engine::prune(const Value& live, const Value& merged, const Managed& managed, const ManagerEntry& last,
                            FieldSet own, const ApplyOptions& options) {
  if (last.fields.empty()) return merged;
  const bool one_version = last.api_version == version_.api_version &&
                           std::all_of(managed.begin(), managed.end(), [&](const ManagerEntry& entry) {
                             return entry.api_version == version_.api_version;
                           });
  // The applier still owns everything it owned: nothing to remove. (Its new set includes every container above its
  // paths, so steps b and c below would keep all of them.)
  if (one_version && own.includes(last.fields)) return merged;

  const VersionView* last_view =
      last.api_version == version_.api_version ? &version_ : versions_.find(last.api_version);
  if (last_view == nullptr) return merged;
  Result<std::optional<Value>> converted = convert(merged, version_, *last_view);
  if (!converted) {
    Error error = converted.take_error();
    error.message = "failed to prune fields: failed to convert merged object to last applied version: " + error.message;
    return error;
  }
  if (!*converted) return merged;
  const Value base = **converted;
  Result<InVersion*> last_version = in_version(live, last.api_version);
  if (!last_version) return last_version.take_error();
  Result<FieldSet> released = given_up(**last_version, merged, base, last.fields, options);
  if (!released) return released.take_error();
  if (released->empty()) return merged;

  auto failed = [](Error error, std::string_view what, std::string_view version) {
    error.message = "failed to prune fields: failed add back owned items: failed to convert " + std::string(what) +
                    " object at version " + std::string(version) + ": " + error.message;
    return error;
  };

  // a. Remove everything in the last set.
  const FieldSet last_named = with_named_fields(arena_, *last_view->type, *released);
  Value pruned = remove(arena_, *last_view->type, base, last_named);

  auto paths_in = [&](const VersionView& view, const Value& value) {
    return with_named_fields(arena_, *view.type, to_set(arena_, *view.type, value));
  };

  const FieldSet configured =
      options.unset.empty() ? own : recursive_difference(arena_, own, options.unset);  // What the configuration sets.

  // b. Add back what any manager owns, version by version, starting with that of the last set: its fields may be needed
  // for conversion.
  std::vector<const VersionView*> order = {last_view};
  for (const ManagerEntry& entry : managed) {
    const VersionView* view = entry.api_version == version_.api_version ? &version_ : versions_.find(entry.api_version);
    if (view == nullptr) continue;
    const auto known = [&](const VersionView* v) { return v->api_version == view->api_version; };
    if (std::none_of(order.begin(), order.end(), known)) order.push_back(view);
  }
  Value whole = base;
  const VersionView* at = last_view;
  for (const VersionView* view : order) {
    Result<InVersion*> version = in_version(live, view->api_version);
    if (!version) return version.take_error();
    std::vector<FieldSet> owned_by_each;
    for (const ManagerEntry& entry : managed) {
      if (entry.api_version != view->api_version) continue;
      // A manager that unset a container with a default also owns the container itself. If others have changed what the
      // default put there, an empty container is nothing it asked for.
      const bool applied = entry.operation == Operation::Apply;
      owned_by_each.push_back(applied ? without_containers(arena_, *view->type, entry.fields) : entry.fields);
    }
    if (owned_by_each.empty()) continue;
    FieldSet owned = present(**version, union_of(arena_, std::move(owned_by_each)));
    Result<std::optional<Value>> whole_there = convert(whole, *at, *view);
    if (!whole_there) return failed(whole_there.take_error(), "merged", view->api_version);
    if (!*whole_there) continue;
    Result<std::optional<Value>> pruned_there = convert(pruned, *at, *view);
    if (!pruned_there) return failed(pruned_there.take_error(), "pruned", view->api_version);
    if (!*pruned_there) continue;
    whole = **whole_there;
    at = view;
    const MergeType& type = *view->type;
    const FieldSet all = paths_in(*view, whole);
    const FieldSet kept = paths_in(*view, **pruned_there);
    // The configuration holds what it sets; what it unsets is still there, whole, and held as long.
    if (view == &version_) {
      owned = union_of(arena_, owned, configured);
      owned = union_of(arena_, owned, at_or_below(arena_, all, options.unset));
    }
    const FieldSet held = union_of(arena_, kept, with_named_fields(arena_, type, owned));
    pruned = remove(arena_, type, whole, difference(arena_, all, held));
  }

  // c. Only what the applier owned may be removed.
  Result<std::optional<Value>> back = convert(pruned, *at, *last_view);
  if (!back) {
    Error error = back.take_error();
    error.message =
        "failed to prune fields: failed add back dangling items: failed to convert pruned object to last applied "
        "version: " +
        error.message;
    return error;
  }
  Value result = base;
  if (*back) {
    const MergeType& type = *last_view->type;
    const FieldSet all = paths_in(*last_view, base);
    const FieldSet kept = paths_in(*last_view, **back);
    result = remove(arena_, type, base, intersection(arena_, difference(arena_, all, kept), last_named));
  }
  Result<std::optional<Value>> own_version = convert(result, *last_view, version_);
  if (!own_version) {
    Error error = own_version.take_error();
    error.message = "failed to prune fields: " + error.message;
    return error;
  }
  return *own_version ? **own_version : merged;
}

Result<FieldSet> Engine::removed_by_unset(const InVersion& version, const Value& live, FieldSet unset,
                                          FieldSet removed) {
  if (removed.empty()) return removed;
  if (version.view == &version_) return at_or_below(arena_, removed, unset);
  // Paths cannot be converted, objects can: compute what is missing in the other version if only the unset fields are
  // removed.
  const Value without = remove(arena_, *version_.type, live, unset, Emptied::Keep);
  Result<std::optional<Value>> there = convert(without, version_, *version.view);
  if (!there) return there.take_error();
  if (!*there) return FieldSet();
  return intersection(arena_, removed, compare_filtered(*version.view, *version.live, **there).removed);
}

// The containers in `owned` that were unset and have their default, and below which something is set that `conflict`
// does not name.
FieldSet Engine::below_defaulted(const InVersion& version, FieldSet owned, FieldSet touched, FieldSet conflict,
                                 const Defaults& defaults) {
  const MergeType& type = *version.view->type;
  const FieldSet containers = declared_containers(arena_, type, owned);
  if (containers.empty()) return {};
  touched = at_or_below(arena_, recursive_difference(arena_, touched, conflict), containers);
  if (touched.empty()) return {};
  std::vector<FieldSet> found;
  containers.for_each([&](Path path) {
    const FieldSet one = single(arena_, path);
    if (!at_or_below(arena_, touched, one).empty()) found.push_back(one);
  });
  const FieldSet disturbed = union_of(arena_, std::move(found));
  if (disturbed.empty()) return {};
  return defaulted_containers(arena_, type, *version.live, at_or_below(arena_, owned, disturbed),
                              [&](const Value& bare) { return with_defaults_in(*version.view, bare, defaults); });
}

Result<Engine::Applied> Engine::apply(const Value& live, const Value& config, const Managed& managed,
                                      const ManagerEntry& applier, const ApplyOptions& options) {
  seen_.reserve(managed.size() + 2);  // Pointers to its elements are kept.
  // 1.
  Result<Managed> reconciled = reconcile_all(live, managed);
  if (!reconciled) return reconciled.take_error();

  // 2. Merge the configuration into the live object.
  const Value merged = merge(arena_, *version_.type, live, config);

  // 3. Replace the applier's last set with its new one.
  FieldSet named = to_set(arena_, *version_.type, config);
  if (!options.unset.empty()) named = union_of(arena_, named, options.unset);
  const FieldSet own = filtered(arena_, version_, named);
  ManagerEntry last;
  last.api_version = version_.api_version;
  auto place = std::find_if(reconciled->begin(), reconciled->end(),
                            [&](const ManagerEntry& entry) { return same_manager(entry, applier); });
  if (place != reconciled->end()) {
    last = *place;
  } else {
    reconciled->push_back(applier);
    place = reconciled->end() - 1;
  }
  place->fields = own;
  place->api_version = applier.api_version;
  const size_t self = static_cast<size_t>(place - reconciled->begin());

  // 4. Prune, then remove what is unset: these paths alone. Then declared defaults are applied before the comparison,
  // so that unsetting a field with a default does not remove it, and doing it twice changes nothing. The manager that
  // unset a field owns everything that the default put in its place.
  Result<Value> pruned = prune(live, merged, *reconciled, last, own, options);
  if (!pruned) return pruned.take_error();
  Applied out;
  out.object = *pruned;
  static const Defaults kNoDefaults;
  const auto& defaults = options.defaults == nullptr ? kNoDefaults : *options.defaults;
  if (!options.unset.empty()) {
    const Value bare = remove(arena_, *version_.type, out.object, options.unset, Emptied::Keep);
    out.object = with_defaults_of_unset(arena_, *version_.type, bare, options.unset, defaults);
    if (!out.object.same(bare)) {
      const FieldSet came_back = compare(arena_, *version_.type, bare, out.object).added;
      const FieldSet owned = filtered(arena_, version_, at_or_below(arena_, came_back, options.unset));
      (*reconciled)[self].fields = union_of(arena_, own, owned);
    }
  }

  // 5. Check for conflicts with every other entry.
  for (size_t i = 0; i < reconciled->size(); ++i) {
    if (i == self) continue;
    ManagerEntry& entry = (*reconciled)[i];
    Result<InVersion*> version = in_version(live, entry.api_version);
    if (!version) return version.take_error();
    Result<const Comparison*> change = compared(**version, live, out.object);
    if (!change) return change.take_error();
    if (*change == nullptr) {
      entry.fields = {};
      continue;
    }
    std::optional<FieldSet>& touched = (*version)->touched;
    if (!touched) touched = union_of(arena_, (*change)->modified, (*change)->added);
    FieldSet conflict = intersection(arena_, entry.fields, *touched);
    // Removing a field is not a conflict, unless it was unset explicitly: then with the owners of everything removed.
    if (!options.unset.empty()) {
      std::optional<FieldSet>& unset = (*version)->removed_by_unset;
      if (!unset) {
        Result<FieldSet> removed = removed_by_unset(**version, live, options.unset, (*change)->removed);
        if (!removed) return removed.take_error();
        unset = *removed;
      }
      conflict = union_of(arena_, conflict, at_or_below(arena_, entry.fields, *unset));
    }
    if (defaults && entry.operation == Operation::Apply) {
      conflict = union_of(arena_, conflict, below_defaulted(**version, entry.fields, *touched, conflict, defaults));
    }
    if (!conflict.empty()) {
      out.conflicts.push_back({entry, conflict});
      entry.fields = difference(arena_, entry.fields, conflict);
    }
    entry.fields = difference(arena_, entry.fields, (*change)->removed);
  }
  if (options.force) out.conflicts.clear();
  if (!out.conflicts.empty()) return out;

  // 6.
  drop_empty(*reconciled);
  out.managed = std::move(*reconciled);

  // 7.
  out.changed = !out.object.same(live) && !equal(live, out.object, Numbers::ByValue);
  if (!out.changed) out.object = live;
  return out;
}

}  // namespace holdfast::ownership
