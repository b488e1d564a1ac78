// Resource names and quantities, requirements of containers, LimitRange and ResourceQuota.

#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "base/error_budget.h"
#include "base/hash.h"
#include "base/limits.h"
#include "kinds/all.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kCompute[] = {"cpu", "memory", "ephemeral-storage"};
constexpr std::string_view kStandard[] = {"cpu",
                                          "memory",
                                          "ephemeral-storage",
                                          "requests.cpu",
                                          "requests.memory",
                                          "requests.ephemeral-storage",
                                          "limits.cpu",
                                          "limits.memory",
                                          "limits.ephemeral-storage",
                                          "pods",
                                          "resourcequotas",
                                          "services",
                                          "replicationcontrollers",
                                          "secrets",
                                          "configmaps",
                                          "persistentvolumeclaims",
                                          "requests.storage",
                                          "services.nodeports",
                                          "services.loadbalancers"};
constexpr std::string_view kIntegers[] = {
    "pods",       "resourcequotas",         "services",           "replicationcontrollers", "secrets",
    "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"};
constexpr std::string_view kScopes[] = {
    "Terminating",           "NotTerminating",           "BestEffort", "NotBestEffort", "PriorityClass",
    "VolumeAttributesClass", "CrossNamespacePodAffinity"};

bool is_huge_pages(std::string_view name) { return name.starts_with("hugepages-"); }
bool has_slash(std::string_view name) { return name.find('/') != std::string_view::npos; }
bool may_overcommit(std::string_view name) { return is_native_resource(name) && !is_huge_pages(name); }

bool is_quota_resource(std::string_view name) {
  return contains(kStandard, name) || is_huge_pages(name) || name.starts_with("requests.hugepages-");
}

bool scope_applies(std::string_view scope, std::string_view name) {
  if (scope == "BestEffort") return name == "pods";
  if (scope == "VolumeAttributesClass") return name == "persistentvolumeclaims" || name == "requests.storage";
  if (!contains(kScopes, scope)) return true;
  constexpr std::string_view kPods[] = {"pods",          "cpu",          "memory",         "limits.cpu",
                                        "limits.memory", "requests.cpu", "requests.memory"};
  return contains(kPods, name);
}

void validate_huge_pages(std::string_view name, const Value& quantity, const Path& at, FieldErrors& errors) {
  const Result<Quantity> page = Quantity::parse(name.substr(std::string_view("hugepages-").size()));
  const Quantity amount = quantity_of(&quantity);
  const bool whole = page && page->sign() > 0 && page->milli_value() % 1000 == 0;
  if (whole && amount.value() % page->value() == 0) return;
  const std::string text(quantity.as_string());
  errors.invalid(at, text, text + " is not positive integer multiple of " + std::string(name));
}

void validate_claim_names(std::span<const Value> claims, std::span<const Value> pod_claims, const Path& at,
                          FieldErrors& errors) {
  std::unordered_set<std::string, KeyHash> seen;                   // "name" and "name/request".
  std::unordered_map<std::string_view, size_t, KeyHash> requests;  // Number of requests seen per claim.
  std::vector<std::string_view> known;
  for (const Value& claim : pod_claims) {
    if (!claim.text_at("name").empty()) known.push_back(claim.text_at("name"));
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::string all_known = known.empty() ? " which is empty" : "";
  for (size_t k = 0; k < known.size() && all_known.size() < limits::kReportedBytes; ++k) {
    all_known += (k == 0 ? ": " : ", ") + std::string(known[k]);
  }
  size_t reported = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Path here = at.index(i);
    const std::string name(claims[i].text_at("name"));
    const std::string_view request = claims[i].text_at("request");
    if (name.empty()) {
      errors.required(here);
      continue;
    }
    if (seen.contains(name)) {
      errors.duplicate(here, name);
    } else {
      std::string key = name;
      if (!request.empty()) {
        errors.invalid_each(here.child("request"), request, dns_label_errors(request));
        key += "/" + std::string(request);
      }
      if (seen.contains(key)) {
        errors.duplicate(here, key);
      } else if (request.empty()) {
        for (size_t k = 0; k < requests[claims[i].text_at("name")]; ++k) errors.duplicate(here, name);
      }
      if (!request.empty()) ++requests[claims[i].text_at("name")];
      seen.insert(std::move(key));
    }
    if (std::binary_search(known.begin(), known.end(), std::string_view(name))) continue;
    // Each error lists all names: stop after a limit.
    const bool in_full = reported < limits::kReportedBytes;
    reported += all_known.size();
    errors.not_found(here, name,
                     "must be one of the names in pod.spec.resourceClaims" + (in_full ? all_known : std::string()));
  }
}

