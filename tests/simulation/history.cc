#include "simulation/history.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <functional>

namespace holdfast::simulation {
namespace {

constexpr std::string_view kFinalizers = "finalizers/";

bool has_any(const Fields& fields, std::string_view prefix) {
  const auto found = fields.lower_bound(std::string(prefix));
  return found != fields.end() && found->first.starts_with(prefix);
}
bool has_finalizers(const Fields& fields) { return has_any(fields, kFinalizers); }

void own(Owners& owners, const std::string& manager, std::set<std::string> keys) {
  if (keys.empty()) {
    owners.erase(manager);
  } else {
    owners[manager] = std::move(keys);
  }
}

void disown(Owners& owners, const std::set<std::string>& keys, const std::string& except) {
  for (auto entry = owners.begin(); entry != owners.end();) {
    if (entry->first != except) {
      for (const std::string& key : keys) entry->second.erase(key);
    }
    entry = entry->second.empty() ? owners.erase(entry) : std::next(entry);
  }
}

bool owned_by_others(const Owners& owners, const std::string& manager, const std::string& key) {
  return std::any_of(owners.begin(), owners.end(),
                     [&](const auto& entry) { return entry.first != manager && entry.second.contains(key); });
}

const std::string* value_of(const Fields& fields, const std::string& key) {
  const auto found = fields.find(key);
  return found == fields.end() ? nullptr : &found->second;
}

Effect refuse(int code) {
  Effect effect;
  effect.refused = {code};
  return effect;
}

// "data" of "data/x".
std::string parent_of(const std::string& key) { return key.substr(0, key.find('/')); }

// Whether this would add a map or a list that the object lacks, and that others own nevertheless: an owner of the map
// itself keeps it when its last member is removed, even if it is then not stored.
bool adds_what_others_own(const Wish& wish, const Object& object, const std::string& manager) {
  return std::any_of(wish.fields.begin(), wish.fields.end(), [&](const auto& field) {
    const std::string parent = parent_of(field.first);
    const bool exists = std::any_of(object.fields.begin(), object.fields.end(),
                                    [&](const auto& live) { return parent_of(live.first) == parent; });
    return !exists && owned_by_others(object.parents, manager, parent);
  });
}

void apply(const Wish& wish, Effect& effect) {
  Object& object = effect.object;
  const std::string manager = wish.manager + " Apply";
  if (!object.tracked) {
    // What was not tracked so far belongs to somebody, so that it is not taken unnoticed.
    std::set<std::string> all;
    for (const auto& [key, value] : object.fields) all.insert(key);
    own(object.owners, "before-first-apply Update", std::move(all));
  }
  std::set<std::string> contested, wanted;
  for (const auto& [key, value] : wish.fields) {
    wanted.insert(key);
    const std::string* live = value_of(object.fields, key);
    const bool same = live == nullptr ? !value : value && *live == *value;
    if (!same && owned_by_others(object.owners, manager, key)) contested.insert(key);
  }
  if (!contested.empty() && !wish.force) effect.refused.insert(409);
  if (adds_what_others_own(wish, object, manager) && !wish.force) effect.may_refuse.insert(409);
  disown(object.owners, contested, manager);
  const bool had_any_data = has_any(object.fields, "data/");
  std::set<std::string> given_up;
  if (const auto found = object.owners.find(manager); found != object.owners.end()) given_up = found->second;
  for (const std::string& key : given_up) {
    if (!wanted.contains(key) && !owned_by_others(object.owners, manager, key)) object.fields.erase(key);
  }
  for (const auto& [key, value] : wish.fields) {
    if (value) {
      object.fields[key] = *value;
    } else {
      object.fields.erase(key);
    }
  }
  // Of a map that others own, null is left when its last member is removed.
  if (wish.custom && had_any_data && !has_any(object.fields, "data/") &&
      owned_by_others(object.parents, manager, "data")) {
    effect.may_refuse.insert(422);
  }
  own(object.owners, manager, std::move(wanted));
}

void update(const Wish& wish, Object& object) {
  const std::string manager = wish.manager + " Update";
  Fields next;
  if (wish.verb == Verb::Patch) next = object.fields;
  for (const auto& [key, value] : wish.fields) {
    if (value) {
      next[key] = *value;
    } else {
      next.erase(key);
    }
  }
  std::set<std::string> changed, mine;
  if (const auto found = object.owners.find(manager); found != object.owners.end()) mine = found->second;
  const auto compare = [&](const std::string& key) {
    const std::string *before = value_of(object.fields, key), *after = value_of(next, key);
    if (before != nullptr && after != nullptr && *before == *after) return;
    changed.insert(key);
    if (after != nullptr) {
      mine.insert(key);
    } else {
      mine.erase(key);
    }
  };
  for (const auto& [key, value] : object.fields) compare(key);
  for (const auto& [key, value] : next) {
    if (!object.fields.contains(key)) compare(key);
  }
  if (object.tracked) {
    disown(object.owners, changed, manager);
    own(object.owners, manager, std::move(mine));
  }
  object.fields = std::move(next);
}

}  // namespace

std::string_view to_string(Verb verb) {
  constexpr std::string_view kNames[] = {"create",           "apply", "patch", "put",  "delete",
                                         "deletecollection", "get",   "list",  "watch"};
  return kNames[static_cast<size_t>(verb)];
}

Effect effect_of(const Wish& wish, const std::optional<Object>& before, uint64_t revision) {
  Effect effect;
  if (!before) {
    if (wish.verb != Verb::Create && wish.verb != Verb::Apply) return refuse(404);
    if (wish.verb == Verb::Create) {
      update(wish, effect.object);
    } else {
      apply(wish, effect);
    }
    return effect;
  }
  if (wish.verb == Verb::Create) return refuse(409);
  if (wish.expected && *wish.expected != revision) effect.refused.insert(409);
  effect.object = *before;
  Object& object = effect.object;
  if (wish.verb == Verb::Delete || wish.verb == Verb::DeleteCollection) {
    effect.removed = !has_finalizers(object.fields);
    object.deleting = true;
    if (effect.removed) object.deleting = before->deleting;
    return effect;
  }
  if (wish.verb == Verb::Apply) {
    apply(wish, effect);
  } else {
    update(wish, object);
  }
  if (!object.deleting) return effect;
  for (const auto& [key, value] : object.fields) {
    if (key.starts_with(kFinalizers) && !before->fields.contains(key)) effect.refused.insert(422);
  }
  effect.removed = !has_finalizers(object.fields);
  return effect;
}

// --- Text ---

namespace {

std::string to_string(const Object& object, bool with_owners = true) {
  std::string text = "{";
  for (const auto& [key, value] : object.fields) text += (text.size() > 1 ? " " : "") + key + "=" + value;
  if (object.deleting) text += " (deleting)";
  text += "}";
  if (!with_owners) return text;
  for (const auto& [manager, keys] : object.owners) {
    text += " " + manager + ":";
    for (const std::string& key : keys) text += (text.back() == ':' ? "" : ",") + key;
  }
  return text;
}

std::string to_string(const std::optional<Object>& object) { return object ? to_string(*object) : "nothing"; }

std::string to_string(const Seen& seen) {
  return seen.key + "@" + std::to_string(seen.revision) + " " + to_string(seen.object, seen.with_owners);
}

}  // namespace

std::string to_string(const Op& op) {
  char times[64];
  std::snprintf(times, sizeof times, "%9.3f -%9.3f s  #%d ", op.begin_seconds, op.end_seconds, op.number);
  std::string text =
      times + op.who + ": " + std::string(to_string(op.wish.verb)) + " " + (op.key.empty() ? op.resource : op.key);
  if (!op.wish.manager.empty()) text += " as " + op.wish.manager;
  for (const auto& [key, value] : op.wish.fields) text += " " + key + (value ? "=" + *value : " removed");
  if (op.wish.force) text += ", forced";
  if (op.wish.dry_run) text += ", dry run";
  if (op.wish.expected) text += ", if at " + std::to_string(*op.wish.expected);
  if (!op.selector.empty()) text += " with t=" + op.selector;
  if (op.from != 0) text += " from " + std::to_string(op.from);
  text += " -> ";
  text += op.outcome == Op::Outcome::Ok ? "ok" : op.outcome == Op::Outcome::Refused ? "refused" : "unknown";
  text += " " + std::to_string(op.code);
  if (!op.message.empty()) text += " " + op.message;
  if (op.seen) text += " " + to_string(*op.seen);
  if (!op.deleted_uid.empty()) text += " deleted " + op.deleted_uid;
  if (op.wish.verb == Verb::List) {
    text += " at " + std::to_string(op.revision) + ":";
    for (const Seen& item : op.items) text += " " + item.key + "@" + std::to_string(item.revision);
  }
  for (const WatchEvent& event : op.events) {
    text += "\n        " + event.type + " ";
    text += event.type == "BOOKMARK" ? std::to_string(event.seen.revision) + (event.initial_end ? " (initial)" : "")
                                     : to_string(event.seen);
  }
  return text;
}

std::string to_string(const Commit& commit) {
  return commit.key + "@" + std::to_string(commit.revision) + " " +
         (commit.object ? to_string(*commit.object) : "deleted");
}

std::string transcript(const History& history) {
  std::multimap<uint64_t, std::string> lines;
  for (const Op& op : history.ops) lines.emplace(op.begin, to_string(op));
  for (const Commit& commit : history.commits)
    lines.emplace(commit.order, "                          stored " + to_string(commit));
  std::string text;
  for (const auto& [order, line] : lines) text += line + "\n";
  return text;
}

// --- Checks ---

namespace {

// A version of one object, and the time in which it was the latest.
struct Version {
  uint64_t revision = 0;
  uint64_t begin = 0, end = UINT64_MAX;  // Orders.
  std::optional<Object> object;
  const Commit* commit = nullptr;  // Null for the time before the first.
};

bool is_write(const Op& op) { return op.wish.verb <= Verb::Delete; }

// Whether what a client saw is what the model predicts: uids of new objects are not known to it.
bool predicted(const Object& seen, const Object& made, bool with_owners = true) {
  return (made.uid.empty() || made.uid == seen.uid) && made.deleting == seen.deleting && made.fields == seen.fields &&
         (!with_owners || made.owners == seen.owners);
}

// Whether an object that a client saw is that version of it.
bool same(const Object& seen, const Object& stored, bool with_owners) {
  return seen.uid == stored.uid && predicted(seen, stored, with_owners) &&
         (!with_owners || seen.parents == stored.parents);
}

class Checker {
 public:
  explicit Checker(const History& history) : history_(history) {
    for (const Commit& commit : history.commits) {
      std::vector<Version>& versions = timelines_[commit.key];
      if (versions.empty()) versions.emplace_back();
      versions.back().end = commit.order;
      versions.push_back({commit.revision, commit.order, UINT64_MAX, commit.object, &commit});
    }
  }

