// Parses webhook configurations for dispatch.
#include <algorithm>
#include <map>

#include "kinds/kinds.h"
#include "webhook/webhook.h"

namespace holdfast::webhook {
namespace {

bool has(const std::vector<std::string>& items, std::string_view wanted) {
  return std::any_of(items.begin(), items.end(),
                     [&](const std::string& item) { return item == "*" || item == wanted; });
}

bool has_resource(const std::vector<std::string>& items, std::string_view resource, std::string_view subresource) {
  return std::any_of(items.begin(), items.end(), [&](std::string_view item) {
    const size_t slash = item.find('/');
    const std::string_view name = item.substr(0, slash);
    const std::string_view sub = slash == std::string_view::npos ? std::string_view{} : item.substr(slash + 1);
    return (name == "*" || name == resource) && (sub == "*" || sub == subresource);
  });
}

Value selector_of(const Value& hook, std::string_view key) {
  const Value* selector = hook.find(key);
  return selector == nullptr ? Value::null() : *selector;
}

}  // namespace

Rule rule_of(const Value& value) {
  Rule rule;
  rule.operations = texts_of(value.items_at("operations"));
  rule.groups = texts_of(value.items_at("apiGroups"));
  rule.versions = texts_of(value.items_at("apiVersions"));
  rule.resources = texts_of(value.items_at("resources"));
  rule.names = texts_of(value.items_at("resourceNames"));
  const std::string_view scope = value.text_at("scope");
  rule.scope = scope == "Cluster"      ? Rule::Scope::Cluster
               : scope == "Namespaced" ? Rule::Scope::Namespaced
                                       : Rule::Scope::All;
  return rule;
}

bool Rule::matches(Operation operation, const GroupVersionResource& resource, std::string_view subresource,
                   std::string_view ns, std::string_view name) const {
  // Requests for a namespace carry its name as their namespace, although namespaces are cluster-scoped.
  const bool of_cluster = ns.empty() || resource == GroupVersionResource{"", "v1", "namespaces"};
  if (scope == Scope::Namespaced && of_cluster) return false;
  if (scope == Scope::Cluster && !of_cluster) return false;
  return has(operations, to_string(operation)) && has(groups, resource.group) && has(versions, resource.version) &&
         has_resource(resources, resource.resource, subresource) &&
         (names.empty() || std::find(names.begin(), names.end(), name) != names.end());
}

std::vector<Hook> hooks_of(const Value& configuration) {
  std::vector<Hook> hooks;
  std::map<std::string, int, std::less<>> seen;
  const std::string name(configuration.text_at("metadata", "name"));
  for (const Value& value : configuration.items_at("webhooks")) {
    Hook hook;
    hook.configuration = name;
    hook.name = value.text_at("name");
    hook.id = name + "/" + hook.name + "/" + std::to_string(seen[hook.name]++);
    if (const Value* client = value.find("clientConfig")) hook.client = client_config(*client);
    for (const Value& rule : value.items_at("rules")) hook.rules.push_back(rule_of(rule));
    hook.ignores_failure = value.text_at("failurePolicy") == "Ignore";
    hook.matches_equivalent = value.text_at("matchPolicy") == "Equivalent";
    const std::string_view effects = value.text_at("sideEffects");
    hook.has_side_effects = effects != "None" && effects != "NoneOnDryRun";
    hook.reinvokes = value.text_at("reinvocationPolicy") == "IfNeeded";
    hook.timeout = std::chrono::seconds(value.int_at_or(10, "timeoutSeconds"));
    for (const std::string& version : texts_of(value.items_at("admissionReviewVersions"))) {
      if (version != "v1" && version != "v1beta1") continue;
      hook.review_version = version == "v1" ? ReviewVersion::V1 : ReviewVersion::V1beta1;
      break;
    }
    hook.namespace_selector = selector_of(value, "namespaceSelector");
    hook.object_selector = selector_of(value, "objectSelector");
    for (const Value& condition : value.items_at("matchConditions")) {
      expressions::Compiler compiler({});
      hook.conditions.push_back(compiler.compile(condition.text_at("expression"), expressions::Purpose::Condition));
    }
    hooks.push_back(std::move(hook));
  }
  return hooks;
}

bool selects_all(const Value& selector) {
  return !selector.is_map() ||
         (selector.members_at("matchLabels").empty() && selector.items_at("matchExpressions").empty());
}

bool selects_object(const Value& selector, const Value& object, const Value& old) {
  if (selects_all(selector)) return true;
  const auto selects = [&](const Value& candidate) {
    return candidate.is_map() && kinds::selects(&selector, candidate.get("metadata", "labels"));
  };
  return selects(object) || selects(old);
}

bool selects_namespace(const Value& selector, const Value* labels) {
  return selects_all(selector) || kinds::selects(&selector, labels);
}

}  // namespace holdfast::webhook
