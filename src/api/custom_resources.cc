#include "api/custom_resources.h"

#include <algorithm>

#include "api/conversions.h"
#include "api/custom.h"
#include "api/managers.h"
#include "api/state.h"
#include "base/log.h"
#include "codec/codec.h"
#include "ownership/merge_type.h"

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

CustomResources::KindRef CustomResources::make_kind(const Value& written, Revision revision, const KindRef& before) {
  auto kind = std::make_shared<Kind>();
  kind->definition = crd::Definition::make(written);
  kind->revision = revision;
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
    kind->storage = std::make_shared<Storage>(
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

void CustomResources::add_served(const KindRef& kind, std::vector<Served>& served) const {
  if (!kind->definition->serves()) return;
  const Gates& gates = api_.state().options.gates;
  const auto versions = kind->definition->versions();
  std::vector<KindVersion> all;
  for (const crd::Version& version : versions) {
    all.push_back({version.resource, &kind->merge_types->of(version.schema->root())});
  }
  for (size_t i = 0; i < versions.size(); ++i) {
    const crd::Version& version = versions[i];
    if (!version.served) continue;
    Served entry;
    entry.resource = version.resource;
    entry.stored = kind->definition->storage_version().resource;
    entry.rules = kind->rules[i].get();
    entry.object_rules = custom_rules(kind->definition, version, kind->conversions);
    entry.custom = true;
    entry.version = &version;
    entry.established = kind->definition->established();
    entry.storage = kind->storage.get();
    entry.managers = std::make_shared<Managers>(*version.resource, all, entry.object_rules, gates, true);
    entry.keeps_alive = kind;
    served.push_back(std::move(entry));
  }
}

void CustomResources::serve(const std::vector<std::pair<Value, Revision>>& definitions) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, KindRef, std::less<>> next;
  for (const auto& [definition, revision] : definitions) {
    const std::string name(definition.text_at("metadata", "name"));
    const auto found = kinds_.find(name);
    const KindRef before = found == kinds_.end() ? nullptr : found->second;
    if (before != nullptr && before->revision >= revision) {
      next.emplace(name, before);
    } else {
      next.emplace(name, make_kind(definition, revision, before));
    }
  }
  kinds_ = std::move(next);
  std::vector<Served> served = api_.state().builtin_served;
  for (const auto& [name, kind] : kinds_) add_served(kind, served);
  api_.registry().replace(std::move(served));
}

bool CustomResources::ready() const {
  if (!listed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  return std::all_of(kinds_.begin(), kinds_.end(),
                     [](const auto& entry) { return entry.second->storage->cache().ready(); });
}

void CustomResources::tick() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, kind] : kinds_) kind->storage->cache().tick();
}

// --- Following -------------------------------------------------------------------------------------------------------

Task<Result<std::vector<std::pair<Value, Revision>>>> CustomResources::read_all(Arena& arena, Executor& executor) {
  Storage& storage = *api_.state().storage_of(kGroup, kPlural);
  Result<cache::Snapshot> snapshot = co_await storage.cache().consistent(executor);
  if (!snapshot) co_return snapshot.take_error();
  std::vector<std::pair<Value, Revision>> all;
  for (const cache::EntryRef& entry : snapshot->list({}).entries) {
    const store::Blob body = entry->body();
    Result<Value> tree = storage.codec().tree(arena, arena.copy(*body));
    if (!tree) co_return tree.take_error();
    all.emplace_back(*tree, entry->revision());
  }
  co_return all;
}

void CustomResources::start(net::EventLoop& loop) {
  loop.post([this, &loop] {
    running_.fetch_add(1);
    spawn(follow(loop), [this](std::exception_ptr) { running_.fetch_sub(1); });
  });
}

