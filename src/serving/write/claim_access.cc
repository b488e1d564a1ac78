#include "write/claim_access.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/api_error.h"
#include "base/strings.h"

namespace holdfast::write {
namespace {

constexpr std::string_view kServiceAccounts = "system:serviceaccount:";
constexpr std::string_view kAdminAccess = "resource.kubernetes.io/admin-access";
constexpr std::string_view kNodeName = "authentication.kubernetes.io/node-name";

bool same_at(const Value& a, const Value& b, std::string_view key) {
  const Value *in_a = a.get("status", key), *in_b = b.get("status", key);
  const auto is_empty = [](const Value* value) {
    return value == nullptr || value->is_null() || (value->is_list() && value->count() == 0);
  };
  if (is_empty(in_a) || is_empty(in_b)) return is_empty(in_a) == is_empty(in_b);
  return equal(*in_a, *in_b);
}

using DeviceKey = std::array<std::string_view, 4>;
DeviceKey key_of(const Value& device) {
  return {device.text_at("driver"), device.text_at("pool"), device.text_at("device"), device.text_at("shareID")};
}

// Adds the drivers of devices in `these` that are missing or different in `those`. Uses a map because the number of
// devices sent by a client has not been validated yet.
void add_changed(std::span<const Value> these, std::span<const Value> those, std::set<std::string_view>& drivers) {
  std::map<DeviceKey, const Value*> known;
  for (const Value& device : those) known.emplace(key_of(device), &device);
  for (const Value& device : these) {
    const auto other = known.find(key_of(device));
    if (other == known.end() || !equal(device, *other->second)) drivers.insert(device.text_at("driver"));
  }
}

// The node of the devices, if the allocation selects exactly one.
std::string_view node_of(const Value& claim) {
  const std::span<const Value> terms = claim.items_at("status", "allocation", "nodeSelector", "nodeSelectorTerms");
  if (terms.size() != 1 || !terms[0].items_at("matchExpressions").empty()) return {};
  const std::span<const Value> fields = terms[0].items_at("matchFields");
  if (fields.size() != 1 || fields[0].text_at("key") != "metadata.name" || fields[0].text_at("operator") != "In") {
    return {};
  }
  const std::span<const Value> values = fields[0].items_at("values");
  return values.size() == 1 && values[0].is_string() ? values[0].as_string() : std::string_view();
}

// Whether the user is a service account whose token was issued to a pod on that node.
bool is_on_node(const auth::UserInfo& user, std::string_view node) {
  if (node.empty() || !user.name.starts_with(kServiceAccounts)) return false;
  const auto found =
      std::find_if(user.extra.begin(), user.extra.end(), [](const auto& one) { return one.first == kNodeName; });
  return found != user.extra.end() && found->second.size() == 1 && found->second[0] == node;
}

// nullopt if allowed; otherwise a description of the missing permission.
std::optional<std::string> refusal(const call::Call& call, const auth::Authorizer& authorizer, std::string_view verb,
                                   std::string_view subresource, std::string_view ns, std::string_view name) {
  auth::Attributes asked = call.attributes(verb);
  asked.subresource = subresource;
  asked.ns = ns;
  asked.name = name;
  Result<Unit> allowed = authorizer.check(asked);
  return allowed ? std::nullopt : std::optional(allowed.take_error().message);
}

std::string permission(std::string_view what, std::string_view subresource, std::string_view verb,
                       std::string_view why) {
  std::string text = "changing " + std::string(what) + " requires resource=\"resourceclaims/" +
                     std::string(subresource) + "\", verb=\"" + std::string(verb) + "\" permission: ";
  return text.append(why);
}

std::optional<size_t> first_with_admin_access(std::span<const Value> items, std::string_view parent = {}) {
  for (size_t i = 0; i < items.size(); ++i) {
    const Value* in = parent.empty() ? &items[i] : items[i].find(parent);
    const Value* asked = in == nullptr ? nullptr : in->find("adminAccess");
    if (asked != nullptr && asked->is_bool() && asked->as_bool()) return i;
  }
  return std::nullopt;
}

// Whether the namespace of the request allows admin access.
std::vector<Cause> check_admin_access(const call::Call& call, const std::string& field) {
  const Result<cache::Snapshot> namespaces = call.registry->storage_of("", "namespaces")->cache().snapshot();
  const cache::EntryRef found = namespaces ? namespaces->find(call.ns()) : cache::EntryRef{};
  if (found && found->label(kAdminAccess) == "true") return {};
  return {field_forbidden(field, "admin access to devices requires the `" + std::string(kAdminAccess) +
                                     ": true` label on the containing namespace")};
}

// Specs cannot be changed, so only new ones are checked.
std::vector<Cause> forbidden_in_new_spec(const call::Call& call, std::span<const Value> requests) {
  const std::optional<size_t> asked = first_with_admin_access(requests, "exactly");
  if (!asked) return {};
  return check_admin_access(call, "spec.devices.requests[" + std::to_string(*asked) + "].adminAccess");
}

std::vector<Cause> forbidden_in_status(const call::Call& call, const auth::Authorizer& authorizer, const Value& next,
                                       const Value& old) {
  std::vector<Cause> causes;
  const auto results = [](const Value& claim) { return claim.items_at("status", "allocation", "devices", "results"); };
  if (const auto asked = first_with_admin_access(results(next)); asked && !first_with_admin_access(results(old))) {
    causes = check_admin_access(call, "status.allocation.devices.results[" + std::to_string(*asked) + "].adminAccess");
  }
  const std::string verb(request::to_string(call.info.verb));
  if (!same_at(next, old, "allocation") || !same_at(next, old, "reservedFor")) {
    // For all claims, because an allocation also affects other claims that compete for the devices.
    if (const auto why = refusal(call, authorizer, verb, "binding", {}, {})) {
      causes.push_back(field_forbidden("status.allocation",
                                       permission("status.allocation or status.reservedFor", "binding", verb, *why)));
    }
  }
  const Value* allocation = next.get("status", "allocation");
  if (allocation == nullptr || !allocation->is_map()) return causes;
  std::set<std::string_view> drivers;
  const std::span<const Value> devices = next.items_at("status", "devices"), before = old.items_at("status", "devices");
  add_changed(devices, before, drivers);
  add_changed(before, devices, drivers);
  // A driver on the claim's node needs a weaker permission than one elsewhere.
  std::vector<std::string> verbs;
  if (is_on_node(*call.user, node_of(next))) verbs.push_back("associated-node:" + verb);
  verbs.push_back("arbitrary-node:" + verb);
  for (const std::string_view driver : drivers) {
    std::optional<std::string> first;
    const bool allowed = std::any_of(verbs.begin(), verbs.end(), [&](const std::string& one) {
      std::optional<std::string> why = refusal(call, authorizer, one, "driver", call.ns(), driver);
      if (why && !first) first = why;
      return !why;
    });
    if (!allowed) {
      causes.push_back(field_forbidden("status.devices",
                                       permission("status.devices", "driver", "[" + join(verbs, " ") + "]", *first)));
    }
  }
  return causes;
}

}  // namespace

std::vector<Cause> forbidden_claim_changes(const call::Call& call, const auth::Authorizer& authorizer,
                                           const Value& next, const Value* old) {
  const types::Resource& resource = *call.served->resource;
  if (resource.group != "resource.k8s.io") return {};
  if (old == nullptr && resource.plural == "resourceclaims") {
    return forbidden_in_new_spec(call, next.items_at("spec", "devices", "requests"));
  }
  if (old == nullptr && resource.plural == "resourceclaimtemplates") {
    return forbidden_in_new_spec(call, next.items_at("spec", "spec", "devices", "requests"));
  }
  if (old != nullptr && resource.plural == "resourceclaims" && call.info.subresource == "status") {
    return forbidden_in_status(call, authorizer, next, *old);
  }
  return {};
}

}  // namespace holdfast::write