  std::vector<std::string> run() {
    problems_ = history_.found;
    explain_commits();
    for (const Op& op : history_.ops) {
      if (!op.modelled) continue;
      if (op.outcome == Op::Outcome::Unknown && !history_.failures) {
        report("a request failed although the store did not", {&op});
      }
      if (op.outcome == Op::Outcome::Unknown && op.whole) {
        report("a watch failed although all failures had ended", {&op});
      }
      if (op.outcome == Op::Outcome::Unknown && op.wish.verb != Verb::Watch) continue;
      switch (op.wish.verb) {
        case Verb::Get:
          check_get(op);
          break;
        case Verb::List:
          check_list(op);
          break;
        case Verb::Watch:
          check_watch(op);
          break;
        case Verb::DeleteCollection:
          check_delete_collection(op);
          break;
        default:
          check_write(op);
      }
    }
    return std::move(problems_);
  }

 private:
  void report(std::string what, std::initializer_list<const Op*> ops, const Commit* commit = nullptr) {
    for (const Op* op : ops) {
      if (op != nullptr) what += "\n    " + to_string(*op);
    }
    if (commit != nullptr) what += "\n    stored " + to_string(*commit);
    problems_.push_back(std::move(what));
  }

  const std::vector<Version>& timeline(const std::string& key) {
    std::vector<Version>& versions = timelines_[key];
    if (versions.empty()) versions.emplace_back();
    return versions;
  }

