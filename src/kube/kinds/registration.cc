// admissionregistration.k8s.io.

#include <algorithm>

#include "base/strings.h"
#include "base/url.h"
#include "base/webhook_path.h"
#include "expressions/expressions.h"
#include "kinds/all.h"
#include "kinds/names.h"

namespace holdfast::kinds {
namespace {

using expressions::Compiler;
using expressions::Purpose;

constexpr size_t kMaxAuditAnnotations = 20;
constexpr size_t kMaxAnnotationExpressionBytes = 5 * 1024;

// --- Defaults ---

void default_rules(Draft::Node holder, std::string_view key) {
  for (Draft::Node rule : holder.list(key)) rule.set_default("scope", Value::string("*"));
}

void default_match(Draft::Node match) {
  match.set_default("matchPolicy", Value::string("Equivalent"));
  match.set_default("namespaceSelector", Value::empty_map());
  match.set_default("objectSelector", Value::empty_map());
  default_rules(match, "resourceRules");
  default_rules(match, "excludeResourceRules");
}

void default_webhooks(Draft::Node object, bool mutating) {
  for (Draft::Node hook : object.list("webhooks")) {
    hook.set_default("failurePolicy", Value::string("Fail"));
    hook.set_default("matchPolicy", Value::string("Equivalent"));
    hook.set_default("namespaceSelector", Value::empty_map());
    hook.set_default("objectSelector", Value::empty_map());
    hook.set_default("timeoutSeconds", Value::integer(10));
    if (mutating) hook.set_default("reinvocationPolicy", Value::string("Never"));
    default_rules(hook, "rules");
    if (Draft::Node config = hook.existing("clientConfig")) {
      if (Draft::Node service = config.existing("service")) service.set_default("port", Value::integer(443));
    }
  }
}
void default_validating_webhooks(Arena&, const types::Resource&, Draft::Node object) {
  default_webhooks(object, false);
}
void default_mutating_webhooks(Arena&, const types::Resource&, Draft::Node object) { default_webhooks(object, true); }

void default_policy(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_default("failurePolicy", Value::string("Fail"));
  if (Draft::Node match = spec.existing("matchConstraints")) default_match(match);
}
void default_binding(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (Draft::Node match = spec.existing("matchResources")) default_match(match);
}

// --- Validation ---

bool has_wildcard(std::span<const Value> items) { return contains_text(items, "*"); }

void validate_resources(std::span<const Value> resources, const Value& shown, const Path& at, FieldErrors& errors) {
  if (resources.empty()) errors.required(at);
  Names open_resources, open_subresources;
  bool all = false, single = false, plain = false;
  for (size_t i = 0; i < resources.size(); ++i) {
    const std::string_view text = resources[i].as_string();
    if (text.empty()) {
      errors.required(at.index(i));
      continue;
    }
    all = all || text == "*/*";
    single = single || text == "*";
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      plain = text != "*";
      continue;
    }
    const std::string_view resource = text.substr(0, slash), part = text.substr(slash + 1);
    if (contains(open_resources, resource)) {
      errors.invalid(at.index(i), text,
                     "if '" + std::string(resource) + "/*' is present, must not specify " + std::string(text));
    }
    if (contains(open_subresources, part)) {
      errors.invalid(at.index(i), text,
                     "if '*/" + std::string(part) + "' is present, must not specify " + std::string(text));
    }
    if (part == "*") open_resources.push_back(resource);
    if (resource == "*") open_subresources.push_back(part);
  }
  if (resources.size() > 1 && all) {
    errors.invalid(at, shown, "if '*/*' is present, must not specify other resources");
  }
  if (single && plain) {
    errors.invalid(at, shown, "if '*' is present, must not specify other resources without subresources");
  }
}

void validate_rule(const Value& rule, const Path& at, FieldErrors& errors) {
  const std::span<const Value> operations = rule.items_at("operations");
  if (operations.empty()) errors.required(at.child("operations"));
  if (operations.size() > 1 && has_wildcard(operations)) {
    errors.invalid(at.child("operations"), rule.find("operations"),
                   "if '*' is present, must not specify other operations");
  }
  constexpr std::string_view kOperations[] = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"};
  for (size_t i = 0; i < operations.size(); ++i) {
    if (!contains(kOperations, operations[i].as_string())) {
      errors.not_supported(at.item("operations", i), operations[i], kOperations);
    }
  }
  for (const auto& [key, what] :
       {std::pair<std::string_view, std::string_view>{"apiGroups", "API groups"}, {"apiVersions", "API versions"}}) {
    const std::span<const Value> items = rule.items_at(key);
    if (items.empty()) errors.required(at.child(key));
    if (items.size() > 1 && has_wildcard(items)) {
      errors.invalid(at.child(key), rule.find(key), "if '*' is present, must not specify other " + std::string(what));
    }
  }
  const std::span<const Value> versions = rule.items_at("apiVersions");
  for (size_t i = 0; i < versions.size(); ++i) {
    if (versions[i].count() == 0) errors.required(at.item("apiVersions", i));
  }
  validate_resources(rule.items_at("resources"), sub(rule, "resources"), at.child("resources"), errors);
  if (is_set(rule, "scope")) validate_enum(rule, "scope", {"*", "Cluster", "Namespaced"}, at, errors);
}

void report_problem(const expressions::Expression& compiled, std::string_view shown, const Path& at,
                    FieldErrors& errors) {
  if (compiled.program != nullptr) return;
  if (compiled.instantiation_failed) return errors.internal(at, compiled.problem);
  errors.invalid(at, shown, compiled.problem);
}

// `shown` is the value shown in the error, if that is not the expression itself.
void validate_expression(Compiler& compiler, std::string_view text, Purpose purpose, const Path& at,
                         FieldErrors& errors, std::string_view shown = {}) {
  report_problem(compiler.compile(text, purpose), shown.empty() ? text : shown, at, errors);
}

void validate_match_conditions(const Value& holder, bool params, const Path& at, FieldErrors& errors) {
  const std::span<const Value> conditions = holder.items_at("matchConditions");
  if (conditions.size() > 64) errors.too_many(at.child("matchConditions"), static_cast<int64_t>(conditions.size()), 64);
  Names names;
  Compiler compiler({.variables = false, .params = params});
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path here = at.item("matchConditions", i);
    const std::string_view expression = trim(conditions[i].text_at("expression"));
    if (expression.empty()) {
      errors.required(here.child("expression"));
    } else {
      validate_expression(compiler, expression, Purpose::Condition, here.child("expression"), errors);
    }
    const std::string_view name = conditions[i].text_at("name");
    if (name.empty()) {
      errors.required(here.child("name"));
      continue;
    }
    errors.invalid_each(here.child("name"), name, qualified_name_errors(name));
    if (contains(names, name)) errors.duplicate(here.child("name"), name);
    names.push_back(name);
  }
}

