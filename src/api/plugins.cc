#include "api/plugins.h"

#include "api/state.h"

namespace holdfast::api {
namespace {

// Other objects as the caches have them.
class Objects final : public admission::Lookup {
 public:
  Objects(Call& call, const KnownNamespace& ns) : call_(call), ns_(ns) {}

  std::optional<Value> get(Arena& arena, std::string_view group, std::string_view plural, std::string_view ns,
                           std::string_view name) const override {
    Storage* storage = call_.api.storage_of(group, plural);
    if (storage == nullptr) return std::nullopt;
    if (group.empty() && plural == "namespaces" && ns_.entry && ns_.entry->name() == name) {
      return tree(arena, *storage, *ns_.entry);
    }
    Result<cache::Snapshot> snapshot = storage->cache().snapshot();
    if (!snapshot) return std::nullopt;
    const cache::EntryRef entry = snapshot->find(storage->short_key(ns, name));
    if (!entry) return std::nullopt;
    return tree(arena, *storage, *entry);
  }

  std::vector<Value> list(Arena& arena, std::string_view group, std::string_view plural,
                          std::string_view ns) const override {
    std::vector<Value> objects;
    Storage* storage = call_.api.storage_of(group, plural);
    if (storage == nullptr) return objects;
    Result<cache::Snapshot> snapshot = storage->cache().snapshot();
    if (!snapshot) return objects;
    cache::ListRequest request;
    request.scope = storage->scope(ns);
    for (const cache::EntryRef& entry : snapshot->list(request).entries) {
      if (std::optional<Value> object = tree(arena, *storage, *entry)) objects.push_back(*object);
    }
    return objects;
  }

  bool authorized(std::string_view verb, std::string_view group, std::string_view resource,
                  std::string_view name) const override {
    auth::Attributes attributes;
    attributes.user = call_.user.get();
    attributes.verb = verb;
    attributes.is_resource = true;
    attributes.group = group;
    attributes.version = "*";
    attributes.resource = resource;
    attributes.name = name;
    return call_.api.deps.authorizer->authorize(attributes).allowed();
  }

 private:
  // Texts of the tree point into the body, which is copied into the arena.
  static std::optional<Value> tree(Arena& arena, const Storage& storage, const cache::Entry& entry) {
    const store::Blob body = entry.body();
    Result<Value> object = storage.codec().tree(arena, arena.copy(*body));
    if (!object) return std::nullopt;
    return *object;
  }

  Call& call_;
  const KnownNamespace& ns_;
};

// Runs one side of the chain.
template <class Run>
Result<Unit> run_plugins(Call& call, admission::Operation operation, std::string_view name, const Value* old,
                         bool dry_run, const KnownNamespace& ns, Run run) {
  const admission::Chain& chain = *call.api.plugins;
  const types::Resource& resource = *call.served->resource;
  if (!chain.handles(resource, call.info.subresource, operation)) return Unit{};
  const Objects objects(call, ns);
  std::vector<std::string> warnings;
  admission::Attributes attributes{.operation = operation,
                                   .resource = resource,
                                   .subresource = call.info.subresource,
                                   .ns = call.ns(),
                                   .name = name,
                                   .old = old,
                                   .dry_run = dry_run,
                                   .arena = call.arena,
                                   .lookup = objects,
                                   .warnings = warnings};
  Result<Unit> result = run(chain, attributes);
  for (const std::string& warning : warnings) call.warnings.add(warning);
  return result;
}

}  // namespace

Task<Result<KnownNamespace>> find_namespace(Call& call) {
  KnownNamespace known;
  if (call.ns().empty()) co_return known;
  Storage* namespaces = call.api.storage_of("", "namespaces");
  Result<cache::Snapshot> snapshot = namespaces->cache().snapshot();
  if (snapshot) known.entry = snapshot->find(call.ns());
  if (!known.entry) {
    Result<cache::Cache::Latest> latest = co_await namespaces->cache().latest(std::string(call.ns()), call.executor());
    if (!latest) co_return latest.take_error();
    known.entry = std::move(latest->entry);
  }
  co_return known;
}

Result<Unit> admit_by_plugins(Call& call, admission::Operation operation, Draft::Node object, const Value* old,
                              bool dry_run, const KnownNamespace& ns) {
  const std::string name(object.value().is_map() ? object.value().text_at("metadata", "name") : call.info.name);
  return run_plugins(call, operation, name, old, dry_run, ns,
                     [&](const admission::Chain& chain, admission::Attributes& attributes) {
                       return chain.admit(attributes, object);
                     });
}

Result<Unit> validate_by_plugins(Call& call, admission::Operation operation, const Value& object, const Value* old,
                                 bool dry_run, const KnownNamespace& ns) {
  const std::string name(object.is_map() ? object.text_at("metadata", "name") : call.info.name);
  return run_plugins(call, operation, name, old, dry_run, ns,
                     [&](const admission::Chain& chain, admission::Attributes& attributes) {
                       return chain.validate(attributes, object);
                     });
}

}  // namespace holdfast::api
