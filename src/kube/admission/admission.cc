#include "admission/admission.h"

#include <algorithm>
#include <set>

#include "admission/event_limits.h"
#include "admission/plugin.h"
#include "admission/pod_security.h"
#include "base/api_error.h"
#include "base/strings.h"
#include "base/text.h"

namespace holdfast::admission {

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::Create:
      return "CREATE";
    case Operation::Update:
      return "UPDATE";
    case Operation::Delete:
      return "DELETE";
    case Operation::Connect:
      break;
  }
  return "CONNECT";
}

namespace {

enum class Support : uint8_t {
  Here,       // Implemented by a Plugin of this module.
  Elsewhere,  // Implemented by another module, which checks whether it is disabled.
  Inert,      // No effect in Kubernetes either: its kinds or feature gates are off.
  Unsupported,
};

struct Known {
  std::string_view name;
  Support support = Support::Unsupported;
  bool default_on = false;
  const Plugin* plugin = nullptr;
};

constexpr bool kOn = true, kOff = false;

// All plugins of Kubernetes v1.36, in execution order.
constexpr Known kKnown[] = {
    {"AlwaysAdmit", Support::Here, kOff, &kAlwaysAdmit},
    {"NamespaceAutoProvision", Support::Here, kOff, &kNamespaceAutoProvision},
    {"NamespaceLifecycle", Support::Here, kOn, &kNamespaceLifecycle},
    {"NamespaceExists", Support::Here, kOff, &kNamespaceExists},
    {"LimitPodHardAntiAffinityTopology", Support::Here, kOff, &kLimitPodHardAntiAffinityTopology},
    {"LimitRanger", Support::Here, kOn, &kLimitRanger},
    {"ServiceAccount", Support::Here, kOn, &kServiceAccount},
    {"NodeRestriction", Support::Here, kOff, &kNodeRestriction},
    {"TaintNodesByCondition", Support::Here, kOn, &kTaintNodesByCondition},
    {"AlwaysPullImages", Support::Here, kOff, &kAlwaysPullImages},
    {"ImagePolicyWebhook"},
    {"PodSecurity", Support::Here, kOn, &kPodSecurity},
    {"PodNodeSelector", Support::Here, kOff, &kPodNodeSelector},
    {"Priority", Support::Here, kOn, &kPriority},
    {"DefaultTolerationSeconds", Support::Here, kOn, &kDefaultTolerationSeconds},
    {"PodTolerationRestriction", Support::Here, kOff, &kPodTolerationRestriction},
    {"EventRateLimit", Support::Here, kOff, &kEventRateLimit},
    {"ExtendedResourceToleration", Support::Here, kOff, &kExtendedResourceToleration},
    {"DefaultStorageClass", Support::Here, kOn, &kDefaultStorageClass},
    {"StorageObjectInUseProtection", Support::Here, kOn, &kStorageObjectInUseProtection},
    {"PodGroupProtection", Support::Inert},
    {"OwnerReferencesPermissionEnforcement", Support::Here, kOff, &kOwnerReferences},
    {"PersistentVolumeClaimResize", Support::Here, kOn, &kPersistentVolumeClaimResize},
    {"RuntimeClass", Support::Here, kOn, &kRuntimeClass},
    {"CertificateApproval", Support::Here, kOn, &kCertificateApproval},
    {"CertificateSigning", Support::Here, kOn, &kCertificateSigning},
    {"ClusterTrustBundleAttest", Support::Inert},
    {"CertificateSubjectRestriction", Support::Here, kOn, &kCertificateSubjectRestriction},
    {"DefaultIngressClass", Support::Here, kOn, &kDefaultIngressClass},
    {"DenyServiceExternalIPs", Support::Here, kOff, &kDenyServiceExternalIPs},
    {"PodTopologyLabels", Support::Here, kOn, &kPodTopologyLabels},
    {"PodGroupWorkloadExists", Support::Inert},
    {"NodeDeclaredFeatureValidator", Support::Here, kOn, &kNodeDeclaredFeatureValidator},
    {"JobValidation", Support::Inert},
    {"PodResizeValidator", Support::Here, kOn, &kPodResizeValidator},
    {"MutatingAdmissionPolicy", Support::Elsewhere},
    {"MutatingAdmissionWebhook", Support::Elsewhere},
    {"ValidatingAdmissionPolicy", Support::Elsewhere},
    {"ValidatingAdmissionWebhook", Support::Elsewhere},
    {"ResourceQuota", Support::Elsewhere},
    {"AlwaysDeny", Support::Here, kOff, &kAlwaysDeny},
};

const Known* find_known(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.name == name; });
  return found == std::end(kKnown) ? nullptr : found;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_concerned(const Plugin& plugin, const Attributes& attributes) {
  return plugin.handles(attributes.resource, attributes.subresource, attributes.operation);
}

}  // namespace

