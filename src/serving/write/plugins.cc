#include "write/plugins.h"

#include "base/api_error.h"
#include "call/call.h"
#include "own_calls/requests.h"

namespace holdfast::write {
namespace {

// A decoded namespace and its memory, identified by uid and revision.
struct ReadNamespace {
  std::string uid;
  Revision revision;
  Arena arena;
  std::optional<Value> tree;
};

// Looks up other objects in the caches.
class Objects final : public admission::Lookup {
 public:
  Objects(call::Call& call, const auth::Authorizer& authorizer, const KnownObjects& known)
      : call_(call), authorizer_(authorizer), known_(known) {}

  std::optional<Value> get(Arena& arena, std::string_view group, std::string_view plural, std::string_view ns,
                           std::string_view name) const override {
    resource::Storage* storage = call_.registry->storage_of(group, plural);
    if (storage == nullptr) return std::nullopt;
    if (group.empty() && plural == "namespaces" && known_.ns && known_.ns->name() == name) {
      return known_namespace(*storage);
    }
    if (group.empty() && plural == "serviceaccounts" && known_.service_account &&
        known_.service_account->key() == storage->short_key(ns, name)) {
      return tree(arena, *storage, *known_.service_account);
    }
    Result<cache::Snapshot> snapshot = storage->cache().snapshot();
    if (!snapshot) return std::nullopt;
    const std::string key = storage->short_key(ns, name);
    const cache::EntryRef entry = snapshot->find(key);
    if (const cache::Unreadable* unreadable = snapshot->find_unreadable(key)) note_problem(*storage, *unreadable);
    if (!entry) return std::nullopt;
    return tree(arena, *storage, *entry);
  }

  std::vector<Value> list(Arena& arena, std::string_view group, std::string_view plural,
                          std::string_view ns) const override {
    std::vector<Value> objects;
    resource::Storage* storage = call_.registry->storage_of(group, plural);
    if (storage == nullptr) return objects;
    Result<cache::Snapshot> snapshot = storage->cache().snapshot();
    if (!snapshot) return objects;
    cache::ListRequest request;
    request.scope = storage->scope(ns);
    const cache::ListPage page = snapshot->list(request);
    if (!page.unreadable.empty()) note_problem(*storage, page.unreadable.front());
    for (const cache::EntryRef& entry : page.entries) {
      if (std::optional<Value> object = tree(arena, *storage, *entry)) objects.push_back(*object);
    }
    return objects;
  }

  std::optional<std::string> denied(const admission::Permission& wanted) const override {
    auth::Decision decision = authorizer_.authorize({call_.user.get(),
                                                     wanted.verb,
                                                     {.group = wanted.group,
                                                      .resource = wanted.resource,
                                                      .subresource = wanted.subresource,
                                                      .ns = wanted.ns,
                                                      .name = wanted.name}});
    if (decision.allowed()) return std::nullopt;
    return std::move(decision.reason);
  }

  std::vector<admission::KindResource> resources_of(std::string_view group, std::string_view version,
                                                    std::string_view kind) const override {
    const resource::Served* served = call_.registry->find_kind(group, version, kind);
    if (served == nullptr) return {};
    return {{std::string(served->resource->plural), served->resource->namespaced}};
  }

  // Set if an object that a plugin looked up cannot be decoded: the plugin cannot decide without it.
  const std::optional<Error>& problem() const { return problem_; }