  // Whether `fits` holds for a version that was the latest at some moment of this request.
  bool some_moment(const Op& op, const std::function<bool(const Version&)>& fits) {
    const std::vector<Version>& versions = timeline(op.key);
    return std::any_of(versions.begin(), versions.end(), [&](const Version& version) {
      return version.begin < op.end && version.end > op.begin && fits(version);
    });
  }

  // Assigns each stored version to the one request that made it: a matching, since requests without a response could
  // have made several.
  void explain_commits() {
    struct Edge {
      const Version* before;
      const Version* after;
    };
    std::vector<Edge> edges;
    for (const auto& [key, versions] : timelines_) {
      for (size_t i = 1; i < versions.size(); ++i) edges.push_back({&versions[i - 1], &versions[i]});
    }
    // Of each version, the requests that may have made it: first those that must have made one.
    std::vector<std::vector<size_t>> needy(edges.size()), makers(edges.size());
    for (size_t j = 0; j < history_.ops.size(); ++j) {
      const Op& op = history_.ops[j];
      const bool must = op.outcome == Op::Outcome::Ok && is_write(op) && !changed_nothing(op);
      for (size_t i = 0; i < edges.size(); ++i) {
        if (may_make(op, *edges[i].before, *edges[i].after)) (must ? needy : makers)[i].push_back(j);
      }
    }
    std::vector<std::vector<size_t>> made(history_.ops.size());  // By each request.
    std::vector<bool> tried;
    const std::function<bool(size_t, const std::vector<std::vector<size_t>>&)> assign =
        [&](size_t edge, const std::vector<std::vector<size_t>>& allowed) {
          for (const size_t op : allowed[edge]) {
            if (tried[op]) continue;
            tried[op] = true;
            // The deletion of a collection makes any number of versions.
            if (made[op].empty() || history_.ops[op].wish.verb == Verb::DeleteCollection) {
              made[op].push_back(edge);
              return true;
            }
            if (!assign(made[op].front(), allowed)) continue;
            made[op].front() = edge;
            return true;
          }
          return false;
        };
    std::vector<bool> assigned(edges.size());
    for (size_t i = 0; i < edges.size(); ++i) {
      tried.assign(history_.ops.size(), false);
      assigned[i] = assign(i, needy);
    }
    // No request that has made a version loses it, at most for another one.
    for (size_t i = 0; i < edges.size(); ++i) makers[i].insert(makers[i].begin(), needy[i].begin(), needy[i].end());
    for (size_t i = 0; i < edges.size(); ++i) {
      if (assigned[i]) continue;
      tried.assign(history_.ops.size(), false);
      if (assign(i, makers)) continue;
      const Commit& commit = *edges[i].after->commit;
      std::string what = "no request makes " + to_string(commit) + " of " + to_string(edges[i].before->object);
      for (const Op& op : history_.ops) {
        if (is_write(op) && op.key == commit.key && op.begin < commit.order && op.end > commit.order) {
          what += "\n    " + to_string(op);
        }
      }
      report(std::move(what), {});
    }
    for (size_t j = 0; j < history_.ops.size(); ++j) {
      if (!made[j].empty()) writers_.insert(&history_.ops[j]);
    }
  }

