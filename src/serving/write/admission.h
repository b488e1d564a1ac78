// Everything that may change or reject a write before it is stored, in Kubernetes' order: mutating plugins, policies
// and webhooks; the privilege escalation check; validating plugins, policies and webhooks; finally quotas. Private to
// the module.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "access/access.h"
#include "admission/admission.h"
#include "call/call.h"
#include "webhook/webhook.h"
#include "write/admission_metrics.h"
#include "write/admission_policies.h"
#include "write/admission_request.h"
#include "write/admission_webhooks.h"
#include "write/plugins.h"
#include "write/quota.h"
#include "write/write.h"

namespace holdfast::write {

class Admission {
 public:
  explicit Admission(const Writer::Parts& parts);

  // Mutating admission. `next` and the result are in the requested version; `live` is null for a create.
  Task<Result<NextObject>> mutate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                                  NextObject next, const LiveObject* live);
  // Validating admission of a create or update: `object` is that of `next` as it will be stored, in the requested
  // version.
  Task<Result<Unit>> validate(call::Call& call, AdmissionOperation operation, const request::WriteOptions& options,
                              const Value& object, const NextObject& next, const LiveObject* live);
  // Runs mutating and, with `validates`, validating policies and webhooks on the body of a subresource with its own
  // kind (Scale, Binding).
  Task<Result<Value>> admit_subresource(call::Call& call, AdmissionOperation operation,
                                        const request::WriteOptions& options, Value object, Value old, bool validates);
  // Mutating and validating admission of a delete.
  Task<Result<Unit>> admit_delete(call::Call& call, Value options, const LiveObject& live, bool dry_run);

  const Quotas& quotas() const { return quotas_; }

 private:
  // Whether any policies or webhooks apply to this write. Only they see managedFields.
  bool is_shown(const call::Call& call, AdmissionOperation operation) const;
  Task<Result<Unit>> validate_object(call::Call& call, AdmissionOperation operation,
                                     const request::WriteOptions& options, const Value& object, const NextObject& next,
                                     const LiveObject* live);
  Task<Result<NextObject>> mutate_object(call::Call& call, AdmissionOperation operation,
                                         const request::WriteOptions& options, NextObject next, const LiveObject* live);
  Task<Result<Value>> mutate_by_hooks(call::Call& call, AdmissionRequest& request, const KnownObjects& known,
                                      Reinvocation& reinvocation);
  Task<Result<Unit>> validate_by_hooks(call::Call& call, const AdmissionRequest& request, const KnownObjects& known);

  mutable AdmissionMetrics metrics_;
  const admission::Chain plugins_;
  AdmissionWebhooks webhooks_;
  AdmissionPolicies policies_;
  Quotas quotas_;
  const auth::Authorizer& authorizer_;
  const access::RbacAuthorizer* const rbac_;
  const own_calls::Handler own_;
};

}  // namespace holdfast::write
