#include "write/claim_access.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/api_error.h"

namespace holdfast::write {
namespace {

constexpr std::string_view kServiceAccounts = "system:serviceaccount:";
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

// The drivers of the devices in `these` that `those` does not have in the same state. Looked up, not searched: nobody
// has checked yet how many a client sent.
void add_changed(std::span<const Value> these, std::span<const Value> those, std::set<std::string_view>& drivers) {
  std::map<DeviceKey, const Value*> known;
  for (const Value& device : those) known.emplace(key_of(device), &device);
  for (const Value& device : these) {
    const auto other = known.find(key_of(device));
    if (other == known.end() || !equal(device, *other->second)) drivers.insert(device.text_at("driver"));
  }
}

// The node that the devices are on, if the allocation says that they are on exactly one.
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

// A service account whose token was issued to a pod on that node.
bool is_on_node(const auth::UserInfo& user, std::string_view node) {
  if (node.empty() || !user.name.starts_with(kServiceAccounts)) return false;
  const auto found =
      std::find_if(user.extra.begin(), user.extra.end(), [](const auto& one) { return one.first == kNodeName; });
  return found != user.extra.end() && found->second.size() == 1 && found->second[0] == node;
}

// Null: allowed. Otherwise the sentence that says what is missing.
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

}  // namespace

std::vector<Cause> forbidden_claim_changes(const call::Call& call, const auth::Authorizer& authorizer,
                                           const Value& next, const Value& old) {
  std::vector<Cause> causes;
  const types::Resource& resource = *call.served->resource;
  if (resource.group != "resource.k8s.io" || resource.plural != "resourceclaims" || call.info.subresource != "status") {
    return causes;
  }
  const std::string verb(request::to_string(call.info.verb));
  if (!same_at(next, old, "allocation") || !same_at(next, old, "reservedFor")) {
    // Of all claims: allocating decides about devices that other claims want, too.
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
  // A driver on the claim's node needs less than one that is anywhere.
  std::vector<std::string> verbs;
  if (is_on_node(*call.user, node_of(next))) verbs.push_back("associated-node:" + verb);
  verbs.push_back("arbitrary-node:" + verb);
  std::string listed;
  for (const std::string& one : verbs) listed += (listed.empty() ? "" : " ") + one;
  for (const std::string_view driver : drivers) {
    std::optional<std::string> first;
    const bool allowed = std::any_of(verbs.begin(), verbs.end(), [&](const std::string& one) {
      std::optional<std::string> why = refusal(call, authorizer, one, "driver", call.ns(), driver);
      if (why && !first) first = why;
      return !why;
    });
    if (!allowed) {
      causes.push_back(
          field_forbidden("status.devices", permission("status.devices", "driver", "[" + listed + "]", *first)));
    }
  }
  return causes;
}

}  // namespace holdfast::write
