#include "kinds/pod_references.h"

namespace holdfast::kinds {
namespace {

using See = std::function<void(std::string_view name)>;

void see_name(std::string_view name, const See& see) {
  if (!name.empty()) see(name);
}

// References of environment variables: envFrom[].FROM.name, env[].valueFrom.KEY.name.
void visit_environment(const Value& pod, std::string_view from, std::string_view key, const See& see) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : pod.items_at("spec", list)) {
      for (const Value& source : container.items_at("envFrom")) see_name(source.text_at(from, "name"), see);
      for (const Value& variable : container.items_at("env")) see_name(variable.text_at("valueFrom", key, "name"), see);
    }
  }
}

}  // namespace

void visit_secrets(const Value& pod, const See& see) {
  // Volumes that name their secret as VOLUME.MEMBER.name.
  struct Reference {
    std::string_view volume, member;
  };
  static constexpr Reference kReferences[] = {
      {"cephfs", "secretRef"},  {"cinder", "secretRef"}, {"flexVolume", "secretRef"}, {"rbd", "secretRef"},
      {"scaleIO", "secretRef"}, {"iscsi", "secretRef"},  {"storageos", "secretRef"},  {"csi", "nodePublishSecretRef"}};
  for (const Value& reference : pod.items_at("spec", "imagePullSecrets")) see_name(reference.text_at("name"), see);
  visit_environment(pod, "secretRef", "secretKeyRef", see);
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    see_name(volume.text_at("azureFile", "secretName"), see);
    see_name(volume.text_at("secret", "secretName"), see);
    for (const Reference& one : kReferences) see_name(volume.text_at(one.volume, one.member, "name"), see);
    for (const Value& source : volume.items_at("projected", "sources")) see_name(source.text_at("secret", "name"), see);
  }
}

void visit_config_maps(const Value& pod, const See& see) {
  visit_environment(pod, "configMapRef", "configMapKeyRef", see);
  for (const Value& volume : pod.items_at("spec", "volumes")) {
    see_name(volume.text_at("configMap", "name"), see);
    for (const Value& source : volume.items_at("projected", "sources")) {
      see_name(source.text_at("configMap", "name"), see);
    }
  }
}

}  // namespace holdfast::kinds
