#include "custom/custom_resources.h"

#include <algorithm>
#include <utility>

#include "base/api_version.h"
#include "base/log.h"
#include "codec/codec.h"
#include "custom/conversions.h"
#include "custom/custom_objects.h"
#include "own_calls/requests.h"
#include "ownership/merge_type.h"
#include "resource/managers.h"

namespace holdfast::custom {
namespace {

constexpr std::string_view kGroup = "apiextensions.k8s.io";
constexpr std::string_view kPlural = "customresourcedefinitions";
constexpr std::string_view kManager = "kube-apiserver";

own_calls::Target definition_target(std::string_view name) {
  static const types::Resource& resource = *types::find_resource(kGroup, "v1", kPlural);
  return own_calls::object(resource, "", name);
}

bool is_terminating(const Value& definition) { return !definition.text_at("metadata", "deletionTimestamp").empty(); }

bool is_own_finalizer(const Value& item) { return item.is_string() && item.as_string() == crd::kCleanupFinalizer; }

// A terminating definition without our finalizer, and why that was removed.
Value cleaned_up(Arena& arena, const Value& definition, UnixTime now) {
  const std::string_view group = definition.text_at("spec", "group"),
                         plural = definition.text_at("spec", "names", "plural");
  std::string_view reason = "InstanceDeletionCompleted", message = "removed all instances";
  const auto builtin = types::builtin_resources();
  if (std::any_of(builtin.begin(), builtin.end(),
                  [&](const types::Resource& r) { return r.group == group && r.plural == plural; })) {
    reason = "OverlappingBuiltInResource";
    message = "instances overlap with built-in resources in storage";
  } else if (!crd::has_condition(definition, "Established", "True")) {
    reason = "NeverEstablished";
    message = "resource was never established";
  }
  Draft draft(arena, crd::with_condition(arena, definition, "Terminating", "False", reason, message, now));
  ListBuilder others(arena);
  for (const Value& item : definition.items_at("metadata", "finalizers")) {
    if (!is_own_finalizer(item)) others.add(item);
  }
  draft.root().child("metadata").set("finalizers", others.build());
  return draft.value();
}

// Whether a stored definition has the fields required by the API; it may have been written directly to the store.
bool is_whole(const Value& definition) {
  const Value* const spec = definition.find("spec");
  const Value* const names = spec == nullptr ? nullptr : spec->find("names");
  if (names == nullptr || !names->is_map() || names->text_at("plural").empty() || names->text_at("kind").empty()) {
    return false;
  }
  const std::span<const Value> versions = spec->items_at("versions");
  return !spec->text_at("group").empty() && !versions.empty() &&
         std::all_of(versions.begin(), versions.end(),
                     [](const Value& version) { return !version.text_at("name").empty(); });
}

// For a definition in a built-in group, whose paths only lead to built-in resources: it gets its conditions, and
// discovery shows its versions unless they are built in.
resource::CustomServedRef announced_of(const Value& written) {
  const std::shared_ptr<const crd::Definition> definition = crd::Definition::make(written);
  auto all = std::make_shared<resource::CustomServed>();
  all->name = definition->name();
  const auto builtin = types::builtin_resources();
  for (const crd::Version& version : definition->versions()) {
    const bool is_builtin = std::any_of(builtin.begin(), builtin.end(), [&version](const types::Resource& resource) {
      return resource.group == version.resource->group && resource.version == version.resource->version;
    });
    if (!version.served || is_builtin || !definition->established()) continue;
    resource::Served entry;
    entry.resource = entry.stored = version.resource;
    entry.custom = true;
    entry.version = &version;
    entry.keeps_alive = definition;
    all->versions.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

bool is_definition(const types::Resource& resource) { return resource.group == kGroup && resource.plural == kPlural; }

CustomResources::~CustomResources() = default;

// --- Serving ---------------------------------------------------------------------------------------------------------

CustomResources::KindRef CustomResources::make_kind(const Value& written, const KindRef& before) {
  auto kind = std::make_shared<Kind>();
  kind->definition = crd::Definition::make(written);
  // Conditions and the deletion of the definition do not affect the objects: keep the cache and its watches. (Deletion
  // increments metadata.generation.)
  if (before != nullptr && before->definition->uid() == kind->definition->uid() &&
      before->definition->spec_hash() == kind->definition->spec_hash()) {
    kind->storage = before->storage;
  } else {
    const types::Resource& stored = *kind->definition->storage_version().resource;
    cache::Options options;
    options.prefix = parts_.settings.registry_prefix + "/" + std::string(stored.storage_prefix) + "/";
    options.namespaced = stored.namespaced;
    options.resource = to_string(GroupResource{stored.group, stored.plural});
    const std::shared_ptr<const resource::ObjectCodec> codec = make_custom_codec(kind->definition);
    std::shared_ptr<const cache::Codec> at_rest;
    if (parts_.settings.embedded_store) {
      at_rest = cache::embedded_codec(codec, {.fields_v2 = parts_.settings.gates.on(Gate::FieldsV2AtRest)});
    }
    kind->storage = std::make_shared<resource::Storage>(parts_.store, codec, std::move(at_rest), parts_.pool,
                                                        parts_.executors, std::move(options), parts_.clock);
    kind->storage->cache().start();
  }
  kind->merge_types = std::make_shared<ownership::MergeTypes>();
  if (kind->definition->conversion_webhook() != nullptr) {
    kind->conversions = std::make_shared<Conversions>(kind->definition, parts_.caller);
  }
  for (const crd::Version& version : kind->definition->versions()) {
    kind->rules.push_back(std::make_unique<kinds::Rules>(custom_kind_rules(version)));
  }
  return kind;
}

resource::CustomServedRef CustomResources::served_of(const KindRef& kind) const {
  auto all = std::make_shared<resource::CustomServed>();
  all->name = kind->definition->name();
  const Gates& gates = parts_.settings.gates;
  const auto versions = kind->definition->versions();
  std::vector<resource::KindVersion> kind_versions;
  for (const crd::Version& version : versions) {
    kind_versions.push_back({version.resource, kind->merge_types.get()});
  }
  for (size_t i = 0; i < versions.size(); ++i) {
    const crd::Version& version = versions[i];
    if (!version.served) continue;
    resource::Served entry;
    entry.resource = version.resource;
    entry.stored = kind->definition->storage_version().resource;
    entry.rules = kind->rules[i].get();
    entry.object_rules = custom_rules(kind->definition, version, kind->conversions);
    entry.custom = true;
    entry.version = &version;
    entry.established = kind->definition->established();
    entry.terminating = kind->definition->terminating();
    entry.storage = kind->storage.get();
    entry.managers =
        std::make_shared<resource::Managers>(*version.resource, kind_versions, entry.object_rules, gates, true);
    entry.keeps_alive = kind;
    all->versions.push_back(std::move(entry));
  }
  return all;
}

void CustomResources::declare_services(Known& known, std::vector<std::string> served) {
  CustomServices& services = parts_.services;
  // Add before removing, so that versions that stay are never dropped in between.
  for (const std::string& version : served) services.add(known.group, version);
  for (const std::string& version : known.served) services.remove(known.group, version);
  known.served = std::move(served);
}

void CustomResources::serve(std::span<const Seen> seen) {
  std::vector<resource::CustomServedRef> changed;
  std::vector<std::shared_ptr<resource::Storage>> replaced;
  const std::lock_guard lock(mutex_);
  for (const Seen& one : seen) {
    const auto found = kinds_.find(one.name);
    if (found != kinds_.end() && found->second.revision >= one.revision) continue;
    const auto settling = settling_.find(one.name);
    // A state read before the deletion must not revive the definition.
    if (settling != settling_.end() && settling->second.deleted >= one.revision) continue;
    if (one.definition.is_null()) {
      if (settling != settling_.end()) settling->second.deleted = one.revision;
      if (found == kinds_.end()) continue;
      declare_services(found->second, {});
      names_[found->second.group].erase(one.name);
      if (names_[found->second.group].empty()) names_.erase(found->second.group);
      if (found->second.kind != nullptr) replaced.push_back(found->second.kind->storage);
      kinds_.erase(found);
      auto nothing = std::make_shared<resource::CustomServed>();
      nothing->name = one.name;
      changed.push_back(std::move(nothing));
      continue;
    }
    Known& known = kinds_[one.name];
    known.revision = one.revision;
    known.group = one.definition.text_at("spec", "group");
    std::vector<std::string> served;
    for (const Value& version : one.definition.items_at("spec", "versions")) {
      const Value* flag = version.find("served");
      if (flag != nullptr && flag->is_bool() && flag->as_bool()) served.emplace_back(version.text_at("name"));
    }
    if (served != known.served) declare_services(known, std::move(served));
    names_[known.group][one.name] = crd::taken_names(std::span(&one.definition, 1));
    if (resource::Registry::Snapshot::is_builtin_group(known.group)) {
      changed.push_back(announced_of(one.definition));
      continue;
    }
    if (!crd::has_condition(one.definition, "NamesAccepted", "True") &&
        !crd::has_condition(one.definition, "Established", "True") && known.kind == nullptr) {
      continue;
    }
    const KindRef before = std::exchange(known.kind, make_kind(one.definition, known.kind));
    if (before != nullptr && before->storage != known.kind->storage) replaced.push_back(before->storage);
    if (known.kind->definition->serves()) {
      changed.push_back(served_of(known.kind));
    } else {
      auto nothing = std::make_shared<resource::CustomServed>();
      nothing->name = one.name;
      changed.push_back(std::move(nothing));
    }
  }
  if (!changed.empty()) parts_.registry.update(std::move(changed));
  for (std::shared_ptr<resource::Storage>& storage : replaced) {
    tasks_.post([this, storage = std::move(storage)] { return end_watches(storage); });
  }
}

Task<void> CustomResources::end_watches(std::shared_ptr<resource::Storage> replaced) {
  // The last objects of a kind are deleted before its definition; let its watchers see that.
  (void)co_await replaced->cache().consistent(loop_);
  replaced->cache().end_watches();
}

bool CustomResources::ready() const {
  if (!listed()) return false;
  const std::lock_guard lock(mutex_);
  return std::all_of(kinds_.begin(), kinds_.end(), [](const auto& entry) {
    return entry.second.kind == nullptr || entry.second.kind->storage->cache().ready();
  });
}

void CustomResources::tick() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, known] : kinds_) {
    if (known.kind != nullptr) known.kind->storage->cache().tick();
  }
}

// --- Watching definitions --------------------------------------------------------------------------------------------

Task<std::optional<CustomResources::Seen>> CustomResources::read(Arena& arena, std::string name, Executor& executor) {
  resource::Storage& storage = *parts_.registry.snapshot()->storage_of(kGroup, kPlural);
  // The cache decodes the definition anyway; waiting for it is cheaper than decoding it again here.
  Result<cache::Snapshot> now = co_await storage.cache().consistent(executor);
  if (!now) co_return std::nullopt;
  const cache::EntryRef entry = now->find(name);
  if (!entry) co_return std::nullopt;
  const store::Blob body = entry->body();
  Result<Value> tree = storage.codec().tree(arena, arena.copy(*body));
  if (!tree || !is_whole(*tree)) co_return std::nullopt;
  co_return Seen{std::move(name), *tree, entry->revision()};
}

void CustomResources::start() {
  tasks_.post([this] { return follow(); });
}

Task<void> CustomResources::follow() {
  return follower_.run(
      parts_.registry.snapshot()->storage_of(kGroup, kPlural)->cache(),
      {.marks_initial_end = true, .see = [this](std::span<const cache::Delivery> events) { see(events); }});
}

void CustomResources::see(std::span<const cache::Delivery> events) {
  resource::Storage& storage = *parts_.registry.snapshot()->storage_of(kGroup, kPlural);
  Arena arena;
  std::vector<Seen> seen;
  std::vector<std::string> unsettled;
  bool listed = false;
  for (const cache::Delivery& event : events) {
    listed = listed || event.initial_events_end;
    if (!event.object()) continue;
    const std::string name(event.object()->name());
    if (event.type == cache::EventType::Deleted) {
      seen.push_back({name, Value::null(), event.revision});
      // Its names are free again; other definitions may have been waiting for them.
      const std::lock_guard lock(mutex_);
      const auto known = kinds_.find(name);
      if (known == kinds_.end()) continue;
      for (const auto& [other, waiting] : kinds_) {
        const bool waits = waiting.kind == nullptr || !waiting.kind->definition->established();
        if (waits && other != name && waiting.group == known->second.group) unsettled.push_back(other);
      }
      continue;
    }
    {
      // The running settle() serves it, or triggers another one when it ends if it has read an older state.
      const std::lock_guard lock(mutex_);
      if (const auto settling = settling_.find(name); settling != settling_.end()) {
        settling->second.announced = event.object()->revision();
        continue;
      }
    }
    const store::Blob body = event.object()->body();
    Result<Value> tree = storage.codec().tree(arena, arena.copy(*body));
    if (tree && !is_whole(*tree)) log::error("a CustomResourceDefinition is incomplete", {{"name", name}});
    if (!tree || !is_whole(*tree)) continue;
    // Written by another server, or left unfinished by a crash.
    if (is_terminating(*tree) || !crd::has_condition(*tree, "Established", "True") ||
        !crd::accept_names(arena, *tree, {}, parts_.clock.now()).same(*tree)) {
      unsettled.push_back(name);
    }
    seen.push_back({name, *tree, event.object()->revision()});
  }
  if (listed) add_missing(storage, seen);
  serve(seen);
  if (listed) {
    listed_.store(true, std::memory_order_release);
    parts_.services.start();
  }
  for (std::string& name : unsettled) look_at(std::move(name));
}

void CustomResources::add_missing(resource::Storage& storage, std::vector<Seen>& seen) const {
  Result<cache::Snapshot> now = storage.cache().snapshot();
  if (!now) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, known] : kinds_) {
    if (!now->find(name) && now->find_unreadable(name) == nullptr) {
      seen.push_back({name, Value::null(), now->revision()});
    }
  }
}