Task<void> CustomResources::follow(net::EventLoop& loop) {
  cache::Cache& definitions = api_.state().storage_of(kGroup, kPlural)->cache();
  constexpr std::chrono::milliseconds kFirstDelay{1}, kMostDelay{100};
  std::chrono::milliseconds delay = kFirstDelay;  // Short at first: starting waits for this.
  while (!closing_.load(std::memory_order_acquire)) {
    cache::WatchRequest request;
    request.start = cache::WatchRequest::Start::Initial;
    Result<cache::Watcher> watcher = co_await definitions.watch(request, loop);
    if (!watcher) {
      co_await loop.sleep_for(delay);
      delay = std::min(delay * 2, kMostDelay);
      continue;
    }
    delay = kFirstDelay;
    watcher_ = std::make_shared<cache::Watcher>(std::move(*watcher));
    const std::shared_ptr<cache::Watcher> mine = watcher_;
    bool first = true;
    while (!closing_.load(std::memory_order_acquire)) {
      if (first || !mine->pending()) {
        Arena arena;
        auto all = co_await read_all(arena, loop);
        if (all) {
          serve(*all);
          listed_.store(true, std::memory_order_release);
          for (const auto& [definition, revision] : *all) {
            // What another server wrote, or a crash left half done.
            const std::string name(definition.text_at("metadata", "name"));
            const bool unsettled = is_terminating(definition) || !crd::has_condition(definition, "Established", "True");
            if (!unsettled) continue;
            running_.fetch_add(1);
            spawn(settle(name, loop), [this](std::exception_ptr) { running_.fetch_sub(1); });
          }
        }
        first = false;
      }
      const std::vector<cache::Delivery> events = co_await mine->next(loop);
      if (events.empty()) break;
    }
  }
}

Task<void> CustomResources::close(Executor& executor) {
  closing_.store(true, std::memory_order_release);
  if (watcher_ != nullptr) watcher_->cancel();
  std::map<std::string, KindRef, std::less<>> kinds;
  {
    const std::lock_guard lock(mutex_);
    kinds.swap(kinds_);
  }
  for (const auto& [name, kind] : kinds) co_await kind->storage->cache().close(executor);
}

// --- The life of a definition ----------------------------------------------------------------------------------------

Task<Result<net::ClientResponse>> CustomResources::call(net::EventLoop& loop, net::ClientRequest request) {
  static const auto user = std::make_shared<const auth::UserInfo>(auth::UserInfo{
      .name = std::string(kServerUser), .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}});
  const net::Handler handler = [this](net::Request& asked, net::Response& answer) {
    return api_.handle(asked, answer, user);
  };
  request.headers.push_back({"accept", "application/json"});
  co_return co_await net::call_handler(loop, handler, std::move(request));
}

Task<bool> CustomResources::write_status(net::EventLoop& loop, Value definition) {
  net::ClientRequest put;
  put.method = "PUT";
  put.target = std::string(kPath) + std::string(definition.text_at("metadata", "name")) +
               "/status?fieldManager=" + std::string(kManager);
  put.headers = {{"content-type", "application/json"}};
  put.body = codec::encode_json(definition);
  const Result<net::ClientResponse> answer = co_await call(loop, std::move(put));
  co_return answer && answer->status == 200;
}

Task<void> CustomResources::settle(std::string name, net::EventLoop& loop) {
  constexpr int kMostSteps = 12;  // Each writes one status; somebody else may be faster a few times.
  for (int step = 0; step < kMostSteps && !closing_.load(std::memory_order_acquire); ++step) {
    Arena arena;
    auto all = co_await read_all(arena, loop);
    if (!all) co_return;
    const auto mine = std::find_if(all->begin(), all->end(), [&name](const auto& entry) {
      return entry.first.text_at("metadata", "name") == name;
    });
    if (mine == all->end()) {
      serve(*all);
      co_return;
    }
    const Value definition = mine->first;
    if (is_terminating(definition)) {
      serve(*all);
      co_await clean_up(loop, name);
      co_return;
    }
    std::vector<Value> others;
    for (const auto& [other, revision] : *all) {
      if (other.text_at("metadata", "name") != name &&
          other.text_at("spec", "group") == definition.text_at("spec", "group")) {
        others.push_back(other);
      }
    }
    const UnixTime now = api_.state().deps.clock->now();
    Value next = crd::accept_names(arena, definition, crd::taken_names(others), now);
    if (next.same(definition)) {
      // Served before anybody can read that it is.
      serve(*all);
      next = crd::establish(arena, definition, now);
      if (next.same(definition)) co_return;
    }
    co_await write_status(loop, next);
  }
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
    if (entry != kinds_.end()) kind = entry->second;
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
  auto all = co_await read_all(arena, loop);
  if (all) serve(*all);
}

}  // namespace holdfast::api
