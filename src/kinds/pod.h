// What kinds with a pod template share with Pod. Private to the module.
#pragma once

#include <optional>

#include "codec/quantity.h"
#include "kinds/hooks.h"
#include "kinds/names.h"

namespace holdfast::kinds {

// --- Defaults ---

// Of every PodSpec, in a Pod or in a template.
void default_pod_spec(Arena& arena, Draft::Node spec);
// Of an optional PodTemplateSpec member: the template's PodSpec, and its annotations.
void default_pod_template(Arena& arena, Draft::Node parent, std::string_view key);
// Rounds quantities finer than a thousandth up, as Kubernetes does with every ResourceList.
void default_resource_list(Arena& arena, Draft::Node parent, std::string_view key);
void default_resources(Arena& arena, Draft::Node parent);  // Its member "resources": limits and requests.

// Drops from a PodSpec what only gates turn on that are off in v1.36; `old` keeps what it already used.
void drop_disabled_pod_fields(Draft::Node spec, const Value* old_spec);
void drop_disabled_template_fields(Draft::Node parent, std::string_view key, const Value* old_template);

// --- Validation ---

struct PodOptions {
  bool is_pod = false;  // A Pod rather than a template.
  bool allow_privileged = true;
  const Value* metadata = nullptr;      // Of the pod or template.
  const Value* old_metadata = nullptr;  // Of a pod that is updated: what was accepted before is not refused now.
};

// The volumes of a pod that containers may refer to: those without mistakes.
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
// Of a pod's container; templates leave it to whoever makes the pod.
void validate_image_text(const Value& container, const Path& at, FieldErrors& errors);
// resources of a container (or a pod, or a claim's template).
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

// Of a pod or of a template, at e.g. metadata.annotations.
void validate_pod_annotations(const Value& metadata, const Value& spec, const Value* old_metadata, const Path& at,
                              FieldErrors& errors);
// What an update of a pod may do to them; they are looked at again.
void validate_pod_annotation_updates(const Value& next, const Value& old, FieldErrors& errors);
// Profiles that both an annotation and a field name; `at`: the spec.
void validate_profile_annotations(const Value& metadata, const Value& spec, const Path& at, FieldErrors& errors);
// The AppArmor profile that a deprecated annotation stands for; null when it is not one.
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

// A PersistentVolumeClaimSpec, also of a StatefulSet's and of an ephemeral volume's template. `old`: that of the claim
// that is updated.
void validate_claim_spec(const Value& spec, const Path& at, FieldErrors& errors, const Value* old = nullptr);

// --- Warnings ---

// Of a pod template at e.g. spec.template.
void warn_about_pod_template(const Value& pod_template, const Path& at, std::vector<std::string>& texts);
void warn_about_pod(const Value& spec, const Value* metadata, const Path& spec_at, const Path& metadata_at,
                    std::vector<std::string>& texts);
// Of a PersistentVolumeClaimSpec.
void warn_about_claim(const Value& spec, const Path& at, std::vector<std::string>& texts);
// What is said about a label of nodes that is no longer used; empty when it is.
std::string_view deprecated_label(std::string_view key);
// The name that a label of nodes has now; empty when it never had another.
std::string_view current_label(std::string_view key);
// The matchExpressions of a NodeSelectorTerm or of a selector of nodes.
enum class LabelValues : uint8_t { Ignored, Checked };
void warn_about_node_term(const Value& term, LabelValues values, const Path& at, std::vector<std::string>& texts);
// metadata.name: this is used in Pod names and hostnames, ...
void warn_about_name(const Value& object, const Value* old, std::string_view what, std::vector<std::string>& texts);

// Of a Node: podCIDR and podCIDRs say the same.
void mirror_pod_cidrs(Draft::Node node_spec);
void default_pod(Arena& arena, const types::Resource& resource, Draft::Node pod);

void validate_pod_status(Context& context, const Value& next, const Value& old, FieldErrors& errors);

std::string_view qos_class(const Value& pod_spec);
// What the containers of a pod ask for at most at any time, of their "requests" or "limits"; none where no container
// names the resource.
std::optional<codec::Quantity> aggregate_resource(const Value& spec, std::string_view list, std::string_view resource);

// An image reference has the tag latest, or neither tag nor digest: it is pulled always.
bool image_is_latest(std::string_view image);

}  // namespace holdfast::kinds
