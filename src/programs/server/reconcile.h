// Reconciles bootstrap objects that have been changed.
#pragma once

#include <optional>

#include "base/arena.h"
#include "value/value.h"

namespace holdfast::server {

// For bootstrap roles and bindings, at every startup: missing rules and subjects are added, additions by users are kept
// (component-helpers/auth/rbac/reconciliation).
// Returns the Role, ClusterRole or binding to store, computed from the live and the wanted object; nullopt if nothing
// changes, or if automatic updates are disabled (rbac.authorization.kubernetes.io/autoupdate: "false"). The roleRef of
// a binding is immutable: if it differs, the result has the wanted roleRef and must replace the old object.
std::optional<Value> reconcile(Arena& arena, const Value& live, const Value& wanted);

// A new binding for permissions that used to be part of another one: it gets the subjects of that one.
Value split_binding(Arena& arena, const Value& wanted, const Value& source);

// For a FlowSchema or PriorityLevelConfiguration, periodically (pkg/registry/flowcontrol/ensurer): the spec of
// mandatory ones is restored; the spec of others, unless a user has taken them over, which is recorded in an
// annotation. nullopt if nothing changes.
std::optional<Value> reconcile_flow(Arena& arena, const Value& live, const Value& wanted);
// Whether the annotation says that the object is maintained by a server; if it is no longer wanted, by an older one.
bool is_kept_flow(const Value& live);

// For the ConfigMap extension-apiserver-authentication: keeps certificates and names written by other servers and adds
// ours (pkg/controlplane/controller/clusterauthenticationtrust). nullopt if nothing changes.
std::optional<Value> reconcile_authentication(Arena& arena, const Value& live, const Value& wanted);

// For the default ServiceCIDR, periodically (pkg/controlplane/controller/defaultservicecidr). Its ranges are not
// changed to those of the flag, except that the range of a second family is added.
struct ServiceCidrRepair {
  std::optional<Value> object;  // To store.
  bool not_ready = false;       // The Ready condition is missing.
  bool differs = false;         // It has other ranges than the flag, and keeps them.
};
ServiceCidrRepair reconcile_service_cidr(Arena& arena, const Value& live, const Value& wanted);

}  // namespace holdfast::server