void validate_client_config(const Value& config, const Path& at, FieldErrors& errors) {
  const bool url = is_set(config, "url"), service = is_set(config, "service");
  if (url == service) return errors.required(at, "exactly one of url or service is required");
  if (url) {
    const Path here = at.child("url");
    for (const UrlProblem& problem : webhook_url_problems(config.text_at("url"))) {
      if (problem.unparsable) {
        errors.required(here, problem.why);
      } else {
        errors.invalid(here, problem.part, problem.why);
      }
    }
    return;
  }
  const Value& reference = sub(config, "service");
  const Path here = at.child("service");
  // kube-apiserver passes the two in the wrong order: it reports the one that is present.
  if (reference.text_at("namespace").empty()) errors.required(here.child("name"));
  if (reference.text_at("name").empty()) errors.required(here.child("namespace"));
  const int64_t port = reference.int_at_or(443, "port");
  if (port < 1 || port > 65535)
    errors.invalid(here.child("port"), port, "port is not valid: " + range_message(1, 65535));
  const std::string_view path = reference.text_at("path");
  errors.invalid_each(here.child("path"), path, webhook_path_problems(path, dns_subdomain_errors));
}

void validate_hook_name(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) return errors.required(at);
  const std::string joined = join(dns_subdomain_errors(name), ",");
  if (!joined.empty()) return errors.invalid(at, name, joined);
  if (std::count(name.begin(), name.end(), '.') < 2) {
    errors.invalid(at, name, "should be a domain with at least three segments separated by dots");
  }
}