// --- LimitRange ---

void default_limit_range(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  for (Draft::Node item : spec.list("limits")) {
    for (const std::string_view key : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
      default_resource_list(arena, item, key);
    }
    if (item.value().text_at("type") != "Container") continue;
    const auto fill = [&](std::string_view to, std::string_view from) {
      const std::vector<Member> given(item.value().members_at(from).begin(), item.value().members_at(from).end());
      for (const Member& amount : given) {
        if (item.value().get(to, amount.key) == nullptr) item.child(to).set(amount.key, amount.value);
      }
    };
    fill("default", "max");
    fill("defaultRequest", "default");
    fill("defaultRequest", "min");
  }
}

void validate_limit_name(std::string_view type, std::string_view name, const Path& at, FieldErrors& errors) {
  if (type == "Pod" || type == "Container") {
    validate_container_resource_name(name, at, errors);
  } else {
    validate_resource_name(name, at, errors);
  }
}

void validate_limit_item(const Value& item, const Path& at, FieldErrors& errors) {
  const std::string_view type = item.text_at("type");
  Names names;
  const auto check = [&](std::string_view list) {
    const Path list_at = at.child(list);
    for (const Member& amount : item.members_at(list)) {
      validate_limit_name(type, amount.key, list_at.key(amount.key), errors);
      if (!contains(names, amount.key)) names.push_back(amount.key);
    }
  };
  check("max");
  check("min");
  if (type == "Pod") {
    for (const std::string_view list : {"default", "defaultRequest"}) {
      if (!is_empty(item, list)) errors.forbidden(at.child(list), "may not be specified when `type` is 'Pod'");
    }
  } else {
    check("default");
    check("defaultRequest");
  }
  if (type == "PersistentVolumeClaim" && item.get("min", "storage") == nullptr &&
      item.get("max", "storage") == nullptr) {
    errors.required(at.child("limits"),
                    "either minimum or maximum storage value is required, but neither was provided");
  }
  check("maxLimitRequestRatio");
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  for (const std::string_view name : sorted) {
    const Value *min = item.get("min", name), *max = item.get("max", name);
    const Value* limit = type == "Pod" ? nullptr : item.get("default", name);
    const Value* request = type == "Pod" ? nullptr : item.get("defaultRequest", name);
    const Value* ratio = item.get("maxLimitRequestRatio", name);
    // Reports an error if the first is greater than the second, and both are given.
    const auto compare = [&](const Value* a, std::string_view a_name, const Value* b, std::string_view b_name,
                             std::string_view list, const Value* shown) {
      if (a == nullptr || b == nullptr || quantity_of(a) <= quantity_of(b)) return;
      const Path list_at = at.child(list);
      errors.invalid(list_at.key(name), *shown,
                     std::string(a_name) + " value " + std::string(a->as_string()) + " is greater than " +
                         std::string(b_name) + " value " + std::string(b->as_string()));
    };
    compare(min, "min", max, "max", "min", min);
    compare(min, "min", request, "default request", "defaultRequest", request);
    compare(request, "default request", max, "max", "defaultRequest", request);
    compare(request, "default request", limit, "default limit", "defaultRequest", request);
    compare(min, "min", limit, "default", "default", min);
    compare(limit, "default", max, "max", "default", max);
    const Path ratio_at = at.child("maxLimitRequestRatio");
    if (ratio != nullptr && quantity_of(ratio) < Quantity::of(1)) {
      errors.invalid(ratio_at.key(name), *ratio, "ratio " + std::string(ratio->as_string()) + " is less than 1");
    }
    if (ratio != nullptr && min != nullptr && max != nullptr && !quantity_of(min).is_zero()) {
      const double limit_ratio = quantity_of(max).approximate() / quantity_of(min).approximate();
      if (quantity_of(ratio).approximate() > limit_ratio) {
        char text[64];
        snprintf(text, sizeof text, "%f", limit_ratio);
        errors.invalid(ratio_at.key(name), *ratio,
                       "ratio " + std::string(ratio->as_string()) + " is greater than max/min = " + text);
      }
    }
    if (!may_overcommit(name) && limit != nullptr && request != nullptr && quantity_of(limit) != quantity_of(request)) {
      const Path list_at = at.child("defaultRequest");
      errors.invalid(list_at.key(name), *request,
                     "default value " + std::string(limit->as_string()) + " must equal to defaultRequest value " +
                         std::string(request->as_string()) + " in " + std::string(name));
    }
  }
}