 private:
  void note_problem(const resource::Storage& storage, const cache::Unreadable& unreadable) const {
    if (!problem_) problem_ = corrupt_object(storage.key(unreadable.key), unreadable.why);
  }
  // Every write looks up its namespace, some several times, and it is usually the same as last time.
  std::optional<Value> known_namespace(const resource::Storage& storage) const {
    static thread_local std::shared_ptr<ReadNamespace> last;
    const cache::Entry& entry = *known_.ns;
    if (last == nullptr || last->revision != entry.revision() || last->uid != entry.uid()) {
      auto read = std::make_shared<ReadNamespace>();
      read->uid = entry.uid();
      read->revision = entry.revision();
      read->tree = tree(read->arena, storage, entry);
      last = std::move(read);
    }
    call_.held.push_back(last);
    return last->tree;
  }
  // Strings of the tree point into the body, which is copied into the arena.
  static std::optional<Value> tree(Arena& arena, const resource::Storage& storage, const cache::Entry& entry) {
    const store::Blob body = entry.body();
    Result<Value> object = storage.codec().tree(arena, arena.copy(*body));
    if (!object) return std::nullopt;
    return *object;
  }

  call::Call& call_;
  const auth::Authorizer& authorizer_;
  const KnownObjects& known_;
  mutable std::optional<Error> problem_;
};

constexpr std::string_view kDefaultAccount = "default";
constexpr std::chrono::milliseconds kAccountLookInterval{150};

// From the cache, or else from the store.
Task<Result<cache::EntryRef>> find_entry(call::Call& call, resource::Storage& storage, std::string short_key) {
  Result<cache::Snapshot> snapshot = co_await storage.with_own_writes(call.executor());
  cache::EntryRef entry;
  if (snapshot) entry = snapshot->find(short_key);
  if (entry) co_return entry;
  Result<cache::Cache::Latest> latest = co_await storage.cache().latest(std::move(short_key), call.executor());
  if (!latest) co_return latest.take_error();
  co_return std::move(latest->entry);
}

// The name of the object for the plugins: a TokenRequest is about the account in the path, and deletecollection about
// one object after the other.
std::string_view name_of(const call::Call& call, const Value& object, const Value* old) {
  if (!call.info.name.empty()) return call.info.name;
  if (object.is_map()) return object.text_at("metadata", "name");
  return old == nullptr ? std::string_view() : old->text_at("metadata", "name");
}

// Runs the mutating or validating half of the chain.
template <class Run>
Result<Unit> run_plugins(call::Call& call, const admission::Chain& chain, const auth::Authorizer& authorizer,
                         admission::Operation operation, std::string_view name, const Value* old, bool dry_run,
                         const KnownObjects& known, Run run) {
  const types::Resource& resource = *call.served->resource;
  if (!chain.handles(resource, call.info.subresource, operation)) return Unit{};
  const Objects objects(call, authorizer, known);
  std::vector<std::string> warnings;
  admission::Attributes attributes{.operation = operation,
                                   .resource = resource,
                                   .subresource = call.info.subresource,
                                   .ns = call.ns(),
                                   .name = name,
                                   .user = call.user == nullptr ? std::string_view() : call.user->name,
                                   .node = call.user == nullptr ? std::nullopt : auth::node_of(*call.user),
                                   .old = old,
                                   .dry_run = dry_run,
                                   .arena = call.arena,
                                   .lookup = objects,
                                   .warnings = warnings};
  Result<Unit> result = run(chain, attributes);
  if (result && objects.problem()) result = *objects.problem();
  for (const std::string& warning : warnings) call.warnings.add(warning);
  for (auto& [key, value] : attributes.annotations) record_annotation(call, std::move(key), std::move(value));
  return result;
}

}  // namespace

Task<Result<KnownObjects>> find_known_objects(call::Call& call, const admission::Chain& plugins,
                                              AdmissionOperation operation, const Value& object) {
  KnownObjects known;
  if (call.ns().empty()) co_return known;
  Result<cache::EntryRef> ns =
      co_await find_entry(call, *call.registry->storage_of("", "namespaces"), std::string(call.ns()));
  if (!ns) co_return ns.take_error();
  known.ns = std::move(*ns);

  const types::Resource& resource = *call.served->resource;
  const bool is_pod = resource.group.empty() && resource.plural == "pods" && call.info.subresource.empty();
  if (!is_pod || operation != AdmissionOperation::Create || !plugins.has("ServiceAccount")) co_return known;
  std::string_view name = object.text_at("spec", "serviceAccountName");
  if (name.empty()) name = kDefaultAccount;
  // About as long as upstream waits: ten attempts, 100 to 200 ms apart.
  const int looks = name == kDefaultAccount && known.ns ? 10 : 1;
  resource::Storage& accounts = *call.registry->storage_of("", "serviceaccounts");
  for (int i = 0; i < looks; ++i) {
    if (i > 0) {
      co_await return_to_loop(call);
      Result<Unit> slept = co_await call.response.sleep_for(kAccountLookInterval);
      if (!slept) co_return slept.take_error();
    }
    Result<cache::EntryRef> account = co_await find_entry(call, accounts, accounts.short_key(call.ns(), name));
    if (!account) co_return account.take_error();
    known.service_account = std::move(*account);
    if (known.service_account) break;
  }
  co_return known;
}

Task<Result<Unit>> provide_namespace(call::Call& call, const admission::Chain& plugins, const own_calls::Handler& own,
                                     AdmissionOperation operation, const Value& object, bool dry_run,
                                     KnownObjects& known) {
  if (known.ns || call.ns().empty() || dry_run || operation != AdmissionOperation::Create ||
      !plugins.has("NamespaceAutoProvision")) {
    co_return Unit{};
  }
  resource::Storage& namespaces = *call.registry->storage_of("", "namespaces");
  const std::string name(call.ns());
  Arena arena;
  MapBuilder metadata(arena), space(arena);
  metadata.add("name", Value::string(name));
  space.add("apiVersion", Value::string("v1"));
  space.add("kind", Value::string("Namespace"));
  space.add("metadata", metadata.build());
  co_await return_to_loop(call);
  const Result<own_calls::Answer> answer = co_await own_calls::send(
      {own, call.request.loop()},
      own_calls::Request::create(own_calls::collection(*types::find_resource("", "v1", "namespaces")), space.build(),
                                 "kube-apiserver"));
  if (!answer || (!answer->succeeded() && answer->status != 409)) {
    std::string why = answer ? std::string() : answer.error().message;
    if (answer) {
      Result<Value> status = answer->object(arena);
      why = status ? std::string(status->text_at("message")) : std::string(text_of(answer));
    }
    std::string_view shown = call.info.subresource.empty() ? object.text_at("metadata", "name") : call.info.name;
    if (shown.empty()) shown = object.text_at("metadata", "generateName");
    co_return forbidden(call.group_resource(), shown.empty() ? "Unknown" : shown, why);
  }
  Result<cache::EntryRef> created = co_await find_entry(call, namespaces, name);
  if (!created) co_return created.take_error();
  known.ns = std::move(*created);
  co_return Unit{};
}

Result<Unit> admit_by_plugins(call::Call& call, const admission::Chain& plugins, const auth::Authorizer& authorizer,
                              admission::Operation operation, Draft::Node object, const Value* old, bool dry_run,
                              const KnownObjects& known) {
  const std::string name(name_of(call, object.value(), old));
  return run_plugins(call, plugins, authorizer, operation, name, old, dry_run, known,
                     [&](const admission::Chain& chain, admission::Attributes& attributes) {
                       return chain.admit(attributes, object);
                     });
}

Result<Unit> validate_by_plugins(call::Call& call, const admission::Chain& plugins, const auth::Authorizer& authorizer,
                                 admission::Operation operation, const Value& object, const Value* old, bool dry_run,
                                 const KnownObjects& known) {
  const std::string name(name_of(call, object, old));
  return run_plugins(call, plugins, authorizer, operation, name, old, dry_run, known,
                     [&](const admission::Chain& chain, admission::Attributes& attributes) {
                       return chain.validate(attributes, object);
                     });
}

}  // namespace holdfast::write