Result<Unit> check_plugin_choice(const PluginChoice& choice) {
  std::vector<std::string> errors;
  for (const std::string& name : choice.enabled) {
    const Known* known = find_known(name);
    if (known == nullptr) {
      errors.push_back("enable-admission-plugins plugin " + go_quote(name) + " is unknown");
    } else if (known->support == Support::Unsupported) {
      errors.push_back("enable-admission-plugins plugin " + go_quote(name) + " is not supported by Holdfast");
    }
  }
  std::set<std::string_view> overlap;
  for (const std::string& name : choice.disabled) {
    const Known* known = find_known(name);
    if (known == nullptr) {
      errors.push_back("disable-admission-plugins plugin " + go_quote(name) + " is unknown");
    }
    if (contains(choice.enabled, name)) overlap.insert(name);
  }
  if (!overlap.empty()) {
    errors.push_back("[" + join(overlap, " ") +
                     "] in enable-admission-plugins and disable-admission-plugins overlapped");
  }
  if (errors.empty()) return Unit{};
  return bad_request(aggregate_text(errors));
}

Result<Unit> check_available(std::string_view plugin) {
  const Known* known = find_known(plugin);
  if (known == nullptr) return bad_request("unknown admission plugin");
  if (known->support == Support::Unsupported) return bad_request("this plugin is not supported by Holdfast");
  return Unit{};
}

Chain::Chain(const PluginChoice& choice, MetricRegistry* metrics) : configuration_(choice.configuration) {
  for (const Known& known : kKnown) {
    if (known.plugin == nullptr) continue;
    const bool on = known.default_on ? !contains(choice.disabled, known.name) : contains(choice.enabled, known.name);
    if (on) plugins_.push_back(known.plugin);
  }
  if (metrics != nullptr && has(kPodSecurity.name)) counts_ = std::make_shared<PodSecurityCounts>(*metrics);
  if (has(kEventRateLimit.name)) event_limits_ = std::make_shared<EventLimits>(configuration_.event_limits);
}

bool Chain::has(std::string_view name) const {
  return std::any_of(plugins_.begin(), plugins_.end(), [&](const Plugin* plugin) { return plugin->name == name; });
}

bool Chain::handles(const types::Resource& resource, std::string_view subresource, Operation operation) const {
  return std::any_of(plugins_.begin(), plugins_.end(),
                     [&](const Plugin* plugin) { return plugin->handles(resource, subresource, operation); });
}

Result<Unit> Chain::admit(Attributes& attributes, Draft::Node object) const {
  attributes.configuration = &configuration_;
  for (const Plugin* plugin : plugins_) {
    if (plugin->admit == nullptr || !is_concerned(*plugin, attributes)) continue;
    if (Result<Unit> done = plugin->admit(attributes, object); !done) return done;
  }
  return Unit{};
}

Result<Unit> Chain::validate(Attributes& attributes, const Value& object) const {
  attributes.configuration = &configuration_;
  attributes.counts = counts_.get();
  attributes.event_limits = event_limits_.get();
  for (const Plugin* plugin : plugins_) {
    if (plugin->validate == nullptr || !is_concerned(*plugin, attributes)) continue;
    if (Result<Unit> done = plugin->validate(attributes, object); !done) return done;
  }
  return Unit{};
}

Error refuse(const Attributes& attributes, const Value& object, std::string_view why) {
  std::string_view name = attributes.name;
  if (name.empty()) name = object.text_at("metadata", "name");
  if (name.empty()) name = object.text_at("metadata", "generateName");
  if (name.empty()) name = "Unknown";
  return forbidden(GroupResource{attributes.resource.group, attributes.resource.plural}, name, why);
}

bool is_true(const Value& object, std::string_view key) {
  const Value* found = object.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

bool has_text(std::span<const Value> items, std::string_view text) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return item.is_string() && item.as_string() == text; });
}

std::string quoted(std::span<const std::string> texts) { return "\"" + join(texts, "\", \"") + "\""; }

}  // namespace holdfast::admission
