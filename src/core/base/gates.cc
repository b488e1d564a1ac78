#include "base/gates.h"

#include "base/strings.h"

namespace holdfast {
namespace {

constexpr GateInfo kGates[] = {
    {Gate::ManagedFieldsOptOut, "ManagedFieldsOptOut", "Beta", true, false,
     "drop=, mf= and showManagedFields= are ignored; every response carries managedFields."},
    {Gate::DropAnyField, "DropAnyField", "Alpha", false, false,
     "drop= only accepts metadata.managedFields; other paths are ignored."},
    // Alpha, as in the proposal. On by default, because unsetting fields is a main feature of this server, and an
    // apply without markers behaves as if it were off.
    {Gate::ServerSideApplyUnsettingFields, "ServerSideApplyUnsettingFields", "Alpha", true, false,
     "{k8s_io__value: unset} in an apply configuration is ordinary data."},
    {Gate::DeclarativeFieldManager, "DeclarativeFieldManager", "Beta", true, false,
     "metadata.options is an unknown field."},
    {Gate::ManagedFieldsPool, "ManagedFieldsPool", "Beta", true, false,
     "each cached object keeps its own field sets instead of sharing equal ones."},
    {Gate::CompressManagedFieldsInCache, "CompressManagedFieldsInCache", "Beta", true, false,
     "field sets that are not shared are kept uncompressed."},
    {Gate::FieldsV2, "FieldsV2", "Beta", true, false,
     "mf=v2 is ignored and FieldsV2 entries in writes count as undecodable."},
    {Gate::FieldsV2AtRest, "FieldsV2AtRest", "Beta", true, false,
     "the embedded store writes FieldsV1; both forms are still read."},
    {Gate::RetainAllManagers, "RetainAllManagers", "Alpha", false, false,
     "old update managers are merged above ten, and managedFields are dropped when an object would be too large, as in "
     "Kubernetes."},
    {Gate::APIServerIdentity, "APIServerIdentity", "Beta", true, false,
     "the server does not maintain its apiserver-... Lease in kube-system."},
    // Alpha and off in Kubernetes. On here: without it an object that cannot be decoded can only be removed directly in
    // the store.
    {Gate::AllowUnsafeMalformedObjectDeletion, "AllowUnsafeMalformedObjectDeletion", "Alpha", true, false,
     "ignoreStoreReadErrorWithClusterBreakingPotential of a deletion is ignored."},
    // Alpha and off in Kubernetes. On here: clients that want CBOR ask for it, and no other response changes. Custom
    // resources are stored as JSON either way, and read in both forms.
    {Gate::CBORServingAndStorage, "CBORServingAndStorage", "Alpha", true, false,
     "application/cbor is not served, not accepted and not listed in OpenAPI."},
    // Off under the name kube-apiserver: Kubernetes has no such group.
    {Gate::OwnershipAPI, "OwnershipAPI", "Alpha", true, false,
     "the group ownership.holdfast.dev is not served, and FieldProtections have no effect."},
};
// The gate of the C++ client is set in its environment and its options; servers do not know it.
constexpr Gate kClientGate = Gate::ManagedFieldsOptOutClient;
constexpr bool kClientGateDefault = true;
static_assert(std::size(kGates) + 1 == static_cast<size_t>(Gate::kCount));

}  // namespace

std::span<const GateInfo> all_gates() { return kGates; }

Gates::Gates() {
  for (const GateInfo& info : kGates) on_[static_cast<size_t>(info.gate)] = info.default_on;
  on_[static_cast<size_t>(kClientGate)] = kClientGateDefault;
}

Gates Gates::with(Gate gate, bool value) const {
  Gates copy = *this;
  copy.on_[static_cast<size_t>(gate)] = value;
  return copy;
}

Result<Gates> Gates::parse(std::string_view text) const {
  Gates result = *this;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view item = trim(part);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos)
      return bad_request("feature gate " + std::string(item) + ": missing =true or =false");
    const std::string_view name = trim(item.substr(0, equals)), value = trim(item.substr(equals + 1));
    const std::optional<bool> on = parse_bool(value);  // As in Kubernetes.
    if (!on) {
      return bad_request("feature gate " + std::string(name) + ": \"" + std::string(value) +
                         "\" is neither true nor false");
    }
    const GateInfo* found = nullptr;
    for (const GateInfo& info : kGates) {
      if (info.name == name) found = &info;
    }
    if (found == nullptr) {
      return bad_request("unknown feature gate " + std::string(name) +
                         "; known: " + join(kGates, ", ", [](const GateInfo& info) { return info.name; }));
    }
    if (found->locked && found->default_on != *on) {
      return bad_request("feature gate " + std::string(name) + " is locked to " +
                         (found->default_on ? "true" : "false"));
    }
    result.on_[static_cast<size_t>(found->gate)] = *on;
  }
  return result;
}

}  // namespace holdfast
