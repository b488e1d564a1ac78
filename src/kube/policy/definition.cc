#include "policy/definition.h"

#include "base/api_version.h"
#include "base/strings.h"

namespace holdfast::policy {
namespace {

using expressions::Compiler;
using expressions::Purpose;

Value selector_of(const Value& holder, std::string_view key) {
  const Value* selector = holder.find(key);
  return selector == nullptr ? Value::null() : *selector;
}

std::optional<Match> match_of(const Value* value) {
  if (value == nullptr || !value->is_map()) return std::nullopt;
  Match match;
  for (const Value& rule : value->items_at("resourceRules")) match.rules.push_back(webhook::rule_of(rule));
  for (const Value& rule : value->items_at("excludeResourceRules")) match.excluded.push_back(webhook::rule_of(rule));
  match.namespace_selector = selector_of(*value, "namespaceSelector");
  match.object_selector = selector_of(*value, "objectSelector");
  match.equivalent = value->text_at("matchPolicy") == "Equivalent";
  return match;
}

}  // namespace

std::string_view ParamKind::group() const { return split_api_version(api_version).group; }
std::string_view ParamKind::version() const { return split_api_version(api_version).version; }

Binding::Binding(std::unique_ptr<const Arena> arena, const Value& object)
    : name(object.text_at("metadata", "name")),
      policy(object.text_at("spec", "policyName")),
      match(match_of(object.get("spec", "matchResources"))),
      arena_(std::move(arena)) {
  if (const Value* reference = object.get("spec", "paramRef"); reference != nullptr && reference->is_map()) {
    param = ParamRef{.name = std::string(reference->text_at("name")),
                     .ns = std::string(reference->text_at("namespace")),
                     .selector = selector_of(*reference, "selector"),
                     .denies_missing = reference->text_at("parameterNotFoundAction") == "Deny"};
  }
  actions = texts_of(object.items_at("spec", "validationActions"));
}

Policy::Policy(std::unique_ptr<const Arena> arena, const Value& object)
    : name(object.text_at("metadata", "name")),
      uid(object.text_at("metadata", "uid")),
      generation(object.int_at_or(0, "metadata", "generation")),
      match(match_of(object.get("spec", "matchConstraints"))),
      ignores_failure(object.text_at("spec", "failurePolicy") == "Ignore"),
      reinvokes(object.text_at("spec", "reinvocationPolicy") == "IfNeeded"),
      arena_(std::move(arena)) {
  if (const Value* spec = object.find("spec")) spec_ = *spec;
  if (const Value* kind = spec_.find("paramKind"); kind != nullptr && kind->is_map()) {
    param_kind = ParamKind{std::string(kind->text_at("apiVersion")), std::string(kind->text_at("kind"))};
  }
}

const Policy::Programs& Policy::programs() const {
  std::call_once(compiled_, [this] { compile(); });
  return programs_;
}

void Policy::compile() const {
  Compiler compiler(scope());
  for (const Value& variable : spec_.items_at("variables")) {
    compiler.add_variable(variable.text_at("name"), variable.text_at("expression"));
  }
  for (const Value& condition : spec_.items_at("matchConditions")) {
    programs_.conditions.push_back(compiler.compile(condition.text_at("expression"), Purpose::Condition));
  }
  for (const Value& validation : spec_.items_at("validations")) {
    Validation made{.condition = compiler.compile(validation.text_at("expression"), Purpose::Condition),
                    .message_expression = std::nullopt,
                    .message = std::string(trim(validation.text_at("message"))),
                    .reason = std::string(validation.text_at("reason"))};
    if (const std::string_view text = validation.text_at("messageExpression"); !text.empty()) {
      made.message_expression = compiler.compile(text, Purpose::Message);
    }
    programs_.validations.push_back(std::move(made));
  }
  for (const Value& note : spec_.items_at("auditAnnotations")) {
    programs_.annotations.push_back(
        {std::string(note.text_at("key")), compiler.compile(note.text_at("valueExpression"), Purpose::Annotation)});
  }
  for (const Value& mutation : spec_.items_at("mutations")) {
    programs_.mutations.push_back(compile_mutation(compiler, mutation));
  }
  programs_.variables = compiler.take_variables();
}

}  // namespace holdfast::policy