void validate_limit_range(Context&, const Value& object, FieldErrors& errors) {
  const Path spec("spec");
  Names types;
  const std::span<const Value> limits = object.items_at("spec", "limits");
  for (size_t i = 0; i < limits.size(); ++i) {
    const Path at = spec.item("limits", i);
    const std::string_view type = limits[i].text_at("type");
    const Messages messages = qualified_name_errors(type);
    errors.invalid_each(at.child("type"), type, messages);
    if (messages.empty() && !has_slash(type) && type != "Pod" && type != "Container" &&
        type != "PersistentVolumeClaim") {
      errors.invalid(at.child("type"), type, "must be a standard limit type or fully qualified");
    }
    if (contains(types, type)) errors.duplicate(at.child("type"), type);
    types.push_back(type);
    validate_limit_item(limits[i], at, errors);
  }
}

// --- ResourceQuota ---

void default_resource_quota(Arena& arena, const types::Resource&, Draft::Node object) {
  if (Draft::Node spec = object.existing("spec")) default_resource_list(arena, spec, "hard");
  if (Draft::Node status = object.existing("status")) {
    default_resource_list(arena, status, "hard");
    default_resource_list(arena, status, "used");
  }
}

void validate_quota_amounts(const Value& holder, std::string_view list, const Path& at, FieldErrors& errors) {
  const Path list_at = at.child(list);
  for (const Member& amount : holder.members_at(list)) {
    const Path here = list_at.key(amount.key);
    validate_resource_name(amount.key, here, errors);
    if (!has_slash(amount.key) && !is_quota_resource(amount.key)) {
      errors.invalid(here, amount.key, "must be a standard resource for quota");
    }
    validate_resource_quantity(amount.key, amount.value, here, errors);
  }
}

void validate_conflicting(std::span<const std::string_view> scopes, const Value& shown, const Path& at,
                          FieldErrors& errors) {
  for (const auto& [a, b] : {std::pair<std::string_view, std::string_view>{"BestEffort", "NotBestEffort"},
                             {"Terminating", "NotTerminating"}}) {
    if (contains(scopes, a) && contains(scopes, b)) errors.invalid(at, shown, "conflicting scopes");
  }
}

// Errors of a list, each of which shows all of it: up to limits::kReportedBytes, the rest are counted.
class ListErrors {
 public:
  ListErrors(const Path& at [[clang::lifetimebound]], FieldErrors& errors [[clang::lifetimebound]])
      : at_(at), errors_(errors) {}

  // `show` makes the list's Shown.
  template <class Show>
  void invalid(Show show, std::string_view detail) {
    if (!budget_.admits()) return;
    const Shown shown = show();
    budget_.took(shown.text().size());
    errors_.invalid(at_, shown, detail);
  }
  void count_rest() {
    if (budget_.left_out() > 0) errors_.invalid(at_, Shown::nothing(), left_out_text(budget_.left_out()));
  }

 private:
  const Path& at_;
  FieldErrors& errors_;
  ErrorBudget budget_;
};

