// OwnerReferencesPermissionEnforcement: who changes the owners of an object must be allowed to delete it, and who lets
// it block the deletion of an owner must be allowed to set that owner's finalizers.

#include <algorithm>
#include <map>

#include "admission/plugin.h"
#include "base/api_version.h"
#include "base/text.h"

namespace holdfast::admission {
namespace {

// A Go error that is nil.
constexpr std::string_view kNoError = "<nil>";

bool is_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  // The status of a pod cannot change its owners.
  if (is_core(resource, "pods") && subresource == "status") return false;
  return operation == Operation::Create || operation == Operation::Update;
}

std::span<const Value> owners_of(const Value& object) { return object.items_at("metadata", "ownerReferences"); }

bool changes_owners(const Value& object, const Value* old) {
  const std::span<const Value> now = owners_of(object);
  if (old == nullptr) return !now.empty();
  const std::span<const Value> before = owners_of(*old);
  return !std::equal(now.begin(), now.end(), before.begin(), before.end(),
                     [](const Value& a, const Value& b) { return equal(a, b); });
}

// The references that block their owner's deletion and have not done so before.
std::vector<const Value*> newly_blocking(const Value& object, const Value* old) {
  std::map<std::string_view, bool> before;  // By uid; the last one counts.
  if (old != nullptr) {
    for (const Value& reference : owners_of(*old)) {
      before[reference.text_at("uid")] = is_true(reference, "blockOwnerDeletion");
    }
  }
  std::vector<const Value*> blocking;
  for (const Value& reference : owners_of(object)) {
    if (!is_true(reference, "blockOwnerDeletion")) continue;
    const auto found = before.find(reference.text_at("uid"));
    if (found == before.end() || !found->second) blocking.push_back(&reference);
  }
  return blocking;
}

Result<Unit> check_finalizers(Attributes& attributes, const Value& object, const Value& reference) {
  const std::string_view api_version = reference.text_at("apiVersion"), kind = reference.text_at("kind");
  const auto [group, version] = split_api_version(api_version);
  const std::vector<KindResource> resources = attributes.lookup.resources_of(group, version, kind);
  if (resources.empty()) {
    const std::string shown = "kind " + go_quote(kind) + " in version " + go_quote(api_version);
    return refuse(attributes, object,
                  "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion " +
                      std::string(api_version) + " Kind " + std::string(kind) + ": no matches for " + shown);
  }
  for (const KindResource& resource : resources) {
    const std::optional<std::string> why =
        attributes.lookup.denied({.verb = "update",
                                  .group = group,
                                  .resource = resource.plural,
                                  .subresource = "finalizers",
                                  .ns = resource.namespaced ? attributes.ns : std::string_view(),
                                  .name = reference.text_at("name")});
    if (!why) continue;
    return refuse(
        attributes, object,
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: " + *why +
            ", " + std::string(kNoError));
  }
  return Unit{};
}

Result<Unit> check_owners(Attributes& attributes, const Value& object) {
  if (!changes_owners(object, attributes.old)) return Unit{};
  if (attributes.operation != Operation::Create) {
    const std::optional<std::string> why = attributes.lookup.denied({.verb = "delete",
                                                                     .group = attributes.resource.group,
                                                                     .resource = attributes.resource.plural,
                                                                     .subresource = attributes.subresource,
                                                                     .ns = attributes.ns,
                                                                     .name = attributes.name});
    if (why) {
      return refuse(attributes, object,
                    "cannot set an ownerRef on a resource you can't delete: " + *why + ", " + std::string(kNoError));
    }
  }
  const std::vector<const Value*> blocking = newly_blocking(object, attributes.old);
  if (blocking.empty()) return Unit{};
  const bool may_finalize_all = !attributes.lookup.denied(
      {.verb = "update", .group = "*", .resource = "*", .subresource = "finalizers", .name = "*"});
  if (may_finalize_all) return Unit{};
  for (const Value* reference : blocking) {
    if (Result<Unit> allowed = check_finalizers(attributes, object, *reference); !allowed) return allowed;
  }
  return Unit{};
}

}  // namespace

const Plugin kOwnerReferences = {
    .name = "OwnerReferencesPermissionEnforcement", .handles = is_write, .validate = check_owners};

}  // namespace holdfast::admission
