// The authorizers that --authorization-mode or --authorization-config names, asked in that order until one of them
// allows the request.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "abac/abac.h"
#include "access/node_authorizer.h"
#include "access/rbac_authorizer.h"
#include "auth/auth.h"
#include "base/metrics.h"

namespace holdfast::access {

enum class Mode : uint8_t { Rbac, Node, Abac, AlwaysAllow, AlwaysDeny };

struct AuthorizationOptions {
  std::vector<Mode> modes = {Mode::Rbac};  // Each at most once.
  std::vector<abac::Policy> policies;      // For Mode::Abac.
};

// What a user may do in a namespace, for a SelfSubjectRulesReview.
struct KnownRules {
  std::vector<rbac::RulesRef> rules;
  bool incomplete = false;  // An authorizer cannot list what it allows.
  std::string problem;
};

class Authorizers final : public auth::Authorizer {
 public:
  // All must outlive this object.
  Authorizers(AuthorizationOptions options, const resource::Registry& registry, TimedExecutor& loop,
              Executor& background, MetricRegistry& metrics);

  // system:masters is allowed everything, whatever the modes are. The reason of a denial has those of all authorizers,
  // one per line.
  auth::Decision authorize(const auth::Attributes& attributes) const override;
  KnownRules rules_for(const auth::UserInfo& user, std::string_view ns) const;

  // For the escalation check; null with AlwaysAllow, which makes that check pointless.
  const RbacAuthorizer* rbac() const { return rbac_.get(); }

  void start();
  bool ready() const { return node_ == nullptr || node_->ready(); }
  // Call about every 100 ms.
  void tick() const;
  // Call once, before the caches are closed.
  Task<void> close(Executor& executor);

 private:
  auth::Decision ask(Mode mode, const auth::Attributes& attributes) const;

  const AuthorizationOptions options_;
  std::unique_ptr<RbacAuthorizer> rbac_;
  std::unique_ptr<NodeAuthorizer> node_;  // Null without Mode::Node.
};

}  // namespace holdfast::access
