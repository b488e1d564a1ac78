#include "write/field_protections.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "ownership/field_changes.h"
#include "ownership/ownership.h"
#include "ownership/path_pattern.h"
#include "resource/object_codec.h"

namespace holdfast::write {
namespace {

using ownership::FieldSet;
using ownership::ManagerEntry;

constexpr std::string_view kGroup = "ownership.holdfast.dev";
// Fields named in an error; the others are counted.
constexpr size_t kMaxShown = 10;

enum class Action : uint8_t { Deny, Warn, Audit };

// Who may write: all of the conditions that are given must hold.
struct Allowed {
  std::vector<std::string> managers;
  std::vector<std::string> users, groups;  // Service accounts are users.

  bool matches(const auth::UserInfo& user, std::string_view manager) const {
    const auto has = [](const std::vector<std::string>& texts, std::string_view text) {
      return std::find(texts.begin(), texts.end(), text) != texts.end();
    };
    if (!managers.empty() && !has(managers, manager)) return false;
    if (users.empty() && groups.empty()) return true;
    return has(users, user.name) || std::any_of(user.groups.begin(), user.groups.end(),
                                                [&](const std::string& group) { return has(groups, group); });
  }
  std::string text() const {
    const auto quoted = [](const std::vector<std::string>& texts) {
      return join(texts, " or ", [](const std::string& text) { return go_quote(text); });
    };
    std::vector<std::string> parts;
    if (!users.empty()) parts.push_back("user " + quoted(users));
    if (!groups.empty()) parts.push_back("group " + quoted(groups));
    const std::string who = join(parts, " or ", [](const std::string& part) { return part; });
    if (managers.empty()) return who;
    return "manager " + quoted(managers) + (who.empty() ? "" : " of " + who);
  }
};

struct Protection {
  Arena arena;  // Of the selector.
  std::string name;
  std::vector<std::string> keys;  // "group/resource", also with "*".
  std::vector<std::string> namespaces;
  std::optional<Value> selector;
  std::vector<ownership::PathPattern> paths;
  std::vector<std::string> managers;
  bool force = false, deletion = false;
  Action action = Action::Deny;
  std::vector<Allowed> allowed;

