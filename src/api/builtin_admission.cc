#include "api/builtin_admission.h"

#include "api/storage.h"
#include "api/warnings.h"

namespace holdfast::api {
namespace {

admission::Operation operation_of(AdmissionOperation operation) {
  switch (operation) {
    case AdmissionOperation::Create:
      return admission::Operation::Create;
    case AdmissionOperation::Update:
      return admission::Operation::Update;
    case AdmissionOperation::Delete:
      return admission::Operation::Delete;
    case AdmissionOperation::Connect:
      return admission::Operation::Connect;
  }
  return admission::Operation::Connect;
}

// What the caches have. A namespace that the cache has not seen yet is read from the store beforehand.
class CacheLookup : public admission::Lookup {
 public:
  CacheLookup(Registry::SnapshotRef registry, const auth::Authorizer& authorizer, const auth::UserInfo* user)
      : registry_(std::move(registry)), authorizer_(authorizer), user_(user) {}

  std::optional<Value> space;  // The request's namespace, read once.

  std::optional<Value> get(Arena& arena, std::string_view group, std::string_view plural, std::string_view ns,
                           std::string_view name) const override {
    if (space && group.empty() && plural == "namespaces" && space->text_at("metadata", "name") == name) return space;
    Storage* storage = storage_of(group, plural);
    if (storage == nullptr) return std::nullopt;
    Result<cache::Snapshot> snapshot = storage->cache().snapshot();
    if (!snapshot) return std::nullopt;
    const cache::EntryRef entry = snapshot->find(storage->short_key(ns, name));
    return entry ? tree(arena, *storage, *entry) : std::nullopt;
  }

  std::vector<Value> list(Arena& arena, std::string_view group, std::string_view plural,
                          std::string_view ns) const override {
    std::vector<Value> objects;
    Storage* storage = storage_of(group, plural);
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
    attributes.user = user_;
    attributes.verb = verb;
    attributes.is_resource = true;
    attributes.group = group;
    attributes.version = "*";
    attributes.resource = resource;
    attributes.name = name;
    return authorizer_.authorize(attributes).allowed();
  }

  Storage* storage_of(std::string_view group, std::string_view plural) const {
    const Served* served = registry_->find(group, "v1", plural);
    return served == nullptr ? nullptr : served->storage;
  }

  static std::optional<Value> tree(Arena& arena, Storage& storage, const cache::Entry& entry) {
    const store::Blob body = entry.body(cache::Entry::Use::Hot);
    Result<Value> object = storage.codec().tree(arena, *body);
    if (!object) return std::nullopt;
    return deep_copy(arena, *object);  // The texts outlive the body.
  }

 private:
  const Registry::SnapshotRef registry_;
  const auth::Authorizer& authorizer_;
  const auth::UserInfo* user_;
};

admission::Attributes attributes_of(Arena& arena, const AdmissionRequest& request, const CacheLookup& lookup,
                                    std::vector<std::string>& warnings) {
  return {.operation = operation_of(request.operation),
          .resource = *request.resource,
          .subresource = request.subresource,
          .ns = request.ns,
          .name = request.name,
          .old = request.old.is_null() ? nullptr : &request.old,
          .dry_run = request.dry_run,
          .arena = arena,
          .lookup = lookup,
          .warnings = warnings};
}

// A namespace made a moment ago may not have reached the cache: nothing is refused before the store was asked.
Task<Result<Unit>> fetch_namespace(Arena& arena, const AdmissionRequest& request, CacheLookup& lookup,
                                   Executor& executor) {
  if (request.ns.empty()) co_return Unit{};
  lookup.space = lookup.get(arena, "", "namespaces", "", request.ns);
  if (lookup.space) co_return Unit{};
  Storage* storage = lookup.storage_of("", "namespaces");
  if (storage == nullptr) co_return Unit{};
  Result<cache::Cache::Latest> latest = co_await storage->cache().latest(std::string(request.ns), executor);
  if (!latest) co_return latest.take_error();
  if (latest->entry) lookup.space = CacheLookup::tree(arena, *storage, *latest->entry);
  co_return Unit{};
}

}  // namespace

BuiltinAdmission::BuiltinAdmission(const std::vector<std::string>& disabled)
    : chain_(std::vector<std::string_view>(disabled.begin(), disabled.end())) {}

void BuiltinAdmission::serve(const Registry& registry, const auth::Authorizer& authorizer) {
  registry_ = &registry;
  authorizer_ = &authorizer;
}

bool BuiltinAdmission::handles(const AdmissionRequest& request) const {
  return registry_ != nullptr &&
         chain_.handles(*request.resource, request.subresource, operation_of(request.operation));
}

Task<Result<Value>> BuiltinAdmission::mutate(Arena& arena, const AdmissionRequest& request, Warnings& warnings,
                                             Executor& executor) {
  CacheLookup lookup(registry_->snapshot(), *authorizer_, request.user);
  if (Result<Unit> fetched = co_await fetch_namespace(arena, request, lookup, executor); !fetched) {
    co_return fetched.take_error();
  }
  std::vector<std::string> texts;
  admission::Attributes attributes = attributes_of(arena, request, lookup, texts);
  Draft draft(arena, request.object);
  Result<Unit> admitted = chain_.admit(attributes, draft.root());
  for (const std::string& text : texts) warnings.add(text);
  if (!admitted) co_return admitted.take_error();
  co_return draft.value();
}

Task<Result<Unit>> BuiltinAdmission::validate(Arena& arena, const AdmissionRequest& request, Warnings& warnings,
                                              Executor& executor) {
  CacheLookup lookup(registry_->snapshot(), *authorizer_, request.user);
  if (Result<Unit> fetched = co_await fetch_namespace(arena, request, lookup, executor); !fetched) {
    co_return fetched.take_error();
  }
  std::vector<std::string> texts;
  admission::Attributes attributes = attributes_of(arena, request, lookup, texts);
  Result<Unit> admitted = chain_.validate(attributes, request.object);
  for (const std::string& text : texts) warnings.add(text);
  co_return admitted;
}

}  // namespace holdfast::api
