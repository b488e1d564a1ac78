// flowcontrol.apiserver.k8s.io.

#include <algorithm>
#include <cmath>

#include "codec/codec.h"
#include "kinds/all.h"
#include "kinds/names.h"

namespace holdfast::kinds {
namespace {

// --- Mandatory objects with a fixed spec ---

constexpr std::string_view kExemptSchema = R"({"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":1,
  "rules":[{"subjects":[{"kind":"Group","group":{"name":"system:masters"}}],
    "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
    "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]})";
constexpr std::string_view kCatchAllSchema = R"({"priorityLevelConfiguration":{"name":"catch-all"},
  "matchingPrecedence":10000,"distinguisherMethod":{"type":"ByUser"},
  "rules":[{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},
                        {"kind":"Group","group":{"name":"system:authenticated"}}],
    "resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}],
    "nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]})";
constexpr std::string_view kExemptLevel = R"({"type":"Exempt"})";  // Without `exempt`, which may be changed.
constexpr std::string_view kCatchAllLevel = R"({"type":"Limited","limited":{"nominalConcurrencyShares":5,
  "limitResponse":{"type":"Reject"},"lendablePercent":0}})";

void validate_fixed(const types::Type& type, const Value& spec, const Value& compared, std::string_view fixed,
                    std::string_view detail, FieldErrors& errors) {
  Arena arena;
  const Result<Value> wanted = codec::decode_json(arena, fixed);
  assert(wanted);
  if (!semantic_equal(type, &compared, &*wanted)) errors.invalid(Path("spec"), shown_internal(type, &spec), detail);
}

// --- FlowSchema ---

void default_flow_schema(Arena&, const types::Resource&, Draft::Node object) {
  object.child("spec").set_if_zero("matchingPrecedence", Value::integer(1000));
}

void validate_list(const Value& rule, std::string_view key, std::string_view missing, std::string_view what,
                   const Path& at, FieldErrors& errors) {
  const std::span<const Value> items = rule.items_at(key);
  if (items.empty()) {
    errors.required(at.child(key), missing);
  } else if (items.size() > 1 && contains_text(items, "*")) {
    errors.invalid(at.child(key), rule.find(key), "if '*' is present, must not specify other " + std::string(what));
  }
}

void validate_verbs(const Value& rule, const Path& at, FieldErrors& errors) {
  static constexpr std::string_view kVerbs[] = {"create", "delete", "deletecollection", "get",  "list",
                                                "patch",  "proxy",  "update",           "watch"};
  validate_list(rule, "verbs", "verbs must contain at least one value", "verbs", at, errors);
  const std::span<const Value> verbs = rule.items_at("verbs");
  if (contains_text(verbs, "*")) return;
  const auto is_known = [](const Value& verb) { return contains(kVerbs, verb.as_string()); };
  if (!std::all_of(verbs.begin(), verbs.end(), is_known)) {
    errors.not_supported(at.child("verbs"), rule.find("verbs"), kVerbs);
  }
}

void validate_subject(const Value& subject, const Path& at, FieldErrors& errors) {
  const std::string_view kind = subject.text_at("kind");
  struct Member {
    std::string_view kind, member;
  };
  static constexpr Member kMembers[] = {{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
  const auto own =
      std::find_if(std::begin(kMembers), std::end(kMembers), [&](const Member& one) { return one.kind == kind; });
  if (own == std::end(kMembers)) {
    return errors.not_supported(at.child("kind"), kind, {"Group", "ServiceAccount", "User"});
  }
  const Path here = at.child(own->member);
  if (!is_set(subject, own->member)) {
    errors.required(here, std::string(own->member) + " is required when subject kind is '" + std::string(kind) + "'");
  } else {
    const std::string_view name = subject.text_at(own->member, "name"),
                           space = subject.text_at(own->member, "namespace");
    if (name.empty()) {
      errors.required(here.child("name"));
    } else if (kind == "ServiceAccount" && name != "*") {
      errors.invalid_each(here.child("name"), name, dns_subdomain_errors(name));
    }
    if (kind == "ServiceAccount") {
      errors.require_valid(here.child("namespace"), space, dns_label_errors,
                           "must specify namespace for service account");
    }
  }
  for (const Member& other : kMembers) {
    if (other.kind != kind && is_set(subject, other.member)) {
      errors.forbidden(at.child(other.member), std::string(other.member) + " is forbidden when subject kind is not '" +
                                                   std::string(other.kind) + "'");
    }
  }
}

// Empty if valid.
std::string_view path_error(std::string_view path) {
  if (path.empty()) return "must not be empty";
  if (path == "/") return {};
  if (!path.starts_with('/')) return "must start with slash";
  if (path.find(' ') != std::string_view::npos) return "must not contain white-space";
  if (path.find("//") != std::string_view::npos) return "must not contain double slash";
  const auto stars = std::count(path.begin(), path.end(), '*');
  if (stars > 1 || (stars == 1 && !path.ends_with("/*"))) return "wildcard can only do suffix matching";
  return {};
}

void validate_flow_rule(const Value& rule, const Path& at, FieldErrors& errors) {
  const std::span<const Value> subjects = rule.items_at("subjects");
  if (subjects.empty()) errors.required(at.child("subjects"), "subjects must contain at least one value");
  for (size_t i = 0; i < subjects.size(); ++i) validate_subject(subjects[i], at.item("subjects", i), errors);
  const std::span<const Value> resources = rule.items_at("resourceRules"), others = rule.items_at("nonResourceRules");
  if (resources.empty() && others.empty()) {
    errors.required(at, "at least one of resourceRules and nonResourceRules has to be non-empty");
  }
  for (size_t i = 0; i < resources.size(); ++i) {
    const Path here = at.item("resourceRules", i);
    validate_verbs(resources[i], here, errors);
    validate_list(resources[i], "apiGroups", "resource rules must supply at least one api group", "api groups", here,
                  errors);
    validate_list(resources[i], "resources", "resource rules must supply at least one resource", "resources", here,
                  errors);
    const std::span<const Value> spaces = resources[i].items_at("namespaces");
    if (spaces.empty() && !is_true(resources[i], "clusterScope")) {
      errors.required(here.child("namespaces"),
                      "resource rules that are not cluster scoped must supply at least one namespace");
    } else if (spaces.size() > 1 && contains_text(spaces, "*")) {
      errors.invalid(here.child("namespaces"), resources[i].find("namespaces"),
                     "if '*' is present, must not specify other namespaces");
    } else if (!contains_text(spaces, "*")) {
      for (size_t j = 0; j < spaces.size(); ++j) {
        for (const std::string& message : dns_label_errors(spaces[j].as_string())) {
          errors.invalid(here.item("namespaces", j), spaces[j],
                         "each member of this list must be '*' or a DNS-1123 label; " + message);
        }
      }
    }
  }
  for (size_t i = 0; i < others.size(); ++i) {
    const Path here = at.item("nonResourceRules", i);
    validate_verbs(others[i], here, errors);
    validate_list(others[i], "nonResourceURLs", "nonResourceURLs must contain at least one value", "non-resource URLs",
                  here, errors);
    const std::span<const Value> paths = others[i].items_at("nonResourceURLs");
    if (contains_text(paths, "*")) continue;
    for (size_t j = 0; j < paths.size(); ++j) {
      const std::string_view wrong = path_error(paths[j].as_string());
      if (!wrong.empty()) errors.invalid(here.item("nonResourceURLs", j), paths[j], wrong);
    }
  }
}

void validate_flow_schema(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const int64_t precedence = spec.int_at_or(0, "matchingPrecedence");
  const Path precedence_at = at.child("matchingPrecedence");
  if (precedence <= 0) errors.invalid(precedence_at, precedence, "must be a positive value");
  if (precedence > 10000) errors.invalid(precedence_at, precedence, "must not be greater than 10000");
  if (precedence == 1 && object.text_at("metadata", "name") != "exempt") {
    errors.invalid(precedence_at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
  }
  if (is_set(spec, "distinguisherMethod")) {
    const std::string_view type = spec.text_at("distinguisherMethod", "type");
    if (type != "ByNamespace" && type != "ByUser") {
      errors.not_supported(at.child("distinguisherMethod.type"),
                           Shown::verbatim("{\"Type\":" + Shown(type).text() + "}"), {"ByNamespace", "ByUser"});
    }
  }
  const std::string_view level = spec.text_at("priorityLevelConfiguration", "name");
  const Path level_at = at.child("priorityLevelConfiguration.name");
  errors.require_valid(level_at, level, dns_subdomain_errors, "must reference a priority level");
  const std::span<const Value> rules = spec.items_at("rules");
  for (size_t i = 0; i < rules.size(); ++i) validate_flow_rule(rules[i], at.item("rules", i), errors);
  const std::string_view name = object.text_at("metadata", "name");
  if (name == "exempt" || name == "catch-all") {
    validate_fixed(type_named("flowcontrol/v1.FlowSchemaSpec"), spec, spec,
                   name == "exempt" ? kExemptSchema : kCatchAllSchema,
                   "spec of '" + std::string(name) + "' must equal the fixed value", errors);
  }
}

void validate_unique_conditions(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const Path at("status");
  const std::span<const Value> conditions = next.items_at("status", "conditions");
  Names known;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Path here = at.item("conditions", i);
    const std::string_view type = conditions[i].text_at("type");
    if (!known.add(type)) errors.duplicate(here.child("type"), type);
    if (type.empty()) errors.required(here.child("type"));
  }
}

// --- PriorityLevelConfiguration ---

void default_level(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (Draft::Node exempt = spec.existing("exempt")) {
    exempt.set_default("nominalConcurrencyShares", Value::integer(0));
    exempt.set_default("lendablePercent", Value::integer(0));
  }
  if (Draft::Node limited = spec.existing("limited")) {
    limited.set_default("nominalConcurrencyShares", Value::integer(30));
    limited.set_default("lendablePercent", Value::integer(0));
    if (Draft::Node response = limited.existing("limitResponse")) {
      if (Draft::Node queuing = response.existing("queuing")) {
        queuing.set_if_zero("handSize", Value::integer(8));
        queuing.set_if_zero("queues", Value::integer(64));
        queuing.set_if_zero("queueLengthLimit", Value::integer(50));
      }
    }
  }
}

void validate_lendable(const Value& level, const Path& at, FieldErrors& errors) {
  const int64_t lendable = level.int_at_or(0, "lendablePercent");
  if (lendable < 0 || lendable > 100) errors.invalid(at.child("lendablePercent"), lendable, range_message(0, 100));
}
void validate_shares(const Value& level, const Path& at, FieldErrors& errors) {
  if (level.int_at_or(0, "nominalConcurrencyShares") < 0) {
    errors.invalid(at.child("nominalConcurrencyShares"), level.find("nominalConcurrencyShares"),
                   "must be a non-negative integer");
  }
}

void validate_queuing(const Value& queuing, const Path& at, FieldErrors& errors) {
  constexpr int kMaxHashBits = 60;
  const int64_t length = queuing.int_at_or(0, "queueLengthLimit"), queues = queuing.int_at_or(0, "queues"),
                hand = queuing.int_at_or(0, "handSize");
  if (length <= 0) errors.invalid(at.child("queueLengthLimit"), length, "must be positive");
  if (queues <= 0) {
    errors.invalid(at.child("queues"), queues, "must be positive");
  } else if (queues > 10000000) {
    errors.invalid(at.child("queues"), queues, "must not be greater than 10000000");
  }
  if (hand <= 0) {
    errors.invalid(at.child("handSize"), hand, "must be positive");
  } else if (hand > queues) {
    errors.invalid(at.child("handSize"), hand, "should not be greater than queues (" + std::to_string(queues) + ")");
  } else if (std::ceil(std::log2(static_cast<double>(queues)) * static_cast<double>(hand)) > kMaxHashBits) {
    errors.invalid(at.child("handSize"), hand,
                   "required entropy bits of deckSize " + std::to_string(queues) + " and handSize " +
                       std::to_string(hand) + " should not be greater than " + std::to_string(kMaxHashBits));
  }
}

void validate_limited(const Value& limited, const Path& at, FieldErrors& errors) {
  validate_shares(limited, at, errors);
  const Path response = at.child("limitResponse");
  const std::string_view answer = limited.text_at("limitResponse", "type");
  const Value& queuing = sub(limited, "limitResponse", "queuing");
  if (answer == "Reject") {
    if (!queuing.is_null()) {
      errors.forbidden(response.child("queuing"), "must be nil if limited.limitResponse.type is not Limited");
    }
  } else if (answer == "Queue") {
    if (queuing.is_null()) {
      errors.required(response.child("queuing"), "must not be empty if limited.limitResponse.type is Limited");
    } else {
      validate_queuing(queuing, response.child("queuing"), errors);
    }
  } else if (answer.empty()) {
    errors.required(response.child("type"));
  } else {
    errors.not_supported(response.child("type"), answer, {"Queue", "Reject"});
  }
  validate_lendable(limited, at, errors);
  if (limited.int_at_or(0, "borrowingLimitPercent") < 0) {
    errors.invalid(at.child("borrowingLimitPercent"), limited.find("borrowingLimitPercent"),
                   "if specified, must be a non-negative integer");
  }
}

void validate_level(Context& context, const Value& object, FieldErrors& errors) {
  constexpr std::string_view kPreserveZero = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
  if (sub(object, "metadata", "annotations").has(kPreserveZero)) {
    errors.forbidden(Path("metadata.annotations"), "annotation '" + std::string(kPreserveZero) + "' is forbidden");
  }
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view type = spec.text_at("type"), name = object.text_at("metadata", "name");
  if ((name == "exempt") != (type == "Exempt")) {
    errors.invalid(at.child("type"), type, "must be 'Exempt' if and only if `name` is 'exempt'");
  }
  if (type == "Exempt") {
    if (is_set(spec, "limited")) errors.forbidden(at.child("limited"), "must be nil if the type is not Limited");
    validate_shares(sub(spec, "exempt"), at.child("exempt"), errors);
    validate_lendable(sub(spec, "exempt"), at.child("exempt"), errors);
  } else if (type == "Limited") {
    if (is_set(spec, "exempt")) errors.forbidden(at.child("exempt"), "must be nil if the type is Limited");
    if (is_set(spec, "limited")) {
      validate_limited(sub(spec, "limited"), at.child("limited"), errors);
    } else {
      errors.required(at.child("limited"), "must not be empty when type is Limited");
    }
  } else if (type.empty()) {
    errors.required(at.child("type"));
  } else {
    errors.not_supported(at.child("type"), type, {"Exempt", "Limited"});
  }
  const types::Type& spec_type = type_named("flowcontrol/v1.PriorityLevelConfigurationSpec");
  if (name == "exempt") {
    validate_fixed(spec_type, spec, without_member(context.arena, spec, "exempt"), kExemptLevel,
                   "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value", errors);
  } else if (name == "catch-all") {
    validate_fixed(spec_type, spec, spec, kCatchAllLevel, "spec of 'catch-all' must equal the fixed value", errors);
  }
}

}  // namespace

const Hooks kFlowSchemaHooks = {.generation = Generation::Spec,
                                .status_metadata = StatusMetadata::KeepAll,
                                .update_checks = {.whole = 1, .compared = 0},
                                .defaults = default_flow_schema,
                                .validate = validate_flow_schema,
                                .validate_status = validate_unique_conditions};
const Hooks kPriorityLevelConfigurationHooks = {.generation = Generation::Spec,
                                                .status_metadata = StatusMetadata::KeepAll,
                                                .update_checks = {.whole = 1, .compared = 0},
                                                .defaults = default_level,
                                                .validate = validate_level,
                                                .validate_status = validate_unique_conditions};

}  // namespace holdfast::kinds