Task<void> CustomResources::close(Executor& executor) {
  co_await tasks_.close(executor, [this] { follower_.cancel(); });
  std::map<std::string, Known, std::less<>> kinds;
  {
    const std::lock_guard lock(mutex_);
    kinds.swap(kinds_);
  }
  for (const auto& [name, known] : kinds) {
    if (known.kind != nullptr) co_await known.kind->storage->cache().close(executor);
  }
}

// --- Lifecycle of a definition ---------------------------------------------------------------------------------------

// Sends only the status: schemas are large and do not change.
Task<bool> CustomResources::write_status(net::EventLoop& loop, Value definition) {
  Arena arena;
  MapBuilder metadata(arena), change(arena);
  metadata.add("resourceVersion", *definition.get("metadata", "resourceVersion"));
  if (const Value* finalizers = definition.get("metadata", "finalizers")) metadata.add("finalizers", *finalizers);
  change.add("metadata", metadata.build());
  change.add("status", *definition.find("status"));
  own_calls::Request patch = own_calls::Request::merge_patch(
      definition_target(definition.text_at("metadata", "name")).sub("status"), change.build(), kManager);
  const Result<own_calls::Answer> answer =
      co_await own_calls::send({parts_.own, loop}, std::move(patch).without_body());
  co_return answer && answer->status == 200;
}

