#include "api/custom_resources.h"

#include <algorithm>

#include "api/conversions.h"
#include "api/custom.h"
#include "api/state.h"
#include "base/log.h"
#include "codec/codec.h"
#include "ownership/merge_type.h"
#include "resource/managers.h"

namespace holdfast::api {
namespace {

constexpr std::string_view kGroup = "apiextensions.k8s.io";
constexpr std::string_view kPlural = "customresourcedefinitions";
constexpr std::string_view kPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
constexpr std::string_view kManager = "kube-apiserver";

bool is_terminating(const Value& definition) { return !definition.text_at("metadata", "deletionTimestamp").empty(); }

}  // namespace

CustomResources::~CustomResources() = default;

// --- Serving ---------------------------------------------------------------------------------------------------------

CustomResources::KindRef CustomResources::make_kind(const Value& written, const KindRef& before) {
  auto kind = std::make_shared<Kind>();
  kind->definition = crd::Definition::make(written);
  // Conditions come and go without a change of what objects look like: the cache stays.
  if (before != nullptr && before->definition->uid() == kind->definition->uid() &&
      before->definition->generation() == kind->definition->generation()) {
    kind->storage = before->storage;
  } else {
    Api::State& state = api_.state();
    const types::Resource& stored = *kind->definition->storage_version().resource;
    cache::Options options;
    options.prefix = state.options.registry_prefix + "/" + std::string(stored.storage_prefix) + "/";
    options.namespaced = stored.namespaced;
    options.resource = to_string(GroupResource{stored.group, stored.plural});
    kind->storage = std::make_shared<resource::Storage>(
        *state.deps.store, make_custom_codec(kind->definition), nullptr, *state.deps.pool,
        cache::Executors{&state.deps.loops->at(0), state.deps.background}, std::move(options), *state.deps.clock);
    kind->storage->cache().start();
  }
  kind->merge_types = std::make_shared<ownership::MergeTypes>();
  if (kind->definition->conversion_webhook() != nullptr) {
    kind->conversions = std::make_shared<Conversions>(kind->definition, *api_.state().caller);
  }
  for (const crd::Version& version : kind->definition->versions()) {
    kind->rules.push_back(std::make_unique<kinds::Rules>(custom_kind_rules(version)));
  }
  return kind;
}

resource::CustomServedRef CustomResources::served_of(const KindRef& kind) const {
  auto all = std::make_shared<resource::CustomServed>();
  all->name = kind->definition->name();
  const Gates& gates = api_.state().options.gates;
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
    entry.storage = kind->storage.get();
    entry.managers =
        std::make_shared<resource::Managers>(*version.resource, kind_versions, entry.object_rules, gates, true);
    entry.keeps_alive = kind;
    all->versions.push_back(std::move(entry));
  }
  return all;
}

void CustomResources::declare_services(Known& known, std::vector<std::string> served) {
  CustomServices& services = *api_.state().custom_services;
  // New ones first: a version that stays is at no moment unwanted.
  for (const std::string& version : served) services.add(known.group, version);
  for (const std::string& version : known.served) services.remove(known.group, version);
  known.served = std::move(served);
}