  bool covers_namespace(std::string_view ns) const {
    return namespaces.empty() || std::find(namespaces.begin(), namespaces.end(), ns) != namespaces.end();
  }
  bool selects(const Value& object) const {
    return !selector || kinds::selects(&*selector, object.get("metadata", "labels"));
  }
  bool allows(const auth::UserInfo& user, std::string_view manager) const {
    return std::any_of(allowed.begin(), allowed.end(), [&](const Allowed& one) { return one.matches(user, manager); });
  }
  bool reserves(std::string_view manager) const {
    return std::find(managers.begin(), managers.end(), manager) != managers.end();
  }
  std::string who_may() const {
    if (allowed.empty()) return "nobody may do that";
    return "only " + join(allowed, ", or ", [](const Allowed& one) { return one.text(); }) + " may do that";
  }
};
using ProtectionRef = std::shared_ptr<const Protection>;

std::vector<std::string> texts_at(const Value& map, std::string_view key) {
  std::vector<std::string> texts;
  for (const Value& item : map.items_at(key)) {
    if (item.is_string()) texts.emplace_back(item.as_string());
  }
  return texts;
}

bool flag_at(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

// The error says why the protection cannot be evaluated, which validation excludes.
Result<ProtectionRef> read_protection(const resource::Storage& storage, const cache::Entry& entry) {
  auto made = std::make_shared<Protection>();
  const store::Blob body = entry.body();
  Result<Value> tree = storage.codec().tree(made->arena, made->arena.copy(*body));
  if (!tree) return tree.take_error();
  made->name = tree->text_at("metadata", "name");
  const Value* found = tree->find("spec");
  const Value spec = found == nullptr || !found->is_map() ? Value::empty_map() : *found;
  for (const Value& resources : spec.items_at("resources")) {
    for (const std::string& group : texts_at(resources, "apiGroups")) {
      for (const std::string& plural : texts_at(resources, "resources")) made->keys.push_back(group + "/" + plural);
    }
  }
  made->namespaces = texts_at(spec, "namespaces");
  if (const Value* selector = spec.find("objectSelector"); selector != nullptr && selector->is_map()) {
    made->selector = *selector;
  }
  for (const std::string& path : texts_at(spec, "paths")) {
    Result<ownership::PathPattern> parsed = ownership::PathPattern::parse(path);
    if (!parsed) return parsed.take_error();
    made->paths.push_back(std::move(*parsed));
  }
  made->managers = texts_at(spec, "managers");
  made->force = flag_at(spec, "force");
  made->deletion = flag_at(spec, "deletion");
  const std::string_view action = spec.text_at("action");
  made->action = action == "Warn" ? Action::Warn : action == "Audit" ? Action::Audit : Action::Deny;
  for (const Value& item : spec.items_at("allowed")) {
    Allowed allowed{texts_at(item, "managers"), texts_at(item, "users"), texts_at(item, "groups")};
    for (const std::string& account : texts_at(item, "serviceAccounts")) {
      const size_t slash = account.find('/');
      allowed.users.push_back("system:serviceaccount:" + account.substr(0, slash) + ":" +
                              (slash == std::string::npos ? "" : account.substr(slash + 1)));
    }
    made->allowed.push_back(std::move(allowed));
  }
  return ProtectionRef(std::move(made));
}

const ownership::MergeType& merge_type_of(const call::Call& call, const types::Resource& version) {
  const std::string api_version = api_version_of(version.group, version.version);
  const ownership::FieldManager& manager = call.served->managers->at(kinds::Endpoint::Main);
  for (const ownership::ServedVersion& served : manager.options().versions) {
    if (served.api_version == api_version) return *served.type;
  }
  return ownership::MergeTypes::deduced();
}

FieldSet fields_of(const ownership::Managed& managed, const ManagerEntry& of) {
  for (const ManagerEntry& entry : managed) {
    if (same_manager(entry, of)) return entry.fields;
  }
  return {};
}

// What a write changes; each part is computed when a protection asks for it.
class Changes {
 public:
  Changes(call::Call& call, const Value& stored, const NextObject& next, const LiveObject* live)
      : call_(call),
        stored_(stored),
        managed_(next.managed),
        sent_(next.sent.is_map() ? next.sent : call.document),
        live_(live) {}

  // Fields whose value or whose owners change. Of a new object: those that were sent, and are owned.
  FieldSet fields() {
    if (fields_) return *fields_;
    Arena& arena = call_.arena;
    FieldSet changed = live_ == nullptr ? created() : ownership::FieldSet();
    if (live_ != nullptr) {
      const ownership::FieldChanges values =
          ownership::changes_between(arena, merge_type_of(call_, *call_.served->stored), live_->stored, stored_);
      changed = union_of(arena, union_of(arena, values.added, values.removed), values.modified);
      for (const ManagerEntry& entry : managed_) {
        changed = union_of(arena, changed, difference(arena, entry.fields, fields_of(live_->managed, entry)));
      }
      for (const ManagerEntry& entry : live_->managed) changed = union_of(arena, changed, lost_by(entry));
    }
    fields_ = changed;
    return changed;
  }

  // Whether a manager of this kind owns more than before.
  template <class Reserved>
  bool gains(const Reserved& is_reserved) const {
    return std::any_of(managed_.begin(), managed_.end(), [&](const ManagerEntry& entry) {
      if (!is_reserved(entry.manager)) return false;
      const FieldSet before = live_ == nullptr ? FieldSet() : fields_of(live_->managed, entry);
      return !before.includes(entry.fields);
    });
  }

  // Fields that an apply took from others.
  FieldSet taken(std::string_view manager) {
    FieldSet taken;
    if (live_ == nullptr) return taken;
    for (const ManagerEntry& entry : live_->managed) {
      if (entry.manager != manager) taken = union_of(call_.arena, taken, lost_by(entry));
    }
    return taken;
  }

 private:
  FieldSet lost_by(const ManagerEntry& entry) {
    return difference(call_.arena, entry.fields, fields_of(managed_, entry));
  }
  // Without what defaults and admission have added.
  FieldSet created() {
    Arena& arena = call_.arena;
    FieldSet owned;
    for (const ManagerEntry& entry : managed_) owned = union_of(arena, owned, entry.fields);
    if (!sent_.is_map()) return owned;
    const FieldSet sent = ownership::fields_of(arena, merge_type_of(call_, *call_.served->resource), sent_);
    return difference(arena, owned, ownership::missing_from(arena, owned, sent));
  }

  call::Call& call_;
  const Value& stored_;
  const ownership::Managed& managed_;
  const Value sent_;
  const LiveObject* const live_;
  std::optional<FieldSet> fields_;
};

std::vector<std::string> shown(Arena& arena, FieldSet fields) {
  std::vector<std::string> paths;
  leaves(arena, fields).for_each([&](ownership::Path path) {
    paths.push_back(to_string(path, ownership::ShownNumbers::AsRead));
  });
  return paths;
}

std::string listed(const std::vector<std::string>& paths) {
  std::string text;
  for (size_t i = 0; i < std::min(paths.size(), kMaxShown); ++i) text += (i == 0 ? "" : ", ") + paths[i];
  if (paths.size() > kMaxShown) text += " and " + std::to_string(paths.size() - kMaxShown) + " more";
  return text;
}

// Collects what protections say about one request.
class Verdict {
 public:
  explicit Verdict(call::Call& call) : call_(call) {}

  void add(const Protection& protection, std::string_view what, const std::vector<std::string>& paths) {
    const std::string text = "field protection " + go_quote(protection.name) + " " + std::string(what) +
                             (paths.empty() ? "" : ": " + listed(paths)) + ": " + protection.who_may();
    switch (protection.action) {
      case Action::Deny:
        why_ += (why_.empty() ? "" : "; ") + text;
        if (paths.empty()) causes_.push_back({"FieldProtected", text, ""});
        for (size_t i = 0; i < std::min(paths.size(), kMaxShown); ++i) {
          causes_.push_back({"FieldProtected", text, paths[i]});
        }
        break;
      case Action::Warn:
        call_.warnings.add(text);
        break;
      case Action::Audit:
        record_annotation(call_, "fieldprotection.ownership.holdfast.dev/" + protection.name, text);
        break;
    }
  }

  Result<Unit> result(std::string_view name) {
    if (why_.empty()) return Unit{};
    Error error = forbidden(call_.group_resource(), name, why_);
    error.causes = std::move(causes_);
    return error;
  }

 private:
  call::Call& call_;
  std::string why_;
  std::vector<Cause> causes_;
};

}  // namespace

bool is_field_protection(const types::Resource& resource) {
  return resource.group == kGroup && resource.plural == "fieldprotections";
}

struct FieldProtections::Matching {
  std::vector<ProtectionRef> protections;
};

struct FieldProtections::Index {
  cache::Snapshot snapshot;  // Keeps the entries alive.
  std::unordered_map<const cache::Entry*, ProtectionRef> read;
  std::unordered_map<std::string, std::vector<ProtectionRef>, KeyHash> by_resource;  // "group/resource", also with "*".

