// LimitRanger and PersistentVolumeClaimResize: limits on the resources an object may request.

#include <algorithm>
#include <cstdio>
#include <map>
#include <unordered_set>

#include "admission/amounts.h"
#include "admission/plugin.h"
#include "base/api_error.h"
#include "base/hash.h"
#include "codec/quantity.h"
#include "kinds/kinds.h"

namespace holdfast::admission {
namespace {

using codec::Quantity;

// --- LimitRanger ---

bool has_limits(const types::Resource& resource, std::string_view subresource, Operation operation) {
  if (is_core(resource, "pods")) {
    return (subresource.empty() && operation == Operation::Create) ||
           (subresource == "resize" && operation == Operation::Update);
  }
  return is_core(resource, "persistentvolumeclaims") && subresource.empty() &&
         (operation == Operation::Create || operation == Operation::Update);
}

void set_missing(Draft::Node container, std::string_view list, const std::map<std::string_view, Value>& defaults,
                 std::string_view what, std::string_view prefix, std::vector<std::string>& notes) {
  std::string names;
  for (const auto& [name, amount] : defaults) {
    if (container.value().get("resources", list, name) != nullptr) continue;
    container.child("resources").child(list).set(name, amount);
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (names.empty()) return;
  notes.push_back(names + " " + std::string(what) + " for " + std::string(prefix) + " " +
                  std::string(container.value().text_at("name")));
}

Result<Unit> set_default_limits(Attributes& attributes, Draft::Node object) {
  if (!is_core(attributes.resource, "pods")) return Unit{};
  for (const Value& range : attributes.lookup.list(attributes.arena, "", "limitranges", attributes.ns)) {
    std::map<std::string_view, Value> requests, limits;
    for (const Value& item : range.items_at("spec", "limits")) {
      if (item.text_at("type") != "Container") continue;
      for (const Member& amount : item.members_at("defaultRequest")) requests[amount.key] = amount.value;
      for (const Member& amount : item.members_at("default")) limits[amount.key] = amount.value;
    }
    std::vector<std::string> notes;
    for (const auto& [list, prefix] : {std::pair<std::string_view, std::string_view>{"containers", "container"},
                                       {"initContainers", "init container"}}) {
      if (requests.empty() && limits.empty()) break;
      for (Draft::Node container : object.child("spec").list(list)) {
        // Requests come first in the annotation although limits are set first.
        std::vector<std::string> limit_notes;
        set_missing(container, "limits", limits, "limit", prefix, limit_notes);
        set_missing(container, "requests", requests, "request", prefix, notes);
        notes.insert(notes.end(), limit_notes.begin(), limit_notes.end());
      }
    }
    if (notes.empty()) continue;
    std::string text;
    for (const std::string& note : notes) text += (text.empty() ? "LimitRanger plugin set: " : "; ") + note;
    object.child("metadata")
        .child("annotations")
        .set("kubernetes.io/limit-ranger", Value::string(attributes.arena, text));
  }
  return Unit{};
}

struct Check {
  std::string type;
  const Amounts& requests;
  const Amounts& limits;
  std::vector<std::string>& errors;

  const Quantity* request(const std::string& name) const { return find(requests, name); }
  const Quantity* limit(const std::string& name) const { return find(limits, name); }

  void minimum(const std::string& name, const Quantity& least) const {
    const std::string head = "minimum " + name + " usage per " + type + " is " + least.text();
    const Quantity *asked = request(name), *allowed = limit(name);
    if (asked == nullptr) {
      errors.push_back(head + ".  No request is specified");
    } else if (*asked < least) {
      errors.push_back(head + ", but request is " + asked->text());
    } else if (allowed != nullptr && *allowed < least) {
      errors.push_back(head + ", but limit is " + allowed->text());
    }
  }
  void maximum(const std::string& name, const Quantity& most, bool requests_only) const {
    const std::string head = "maximum " + name + " usage per " + type + " is " + most.text();
    const Quantity *asked = request(name), *allowed = limit(name);
    if (requests_only) {
      if (asked == nullptr) {
        errors.push_back(head + ".  No request is specified");
      } else if (*asked > most) {
        errors.push_back(head + ", but request is " + asked->text());
      }
    } else if (allowed == nullptr) {
      errors.push_back(head + ".  No limit is specified");
    } else if (*allowed > most) {
      errors.push_back(head + ", but limit is " + allowed->text());
    } else if (asked != nullptr && *asked > most) {
      errors.push_back(head + ", but request is " + asked->text());
    }
  }
  void ratio(const std::string& name, const Quantity& most) const {
    const std::string head = name + " max limit to request ratio per " + type + " is " + most.text() + ", but ";
    const Quantity *asked = request(name), *allowed = limit(name);
    if (asked == nullptr || asked->is_zero()) {
      errors.push_back(head + "no request is specified or request is 0");
    } else if (allowed == nullptr || allowed->is_zero()) {
      errors.push_back(head + "no limit is specified or limit is 0");
    } else {
      const double actual = allowed->approximate() / asked->approximate();
      if (actual <= most.approximate()) return;
      char text[64];
      snprintf(text, sizeof text, "provided ratio is %f", actual);
      errors.push_back(head + text);
    }
  }
  void all(const Value& item, bool requests_only = false) const {
    for (const Member& amount : item.members_at("min")) minimum(std::string(amount.key), quantity_of(&amount.value));
    for (const Member& amount : item.members_at("max")) {
      maximum(std::string(amount.key), quantity_of(&amount.value), requests_only);
    }
    if (requests_only) return;
    for (const Member& amount : item.members_at("maxLimitRequestRatio")) {
      ratio(std::string(amount.key), quantity_of(&amount.value));
    }
  }

 private:
  static const Quantity* find(const Amounts& amounts, const std::string& name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? nullptr : &found->second;
  }
};

std::vector<std::string> limit_errors(const Value& range, const Value& object, bool is_pod) {
  std::vector<std::string> errors;
  for (const Value& item : range.items_at("spec", "limits")) {
    const std::string type(item.text_at("type"));
    if (is_pod && type == "Container") {
      for (const std::string_view list : {"containers", "initContainers"}) {
        for (const Value& container : object.items_at("spec", list)) {
          const Amounts requests = amounts_of(container, "requests"), limits = amounts_of(container, "limits");
          Check{type, requests, limits, errors}.all(item);
        }
      }
    } else if (is_pod && type == "Pod") {
      const Amounts requests = pod_amounts(object, "requests"), limits = pod_amounts(object, "limits");
      Check{type, requests, limits, errors}.all(item);
    } else if (!is_pod && type == "PersistentVolumeClaim") {
      const Value* spec = object.find("spec");
      const Amounts requests = spec == nullptr ? Amounts() : amounts_of(*spec, "requests");
      const Amounts none;
      Check{type, requests, none, errors}.all(item, true);
    }
  }
  return errors;
}

Result<Unit> check_limits(Attributes& attributes, const Value& object) {
  // Terminating objects may be updated regardless of limits.
  if (object.get("metadata", "deletionTimestamp") != nullptr) return Unit{};
  for (const Value& range : attributes.lookup.list(attributes.arena, "", "limitranges", attributes.ns)) {
    std::vector<std::string> errors = limit_errors(range, object, is_core(attributes.resource, "pods"));
    std::vector<std::string> distinct;
    std::unordered_set<std::string, KeyHash> seen;
    for (std::string& error : errors) {
      if (seen.insert(error).second) distinct.push_back(std::move(error));
    }
    if (distinct.empty()) continue;
    return refuse(attributes, object, aggregate_text(distinct));
  }
  return Unit{};
}

// --- PersistentVolumeClaimResize ---

bool is_claim_update(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "persistentvolumeclaims") && subresource.empty() && operation == Operation::Update;
}

Result<Unit> check_resize(Attributes& attributes, const Value& claim) {
  if (attributes.old == nullptr) return Unit{};
  const Value& old = *attributes.old;
  const Quantity now = quantity_of(claim.get("spec", "resources", "requests", "storage"));
  const Quantity was = quantity_of(old.get("spec", "resources", "requests", "storage"));
  if (now <= was) return Unit{};
  if (old.text_at("status", "phase") != "Bound") {
    return refuse(attributes, claim, "Only bound persistent volume claims can be expanded");
  }
  const std::string_view name = kinds::storage_class_of(claim);
  if (!name.empty() && name == kinds::storage_class_of(old)) {
    const std::optional<Value> chosen =
        attributes.lookup.get(attributes.arena, "storage.k8s.io", "storageclasses", "", name);
    if (chosen && is_true(*chosen, "allowVolumeExpansion")) return Unit{};
  }
  return refuse(attributes, claim,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize");
}

}  // namespace

const Plugin kLimitRanger = {
    .name = "LimitRanger", .handles = has_limits, .admit = set_default_limits, .validate = check_limits};
const Plugin kPersistentVolumeClaimResize = {
    .name = "PersistentVolumeClaimResize", .handles = is_claim_update, .validate = check_resize};

}  // namespace holdfast::admission
