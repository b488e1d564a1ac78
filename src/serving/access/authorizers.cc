#include "access/authorizers.h"

#include <algorithm>

#include "base/api_error.h"

namespace holdfast::access {
namespace {

rbac::RulesRef everything() {
  static const auto rules = std::make_shared<const std::vector<rbac::Rule>>(
      std::initializer_list<rbac::Rule>{{.verbs = {"*"}, .groups = {"*"}, .resources = {"*"}, .names = {}, .paths = {}},
                                        {.verbs = {"*"}, .groups = {}, .resources = {}, .names = {}, .paths = {"*"}}});
  return rules;
}

}  // namespace

Authorizers::Authorizers(AuthorizationOptions options, const resource::Registry& registry, TimedExecutor& loop,
                         Executor& background, MetricRegistry& metrics)
    : options_(std::move(options)) {
  const auto has = [this](Mode mode) {
    return std::find(options_.modes.begin(), options_.modes.end(), mode) != options_.modes.end();
  };
  if (!has(Mode::AlwaysAllow)) {
    rbac_ = std::make_unique<RbacAuthorizer>(
        registry, loop, background,
        metrics.counters("holdfast_rbac_objects_read_total", "Roles and bindings read into the index of RBAC.")
            .with({}));
  }
  if (has(Mode::Node)) node_ = std::make_unique<NodeAuthorizer>(registry, loop);
}

auth::Decision Authorizers::ask(Mode mode, const auth::Attributes& attributes) const {
  switch (mode) {
    case Mode::Rbac:
      if (rbac_ != nullptr) return rbac_->authorize(attributes);
      break;
    case Mode::Node:
      return node_->authorize(attributes);
    case Mode::Abac:
      return abac::authorize(options_.policies, attributes);
    case Mode::AlwaysAllow:
      return {auth::Decision::Verdict::Allow, {}};
    case Mode::AlwaysDeny:
      return {auth::Decision::Verdict::NoOpinion, "Everything is forbidden."};
  }
  return {};
}

auth::Decision Authorizers::authorize(const auth::Attributes& attributes) const {
  if (attributes.user != nullptr && attributes.user->in_group(auth::kMastersGroup)) {
    return {auth::Decision::Verdict::Allow, {}};
  }
  std::string reasons;
  for (const Mode mode : options_.modes) {
    auth::Decision decision = ask(mode, attributes);
    if (decision.verdict != auth::Decision::Verdict::NoOpinion) return decision;
    if (decision.reason.empty()) continue;
    reasons += (reasons.empty() ? "" : "\n") + decision.reason;
  }
  return {auth::Decision::Verdict::NoOpinion, std::move(reasons)};
}

KnownRules Authorizers::rules_for(const auth::UserInfo& user, std::string_view ns) const {
  KnownRules known;
  std::vector<std::string> problems;
  for (const Mode mode : options_.modes) {
    if (mode == Mode::AlwaysAllow) known.rules.push_back(everything());
    if (mode == Mode::Abac) {
      known.rules.push_back(
          std::make_shared<const std::vector<rbac::Rule>>(abac::rules_for(options_.policies, user, ns)));
    }
    if (mode == Mode::Node && auth::node_of(user)) {
      known.incomplete = true;
      problems.emplace_back("node authorizer does not support user rule resolution");
    }
    if (mode != Mode::Rbac || rbac_ == nullptr) continue;
    if (const std::shared_ptr<const rbac::Index> index = rbac_->index()) {
      std::string problem;
      const std::vector<rbac::RulesRef> rules = index->rules_for(user, ns, &problem);
      known.rules.insert(known.rules.end(), rules.begin(), rules.end());
      if (!problem.empty()) problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) known.problem = aggregate_text(problems);
  return known;
}

void Authorizers::start() {
  if (node_ != nullptr) node_->start();
}

void Authorizers::tick() const {
  if (rbac_ != nullptr) rbac_->tick();
}

Task<void> Authorizers::close(Executor& executor) {
  if (node_ != nullptr) co_await node_->close(executor);
  if (rbac_ != nullptr) co_await rbac_->close(executor);
}

}  // namespace holdfast::access
