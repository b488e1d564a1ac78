// x-kubernetes-validations: validation of the rules in a definition, and their evaluation on objects.
#include <algorithm>
#include <cstdio>

#include "cel/cel.h"
#include "crd/crd.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

using cel::SchemaRules;

std::string cost_message(std::string_view what, uint64_t cost, uint64_t limit) {
  const double factor = static_cast<double>(cost) / static_cast<double>(limit);
  char text[64];
  if (factor > 100) {
    snprintf(text, sizeof text, "more than 100x");
  } else {
    snprintf(text, sizeof text, factor < 1.5 ? "%fx" : "%.1fx", factor);
  }
  return std::string(what) + " exceeds budget by factor of " + text +
         " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
         "are declared)";
}

uint64_t product(uint64_t a, uint64_t b) { return a != 0 && UINT64_MAX / a < b ? UINT64_MAX : a * b; }

// Sums up the cost of all rules and keeps the most expensive ones.
class TotalCost {
 public:
  void observe(std::string place, uint64_t cost) {
    total_ = UINT64_MAX - total_ < cost ? UINT64_MAX : total_ + cost;
    if (cost < cel::kSchemaEstimateLimit / 100) return;  // Less than one percent of the limit.
    most_.emplace_back(cost, std::move(place));
    std::stable_sort(most_.begin(), most_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (most_.size() > 4) most_.resize(4);
  }
  void report(const Path& at, FieldErrors& errors) const {
    if (total_ <= cel::kSchemaEstimateLimit) return;
    for (const auto& [cost, place] : most_)
      errors.forbidden(Path(place),
                       "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema");
    errors.forbidden(at, cost_message("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
                                      total_, cel::kSchemaEstimateLimit));
  }

 private:
  uint64_t total_ = 0;
  std::vector<std::pair<uint64_t, std::string>> most_;
};

void report(const SchemaRules::Failure& failure, const std::string& path, FieldErrors& errors) {
  const Path at(path);
  const Shown shown = failure.type               ? Shown(*failure.type)
                      : failure.value != nullptr ? Shown(*failure.value)
                                                 : Shown::nothing();
  switch (failure.kind) {
    case SchemaRules::Failure::Kind::Invalid:
      errors.invalid(at, shown, failure.detail);
      break;
    case SchemaRules::Failure::Kind::Forbidden:
      errors.forbidden(at, failure.detail);
      break;
    case SchemaRules::Failure::Kind::Required:
      errors.required(at, failure.detail);
      break;
    case SchemaRules::Failure::Kind::Duplicate:
      errors.duplicate(at, shown);
      break;
    case SchemaRules::Failure::Kind::Internal:
      errors.internal(at, failure.detail);
      break;
  }
}

}  // namespace