crd::TakenNames CustomResources::taken_by_others(std::string_view group, std::string_view name) const {
  crd::TakenNames taken;
  const auto found = names_.find(group);
  if (found == names_.end()) return taken;
  for (const auto& [other, names] : found->second) {
    if (other == name) continue;
    taken.resources.insert(taken.resources.end(), names.resources.begin(), names.resources.end());
    taken.kinds.insert(taken.kinds.end(), names.kinds.begin(), names.kinds.end());
  }
  return taken;
}

Task<void> CustomResources::settle(std::string name, net::EventLoop& loop) {
  const struct Settling {
    CustomResources& self;
    const std::string& name;
    Settling(CustomResources& resources, const std::string& which) : self(resources), name(which) {
      const std::lock_guard lock(self.mutex_);
      ++self.settling_[name].count;
    }
    ~Settling() { self.end_settling(name); }
  } settling(*this, name);
  constexpr int kMostSteps = 12;  // Each writes one status; other writers may win a few times.
  for (int step = 0; step < kMostSteps && !tasks_.closing(); ++step) {
    Arena arena;
    const std::optional<Seen> seen = co_await read(arena, name, loop);
    if (!seen) co_return;
    const Value& definition = seen->definition;
    if (is_terminating(definition)) {
      serve(std::span(&*seen, 1));
      clean_ups_.post(name);
      co_return;
    }
    const UnixTime now = parts_.clock.now();
    Value next;
    {
      // Names are accepted for one definition at a time; the next one sees them as taken.
      const std::lock_guard lock(mutex_);
      const std::string group(definition.text_at("spec", "group"));
      next = crd::accept_names(arena, definition, taken_by_others(group, name), now);
      names_[group][name] = crd::taken_names(std::span(&next, 1));
    }
    if (next.same(definition)) {
      // Serve the resource before the definition is marked Established.
      serve(std::span(&*seen, 1));
      next = crd::establish(arena, definition, now);
      if (next.same(definition)) co_return;
    }
    co_await write_status(loop, next);
  }
}

