// The rules and reasons of plugin/pkg/auth/authorizer/node/node_authorizer.go in Kubernetes v1.36, with its feature
// gates at their defaults.
#include <algorithm>

#include "node_access/node_access.h"

namespace holdfast::node_access {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

auth::Decision allow() { return {auth::Decision::Verdict::Allow, {}}; }
auth::Decision no_opinion(std::string reason = {}) { return {auth::Decision::Verdict::NoOpinion, std::move(reason)}; }

// A request of a node: its name and what it asks for.
class Request {
 public:
  Request(const Graph& graph, const std::vector<rbac::Rule>& rules, std::string_view node,
          const auth::Attributes& attributes)
      : graph_(graph), rules_(rules), node_(node), on_(attributes) {}

  auth::Decision decide() const {
    if (on_.is_resource) {
      if (on_.group.empty()) {
        if (on_.resource == "secrets") return read_related(Kind::Secret);
        if (on_.resource == "configmaps") return read_related(Kind::ConfigMap);
        if (on_.resource == "persistentvolumeclaims") {
          return on_.subresource == "status" ? write_status(Kind::Claim) : get_related(Kind::Claim);
        }
        if (on_.resource == "persistentvolumes") return get_related(Kind::Volume);
        if (on_.resource == "serviceaccounts") return use_account();
        if (on_.resource == "nodes") return use_node();
        if (on_.resource == "pods") return use_pod();
      }
      if (is("resource.k8s.io", "resourceclaims")) return get_related(Kind::ResourceClaim);
      if (is("resource.k8s.io", "resourceslices")) return use_slice();
      if (is("storage.k8s.io", "volumeattachments")) return get_related(Kind::Attachment);
      if (is("storage.k8s.io", "csinodes")) return use_csi_node();
      if (is("coordination.k8s.io", "leases")) return use_lease();
      // Needs a feature gate that is off by default.
      if (is("certificates.k8s.io", "podcertificaterequests")) return no_opinion();
    }
    const bool allowed =
        std::any_of(rules_.begin(), rules_.end(), [this](const rbac::Rule& rule) { return rule.allows(on_); });
    return allowed ? allow() : no_opinion();
  }

 private:
  bool is(std::string_view group, std::string_view resource) const {
    return on_.group == group && on_.resource == resource;
  }
  bool wants(std::initializer_list<std::string_view> verbs) const {
    return std::find(verbs.begin(), verbs.end(), on_.verb) != verbs.end();
  }
  std::string quoted_node() const { return "'" + std::string(node_) + "'"; }

  auth::Decision if_related(Kind kind) const {
    if (on_.name.empty()) return no_opinion("No Object name found");
    return if_path(kind);
  }
  auth::Decision if_path(Kind kind) const {
    if (graph_.related(node_, kind, on_.ns, on_.name)) return allow();
    return no_opinion("no relationship found between node " + quoted_node() + " and this object");
  }

  auth::Decision read_related(Kind kind) const {
    if (!wants({"get", "list", "watch"})) return no_opinion("can only read resources of this type");
    if (!on_.subresource.empty()) return no_opinion("cannot read subresource");
    if (on_.ns.empty()) return no_opinion("can only read namespaced object of this type");
    return if_related(kind);
  }

  auth::Decision get_related(Kind kind) const {
    if (!wants({"get"})) return no_opinion("can only get individual resources of this type");
    if (!on_.subresource.empty()) return no_opinion("cannot get subresource");
    return if_related(kind);
  }

  auth::Decision write_status(Kind kind) const {
    if (!wants({"update", "patch"})) return no_opinion("can only get/update/patch this type");
    return if_related(kind);
  }

  auth::Decision use_account() const {
    if (on_.verb == "get" && on_.subresource.empty()) return read_related(Kind::ServiceAccount);
    if (on_.verb != "create" || on_.name.empty()) {
      return no_opinion("can only create tokens for individual service accounts");
    }
    if (on_.subresource != "token") return no_opinion("can only create token subresource of serviceaccount");
    return if_path(Kind::ServiceAccount);
  }

  // The name of a new object is not known here: NodeRestriction checks it.
  auth::Decision use_lease() const {
    if (!wants({"get", "create", "update", "patch", "delete"})) {
      return no_opinion("can only get, create, update, patch, or delete a node lease");
    }
    if (on_.ns != kLeaseNamespace) {
      return no_opinion("can only access leases in the \"" + std::string(kLeaseNamespace) + "\" system namespace");
    }
    if (on_.verb != "create" && on_.name != node_) {
      return no_opinion("can only access node lease with the same name as the requesting node");
    }
    return allow();
  }

  auth::Decision use_csi_node() const {
    if (!wants({"get", "create", "update", "patch", "delete"})) {
      return no_opinion("can only get, create, update, patch, or delete a CSINode");
    }
    if (!on_.subresource.empty()) return no_opinion("cannot authorize CSINode subresources");
    if (on_.verb != "create" && on_.name != node_) {
      return no_opinion("can only access CSINode with the same name as the requesting node");
    }
    return allow();
  }

  auth::Decision use_slice() const {
    if (!on_.subresource.empty()) return no_opinion("cannot authorize ResourceSlice subresources");
    if (wants({"create"})) return allow();
    if (wants({"get", "update", "patch", "delete"})) return if_related(Kind::Slice);
    if (wants({"watch", "list", "deletecollection"})) {
      if (on_.selected_node == node_) return allow();
      return no_opinion("can only list/watch/deletecollection resourceslices with nodeName field selector");
    }
    return no_opinion(
        "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, "
        "deletecollection");
  }

  // By name, so that a kubelet can look for its Node before that exists. NodeRestriction limits what it writes.
  auth::Decision use_node() const {
    if (on_.subresource.empty()) {
      if (wants({"create", "update", "patch"})) return allow();
      if (wants({"get", "list", "watch"})) {
        if (on_.name == node_) return allow();
        if (on_.name.empty()) {
          return no_opinion("node " + quoted_node() + " cannot read all nodes, only its own Node object");
        }
        return no_opinion("node " + quoted_node() + " cannot read '" + std::string(on_.name) +
                          "', only its own Node object");
      }
    }
    if (on_.subresource == "status" && wants({"update", "patch"})) return allow();
    return no_opinion();
  }

  auth::Decision use_pod() const {
    if (on_.subresource.empty()) {
      if (wants({"get"})) return get_related(Kind::Pod);
      if (wants({"list", "watch"})) {
        if (on_.selected_node == node_) return allow();
        if (!on_.name.empty()) return if_related(Kind::Pod);
        return no_opinion("can only list/watch pods with spec.nodeName field selector");
      }
      if (wants({"create", "delete"})) return allow();
    }
    if (on_.subresource == "status" && wants({"update", "patch"})) return allow();
    if (on_.subresource == "eviction" && wants({"create"})) return allow();
    return no_opinion();
  }

  const Graph& graph_;
  const std::vector<rbac::Rule>& rules_;
  const std::string_view node_;
  const auth::Attributes& on_;
};

}  // namespace

auth::Decision authorize(const Graph& graph, const std::vector<rbac::Rule>& rules, const auth::Attributes& attributes) {
  if (attributes.user == nullptr) return no_opinion();
  const std::optional<std::string_view> node = auth::node_of(*attributes.user);
  if (!node) return no_opinion();
  if (node->empty()) return no_opinion("unknown node for user \"" + attributes.user->name + "\"");
  return Request(graph, rules, *node, attributes).decide();
}

}  // namespace holdfast::node_access
