// Evaluates the current admission policies for a write.
//
// Policies and bindings are as fresh as the watch cache, and a write of one returns once the cache has it; params are
// as fresh as the store. So each applies to every request that starts after its write returned. Evaluation order: by
// name of the policy, then of the binding, then of the param.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "call/call.h"
#include "policy/policy.h"
#include "write/admission_match.h"
#include "write/admission_request.h"
#include "write/plugins.h"
#include "write/policy_metrics.h"

namespace holdfast::write {

class AdmissionPolicies {
 public:
  // `disabled` lists disabled admission plugins by Kubernetes' names. All other arguments must outlive this object.
  AdmissionPolicies(const resource::Registry& registry, const auth::Authorizer& authorizer,
                    std::span<const std::string> disabled, MetricRegistry& metrics);
  ~AdmissionPolicies();

  // Whether any policy may apply to such a request; if not, the caller can skip preparing it.
  bool handles(const call::Call& call, AdmissionOperation operation) const;
  // Returns the object in the requested version, possibly changed; new parts are in the call's arena.
  Task<Result<Value>> mutate(call::Call& call, const AdmissionRequest& request, const KnownObjects& known,
                             Reinvocation& reinvocation) const;
  Task<Result<Unit>> validate(call::Call& call, const AdmissionRequest& request, const KnownObjects& known) const;

 private:
  enum class Side : uint8_t { Mutating, Validating };
  struct Known;
  using IndexRef = std::shared_ptr<const policy::Index>;
  struct Source {
    resource::Storage* policies = nullptr;  // Null if the plugin is disabled.
    resource::Storage* bindings = nullptr;
    mutable std::mutex mutex;  // Held while an index is built.
    mutable std::atomic<std::shared_ptr<const Known>> known;
  };

  // Null if no policies are in force.
  Result<IndexRef> current(Side side) const;
  std::shared_ptr<const Known> renew(const Source& source, cache::Snapshot policies, cache::Snapshot bindings) const;
  bool handles(Side side, const call::Call& call, AdmissionOperation operation) const;

  const auth::Authorizer& authorizer_;
  mutable PolicyMetrics metrics_;
  std::vector<policy::Index::Alias> aliases_;
  std::array<Source, 2> sources_;  // By side.
};

}  // namespace holdfast::write
