// Evaluates admission expressions for one request.
#include <algorithm>

#include "base/api_error.h"
#include "base/text.h"
#include "expressions/expressions.h"
#include "expressions/variables.h"

namespace holdfast::expressions {
namespace {

// Joins errors like Kubernetes: without duplicates, in brackets if there are several.
std::string aggregate(std::span<const std::string> problems) {
  std::vector<std::string> distinct;
  for (const std::string& problem : problems) {
    if (std::find(distinct.begin(), distinct.end(), problem) == distinct.end()) distinct.push_back(problem);
  }
  return distinct.empty() ? "" : aggregate_text(distinct);
}

}  // namespace

Activation::Activation(Arena& arena, Scope scope, std::span<const NamedExpression> variables, const Inputs& inputs)
    : arena_(arena), variables_(variables), computed_(variables.size()), bindings_(positions_of(scope).count) {
  const Positions at = positions_of(scope);
  bindings_.set(at.object, inputs.object);
  bindings_.set(at.old_object, inputs.old_object);
  bindings_.set(at.namespace_object, inputs.namespace_object);
  bindings_.set(at.request, inputs.request);
  if (at.variables != 0) bindings_.set(at.variables, cel::Val::lazy(*this));
  if (at.params != 0) bindings_.set(at.params, inputs.params);
  if (inputs.authorizer != nullptr) {
    bindings_.set(at.authorizer, cel::Val::authorizer(arena, *inputs.authorizer));
    bindings_.set(at.request_resource, cel::Val::resource_check(arena, *inputs.authorizer, inputs.resource));
  }
}

std::string_view Activation::type_name() const { return kVariablesType; }

const cel::Val* Activation::find(std::string_view field) {
  // The last of several variables with the same name wins.
  size_t i = variables_.size();
  while (i > 0 && variables_[i - 1].name != field) --i;
  if (i == 0) return nullptr;
  --i;
  Computed& computed = computed_[i];
  if (computed.done) return &computed.value;
  const auto fail = [&](const std::string& why) {
    computed.value = cel::Val::error(arena_.copy("composited variable " + go_quote(field) + " fails to " + why));
  };
  const Expression& expression = variables_[i].expression;
  if (computed.begun) {
    // Two variables have the same name, and the later one reads the earlier.
    fail("evaluate: it depends on itself");
  } else if (expression.program == nullptr) {
    fail("compile: " + expression.problem);
  } else {
    computed.begun = true;
    const cel::Outcome outcome = expression.program->evaluate(bindings_, arena_);
    spent_on_variables_ += static_cast<int64_t>(outcome.cost);
    if (outcome.value.is_error()) {
      fail("evaluate: " + std::string(outcome.value.text()));
    } else {
      computed.value = outcome.value;
    }
  }
  computed.done = true;
  return &computed.value;
}

std::optional<Evaluated> Activation::evaluate(const Expression& expression, int64_t& budget) {
  Evaluated result;
  if (expression.program == nullptr) {
    result.problem = "compilation error: " + expression.problem;
    return result;
  }
  spent_on_variables_ = 0;
  const cel::Outcome outcome = expression.program->evaluate(bindings_, arena_);
  const auto cost = static_cast<int64_t>(outcome.cost);
  if (spent_on_variables_ > budget || cost > budget - spent_on_variables_) {
    budget = -1;
    return std::nullopt;
  }
  budget -= spent_on_variables_ + cost;
  result.value = outcome.value;
  if (outcome.value.is_error()) {
    result.problem = "expression '" + expression.text + "' resulted in error: " + std::string(outcome.value.text());
  }
  return result;
}

Matched match(std::span<const Expression> conditions, Activation& activation, bool ignores_failure) {
  const auto failed = [&](std::string problem) {
    return ignores_failure ? Matched{false, {}} : Matched{false, std::move(problem)};
  };
  int64_t budget = cel::kMatchConditionsBudget;
  std::vector<Evaluated> results;
  results.reserve(conditions.size());
  for (const Expression& condition : conditions) {
    std::optional<Evaluated> result = activation.evaluate(condition, budget);
    if (!result) return failed(std::string(kOutOfBudget));
    results.push_back(std::move(*result));
  }
  std::vector<std::string> problems;
  for (Evaluated& result : results) {
    if (!result.problem.empty()) {
      problems.push_back(std::move(result.problem));
    } else if (!result.value.is_true()) {
      return {false, {}};
    }
  }
  if (problems.empty()) return {};
  return failed(aggregate(problems));
}

}  // namespace holdfast::expressions