  ProtectionRef find(const cache::Entry& entry) const {
    const auto found = read.find(&entry);
    return found == read.end() ? nullptr : found->second;
  }
};

FieldProtections::FieldProtections(const resource::Registry& registry)
    : storage_(registry.snapshot()->storage_of(kGroup, "fieldprotections")) {}

FieldProtections::~FieldProtections() = default;

Result<std::shared_ptr<const FieldProtections::Index>> FieldProtections::current() const {
  Result<cache::Snapshot> snapshot = storage_->cache().snapshot();
  if (!snapshot) return snapshot.take_error();
  std::shared_ptr<const Index> index = index_.load();
  if (index != nullptr && index->snapshot.same_objects(*snapshot)) return index;
  const std::lock_guard lock(mutex_);
  // Another thread may have built a newer one.
  snapshot = storage_->cache().snapshot();
  if (!snapshot) return snapshot.take_error();
  index = index_.load();
  if (index != nullptr && index->snapshot.same_objects(*snapshot)) return index;
  auto made = std::make_shared<Index>();
  const cache::ListPage page = snapshot->list({});
  if (!page.unreadable.empty()) {
    return corrupt_object(storage_->key(page.unreadable.front().key), page.unreadable.front().why);
  }
  for (const cache::EntryRef& entry : page.entries) {
    // Those that have not changed are not read again.
    const ProtectionRef known = index == nullptr ? nullptr : index->find(*entry);
    Result<ProtectionRef> protection = known != nullptr ? Result(known) : read_protection(*storage_, *entry);
    if (!protection) return corrupt_object(storage_->key(entry->key()), protection.error().message);
    made->read.emplace(entry.get(), *protection);
    for (const std::string& key : (*protection)->keys) {
      std::vector<ProtectionRef>& listed = made->by_resource[key];
      if (listed.empty() || listed.back() != *protection) listed.push_back(*protection);
    }
  }
  made->snapshot = std::move(*snapshot);
  index_.store(made);
  return std::shared_ptr<const Index>(std::move(made));
}

Result<FieldProtections::MatchingRef> FieldProtections::matching(const call::Call& call) const {
  // Protections protect each other from nothing: otherwise a wrong one could not be removed.
  if (storage_ == nullptr || call.served->resource->group == kGroup) return MatchingRef();
  Result<std::shared_ptr<const Index>> index = current();
  if (!index) return index.take_error();
  if ((*index)->by_resource.empty()) return MatchingRef();
  std::shared_ptr<Matching> matching;
  const auto add = [&](std::string_view group, std::string_view plural) {
    const auto found = (*index)->by_resource.find(std::string(group) + "/" + std::string(plural));
    if (found == (*index)->by_resource.end()) return;
    for (const ProtectionRef& protection : found->second) {
      if (!protection->covers_namespace(call.ns())) continue;
      if (matching == nullptr) matching = std::make_shared<Matching>();
      std::vector<ProtectionRef>& all = matching->protections;
      if (std::find(all.begin(), all.end(), protection) == all.end()) all.push_back(protection);
    }
  };
  const auto add_all = [&](const types::Resource& resource) {
    add(resource.group, resource.plural);
    add(resource.group, "*");
  };
  add_all(*call.served->resource);
  // The same objects under another name: events of events.k8s.io are stored as those of the core group.
  if (call.served->stored->group != call.served->resource->group) add_all(*call.served->stored);
  add("*", call.served->resource->plural);
  add("*", "*");
  if (matching != nullptr) {
    std::sort(matching->protections.begin(), matching->protections.end(),
              [](const ProtectionRef& a, const ProtectionRef& b) { return a->name < b->name; });
  }
  return MatchingRef(std::move(matching));
}

Result<Unit> FieldProtections::check(call::Call& call, const MatchingRef& matching,
                                     const request::WriteOptions& options, const Value& stored, const NextObject& next,
                                     const LiveObject* live) const {
  if (matching == nullptr) return Unit{};
  const std::string manager = manager_of(call, options);
  Changes changes(call, stored, next, live);
  Verdict verdict(call);
  const auto judge = [&] {
    for (const ProtectionRef& one : matching->protections) {
      const Protection& protection = *one;
      // Also by the labels before the write: a write must not free itself of a protection.
      if (!protection.selects(stored) && (live == nullptr || !protection.selects(live->stored))) continue;
      if (protection.allows(*call.user, manager)) continue;
      const auto is_reserved = [&](std::string_view name) { return protection.reserves(name); };
      if (is_reserved(manager) || changes.gains(is_reserved)) {
        verdict.add(protection, "reserves the name of the manager", {});
      }
      if (!protection.paths.empty()) {
        const FieldSet touched =
            selected(call.arena, changes.fields(), protection.paths, ownership::InsideAtomic::WholeValue);
        if (!touched.empty()) verdict.add(protection, "protects", shown(call.arena, touched));
      }
      if (protection.force && options.force.value_or(false)) {
        const FieldSet taken = changes.taken(manager);
        if (!taken.empty()) verdict.add(protection, "restricts who may force", shown(call.arena, taken));
      }
    }
  };
  const Value* before = live == nullptr ? nullptr : &live->stored;
  if (!ownership::run_with_stack_for({&stored, before, &next.sent, &call.document}, judge)) {
    return internal_error("the object is nested too deeply");
  }
  return verdict.result(stored.text_at("metadata", "name"));
}

Result<Unit> FieldProtections::check_delete(call::Call& call, const MatchingRef& matching,
                                            const LiveObject& live) const {
  if (matching == nullptr) return Unit{};
  Verdict verdict(call);
  const auto judge = [&] {
    for (const ProtectionRef& one : matching->protections) {
      const Protection& protection = *one;
      if (!protection.deletion || !protection.selects(live.stored) || protection.allows(*call.user, {})) continue;
      std::vector<std::string> paths;
      if (!protection.paths.empty()) {
        const FieldSet fields =
            ownership::fields_of(call.arena, merge_type_of(call, *call.served->stored), live.stored);
        paths = shown(call.arena, selected(call.arena, fields, protection.paths, ownership::InsideAtomic::WholeValue));
        if (paths.empty()) continue;
      }
      verdict.add(protection, "protects against deletion", paths);
    }
  };
  if (!ownership::run_with_stack_for({&live.stored}, judge)) {
    return internal_error("the object is nested too deeply");
  }
  return verdict.result(live.stored.text_at("metadata", "name"));
}

}  // namespace holdfast::write