  bool may_make(const Op& op, const Version& before, const Version& after) const {
    const bool collection = op.wish.verb == Verb::DeleteCollection;
    if (collection ? !after.commit->key.starts_with(op.resource + "/") : !is_write(op) || op.key != after.commit->key) {
      return false;
    }
    if (op.outcome == Op::Outcome::Refused || op.wish.dry_run) return false;
    if (op.begin > after.begin || (op.outcome == Op::Outcome::Ok && op.end < after.begin)) return false;
    const Effect effect = effect_of(op.wish, before.object, before.revision);
    if (!effect.refused.empty() || effect.removed == after.object.has_value()) return false;
    if (!effect.removed && !predicted(*after.object, effect.object)) return false;
    if (collection || op.outcome == Op::Outcome::Unknown) return true;
    if (!op.deleted_uid.empty()) return effect.removed && op.deleted_uid == before.object->uid;
    if (!op.seen) return false;
    if (effect.removed) return predicted(op.seen->object, effect.object, op.seen->with_owners);
    return op.seen->revision == after.revision && same(op.seen->object, *after.object, op.seen->with_owners);
  }

  void check_write(const Op& op) {
    if (op.outcome == Op::Outcome::Refused) {
      const bool explained = some_moment(op, [&](const Version& version) {
        const Effect effect = effect_of(op.wish, version.object, version.revision);
        return effect.refused.contains(op.code) || effect.may_refuse.contains(op.code);
      });
      if (!explained) report("nothing explains why this was refused; " + around(op), {&op});
      return;
    }
    if (writers_.contains(&op)) return;
    if (!changed_nothing(op)) report("this was acknowledged and had no effect; " + around(op), {&op});
  }