void validate_review_versions(const Value& hook, const Path& at, FieldErrors& errors) {
  const std::span<const Value> versions = hook.items_at("admissionReviewVersions");
  const Path list = at.child("admissionReviewVersions");
  if (versions.empty()) return errors.required(list, "must specify one of v1, v1beta1");
  bool accepted = false;
  Names seen;
  for (size_t i = 0; i < versions.size(); ++i) {
    const std::string_view version = versions[i].as_string();
    if (!seen.add(version)) {
      errors.invalid(list.index(i), version, "duplicate version");
      continue;
    }
    errors.invalid_each(list.index(i), version, dns1035_label_errors(version));
    accepted = accepted || version == "v1" || version == "v1beta1";
  }
  if (!accepted) errors.invalid(list, hook.find("admissionReviewVersions"), "must include at least one of v1, v1beta1");
}

void validate_webhooks(const Value& object, bool mutating, FieldErrors& errors) {
  const std::span<const Value> hooks = object.items_at("webhooks");
  const Path list("webhooks");
  Names names;
  for (size_t i = 0; i < hooks.size(); ++i) {
    const Value& hook = hooks[i];
    const Path at = list.index(i);
    validate_hook_name(hook.text_at("name"), at.child("name"), errors);
    const std::span<const Value> rules = hook.items_at("rules");
    for (size_t j = 0; j < rules.size(); ++j) validate_rule(rules[j], at.item("rules", j), errors);
    if (is_set(hook, "failurePolicy")) validate_enum(hook, "failurePolicy", {"Fail", "Ignore"}, at, errors);
    if (is_set(hook, "matchPolicy")) validate_enum(hook, "matchPolicy", {"Equivalent", "Exact"}, at, errors);
    if (!is_set(hook, "sideEffects")) {
      errors.required(at.child("sideEffects"), "must specify one of None, NoneOnDryRun");
    } else {
      validate_enum(hook, "sideEffects", {"None", "NoneOnDryRun"}, at, errors);
    }
    if (is_set(hook, "timeoutSeconds")) {
      const int64_t seconds = hook.int_at_or(0, "timeoutSeconds");
      if (seconds < 1 || seconds > 30) {
        errors.invalid(at.child("timeoutSeconds"), seconds, "the timeout value must be between 1 and 30 seconds");
      }
    }
    validate_label_selector(hook.find("namespaceSelector"), at.child("namespaceSelector"), errors);
    validate_label_selector(hook.find("objectSelector"), at.child("objectSelector"), errors);
    if (mutating && is_set(hook, "reinvocationPolicy")) {
      validate_enum(hook, "reinvocationPolicy", {"IfNeeded", "Never"}, at, errors);
    }
    validate_client_config(sub(hook, "clientConfig"), at.child("clientConfig"), errors);
    validate_match_conditions(hook, false, at, errors);
    validate_review_versions(hook, at, errors);
    const std::string_view name = hook.text_at("name");
    if (!name.empty() && contains(names, name)) errors.duplicate(at.child("name"), name);
    names.push_back(name);
  }
}
void validate_validating_webhooks(Context&, const Value& object, FieldErrors& errors) {
  validate_webhooks(object, false, errors);
}
void validate_mutating_webhooks(Context&, const Value& object, FieldErrors& errors) {
  validate_webhooks(object, true, errors);
}

void validate_match_resources(const Value& match, const Path& at, FieldErrors& errors) {
  validate_enum(match, "matchPolicy", {"Equivalent", "Exact"}, at, errors);
  validate_label_selector(match.find("namespaceSelector"), at.child("namespaceSelector"), errors);
  validate_label_selector(match.find("objectSelector"), at.child("objectSelector"), errors);
  for (const std::string_view key : {"resourceRules", "excludeResourceRules"}) {
    const std::span<const Value> rules = match.items_at(key);
    for (size_t i = 0; i < rules.size(); ++i) {
      const Path rule = at.item(key, i);
      const std::span<const Value> names = rules[i].items_at("resourceNames");
      Names seen;
      for (size_t j = 0; j < names.size(); ++j) {
        if (!names[j].is_string()) continue;
        errors.invalid_each(rule.item("resourceNames", j), names[j], path_segment_errors(names[j].as_string()));
        if (!seen.add(names[j].as_string())) {
          errors.duplicate(rule.item("resourceNames", j), names[j].as_string());
        }
      }
      validate_rule(rules[i], rule, errors);
    }
  }
}