void CustomResources::end_settling(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = settling_.find(name);
    if (--found->second.count > 0) return;
    const Revision announced = found->second.announced, deleted = found->second.deleted;
    settling_.erase(found);
    const auto known = kinds_.find(name);
    const Revision served = known == kinds_.end() ? deleted : std::max(deleted, known->second.revision);
    if (announced <= served) return;
  }
  look_at(name);
}

void CustomResources::look_at(std::string name) {
  tasks_.post([this, name = std::move(name)] { return settle(name, loop_); });
}

Task<bool> CustomResources::clean_up(std::string name) {
  Arena arena;
  Result<Value> definition = co_await read_terminating(arena, name);
  if (!definition) co_return false;
  if (definition->is_null()) co_return true;
  const Value in_progress = crd::with_condition(arena, *definition, "Terminating", "True", "InstanceDeletionInProgress",
                                                "CustomResource deletion is in progress", parts_.clock.now());
  if (!in_progress.same(*definition) && !co_await write_status(loop_, in_progress)) co_return false;
  if (!co_await delete_objects(name)) co_return false;

  // Read again for its resourceVersion: finalizers that others have added meanwhile are kept.
  definition = co_await read_terminating(arena, name);
  if (!definition) co_return false;
  if (definition->is_null()) co_return true;
  co_return co_await write_status(loop_, cleaned_up(arena, *definition, parts_.clock.now()));
}