void validate_quota_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  validate_quota_amounts(spec, "hard", at, errors);
  const Path scopes_at = at.child("scopes");
  std::vector<std::string_view> scopes;
  const auto shown_scopes = [&] { return Shown(sub(spec, "scopes")); };
  ListErrors of_scopes(scopes_at, errors);
  for (const Value& scope : spec.items_at("scopes")) {
    const std::string_view text = scope.as_string();
    if (!contains(kScopes, text)) of_scopes.invalid(shown_scopes, "unsupported scope");
    for (const Member& amount : spec.members_at("hard")) {
      if (is_quota_resource(amount.key) && !scope_applies(text, amount.key)) {
        of_scopes.invalid(shown_scopes, "unsupported scope applied to resource");
      }
    }
    scopes.push_back(text);
  }
  of_scopes.count_rest();
  validate_conflicting(scopes, sub(spec, "scopes"), scopes_at, errors);
  if (!is_set(spec, "scopeSelector")) return;
  const Path selector_at = at.child("scopeSelector.matchExpressions");
  scopes.clear();
  const auto shown_selector = [&] {
    return shown_internal(type_named("core/v1.ScopeSelector"), spec.find("scopeSelector"));
  };
  ListErrors of_selector(selector_at, errors);
  for (const Value& expression : spec.items_at("scopeSelector", "matchExpressions")) {
    const std::string_view scope = expression.text_at("scopeName"), op = expression.text_at("operator");
    if (!contains(kScopes, scope)) errors.invalid(selector_at.child("scopeName"), scope, "unsupported scope");
    for (const Member& amount : spec.members_at("hard")) {
      if (is_quota_resource(amount.key) && !scope_applies(scope, amount.key)) {
        of_selector.invalid(shown_selector, "unsupported scope applied to resource");
      }
    }
    if (contains(kScopes, scope) && scope != "PriorityClass" && scope != "VolumeAttributesClass" && op != "Exists") {
      errors.invalid(selector_at.child("operator"), op,
                     "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                     "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort "
                     "or ResourceQuotaScopeCrossNamespacePodAffinity");
    }
    if (op == "In" || op == "NotIn") {
      if (is_empty(expression, "values")) {
        errors.required(selector_at.child("values"),
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!is_empty(expression, "values")) {
        errors.invalid(selector_at.child("values"), expression.find("values"),
                       "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
      }
    } else {
      errors.invalid(selector_at.child("operator"), op, "not a valid selector operator");
    }
    scopes.push_back(scope);
  }
  of_selector.count_rest();
  validate_conflicting(scopes, sub(spec, "scopes"), selector_at, errors);
}

void validate_quota_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const Path status("status");
  validate_quota_amounts(sub(next, "status"), "hard", status, errors);
  validate_quota_amounts(sub(next, "status"), "used", status, errors);
}

void validate_quota(Context&, const Value& object, FieldErrors& errors) {
  validate_quota_spec(sub(object, "spec"), Path("spec"), errors);
}

void validate_quota_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path spec("spec");
  validate_quota_spec(sub(next, "spec"), spec, errors);
  const auto covers = [](std::span<const Value> a, std::span<const Value> b) {
    return std::all_of(b.begin(), b.end(), [&](const Value& scope) { return contains_text(a, scope.as_string()); });
  };
  const std::span<const Value> now = next.items_at("spec", "scopes"), before = old.items_at("spec", "scopes");
  if (!covers(now, before) || !covers(before, now)) {
    errors.invalid(spec.child("scopes"), sub(next, "spec", "scopes"), kImmutable);
  }
}

void warn_quota(Context&, const Value& object, const Value* old, Warnings& texts) {
  if (old != nullptr) return;
  for (const std::string_view name : {"cpu", "memory", "ephemeral-storage"}) {
    std::string request_name = "requests." + std::string(name);
    const std::string limit_name = "limits." + std::string(name);
    const Value* request = object.get("spec", "hard", std::string_view(request_name));
    const Value* limit = object.get("spec", "hard", std::string_view(limit_name));
    if (request == nullptr && name != "ephemeral-storage") {
      request = object.get("spec", "hard", name);
      if (request != nullptr) request_name = name;
    }
    if (request == nullptr || limit == nullptr || quantity_of(request) <= quantity_of(limit)) continue;
    texts.add("ResourceQuota " + request_name + " (" + std::string(request->as_string()) + ") should be less than " +
              limit_name + " (" + std::string(limit->as_string()) + ")");
  }
}

}  // namespace