void validate_param_kind(const Value& kind, const Path& at, FieldErrors& errors) {
  const std::string_view text = kind.text_at("apiVersion"), name = kind.text_at("kind");
  const Path here = at.child("apiVersion");
  const size_t slash = text.find('/');
  if (text.empty()) {
    errors.required(here);
  } else if (text != "/" && slash != std::string_view::npos && text.find('/', slash + 1) != std::string_view::npos) {
    errors.invalid(here, text, "unexpected GroupVersion string: " + std::string(text));
  } else {
    const std::string_view group = slash == std::string_view::npos ? std::string_view{} : text.substr(0, slash);
    const std::string_view version = slash == std::string_view::npos ? text : text.substr(slash + 1);
    if (!group.empty()) {
      if (const std::string why = join(dns_subdomain_errors(group), ","); !why.empty())
        errors.invalid(here, group, why);
    }
    if (version.empty()) {
      errors.invalid(here, text, "version must be specified");
    } else if (const std::string why = join(dns1035_label_errors(version), ","); !why.empty()) {
      errors.invalid(here, version, why);
    }
  }
  if (name.empty()) return errors.required(at.child("kind"));
  const std::string lower = to_lower(name);
  if (const std::string why = join(dns1035_label_errors(lower), ","); !why.empty()) {
    errors.invalid(at.child("kind"), name, "may have mixed case, but should otherwise match: " + why);
  }
}

