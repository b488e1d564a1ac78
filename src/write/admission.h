// Everything that may change or refuse a write before it is stored, in Kubernetes' order: mutating plugins, policies
// and webhooks; the check against privilege escalation; then validating plugins, policies and webhooks; last the
// quotas. Private to the module.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "access/access.h"
#include "admission/admission.h"
#include "call/call.h"
#include "webhook/webhook.h"
#include "write/admission_policies.h"
#include "write/admission_request.h"
#include "write/admission_webhooks.h"
#include "write/plugins.h"
#include "write/quota.h"
#include "write/write.h"

namespace holdfast::write {

class Admission {
 public:
  // Everything outlives it.
  struct Parts {
    const admission::PluginChoice& plugins;
    resource::Storage& mutating_webhooks;
    resource::Storage& validating_webhooks;
    webhook::Caller& caller;
    const WebhookCredentials& webhook_credentials;
    const resource::Registry& registry;  // Where policies are.
    const auth::Authorizer& authorizer;
    const access::RbacAuthorizer* rbac;  // Null: another authorizer, which has no rules.
    own_calls::Handler own;
    MetricRegistry& metrics;
  };
  explicit Admission(const Parts& parts);

  // Mutating admission. `next` and the result are in the requested version; `live` is null for a create.
  Task<Result<NextObject>> mutate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                  NextObject next, const LiveObject* live);
  // Validating admission of a create or an update: `object` is `next`'s as it will be stored, in the requested version.
  Task<Result<Unit>> validate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                              const Value& object, const NextObject& next, const LiveObject* live);
  // Mutating, then (`validates`) validating policies and webhooks about the body of a subresource of a kind of its own:
  // a Scale, a Binding.
  Task<Result<Value>> admit_subresource(call::Call& call, AdmissionOperation operation,
                                        const request::WriteOptions& options, Value object, Value old, bool validates);
  // Both kinds of admission for a delete.
  Task<Result<Unit>> admit_delete(call::Call& call, Value options, const LiveObject& live, bool dry_run);

  const Quotas& quotas() const { return quotas_; }

 private:
  // Whether anything but the built-in plugins looks at this write. Only that looks at managedFields.
  bool is_shown(const call::Call& call, AdmissionOperation operation) const;
  Task<Result<NextObject>> mutate_object(call::Call& call, AdmissionOperation operation,
                                         const request::WriteOptions& options, NextObject next, const LiveObject* live);
  Task<Result<Value>> mutate_by_hooks(call::Call& call, AdmissionRequest& request, const KnownObjects& known,
                                      Reinvocation& reinvocation);
  Task<Result<Unit>> validate_by_hooks(call::Call& call, const AdmissionRequest& request, const KnownObjects& known);

  const admission::Chain plugins_;
  AdmissionWebhooks webhooks_;
  AdmissionPolicies policies_;
  Quotas quotas_;
  const auth::Authorizer& authorizer_;
  const access::RbacAuthorizer* const rbac_;
};

}  // namespace holdfast::write