void CustomResources::serve(std::span<const Seen> seen) {
  std::vector<resource::CustomServedRef> changed;
  const std::lock_guard lock(mutex_);
  for (const Seen& one : seen) {
    const auto found = kinds_.find(one.name);
    if (found != kinds_.end() && found->second.revision >= one.revision) continue;
    if (one.definition.is_null()) {
      if (found == kinds_.end()) continue;
      declare_services(found->second, {});
      names_[found->second.group].erase(one.name);
      if (names_[found->second.group].empty()) names_.erase(found->second.group);
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
    if (!crd::has_condition(one.definition, "NamesAccepted", "True") &&
        !crd::has_condition(one.definition, "Established", "True") && known.kind == nullptr) {
      continue;
    }
    known.kind = make_kind(one.definition, known.kind);
    if (known.kind->definition->serves()) {
      changed.push_back(served_of(known.kind));
    } else {
      auto nothing = std::make_shared<resource::CustomServed>();
      nothing->name = one.name;
      changed.push_back(std::move(nothing));
    }
  }
  if (!changed.empty()) api_.registry().update(std::move(changed));
}

bool CustomResources::ready() const {
  if (!listed_.load(std::memory_order_acquire)) return false;
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

// --- Following -------------------------------------------------------------------------------------------------------

Task<std::optional<CustomResources::Seen>> CustomResources::read(Arena& arena, std::string name, Executor& executor) {
  resource::Storage& storage = *api_.state().storage_of(kGroup, kPlural);
  // The cache takes apart what was just written anyway: waiting for it costs less than doing it here, too.
  Result<cache::Snapshot> now = co_await storage.cache().consistent(executor);
  if (!now) co_return std::nullopt;
  const cache::EntryRef entry = now->find(name);
  if (!entry) co_return std::nullopt;
  const store::Blob body = entry->body();
  Result<Value> tree = storage.codec().tree(arena, arena.copy(*body));
  if (!tree) co_return std::nullopt;
  co_return Seen{std::move(name), *tree, entry->revision()};
}

void CustomResources::start(net::EventLoop& loop) {
  loop.post([this, &loop] {
    running_.fetch_add(1);
    spawn(follow(loop), [this](std::exception_ptr) { running_.fetch_sub(1); });
  });
}

Task<void> CustomResources::follow(net::EventLoop& loop) {
  resource::Storage& storage = *api_.state().storage_of(kGroup, kPlural);
  constexpr std::chrono::milliseconds kFirstDelay{1}, kMostDelay{100};
  std::chrono::milliseconds delay = kFirstDelay;  // Short at first: starting waits for this.
  while (!closing_.load(std::memory_order_acquire)) {
    cache::WatchRequest request;
    request.start = cache::WatchRequest::Start::Initial;
    request.bookmarks = true;
    request.initial_events_bookmark = true;
    Result<cache::Watcher> watcher = co_await storage.cache().watch(request, loop);
    if (!watcher) {
      co_await loop.sleep_for(delay);
      delay = std::min(delay * 2, kMostDelay);
      continue;
    }
    delay = kFirstDelay;
    watcher_ = std::make_shared<cache::Watcher>(std::move(*watcher));
    const std::shared_ptr<cache::Watcher> mine = watcher_;
    std::vector<cache::Delivery> events;
    while (!closing_.load(std::memory_order_acquire)) {
      co_await mine->next(loop, events);
      if (events.empty()) break;
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
          // Its names are free: others may have waited for them.
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
          // Who wrote it takes it through its life, and serves it then.
          const std::lock_guard lock(mutex_);
          if (settling_.contains(name)) continue;
        }
        const store::Blob body = event.object()->body();
        Result<Value> tree = storage.codec().tree(arena, arena.copy(*body));
        if (!tree) continue;
        // What another server wrote, or a crash left half done.
        if (is_terminating(*tree) || !crd::has_condition(*tree, "Established", "True")) unsettled.push_back(name);
        seen.push_back({name, *tree, event.object()->revision()});
      }
      serve(seen);
      if (listed) {
        listed_.store(true, std::memory_order_release);
        api_.state().custom_services->start();
      }
      for (std::string& name : unsettled) {
        running_.fetch_add(1);
        spawn(settle(std::move(name), loop), [this](std::exception_ptr) { running_.fetch_sub(1); });
      }
    }
  }
}

Task<void> CustomResources::close(Executor& executor) {
  closing_.store(true, std::memory_order_release);
  net::EventLoop& loop = api_.state().deps.loops->at(0);
  if (!loop.in_thread()) co_await resume_on(loop);
  if (watcher_ != nullptr) watcher_->cancel();
  while (running_.load() > 0) co_await loop.sleep_for(std::chrono::milliseconds(1));
  std::map<std::string, Known, std::less<>> kinds;
  {
    const std::lock_guard lock(mutex_);
    kinds.swap(kinds_);
  }
  for (const auto& [name, known] : kinds) {
    if (known.kind != nullptr) co_await known.kind->storage->cache().close(executor);
  }
}

// --- The life of a definition ----------------------------------------------------------------------------------------

Task<Result<net::ClientResponse>> CustomResources::call(net::EventLoop& loop, net::ClientRequest request) {
  static const auto user = std::make_shared<const auth::UserInfo>(auth::UserInfo{
      .name = std::string(kServerUser), .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}});
  const net::Handler handler = [this](net::Request& asked, net::Response& answer) {
    return api_.handle_own(asked, answer, user);
  };
  // Built-in kinds lie in the cache as Protobuf: where nobody looks at the answer, that form of it costs least.
  const bool unread = request.method == "PATCH" && request.target.starts_with(kPath);
  request.headers.push_back({"accept", unread ? "application/vnd.kubernetes.protobuf" : "application/json"});
  co_return co_await net::call_handler(loop, handler, std::move(request));
}