bool is_cel_identifier(std::string_view name) {
  constexpr std::string_view kReserved[] = {"true",     "false",   "null",      "in",       "as",  "break",  "const",
                                            "continue", "else",    "for",       "function", "if",  "import", "let",
                                            "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  return c_identifier_errors(name).empty() && !contains(kReserved, name);
}

// The common part of both policy kinds; compiles `variables` for the expressions that follow.
void validate_policy_spec(const Value& spec, Compiler& compiler, const Path& at, FieldErrors& errors,
                          void (*validate_rules)(const Value& match, const Path& at, FieldErrors& errors) = nullptr) {
  if (!is_set(spec, "failurePolicy")) {
    errors.required(at.child("failurePolicy"));
  } else {
    validate_enum(spec, "failurePolicy", {"Fail", "Ignore"}, at, errors);
  }
  const bool params = is_set(spec, "paramKind");
  if (params) validate_param_kind(sub(spec, "paramKind"), at.child("paramKind"), errors);
  if (!is_set(spec, "matchConstraints")) {
    errors.required(at.child("matchConstraints"));
  } else {
    const Path match = at.child("matchConstraints");
    validate_match_resources(sub(spec, "matchConstraints"), match, errors);
    if (is_empty(sub(spec, "matchConstraints"), "resourceRules")) errors.required(match.child("resourceRules"));
    if (validate_rules != nullptr) validate_rules(sub(spec, "matchConstraints"), match, errors);
  }
  validate_match_conditions(spec, params, at, errors);
  const std::span<const Value> variables = spec.items_at("variables");
  for (size_t i = 0; i < variables.size(); ++i) {
    const Path here = at.item("variables", i);
    const std::string_view name = variables[i].text_at("name"), expression = variables[i].text_at("expression");
    if (trim(name).empty()) {
      errors.required(here.child("name"), "name is not specified");
    } else if (!is_cel_identifier(name)) {
      errors.invalid(here.child("name"), name, "must be a valid CEL identifier");
    }
    if (trim(expression).empty()) {
      errors.required(here.child("expression"), "expression is not specified");
    } else {
      report_problem(compiler.add_variable(name, expression), expression, here.child("expression"), errors);
    }
  }
}

void validate_validation(const Value& validation, Compiler& compiler, const Path& at, FieldErrors& errors) {
  const std::string_view expression = validation.text_at("expression"), message = validation.text_at("message"),
                         message_expression = validation.text_at("messageExpression");
  if (trim(expression).empty()) {
    errors.required(at.child("expression"), "expression is not specified");
  } else {
    validate_expression(compiler, expression, Purpose::Condition, at.child("expression"), errors);
  }
  if (!message_expression.empty() && trim(message_expression).empty()) {
    errors.invalid(at.child("messageExpression"), message_expression, "must be non-empty if specified");
  } else if (!message_expression.empty()) {
    validate_expression(compiler, message_expression, Purpose::Message, at.child("messageExpression"), errors);
  }
  if (!message.empty() && trim(message).empty()) {
    errors.invalid(at.child("message"), message, "must be non-empty if specified");
  } else if (trim(message).find_first_of("\n\r") != std::string_view::npos) {
    errors.invalid(at.child("message"), message, "must not contain line breaks");
  }
  if (is_set(validation, "reason")) {
    validate_enum(validation, "reason", {"Forbidden", "Invalid", "RequestEntityTooLarge"}, at, errors);
  }
}

void validate_audit_annotations(const Value& spec, std::string_view policy, Compiler& compiler, const Path& at,
                                FieldErrors& errors) {
  const std::span<const Value> notes = spec.items_at("auditAnnotations");
  if (notes.size() > kMaxAuditAnnotations) {
    errors.invalid(at.child("auditAnnotations"), spec.find("auditAnnotations"),
                   "must not have more than " + std::to_string(kMaxAuditAnnotations) + " auditAnnotations");
  }
  Names keys;
  for (size_t i = 0; i < notes.size(); ++i) {
    const Path here = at.item("auditAnnotations", i);
    const std::string_view key = notes[i].text_at("key");
    if (policy.empty()) {
      errors.invalid(here.child("key"), key, "requires metadata.name be non-empty");
    } else {
      const std::string full = std::string(policy) + "/" + std::string(key);
      errors.invalid_each(here.child("key"), Shown(full), qualified_name_errors(full));
    }
    const std::string_view written = notes[i].text_at("valueExpression"), expression = trim(written);
    if (expression.empty()) {
      errors.required(here.child("valueExpression"), "valueExpression is not specified");
    } else if (expression.size() > kMaxAnnotationExpressionBytes) {
      errors.required(here.child("valueExpression"),
                      "must not exceed " + std::to_string(kMaxAnnotationExpressionBytes) + " bytes in length");
    } else {
      validate_expression(compiler, expression, Purpose::Annotation, here.child("valueExpression"), errors, written);
    }
    if (contains(keys, key)) errors.duplicate(here.child("key"), key);
    keys.push_back(key);
  }
}

void validate_validating_policy(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  Compiler compiler({.variables = !is_empty(spec, "variables"), .params = is_set(spec, "paramKind")});
  validate_policy_spec(spec, compiler, at, errors);
  const std::span<const Value> validations = spec.items_at("validations");
  if (validations.empty() && is_empty(spec, "auditAnnotations")) {
    constexpr std::string_view kText = "validations or auditAnnotations must contain at least one item";
    errors.required(at.child("validations"), kText);
    errors.required(at.child("auditAnnotations"), kText);
  }
  for (size_t i = 0; i < validations.size(); ++i) {
    validate_validation(validations[i], compiler, at.item("validations", i), errors);
  }
  validate_audit_annotations(spec, object.text_at("metadata", "name"), compiler, at, errors);
}

// There is nothing to mutate on DELETE.
void validate_mutable_operations(const Value& match, const Path& at, FieldErrors& errors) {
  for (const Value& rule : match.items_at("resourceRules")) {
    for (const Value& operation : rule.items_at("operations")) {
      constexpr std::string_view kMutable[] = {"*", "CONNECT", "CREATE", "UPDATE"};
      if (!contains(kMutable, operation.as_string())) {
        errors.not_supported(at.child("resourceRules.operations"), operation, kMutable);
      }
    }
  }
}

void validate_mutation(const Value& mutation, Compiler& compiler, const Path& at, FieldErrors& errors) {
  const std::string_view type = mutation.text_at("patchType");
  if (type.empty()) return errors.required(at.child("patchType"));
  if (type != "ApplyConfiguration" && type != "JSONPatch") {
    return errors.not_supported(at.child("patchType"), type, {"ApplyConfiguration", "JSONPatch"});
  }
  const bool json = type == "JSONPatch";
  const std::string_view member = json ? "jsonPatch" : "applyConfiguration",
                         other = json ? "applyConfiguration" : "jsonPatch";
  const Path here = at.child(member);
  if (!is_set(mutation, member)) {
    errors.required(here, "must be specified when patchType is " + std::string(type));
  } else if (const std::string_view expression = trim(mutation.text_at(member, "expression")); expression.empty()) {
    errors.required(here.child("expression"));
  } else {
    validate_expression(compiler, expression, json ? Purpose::JsonPatch : Purpose::ApplyConfiguration,
                        here.child("expression"), errors);
  }
  if (is_set(mutation, other)) {
    const std::string shown = "{" + std::string(other) + "}";
    errors.invalid(at.child(other), Shown(shown), "must not be specified when patchType is " + std::string(type));
  }
}

void validate_mutating_policy(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  Compiler compiler({.variables = true, .params = is_set(spec, "paramKind")});
  validate_policy_spec(spec, compiler, at, errors, validate_mutable_operations);
  const std::span<const Value> mutations = spec.items_at("mutations");
  if (mutations.empty()) errors.required(at.child("mutations"), "mutations must contain at least one item");
  for (size_t i = 0; i < mutations.size(); ++i) {
    validate_mutation(mutations[i], compiler, at.item("mutations", i), errors);
  }
  if (spec.text_at("reinvocationPolicy").empty()) {
    errors.required(at.child("reinvocationPolicy"));
  } else {
    validate_enum(spec, "reinvocationPolicy", {"IfNeeded", "Never"}, at, errors);
  }
}

void validate_policy_binding(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view name = spec.text_at("policyName");
  errors.require_valid(at.child("policyName"), name, dns_subdomain_errors);
  if (is_set(spec, "paramRef")) {
    const Value& reference = sub(spec, "paramRef");
    const Path here = at.child("paramRef");
    const std::string_view param = reference.text_at("name");
    const bool selector = is_set(reference, "selector");
    if (!param.empty()) {
      errors.invalid_each(here.child("name"), param, path_segment_errors(param));
      if (selector) errors.forbidden(here.child("name"), "name and selector are mutually exclusive");
    }
    if (selector) {
      validate_label_selector(reference.find("selector"), here.child("selector"), errors);
      if (!param.empty()) errors.forbidden(here.child("selector"), "name and selector are mutually exclusive");
    }
    if (param.empty() && !selector) errors.required(here, "one of name or selector must be specified");
    if (reference.text_at("parameterNotFoundAction").empty()) {
      errors.required(here.child("parameterNotFoundAction"));
    } else {
      validate_enum(reference, "parameterNotFoundAction", {"Deny", "Allow"}, here, errors);
    }
  }
  const bool validating = object.text_at("kind") == "ValidatingAdmissionPolicyBinding";
  if (is_set(spec, "matchResources")) {
    const Path match = at.child("matchResources");
    validate_match_resources(sub(spec, "matchResources"), match, errors);
    if (!validating) validate_mutable_operations(sub(spec, "matchResources"), match, errors);
  }
  if (!validating) return;
  const std::span<const Value> actions = spec.items_at("validationActions");
  const Path list = at.child("validationActions");
  if (actions.empty()) errors.required(list, "at least one validation action is required");
  constexpr std::string_view kActions[] = {"Audit", "Deny", "Warn"};
  Names seen;
  for (size_t i = 0; i < actions.size(); ++i) {
    const std::string_view action = actions[i].as_string();
    if (!contains(kActions, action)) errors.not_supported(list.index(i), action, kActions);
    if (!seen.add(action)) errors.duplicate(list.index(i), action);
  }
  if (contains_text(actions, "Deny") && contains_text(actions, "Warn")) {
    errors.invalid(list, spec.find("validationActions"),
                   "must not contain both Deny and Warn (repeating the same validation failure information in the API "
                   "response and headers serves no purpose)");
  }
}

}  // namespace