void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors) {
  const Messages messages = qualified_name_errors(name);
  errors.invalid_each(at, name, messages);
  if (messages.empty() && !has_slash(name) && !contains(kStandard, name) && name != "storage" && !is_huge_pages(name) &&
      !name.starts_with("requests.hugepages-")) {
    errors.invalid(at, name, "must be a standard resource type or fully qualified");
  }
}

void validate_container_resource_name(std::string_view name, const Path& at, FieldErrors& errors) {
  validate_resource_name(name, at, errors);
  if (!has_slash(name)) {
    if (!contains(kCompute, name) && !is_huge_pages(name)) {
      errors.invalid(at, name, "must be a standard resource for containers");
    }
  } else if (!is_native_resource(name) && !is_extended_resource(name)) {
    errors.invalid(at, name, "doesn't follow extended resource name standard");
  }
}

void validate_resource_quantity(std::string_view name, const Value& quantity, const Path& at, FieldErrors& errors) {
  const Quantity amount = quantity_of(&quantity);
  if (amount.sign() < 0) errors.invalid(at, quantity, kNegative);
  if ((contains(kIntegers, name) || is_extended_resource(name)) && amount.milli_value() % 1000 != 0) {
    errors.invalid(at, quantity, "must be an integer");
  }
}

void validate_resource_requirements(const Value& resources, bool of_pod, std::span<const Value> claims, const Path& at,
                                    FieldErrors& errors) {
  const Path limits_at = at.child("limits"), requests_at = at.child("requests");
  bool compute = false, pages = false;
  const auto check = [&](const Member& amount, const Path& here) {
    if (of_pod) {
      const size_t before = errors.count();
      validate_resource_name(amount.key, here, errors);
      if (errors.count() == before && amount.key != "cpu" && amount.key != "memory" && !is_huge_pages(amount.key)) {
        errors.not_supported(here, amount.key, {"cpu", "hugepages-", "memory"});
      }
    } else {
      validate_container_resource_name(amount.key, here, errors);
    }
    validate_resource_quantity(amount.key, amount.value, here, errors);
    compute = compute || amount.key == "cpu" || amount.key == "memory";
  };
  for (const Member& limit : resources.members_at("limits")) {
    const Path here = limits_at.key(limit.key);
    check(limit, here);
    if (!is_huge_pages(limit.key)) continue;
    pages = true;
    validate_huge_pages(limit.key, limit.value, here, errors);
  }
  for (const Member& request : resources.members_at("requests")) {
    const Path here = requests_at.key(request.key);
    check(request, here);
    const Value* limit = resources.get("limits", request.key);
    if (limit != nullptr) {
      const Quantity asked = quantity_of(&request.value), allowed = quantity_of(limit);
      const std::string tail = std::string(request.key) + " limit of " + std::string(limit->as_string());
      if (asked != allowed && !may_overcommit(request.key)) {
        errors.invalid(requests_at, request.value, "must be equal to " + tail);
      } else if (asked > allowed) {
        errors.invalid(requests_at, request.value, "must be less than or equal to " + tail);
      }
    } else if (!may_overcommit(request.key)) {
      errors.required(limits_at, "Limit must be set for non overcommitable resources");
    }
    if (!is_huge_pages(request.key)) continue;
    pages = true;
    validate_huge_pages(request.key, request.value, here, errors);
  }
  if (pages && !compute) errors.forbidden(at, "HugePages require cpu or memory");
  validate_claim_names(resources.items_at("claims"), claims, at.child("claims"), errors);
}

const Hooks kLimitRangeHooks = {
    .update_checks = {.whole = 1, .compared = 0}, .defaults = default_limit_range, .validate = validate_limit_range};
const Hooks kResourceQuotaHooks = {.defaults = default_resource_quota,
                                   .validate = validate_quota,
                                   .validate_update = validate_quota_update,
                                   .validate_status = validate_quota_status,
                                   .warn = warn_quota};

}  // namespace holdfast::kinds
