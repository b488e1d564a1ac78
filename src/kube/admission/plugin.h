// The interface of a plugin. Private to the module.
#pragma once

#include "admission/admission.h"

namespace holdfast::admission {

struct Plugin {
  std::string_view name;
  bool (*handles)(const types::Resource& resource, std::string_view subresource, Operation operation);
  Result<Unit> (*admit)(Attributes& attributes, Draft::Node object) = nullptr;
  Result<Unit> (*validate)(Attributes& attributes, const Value& object) = nullptr;
};

extern const Plugin kNamespaceLifecycle, kLimitRanger, kServiceAccount, kTaintNodesByCondition, kPodSecurity, kPriority,
    kDefaultTolerationSeconds, kDefaultStorageClass, kStorageObjectInUseProtection, kPersistentVolumeClaimResize,
    kRuntimeClass, kCertificateApproval, kCertificateSigning, kCertificateSubjectRestriction, kDefaultIngressClass,
    kPodTopologyLabels, kNodeDeclaredFeatureValidator, kPodResizeValidator;
// Off by default.
extern const Plugin kAlwaysAdmit, kAlwaysDeny, kAlwaysPullImages, kDenyServiceExternalIPs,
    kLimitPodHardAntiAffinityTopology, kNamespaceExists, kNamespaceAutoProvision, kExtendedResourceToleration,
    kNodeRestriction, kPodNodeSelector, kPodTolerationRestriction, kEventRateLimit, kOwnerReferences;

// Rejects unknown plugins and plugins that this server does not support.
Result<Unit> check_available(std::string_view plugin);

// <resource> "<name>" is forbidden: <why>. If the request has no name, uses that of the object, its generateName
// prefix, or "Unknown".
Error refuse(const Attributes& attributes, const Value& object, std::string_view why);

inline bool is_core(const types::Resource& resource, std::string_view plural) {
  return resource.group.empty() && resource.plural == plural;
}
bool is_true(const Value& object, std::string_view key);
bool has_text(std::span<const Value> items, std::string_view text);
// "a", "b": in quotes, and not escaped.
std::string quoted(std::span<const std::string> texts);

}  // namespace holdfast::admission
