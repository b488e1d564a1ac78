// NamespaceLifecycle: rejects creates in missing or terminating namespaces, and protects three namespaces from
// deletion.

#include "admission/plugin.h"
#include "base/api_error.h"

namespace holdfast::admission {
namespace {

bool is_namespace(const types::Resource& resource) { return is_core(resource, "namespaces"); }

bool handles(const types::Resource& resource, std::string_view subresource, Operation operation) {
  if (is_namespace(resource)) return operation == Operation::Delete && subresource.empty();
  // Access reviews may refer to namespaces that do not exist.
  return resource.namespaced && operation == Operation::Create && !resource.kind.ends_with("AccessReview");
}

Result<Unit> keep_system_namespaces(Attributes& attributes, const Value& object) {
  if (!is_namespace(attributes.resource)) return Unit{};
  for (const std::string_view name : {"default", "kube-system", "kube-public"}) {
    if (attributes.name == name) return refuse(attributes, object, "this namespace may not be deleted");
  }
  return Unit{};
}

Result<Unit> need_namespace(Attributes& attributes, Draft::Node object) {
  if (is_namespace(attributes.resource)) return Unit{};
  const std::optional<Value> space = attributes.lookup.get(attributes.arena, "", "namespaces", "", attributes.ns);
  if (!space) return not_found(GroupResource{"", "namespaces"}, attributes.ns);
  if (space->text_at("status", "phase") != "Terminating") return Unit{};
  const std::string name(attributes.ns);
  Error error = refuse(attributes, object.value(),
                       "unable to create new content in namespace " + name + " because it is being terminated");
  error.causes.push_back({"NamespaceTerminating", "namespace " + name + " is being terminated", "metadata.namespace"});
  return error;
}

}  // namespace

const Plugin kNamespaceLifecycle = {
    .name = "NamespaceLifecycle", .handles = handles, .admit = need_namespace, .validate = keep_system_namespaces};

}  // namespace holdfast::admission
