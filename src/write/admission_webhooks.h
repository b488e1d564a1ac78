// Calls the admission webhooks that are configured for a write.
//
// Configurations are as fresh as the watch cache; a write of one returns once the cache has it. Mutating webhooks are
// called one after the other, by name of their configuration, validating ones concurrently.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "call/call.h"
#include "webhook/webhook.h"
#include "write/admission_match.h"
#include "write/plugins.h"
#include "write/write.h"

namespace holdfast::write {

class AdmissionWebhooks {
 public:
  // `disabled`: admission plugins that are off, by Kubernetes' names. Everything outlives it.
  AdmissionWebhooks(resource::Storage& mutating, resource::Storage& validating, webhook::Caller& caller,
                    const auth::Authorizer& authorizer, const WebhookCredentials& credentials,
                    std::span<const std::string> disabled);

  // Whether any webhook could be asked about this resource.
  bool handles(const call::Call& call) const;
  // The object in the requested version, changed or not; new parts are in the call's arena.
  Task<Result<Value>> mutate(call::Call& call, const AdmissionRequest& request, const KnownObjects& ns,
                             Reinvocation& reinvocation);
  Task<Result<Unit>> validate(call::Call& call, const AdmissionRequest& request, const KnownObjects& ns);

 private:
  enum class Side : uint8_t { Mutating, Validating };
  struct HookSet;
  using HookSetRef = std::shared_ptr<const HookSet>;
  HookSetRef current(Side side) const;

  resource::Storage* storages_[2];                                    // By side; null: its plugin is off.
  const std::shared_ptr<webhook::ClientCredentials> credentials_[2];  // By side.
  webhook::Caller& caller_;
  const auth::Authorizer& authorizer_;
  mutable std::mutex mutex_;
  mutable HookSetRef known_[2];  // By side; guarded by mutex_.
};

// A webhook configuration, a policy or a binding: its writer is answered when it acts.
bool is_admission_configuration(const types::Resource& resource);

}  // namespace holdfast::write
