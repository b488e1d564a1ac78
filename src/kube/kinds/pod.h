// What kinds with a pod template share with Pod. Private to the module.
#pragma once

#include <optional>

#include "codec/quantity.h"
#include "kinds/hooks.h"
#include "kinds/names.h"
#include "kinds/qos.h"

namespace holdfast::kinds {

// --- Defaults ---

// For every PodSpec, in a Pod or in a template.
void default_pod_spec(Arena& arena, Draft::Node spec);
// For an optional PodTemplateSpec member: the template's PodSpec, and its annotations.
void default_pod_template(Arena& arena, Draft::Node parent, std::string_view key);
// Rounds up quantities finer than a thousandth, as in every ResourceList of Kubernetes.
void default_resource_list(Arena& arena, Draft::Node parent, std::string_view key);
void default_resources(Arena& arena, Draft::Node parent);  // The member "resources": limits and requests.

// Drops fields of a PodSpec whose feature gates are off in v1.36; those already used in `old_spec` are kept.
void drop_disabled_pod_fields(Draft::Node spec, const Value* old_spec);
void drop_disabled_template_fields(Draft::Node parent, std::string_view key, const Value* old_template);

// --- Validation ---

// Calls visit(container, path) for each container of a PodSpec, of all three lists.
template <class Visit>
void each_container(const Value& spec, const Path& at, Visit visit) {
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const std::span<const Value> containers = spec.items_at(list);
    for (size_t i = 0; i < containers.size(); ++i) visit(containers[i], at.item(list, i));
  }
}

struct PodOptions {
  bool is_pod = false;  // A Pod rather than a template.
  bool allow_privileged = true;
  const Value* metadata = nullptr;      // Of the pod or template.
  const Value* old_metadata = nullptr;  // For an update of a pod: what was accepted before is not rejected now.
};

// The valid volumes of a pod, which containers may refer to.
struct VolumeNames {
  Names all, claims;
};
void validate_pod_spec(const Value& spec, const PodOptions& options, const Path& at, FieldErrors& errors);
// Template metadata and spec, at e.g. spec.template.
void validate_pod_template(const Value& pod_template, const PodOptions& options, const Path& at, FieldErrors& errors);
void validate_volumes(std::span<const Value> volumes, const PodOptions& options, const Path& at, FieldErrors& errors,
                      VolumeNames& valid);
void validate_containers(const Value& spec, const PodOptions& options, const VolumeNames& volumes, const Path& at,
                         FieldErrors& errors);
// For a container of a pod; templates leave it to whatever creates the pod.
void validate_image_text(const Value& container, const Path& at, FieldErrors& errors);
// Resources of a container, a pod or a claim template.
void validate_resource_requirements(const Value& resources, bool of_pod, std::span<const Value> claims, const Path& at,
                                    FieldErrors& errors);
void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_container_resource_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_resource_quantity(std::string_view name, const Value& quantity, const Path& at, FieldErrors& errors);
void validate_security_context(const Value& context, bool allow_privileged, bool host_users, const Path& at,
                               FieldErrors& errors);
// --- Annotations ---

inline constexpr std::string_view kMirrorPod = "kubernetes.io/config.mirror";
inline constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
inline constexpr size_t kMaxAppArmorBytes = 4095;

// For a pod or a template, at e.g. metadata.annotations.
void validate_pod_annotations(const Value& metadata, const Value& spec, const Value* old_metadata, const Path& at,
                              FieldErrors& errors);
// Checks how an update of a pod changes its annotations, which are also validated again.
void validate_pod_annotation_updates(const Value& next, const Value& old, FieldErrors& errors);
// Profiles specified by both an annotation and a field must match; `at` is the spec.
void validate_profile_annotations(const Value& metadata, const Value& spec, const Path& at, FieldErrors& errors);
// The AppArmor profile for the value of a deprecated annotation; null if it is not one.
Value app_armor_of_annotation(Arena& arena, std::string_view text);
bool is_padded(std::string_view text);  // White space at either end.

void validate_os(const Value& spec, const Path& at, FieldErrors& errors);
void validate_pod_security(const Value& spec, const Path& at, FieldErrors& errors);
void validate_affinity(const Value* affinity, const Path& at, FieldErrors& errors);
void validate_node_selector(const Value& selector, const Path& at, FieldErrors& errors);
void validate_spread_constraints(std::span<const Value> constraints, const Path& at, FieldErrors& errors);
void validate_tolerations(std::span<const Value> tolerations, const Path& at, FieldErrors& errors);
// An IntOrString: a port number or a port name.
void validate_port(const Value& port, const Path& at, FieldErrors& errors);
void validate_local_path(std::string_view path, const Path& at, FieldErrors& errors);

// A PersistentVolumeClaimSpec, including those in templates of a StatefulSet or an ephemeral volume. `old` is the
// previous spec on update.
void validate_claim_spec(const Value& spec, const Path& at, FieldErrors& errors, const Value* old = nullptr);

// --- Warnings ---

// For a pod template at e.g. spec.template.
void warn_about_pod_template(const Value& pod_template, const Path& at, Warnings& texts);
void warn_about_pod(const Value& spec, const Value* metadata, const Path& spec_at, const Path& metadata_at,
                    Warnings& texts);
// For a PersistentVolumeClaimSpec.
void warn_about_claim(const Value& spec, const Path& at, Warnings& texts);
// The warning for a deprecated node label; empty if it is not deprecated.
std::string_view deprecated_label(std::string_view key);
// The current name of a deprecated node label; empty if it is not deprecated.
std::string_view current_label(std::string_view key);
// The matchExpressions of a NodeSelectorTerm or of a node selector.
enum class LabelValues : uint8_t { Ignored, Checked };
void warn_about_node_term(const Value& term, LabelValues values, const Path& at, Warnings& texts);
// metadata.name: this is used in Pod names and hostnames, ...
void warn_about_name(const Value& object, const Value* old, std::string_view what, Warnings& texts);

// For a Node: keeps podCIDR and podCIDRs consistent.
void mirror_pod_cidrs(Draft::Node node_spec);
void default_pod(Arena& arena, const types::Resource& resource, Draft::Node pod);

void validate_pod_status(Context& context, const Value& next, const Value& old, FieldErrors& errors);

// The maximum that the containers of a pod need at any time, of their "requests" or "limits"; nullopt if no container
// specifies the resource.
std::optional<codec::Quantity> aggregate_resource(const Value& spec, std::string_view list, std::string_view resource);

// Whether an image reference has the tag latest, or neither tag nor digest, and is therefore always pulled.
bool image_is_latest(std::string_view image);

}  // namespace holdfast::kinds
