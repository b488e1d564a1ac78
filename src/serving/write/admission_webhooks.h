// Calls the admission webhooks configured for a write.
//
// Configurations are as fresh as the watch cache; a write of one returns once the cache has it. Mutating webhooks are
// called sequentially, by name of their configuration; validating ones concurrently.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "call/call.h"
#include "webhook/webhook.h"
#include "write/admission_match.h"
#include "write/admission_metrics.h"
#include "write/plugins.h"
#include "write/write.h"

namespace holdfast::write {

class AdmissionWebhooks {
 public:
  // `disabled` lists disabled admission plugins by Kubernetes' names. All other arguments must outlive this object.
  AdmissionWebhooks(resource::Storage& mutating, resource::Storage& validating, webhook::Caller& caller,
                    const auth::Authorizer& authorizer, const WebhookCredentials& credentials,
                    std::span<const std::string> disabled, AdmissionMetrics& metrics);

  // Whether any webhook may match this resource.
  bool handles(const call::Call& call) const;
  // Returns the object in the requested version, possibly changed; new parts are in the call's arena.
  Task<Result<Value>> mutate(call::Call& call, const AdmissionRequest& request, const KnownObjects& ns,
                             Reinvocation& reinvocation);
  Task<Result<Unit>> validate(call::Call& call, const AdmissionRequest& request, const KnownObjects& ns);

 private:
  enum class Side : uint8_t { Mutating, Validating };
  struct HookSet;
  using HookSetRef = std::shared_ptr<const HookSet>;
  HookSetRef current(Side side) const;

  resource::Storage* storages_[2];                                    // By side; null if its plugin is disabled.
  const std::shared_ptr<webhook::ClientCredentials> credentials_[2];  // By side.
  webhook::Caller& caller_;
  const auth::Authorizer& authorizer_;
  AdmissionMetrics& metrics_;
  mutable std::mutex mutex_;
  mutable HookSetRef known_[2];  // By side; guarded by mutex_.
};

// A webhook configuration, policy or binding: its write returns once it is in effect.
bool is_admission_configuration(const types::Resource& resource);

}  // namespace holdfast::write
