// What kinds with a pod template share with Pod. Private to the module.
#pragma once

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
  const Value* metadata = nullptr;  // Of the pod or template.
  const Value* old_spec = nullptr;  // Of an update: what was accepted before is not refused now.
};
void validate_pod_spec(const Value& spec, const PodOptions& options, const Path& at, FieldErrors& errors);
// Template metadata and spec, at e.g. spec.template.
void validate_pod_template(const Value& pod_template, const PodOptions& options, const Path& at, FieldErrors& errors);
void validate_volumes(std::span<const Value> volumes, const PodOptions& options, const Path& at, FieldErrors& errors,
                      Names& valid_names);
void validate_containers(const Value& spec, const PodOptions& options, const Names& volumes, const Path& at,
                         FieldErrors& errors);
// resources of a container (or a pod, or a claim's template).
void validate_resource_requirements(const Value& resources, bool of_pod, std::span<const Value> claims, const Path& at,
                                    FieldErrors& errors);
void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors);
void validate_resource_quantity(std::string_view name, const Value& quantity, const Path& at, FieldErrors& errors);
void validate_security_context(const Value& context, bool allow_privileged, bool host_users, const Path& at,
                               FieldErrors& errors);
void validate_os(const Value& spec, const Path& at, FieldErrors& errors);
void validate_pod_security(const Value& spec, const Path& at, FieldErrors& errors);
void validate_affinity(const Value* affinity, const Path& at, FieldErrors& errors);
void validate_node_selector(const Value& selector, const Path& at, FieldErrors& errors);
void validate_spread_constraints(std::span<const Value> constraints, const Path& at, FieldErrors& errors);
void validate_tolerations(std::span<const Value> tolerations, const Path& at, FieldErrors& errors);
// An IntOrString: a port number or a port name.
void validate_port(const Value& port, const Path& at, FieldErrors& errors);
void validate_local_path(std::string_view path, const Path& at, FieldErrors& errors);

// A PersistentVolumeClaimSpec, also of a StatefulSet's and of an ephemeral volume's template.
void validate_claim_spec(const Value& spec, const Path& at, FieldErrors& errors);

// --- Warnings ---

// Of a pod template at e.g. spec.template.
void warn_about_pod_template(const Value& pod_template, const Path& at, std::vector<std::string>& texts);
void warn_about_pod(const Value& spec, const Value* metadata, const Path& spec_at, const Path& metadata_at,
                    std::vector<std::string>& texts);
// Of a PersistentVolumeClaimSpec.
void warn_about_claim(const Value& spec, const Path& at, std::vector<std::string>& texts);
// What to use instead of a label of nodes that has another name now; empty when it has none.
std::string_view deprecated_label(std::string_view key);
// metadata.name: this is used in Pod names and hostnames, ...
void warn_about_name(const Value& object, const Value* old, std::string_view what, std::vector<std::string>& texts);

// Of a Node: podCIDR and podCIDRs say the same.
void mirror_pod_cidrs(Draft::Node node_spec);
void default_pod(Arena& arena, const types::Resource& resource, Draft::Node pod);

void validate_pod_status(Context& context, const Value& next, const Value& old, FieldErrors& errors);

std::string_view qos_class(const Value& pod_spec);

// An image reference has the tag latest, or neither tag nor digest: it is pulled always.
bool image_is_latest(std::string_view image);

}  // namespace holdfast::kinds
