#include "admission/admission.h"

#include <algorithm>
#include <array>

#include "admission/plugin.h"
#include "base/api_error.h"
#include "base/text.h"

namespace holdfast::admission {
namespace {

// In the order in which Kubernetes runs them.
constexpr const Plugin* kPlugins[] = {
    &kNamespaceLifecycle,
    &kLimitRanger,
    &kServiceAccount,
    &kTaintNodesByCondition,
    &kPodSecurity,
    &kPriority,
    &kDefaultTolerationSeconds,
    &kDefaultStorageClass,
    &kStorageObjectInUseProtection,
    &kPersistentVolumeClaimResize,
    &kRuntimeClass,
    &kCertificateApproval,
    &kCertificateSigning,
    &kCertificateSubjectRestriction,
    &kDefaultIngressClass,
    &kPodTopologyLabels,
};

}  // namespace

std::span<const std::string_view> Chain::plugin_names() {
  static const auto names = [] {
    std::array<std::string_view, std::size(kPlugins)> all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = kPlugins[i]->name;
    return all;
  }();
  return names;
}

Chain::Chain(std::span<const std::string_view> disabled) {
  for (const Plugin* plugin : kPlugins) {
    if (std::find(disabled.begin(), disabled.end(), plugin->name) == disabled.end()) plugins_.push_back(plugin);
  }
}

bool Chain::has(std::string_view name) const {
  return std::any_of(plugins_.begin(), plugins_.end(), [&](const Plugin* plugin) { return plugin->name == name; });
}

bool Chain::handles(const types::Resource& resource, std::string_view subresource, Operation operation) const {
  return std::any_of(plugins_.begin(), plugins_.end(),
                     [&](const Plugin* plugin) { return plugin->handles(resource, subresource, operation); });
}

Result<Unit> Chain::admit(Attributes& attributes, Draft::Node object) const {
  for (const Plugin* plugin : plugins_) {
    if (plugin->admit == nullptr ||
        !plugin->handles(attributes.resource, attributes.subresource, attributes.operation)) {
      continue;
    }
    if (Result<Unit> done = plugin->admit(attributes, object); !done) return done;
  }
  return Unit{};
}

Result<Unit> Chain::validate(Attributes& attributes, const Value& object) const {
  for (const Plugin* plugin : plugins_) {
    if (plugin->validate == nullptr ||
        !plugin->handles(attributes.resource, attributes.subresource, attributes.operation)) {
      continue;
    }
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

std::string quoted(std::span<const std::string> texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + go_quote(text);
  return list;
}

}  // namespace holdfast::admission