  // Whether a write was acknowledged that did not have to store anything, because it was a dry run or made no
  // difference.
  bool changed_nothing(const Op& op) {
    return some_moment(op, [&](const Version& version) {
      const Effect effect = effect_of(op.wish, version.object, version.revision);
      if (!effect.refused.empty()) return false;
      if (op.wish.dry_run) {
        if (!op.seen) return effect.removed && op.deleted_uid == version.object->uid;
        return predicted(op.seen->object, effect.object, op.seen->with_owners);
      }
      return !effect.removed && version.object && predicted(*version.object, effect.object) && op.seen &&
             op.seen->revision == version.revision && same(op.seen->object, *version.object, op.seen->with_owners);
    });
  }

  std::string around(const Op& op) {
    std::string text = "meanwhile stored:";
    for (const Version& version : timeline(op.key)) {
      if (version.begin < op.end && version.end > op.begin) {
        text += "\n    @" + std::to_string(version.revision) + " " + to_string(version.object);
      }
    }
    return text;
  }

  void check_get(const Op& op) {
    if (op.outcome == Op::Outcome::Refused) {
      if (op.code == 404 && op.freshness == Op::Freshness::Any) return;
      if (op.code == 404 && some_moment(op, [](const Version& version) { return !version.object; })) return;
      return report("this existed all the time; " + around(op), {&op});
    }
    if (op.freshness == Op::Freshness::Any) {
      const Version* version = version_at(op.seen->key, op.seen->revision);
      if (version != nullptr && version->revision == op.seen->revision && version->begin < op.end && version->object &&
          same(op.seen->object, *version->object, op.seen->with_owners)) {
        return;
      }
      return report("this has never existed like that", {&op});
    }
    const bool explained = some_moment(op, [&](const Version& version) {
      return version.object && version.revision == op.seen->revision &&
             same(op.seen->object, *version.object, op.seen->with_owners);
    });
    if (!explained) report("this was not the latest version at any moment of the request; " + around(op), {&op});
  }

  // The version of a key at a revision of the store.
  const Version* version_at(const std::string& key, uint64_t revision) {
    const Version* found = nullptr;
    for (const Version& version : timeline(key)) {
      if (version.revision <= revision) found = &version;
    }
    return found;
  }

