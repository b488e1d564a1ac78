// Where a pod may run: affinity, tolerations, spreading. Used by pods, templates and volumes.

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "kinds/names.h"
#include "kinds/pod.h"

namespace holdfast::kinds {
namespace {

void validate_node_requirement(const Value& requirement, bool any_value, const Path& at, FieldErrors& errors) {
  const std::string_view op = requirement.text_at("operator"), key = requirement.text_at("key");
  const std::span<const Value> values = requirement.items_at("values");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) errors.required(at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.forbidden(at.child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1) {
      errors.required(at.child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    errors.invalid(at.child("operator"), op, "not a valid selector operator");
  }
  errors.invalid_each(at.child("key"), key, qualified_name_errors(key));
  if (any_value) return;
  for (size_t i = 0; i < values.size(); ++i) {
    errors.invalid_each(at.item("values", i), values[i], label_value_errors(values[i].as_string()));
  }
}

void validate_node_field(const Value& requirement, const Path& at, FieldErrors& errors) {
  const std::string_view op = requirement.text_at("operator"), key = requirement.text_at("key");
  const std::span<const Value> values = requirement.items_at("values");
  if (op == "In" || op == "NotIn") {
    if (values.size() != 1) {
      errors.required(at.child("values"),
                      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    }
  } else {
    errors.invalid(at.child("operator"), op, "not a valid selector operator");
  }
  if (key != "metadata.name") return errors.invalid(at.child("key"), key, "not a valid field selector key");
  for (size_t i = 0; i < values.size(); ++i) {
    errors.invalid_each(at.item("values", i), values[i], dns_subdomain_errors(values[i].as_string()));
  }
}

void validate_node_term(const Value& term, bool any_value, const Path& at, FieldErrors& errors) {
  const std::span<const Value> expressions = term.items_at("matchExpressions"), fields = term.items_at("matchFields");
  for (size_t i = 0; i < expressions.size(); ++i) {
    validate_node_requirement(expressions[i], any_value, at.item("matchExpressions", i), errors);
  }
  for (size_t i = 0; i < fields.size(); ++i) validate_node_field(fields[i], at.item("matchFields", i), errors);
}

void validate_weight(const Value& term, const Path& at, FieldErrors& errors) {
  const int64_t weight = term.int_at_or(0, "weight");
  if (weight <= 0 || weight > 100) errors.invalid(at.child("weight"), weight, "must be in the range 1-100");
}

// Keys must be valid label keys, not otherwise used in the selector, and not in both lists.
void validate_label_keys(const Value& holder, const Path& at, FieldErrors& errors) {
  const std::span<const Value> match = holder.items_at("matchLabelKeys"),
                               mismatch = holder.items_at("mismatchLabelKeys");
  if (match.empty() && mismatch.empty()) return;
  for (const std::string_view list : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const std::span<const Value> keys = holder.items_at(list);
    if (!keys.empty() && !is_set(holder, "labelSelector")) {
      errors.forbidden(at.child(list), "must not be specified when labelSelector is not set");
      continue;
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      errors.invalid_each(at.item(list, i), keys[i], qualified_name_errors(keys[i].as_string()));
    }
  }
  // For each matchLabelKey the selector already has the one expression made from it.
  Names selected;
  for (const Member& label : holder.members_at("labelSelector", "matchLabels")) selected.push_back(label.key);
  for (const Value& expression : holder.items_at("labelSelector", "matchExpressions")) {
    const std::string_view key = expression.text_at("key");
    if (selected.add(key)) continue;
    for (size_t i = match.size(); i-- > 0;) {
      if (match[i].as_string() != key) continue;
      errors.invalid(at.index(i), key, "exists in both matchLabelKeys and labelSelector");
      break;
    }
  }
  Names others;
  for (const Value& key : mismatch) others.push_back(key.as_string());
  for (size_t i = 0; i < match.size(); ++i) {
    if (others.contains(match[i].as_string())) {
      errors.invalid(at.item("matchLabelKeys", i), match[i], "exists in both matchLabelKeys and mismatchLabelKeys");
    }
  }
}

void validate_pod_term(const Value& term, const Path& at, FieldErrors& errors) {
  validate_label_selector(term.find("labelSelector"), at.child("labelSelector"), errors);
  validate_label_selector(term.find("namespaceSelector"), at.child("namespaceSelector"), errors);
  for (const Value& name : term.items_at("namespaces")) {
    errors.invalid_each(at.child("namespace"), name, dns_label_errors(name.as_string()));
  }
  validate_label_keys(term, at, errors);
  const std::string_view key = term.text_at("topologyKey");
  if (key.empty()) errors.required(at.child("topologyKey"), "can not be empty");
  errors.invalid_each(at.child("topologyKey"), key, qualified_name_errors(key));
}

void validate_pod_terms(const Value& affinity, const Path& at, FieldErrors& errors) {
  const std::span<const Value> required = affinity.items_at("requiredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < required.size(); ++i) {
    validate_pod_term(required[i], at.item("requiredDuringSchedulingIgnoredDuringExecution", i), errors);
  }
  const std::span<const Value> preferred = affinity.items_at("preferredDuringSchedulingIgnoredDuringExecution");
  for (size_t i = 0; i < preferred.size(); ++i) {
    const Path here = at.item("preferredDuringSchedulingIgnoredDuringExecution", i);
    validate_weight(preferred[i], here, errors);
    validate_pod_term(sub(preferred[i], "podAffinityTerm"), here.child("podAffinityTerm"), errors);
  }
}

}  // namespace

void validate_node_selector(const Value& selector, const Path& at, FieldErrors& errors) {
  const std::span<const Value> terms = selector.items_at("nodeSelectorTerms");
  if (terms.empty()) {
    return errors.required(at.child("nodeSelectorTerms"), "must have at least one node selector term");
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    validate_node_term(terms[i], false, at.item("nodeSelectorTerms", i), errors);
  }
}

void validate_affinity(const Value* affinity, const Path& at, FieldErrors& errors) {
  if (affinity == nullptr) return;
  if (is_set(*affinity, "nodeAffinity")) {
    const Value& node = sub(*affinity, "nodeAffinity");
    const Path here = at.child("nodeAffinity");
    if (is_set(node, "requiredDuringSchedulingIgnoredDuringExecution")) {
      validate_node_selector(sub(node, "requiredDuringSchedulingIgnoredDuringExecution"),
                             here.child("requiredDuringSchedulingIgnoredDuringExecution"), errors);
    }
    const std::span<const Value> preferred = node.items_at("preferredDuringSchedulingIgnoredDuringExecution");
    for (size_t i = 0; i < preferred.size(); ++i) {
      const Path term = here.item("preferredDuringSchedulingIgnoredDuringExecution", i);
      validate_weight(preferred[i], term, errors);
      validate_node_term(sub(preferred[i], "preference"), true, term.child("preference"), errors);
    }
  }
  for (const std::string_view key : {"podAffinity", "podAntiAffinity"}) {
    if (is_set(*affinity, key)) validate_pod_terms(sub(*affinity, key), at.child(key), errors);
  }
}

void validate_tolerations(std::span<const Value> tolerations, const Path& at, FieldErrors& errors) {
  for (size_t i = 0; i < tolerations.size(); ++i) {
    const Value& toleration = tolerations[i];
    const Path here = at.index(i);
    const std::string_view key = toleration.text_at("key"), op = toleration.text_at("operator");
    const std::string_view value = toleration.text_at("value"), effect = toleration.text_at("effect");
    if (!key.empty()) errors.invalid_each(here.child("key"), key, qualified_name_errors(key));
    if (key.empty() && op != "Exists") {
      errors.invalid(here.child("operator"), op,
                     "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    }
    if (is_set(toleration, "tolerationSeconds") && effect != "NoExecute") {
      errors.invalid(here.child("effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    if (op == "Equal" || op.empty()) {
      const std::string joined = join(label_value_errors(value), ";");
      if (!joined.empty()) errors.invalid(here.child("operator"), value, joined);
    } else if (op == "Exists") {
      if (!value.empty()) {
        errors.invalid(here.child("operator"), value, "value must be empty when `operator` is 'Exists'");
      }
    } else if (op == "Lt" || op == "Gt") {
      errors.not_supported(here.child("operator"), op, {"Equal", "Exists", "Lt", "Gt"});
    } else {
      errors.not_supported(here.child("operator"), op, {"Equal", "Exists"});
    }
    if (!effect.empty())
      validate_enum(toleration, "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}, here, errors);
  }
}

void validate_spread_constraints(std::span<const Value> constraints, const Path& at, FieldErrors& errors) {
  // Whether a later constraint has the same topologyKey and whenUnsatisfiable.
  std::vector<bool> repeated(constraints.size());
  std::unordered_set<std::string, KeyHash> later;
  for (size_t i = constraints.size(); i-- > 0;) {
    std::string pair(constraints[i].text_at("topologyKey"));
    pair += '\0';
    pair += constraints[i].text_at("whenUnsatisfiable");
    repeated[i] = !later.insert(std::move(pair)).second;
  }
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Value& constraint = constraints[i];
    const Path here = at.index(i);
    const int64_t skew = constraint.int_at_or(0, "maxSkew");
    const std::string_view key = constraint.text_at("topologyKey"), when = constraint.text_at("whenUnsatisfiable");
    if (skew <= 0) errors.invalid(here.child("maxSkew"), skew, kNotPositive);
    if (key.empty()) errors.required(here.child("topologyKey"), "can not be empty");
    validate_enum(constraint, "whenUnsatisfiable", {"DoNotSchedule", "ScheduleAnyway"}, here, errors);
    if (repeated[i]) {
      errors.duplicate(here.child("{topologyKey, whenUnsatisfiable}"),
                       "{" + std::string(key) + ", " + std::string(when) + "}");
    }
    if (is_set(constraint, "minDomains")) {
      const int64_t domains = constraint.int_at_or(0, "minDomains");
      if (domains <= 0) errors.invalid(here.child("minDomains"), domains, kNotPositive);
      if (when != "DoNotSchedule") {
        errors.invalid(here.child("minDomains"), domains,
                       "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + std::string(when));
      }
    }
    for (const std::string_view policy : {"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
      if (is_set(constraint, policy)) validate_enum(constraint, policy, {"Honor", "Ignore"}, here, errors);
    }
    validate_label_keys(constraint, here, errors);
    validate_label_selector(constraint.find("labelSelector"), here.child("labelSelector"), errors);
  }
}

}  // namespace holdfast::kinds