const Hooks kValidatingWebhookHooks = {.generation = Generation::Webhooks,
                                       .update_checks = {.whole = 1, .compared = 0},
                                       .defaults = default_validating_webhooks,
                                       .validate = validate_validating_webhooks};
const Hooks kMutatingWebhookHooks = {.generation = Generation::Webhooks,
                                     .update_checks = {.whole = 1, .compared = 0},
                                     .defaults = default_mutating_webhooks,
                                     .validate = validate_mutating_webhooks};
const Hooks kValidatingPolicyHooks = {.generation = Generation::Spec,
                                      .status_metadata = StatusMetadata::KeepObjectAndDeletion,
                                      .update_checks = {.whole = 1, .compared = 0},
                                      .status_checks = {.compared = 0},
                                      .defaults = default_policy,
                                      .validate = validate_validating_policy};
const Hooks kMutatingPolicyHooks = {.generation = Generation::Spec,
                                    .update_checks = {.whole = 1, .compared = 0},
                                    .defaults = default_policy,
                                    .validate = validate_mutating_policy};
const Hooks kPolicyBindingHooks = {.generation = Generation::Spec,
                                   .update_checks = {.whole = 1, .compared = 0},
                                   .defaults = default_binding,
                                   .validate = validate_policy_binding};

}  // namespace holdfast::kinds