  static bool selected(const std::optional<Object>& object, const std::string& selector) {
    if (!object) return false;
    if (selector.empty()) return true;
    const std::string* label = value_of(object->fields, "labels/t");
    return label != nullptr && *label == selector;
  }

  // Compares objects with the state of the store at a revision; returns how they differ.
  std::string differs(const std::string& resource, const std::string& selector, uint64_t revision,
                      const std::vector<Seen>& items) {
    std::map<std::string, const Seen*> left;
    for (const Seen& item : items) {
      if (!left.emplace(item.key, &item).second) return item.key + " is there twice";
    }
    for (const auto& [key, versions] : timelines_) {
      if (!key.starts_with(resource + "/")) continue;
      const Version* version = version_at(key, revision);
      const auto found = left.find(key);
      const bool wanted = version != nullptr && selected(version->object, selector);
      if (wanted != (found != left.end())) return key + (wanted ? " is missing" : " should not be there");
      if (!wanted) continue;
      const Seen& item = *found->second;
      if (item.revision != version->revision) {
        return key + " is at " + std::to_string(item.revision) + ", not at " + std::to_string(version->revision);
      }
      if (!same(item.object, *version->object, item.with_owners)) {
        return to_string(item) + " was stored as " + to_string(*version->object);
      }
      left.erase(found);
    }
    return left.empty() ? "" : left.begin()->first + " should not be there";
  }

  void check_list(const Op& op) {
    if (op.outcome == Op::Outcome::Refused) {
      // Only a revision that is too old is a reason; the client cannot know whether it is.
      if (op.code != 410) report("nothing explains why this was refused", {&op});
      return;
    }
    if (const std::string how = differs(op.resource, op.selector, op.revision, op.items); !how.empty()) {
      return report("this list is not the state at its revision: " + how, {&op});
    }
    if (op.freshness == Op::Freshness::Exact && op.revision != op.from) {
      return report("this list is of another revision than " + std::to_string(op.from), {&op});
    }
    if (op.revision < op.from) report("this list is older than " + std::to_string(op.from), {&op});
    if (op.freshness == Op::Freshness::Newest) {
      for (const Commit& commit : history_.commits) {
        if (commit.order < op.begin && commit.key.starts_with(op.resource + "/") && commit.revision > op.revision) {
          return report("this list lacks what was stored before it was asked for", {&op}, &commit);
        }
      }
    }
    for (const Commit& commit : history_.commits) {
      if (commit.revision <= op.revision && commit.order > op.end) {
        return report("this list contains what was stored after it had ended", {&op}, &commit);
      }
    }
  }

  void check_delete_collection(const Op& op) {
    if (op.outcome == Op::Outcome::Refused) return report("nothing explains why this was refused", {&op});
    for (const auto& [key, versions] : timelines_) {
      if (!key.starts_with(op.resource + "/")) continue;
      const auto at = [&versions](uint64_t order) -> const Version& {
        const Version* found = &versions.front();
        for (const Version& version : versions) {
          if (version.begin < order) found = &version;
        }
        return *found;
      };
      const Version &before = at(op.begin), &after = at(op.end);
      if (before.object && after.object && before.object->uid == after.object->uid && !after.object->deleting) {
        report(key + " existed before this, and was not deleted", {&op});
      }
    }
  }

  struct Expected {
    std::string type;
    uint64_t revision;
    const std::string* key;
    const Object* object;
  };

