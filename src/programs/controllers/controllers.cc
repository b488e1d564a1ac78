#include "controllers/controllers.h"

#include <algorithm>

#include "controllers/account_tokens.h"
#include "controllers/flow_status.h"
#include "controllers/garbage_collector.h"
#include "controllers/leases.h"
#include "controllers/namespaces.h"
#include "controllers/policy_status.h"
#include "controllers/quota_controller.h"
#include "controllers/role_aggregation.h"
#include "controllers/service_cidrs.h"
#include "controllers/standby.h"

namespace holdfast::controllers {
namespace {

constexpr std::string_view kNames[] = {"namespace",
                                       "serviceaccount",
                                       "root-ca-certificate-publisher",
                                       "garbage-collector",
                                       "resourcequota",
                                       "clusterrole-aggregation-controller",
                                       "lease-cleanup",
                                       "serviceaccount-token",
                                       "validatingadmissionpolicy-status-controller",
                                       "service-cidr-controller"};

// Follows kube-controller-manager's IsControllerEnabled (controller-manager/app/helper.go).
bool runs(const std::vector<std::string>& chosen, std::string_view name) {
  bool all = false;
  for (const std::string& one : chosen) {
    if (one == name) return true;
    if (one.starts_with('-') && std::string_view(one).substr(1) == name) return false;
    all = all || one == "*";
  }
  return all;
}

}  // namespace

std::span<const std::string_view> names() { return kNames; }

Result<Unit> check(const Options& options) {
  for (const std::string& one : options.controllers) {
    const std::string_view name = std::string_view(one).substr(one.starts_with('-') ? 1 : 0);
    if (one == "*" || one == "none" || std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames))
      continue;
    std::string problem = "--controllers: \"";
    problem.append(one).append("\" is not a controller; there are *, none");
    for (const std::string_view each : kNames) problem.append(", ").append(each);
    return bad_request(std::move(problem));
  }
  return Unit{};
}

struct Controllers::State {
  State(api::Api& api, net::EventLoop& loop, const Clock& clock) : standby(api, clock), calls(api.own_calls(loop)) {}

  Standby standby;
  own_calls::OwnCalls calls;
  std::unique_ptr<NamespaceController> namespaces;  // Null if all its parts are disabled.
  std::unique_ptr<GarbageCollector> garbage;
  std::unique_ptr<RoleAggregation> roles;
  std::unique_ptr<QuotaController> quotas;
  std::unique_ptr<LeaseCleaner> leases;
  std::unique_ptr<PolicyStatus> policies;
  std::unique_ptr<ServiceCidrs> cidrs;
  std::unique_ptr<FlowStatus> flows;  // Never null.
  std::unique_ptr<AccountTokens> tokens;
};

Controllers::Controllers(api::Api& api, net::EventLoop& loop, const Clock& clock, Options options)
    : state_(std::make_unique<State>(api, loop, clock)) {
  const auto wanted = [&](std::string_view name) { return runs(options.controllers, name); };
  if (wanted("serviceaccount-token") && options.signer != nullptr) {
    state_->tokens = std::make_unique<AccountTokens>(api, loop, state_->calls, state_->standby, *options.signer,
                                                     options.root_ca_pem);
  }
  const bool deletes = wanted("namespace"), accounts = wanted("serviceaccount"),
             publishes = wanted("root-ca-certificate-publisher");
  if (deletes || accounts || publishes) {
    NamespaceControllerOptions chosen{.deletes_content = deletes,
                                      .makes_service_accounts = accounts,
                                      .publishes_root_ca = publishes,
                                      .root_ca_pem = std::move(options.root_ca_pem)};
    state_->namespaces =
        std::make_unique<NamespaceController>(api, loop, state_->calls, state_->standby, std::move(chosen));
  }
  if (wanted("garbage-collector")) {
    state_->garbage = std::make_unique<GarbageCollector>(api, loop, clock, state_->calls, state_->standby);
  }
  if (wanted("clusterrole-aggregation-controller")) {
    state_->roles = std::make_unique<RoleAggregation>(api, loop, state_->calls, state_->standby);
  }
  if (wanted("lease-cleanup")) {
    state_->leases = std::make_unique<LeaseCleaner>(api, loop, clock, state_->calls);
  }
  if (wanted("validatingadmissionpolicy-status-controller")) {
    state_->policies = std::make_unique<PolicyStatus>(api, loop, state_->calls, state_->standby);
  }
  if (wanted("service-cidr-controller")) {
    state_->cidrs = std::make_unique<ServiceCidrs>(api, loop, clock, state_->calls, state_->standby);
  }
  state_->flows = std::make_unique<FlowStatus>(api, loop, clock, state_->calls);
  if (wanted("resourcequota")) {
    state_->quotas = std::make_unique<QuotaController>(api, loop, clock, state_->calls, state_->standby);
  }
}

Controllers::~Controllers() = default;

void Controllers::start() {
  if (state_->namespaces) state_->namespaces->start();
  if (state_->garbage) state_->garbage->start();
  if (state_->roles) state_->roles->start();
  if (state_->quotas) state_->quotas->start();
  if (state_->leases) state_->leases->start();
  if (state_->policies) state_->policies->start();
  if (state_->cidrs) state_->cidrs->start();
  if (state_->tokens) state_->tokens->start();
  state_->flows->start();
}

Task<void> Controllers::close(Executor& executor) {
  if (state_->namespaces) co_await state_->namespaces->close(executor);
  if (state_->garbage) co_await state_->garbage->close(executor);
  if (state_->roles) co_await state_->roles->close(executor);
  if (state_->quotas) co_await state_->quotas->close(executor);
  if (state_->leases) co_await state_->leases->close(executor);
  if (state_->policies) co_await state_->policies->close(executor);
  if (state_->cidrs) co_await state_->cidrs->close(executor);
  if (state_->tokens) co_await state_->tokens->close(executor);
  co_await state_->flows->close(executor);
}

}  // namespace holdfast::controllers