// The definition while it is being deleted and has our finalizer; null if there is nothing to do for it.
Task<Result<Value>> CustomResources::read_terminating(Arena& arena, const std::string& name) {
  Result<own_calls::Answer> found =
      co_await own_calls::send({parts_.own, loop_}, own_calls::Request::get(definition_target(name)));
  if (!found) co_return found.take_error();
  if (found->not_found()) co_return Value::null();
  if (!found->succeeded()) co_return internal_error("the definition cannot be read");
  Result<Value> definition = codec::decode_json(arena, arena.copy(found->body));
  if (!definition) co_return definition;
  const auto finalizers = definition->items_at("metadata", "finalizers");
  const bool ours = is_terminating(*definition) && std::any_of(finalizers.begin(), finalizers.end(), is_own_finalizer);
  co_return ours ? *definition : Value::null();
}

// Deletes all objects, in every namespace; whether none are left.
Task<bool> CustomResources::delete_objects(const std::string& name) {
  KindRef kind;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = kinds_.find(name);
    if (entry != kinds_.end()) kind = entry->second.kind;
  }
  if (kind == nullptr || !kind->definition->serves()) co_return true;
  const own_calls::OwnCalls calls(parts_.own, loop_);
  const types::Resource& resource = *kind->definition->storage_version().resource;
  Result<cache::Snapshot> snapshot = co_await kind->storage->cache().consistent(loop_);
  if (!snapshot) co_return false;
  for (const cache::EntryRef& entry : snapshot->list({}).entries) {
    (void)co_await own_calls::send(
        calls, own_calls::Request::remove(own_calls::object(resource, entry->namespace_name(), entry->name())));
  }
  Result<cache::Snapshot> left = co_await kind->storage->cache().consistent(loop_);
  if (!left) co_return false;
  // Objects that cannot be decoded still exist and would be orphaned permanently.
  const cache::ListPage rest = left->list({.scope = "", .limit = 1});
  co_return rest.entries.empty() && rest.unreadable.empty();
}

}  // namespace holdfast::custom