  // What a watch sends after a revision.
  std::vector<Expected> expected_events(const Op& op, uint64_t after) {
    std::vector<Expected> expected;
    for (const auto& [key, versions] : timelines_) {
      if (!key.starts_with(op.resource + "/")) continue;
      for (size_t i = 1; i < versions.size(); ++i) {
        const Version &old = versions[i - 1], &now = versions[i];
        if (now.revision <= after) continue;
        const bool was = selected(old.object, op.selector), is = selected(now.object, op.selector);
        if (!was && !is) continue;
        // An object that is gone, or no longer selected, is shown as it was last.
        expected.push_back({!was ? "ADDED"
                            : is ? "MODIFIED"
                                 : "DELETED",
                            now.revision, &key, is ? &*now.object : &*old.object});
      }
    }
    std::sort(expected.begin(), expected.end(),
              [](const Expected& a, const Expected& b) { return a.revision < b.revision; });
    return expected;
  }

  void check_watch(const Op& op) {
    if (op.outcome == Op::Outcome::Refused && op.code != 410) {
      return report("nothing explains why this was refused", {&op});
    }
    size_t next = 0;
    uint64_t position = op.from;
    if (op.initial) {
      std::vector<Seen> items;
      const auto end =
          std::find_if(op.events.begin(), op.events.end(), [](const WatchEvent& e) { return e.initial_end; });
      if (end == op.events.end()) {
        if (op.whole) report("this watch never sent the end of its initial events", {&op});
        return;
      }
      for (auto event = op.events.begin(); event != end; ++event) {
        if (event->type != "ADDED") return report("an initial event is " + event->type, {&op});
        items.push_back(event->seen);
      }
      if (const std::string how = differs(op.resource, op.selector, end->seen.revision, items); !how.empty()) {
        return report("the initial events are not the state at " + std::to_string(end->seen.revision) + ": " + how,
                      {&op});
      }
      if (op.freshness == Op::Freshness::Newest) {
        for (const Commit& commit : history_.commits) {
          if (commit.order < op.begin && commit.key.starts_with(op.resource + "/") &&
              commit.revision > end->seen.revision) {
            return report("the initial events lack what was stored before", {&op}, &commit);
          }
        }
      }
      position = end->seen.revision;
      next = static_cast<size_t>(end - op.events.begin()) + 1;
    }
    const std::vector<Expected> expected = expected_events(op, position);
    size_t sent = 0;
    const auto missing = [&](uint64_t up_to) {
      if (sent == expected.size() || expected[sent].revision > up_to) return false;
      report("this watch did not send " + expected[sent].type + " " + *expected[sent].key + "@" +
                 std::to_string(expected[sent].revision),
             {&op});
      return true;
    };
    for (; next < op.events.size(); ++next) {
      const WatchEvent& event = op.events[next];
      if (event.type == "BOOKMARK") {
        if (event.seen.revision < position) return report("a bookmark goes back", {&op});
        if (event.seen.revision > history_.last_revision) return report("a bookmark is of the future", {&op});
        position = event.seen.revision;
        if (missing(position)) return;
        continue;
      }
      if (sent == expected.size()) return report("an event was sent that did not happen", {&op});
      const Expected& wanted = expected[sent];
      if (event.seen.revision != wanted.revision || event.seen.key != *wanted.key || event.type != wanted.type) {
        return report("this watch sent " + event.type + " " + event.seen.key + "@" +
                          std::to_string(event.seen.revision) + " where " + wanted.type + " " + *wanted.key + "@" +
                          std::to_string(wanted.revision) + " was due",
                      {&op});
      }
      if (!same(event.seen.object, *wanted.object, event.seen.with_owners)) {
        return report("an event shows " + to_string(event.seen) + ", which was stored as " + to_string(*wanted.object),
                      {&op});
      }
      if (position > event.seen.revision) return report("an event comes after a bookmark that includes it", {&op});
      position = event.seen.revision;
      ++sent;
    }
    if (op.whole && op.outcome == Op::Outcome::Ok) missing(history_.last_revision);
  }

  const History& history_;
  std::map<std::string, std::vector<Version>> timelines_;
  std::set<const Op*> writers_;  // Requests to which a stored version is assigned.
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> problems(const History& history) { return Checker(history).run(); }

}  // namespace holdfast::simulation