// The status alone is sent: a schema is long, and says nothing new.
Task<bool> CustomResources::write_status(net::EventLoop& loop, Value definition) {
  Arena arena;
  MapBuilder metadata(arena), change(arena);
  metadata.add("resourceVersion", *definition.get("metadata", "resourceVersion"));
  change.add("metadata", metadata.build());
  change.add("status", *definition.find("status"));
  net::ClientRequest patch;
  patch.method = "PATCH";
  patch.target = std::string(kPath) + std::string(definition.text_at("metadata", "name")) +
                 "/status?fieldManager=" + std::string(kManager);
  patch.headers = {{"content-type", "application/merge-patch+json"}};
  patch.body = codec::encode_json(change.build());
  const Result<net::ClientResponse> answer = co_await call(loop, std::move(patch));
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
  struct Settling {
    CustomResources& self;
    const std::string& name;
    Settling(CustomResources& resources, const std::string& which) : self(resources), name(which) {
      const std::lock_guard lock(self.mutex_);
      self.settling_.insert(name);
    }
    ~Settling() {
      const std::lock_guard lock(self.mutex_);
      self.settling_.erase(self.settling_.find(name));
    }
  };
  bool terminating = false;
  {
    const Settling settling(*this, name);
    constexpr int kMostSteps = 12;  // Each writes one status; somebody else may be faster a few times.
    for (int step = 0; step < kMostSteps && !closing_.load(std::memory_order_acquire); ++step) {
      Arena arena;
      const std::optional<Seen> seen = co_await read(arena, name, loop);
      if (!seen) co_return;
      const Value& definition = seen->definition;
      terminating = is_terminating(definition);
      if (terminating) {
        serve(std::span(&*seen, 1));
        break;
      }
      const UnixTime now = api_.state().deps.clock->now();
      Value next;
      {
        // Names are given to one definition at a time: whoever comes next sees them as taken.
        const std::lock_guard lock(mutex_);
        const std::string group(definition.text_at("spec", "group"));
        next = crd::accept_names(arena, definition, taken_by_others(group, name), now);
        names_[group][name] = crd::taken_names(std::span(&next, 1));
      }
      if (next.same(definition)) {
        // Served before anybody can read that it is.
        serve(std::span(&*seen, 1));
        next = crd::establish(arena, definition, now);
        if (next.same(definition)) co_return;
      }
      co_await write_status(loop, next);
    }
  }
  if (terminating) co_await clean_up(loop, std::move(name));
}

Task<void> CustomResources::clean_up(net::EventLoop& loop, std::string name) {
  net::ClientRequest get;
  get.target = std::string(kPath) + name;
  Result<net::ClientResponse> found = co_await call(loop, std::move(get));
  if (!found || found->status != 200) co_return;
  Arena arena;
  Result<Value> definition = codec::decode_json(arena, found->body);
  if (!definition || !is_terminating(*definition)) co_return;
  const auto finalizers = definition->items_at("metadata", "finalizers");
  const bool ours = std::any_of(finalizers.begin(), finalizers.end(), [](const Value& item) {
    return item.is_string() && item.as_string() == crd::kCleanupFinalizer;
  });
  if (!ours) co_return;
  const UnixTime now = api_.state().deps.clock->now();
  const Value in_progress = crd::with_condition(arena, *definition, "Terminating", "True", "InstanceDeletionInProgress",
                                                "CustomResource deletion is in progress", now);
  if (!in_progress.same(*definition) && !co_await write_status(loop, in_progress)) co_return;

  // Every object, in every namespace. Those with finalizers of their own stay until these are gone; the watch of their
  // disappearance is a later look at the definition.
  KindRef kind;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = kinds_.find(name);
    if (entry != kinds_.end()) kind = entry->second.kind;
  }
  bool empty = true;
  if (kind != nullptr && kind->definition->serves()) {
    const types::Resource& resource = *kind->definition->storage_version().resource;
    const std::string root = "/apis/" + std::string(resource.group) + "/" + std::string(resource.version);
    Result<cache::Snapshot> snapshot = co_await kind->storage->cache().consistent(loop);
    if (!snapshot) co_return;
    for (const cache::EntryRef& entry : snapshot->list({}).entries) {
      net::ClientRequest remove;
      remove.method = "DELETE";
      remove.target = root + (resource.namespaced ? "/namespaces/" + std::string(entry->namespace_name()) : "") + "/" +
                      std::string(resource.plural) + "/" + std::string(entry->name());
      (void)co_await call(loop, std::move(remove));
    }
    Result<cache::Snapshot> left = co_await kind->storage->cache().consistent(loop);
    empty = left && left->count() == 0;
  }
  if (!empty) {
    co_await loop.sleep_for(std::chrono::milliseconds(500));
    if (!closing_.load(std::memory_order_acquire)) co_await clean_up(loop, std::move(name));
    co_return;
  }
  net::ClientRequest patch;
  patch.method = "PATCH";
  patch.target = std::string(kPath) + name + "?fieldManager=" + std::string(kManager);
  patch.headers = {{"content-type", "application/merge-patch+json"}};
  std::string kept;
  for (const Value& item : finalizers) {
    if (item.is_string() && item.as_string() != crd::kCleanupFinalizer) {
      kept += (kept.empty() ? "" : ",") + codec::encode_json_string(item.as_string());
    }
  }
  patch.body = "{\"metadata\":{\"finalizers\":" + (kept.empty() ? std::string("null") : "[" + kept + "]") + "}}";
  (void)co_await call(loop, std::move(patch));
}

}  // namespace holdfast::api