void validate_rules(const Value& schema, const std::set<std::string>& without, bool costs, const Path& at,
                    FieldErrors& errors) {
  const std::shared_ptr<const SchemaRules> rules = SchemaRules::compile(schema);
  if (rules == nullptr) return;
  TotalCost total;
  const std::string root = at.text();
  for (const SchemaRules::Rule& rule : rules->rules()) {
    const std::string holder = root + (rule.schema_path.empty() ? "" : "." + rule.schema_path);
    if (without.contains(holder)) continue;
    if (rule.problem == SchemaRules::kUntypedSchemaProblem) {
      if (rule.index > 0) continue;  // Reported once per schema.
      const std::string all = holder + ".x-kubernetes-validations";
      errors.internal(Path(all),
                      "internal error: failed to construct type information for x-kubernetes-validations rules: unable "
                      "to convert structural schema to CEL declarations");
      continue;
    }
    const std::string place = holder + ".x-kubernetes-validations[" + std::to_string(rule.index) + "]";
    const std::string rule_place = place + ".rule", message_place = place + ".messageExpression";
    const uint64_t cost = product(rule.estimate, rule.bounded_times.value_or(rule.times));
    if (costs && cost > cel::kRuleEstimateLimit)
      errors.forbidden(Path(rule_place), cost_message("estimated rule cost", cost, cel::kRuleEstimateLimit));
    total.observe(rule_place, cost);
    if (!rule.problem.empty()) errors.invalid(Path(rule_place), Shown::verbatim(go_rule(*rule.written)), rule.problem);
    if (!rule.message_problem.empty()) {
      errors.invalid(Path(message_place), Shown::verbatim(go_rule(*rule.written)), rule.message_problem);
    } else if (rule.has_message && rule.problem.empty()) {
      if (costs && rule.message_estimate > cel::kRuleEstimateLimit)
        errors.forbidden(Path(message_place), cost_message("estimated messageExpression cost", rule.message_estimate,
                                                           cel::kRuleEstimateLimit));
      total.observe(message_place, rule.message_estimate);
    }
    if (rule.uses_old_self) {
      if (rule.uncorrelated)
        errors.invalid(Path(rule_place), rule.written->text_at("rule"),
                       "oldSelf cannot be used on the uncorrelatable portion of the schema within " + root +
                           (rule.uncorrelated->empty() ? "" : "." + *rule.uncorrelated));
    } else if (const Value* old = rule.written->find("optionalOldSelf"); old != nullptr && old->is_bool()) {
      const std::string old_place = place + ".optionalOldSelf";
      errors.invalid(Path(old_place), old->as_bool(), "may not be set if oldSelf is not used in rule");
    }
  }
  total.report(at, errors);
}

const cel::SchemaRules* LazyRules::get() const {
  std::call_once(compiled_, [this] {
    Arena arena;
    const Value written = schema_->written(arena);
    if (written.is_map()) rules_ = SchemaRules::compile(written);
  });
  return rules_.get();
}

void add_rule_warnings(const Version& version, const Value& object, const Value& old, Warnings& warnings) {
  const cel::SchemaRules* rules = version.rules == nullptr ? nullptr : version.rules->get();
  if (rules == nullptr) return;
  Arena arena;
  int64_t budget = cel::kRuntimeBudget;
  for (const SchemaRules::Failure& failure : rules->validate(arena, object, &old, budget, true)) {
    if (warnings.full()) return;
    if (failure.ratcheted) warnings.add(failure.text());
  }
}

void run_rules(const Version& version, const Value& object, const Value* old, FieldErrors& errors) {
  const cel::SchemaRules* rules = version.rules == nullptr ? nullptr : version.rules->get();
  if (rules == nullptr) return;
  // Expressions are not evaluated on values that do not match their schema.
  for (const Cause& cause : errors.all()) {
    static constexpr std::string_view kStopping[] = {"FieldValueNotSupported", "FieldValueRequired",
                                                     "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"};
    if (std::find(std::begin(kStopping), std::end(kStopping), cause.type) != std::end(kStopping)) {
      errors.invalid(
          Path("<nil>"), Value::null(),
          "some validation rules were not checked because the object was invalid; correct the existing errors "
          "to complete validation");
      return;
    }
  }
  Arena arena;
  int64_t budget = cel::kRuntimeBudget;
  for (const SchemaRules::Failure& failure : rules->validate(arena, object, old, budget, true)) {
    if (!failure.ratcheted) report(failure, failure.path, errors);
  }
}

void run_default_rules(const Value& schema, bool resource_root, const Value& value, const Path& at, int64_t& budget,
                       FieldErrors& errors) {
  const std::shared_ptr<const SchemaRules> rules = SchemaRules::compile(schema, resource_root);
  if (rules == nullptr || budget < 0) return;
  const std::string root = at.text();
  int64_t least = budget;
  const size_t before = errors.count();
  for (const Value* old : {&value, static_cast<const Value*>(nullptr)}) {
    Arena arena;
    int64_t left = budget;
    for (const SchemaRules::Failure& failure : rules->validate(arena, value, old, left, false)) {
      const bool whole = failure.path == "<nil>", key = failure.path.starts_with('[');
      report(failure, whole ? root : root + (key ? "" : ".") + failure.path, errors);
    }
    least = std::min(least, left);
    if (errors.count() > before) break;
  }
  budget = least;
}

}  // namespace holdfast::crd
