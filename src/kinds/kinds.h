// What Kubernetes itself knows about each built-in kind: defaults, what a write may change, validation, warnings.
//
// Everything here is a plain function on Values in canonical typed form: exactly the members that Kubernetes prints,
// absent meaning Go's zero. The steps of a write, in order (each function says which it is):
//
//   decode -> set_defaults -> to storage version -> mutating admission -> uid, creationTimestamp, name
//     -> [Service: claims] -> prepare -> validate -> warnings -> validating admission -> store
//
// Objects read from the store go through set_defaults too. Kinds served in two versions (HorizontalPodAutoscaler,
// Event) are prepared and validated in their storage version.
//
// Threading: share freely; nothing here keeps state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "kinds/field_errors.h"
#include "kinds/selectable.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// Who asks. Views live as long as the request.
struct Caller {
  std::string_view name, uid;
  std::span<const std::string_view> groups = {};
  Value extra;  // A map of lists of strings, or null.
};

// The part of an object that a request writes.
enum class Endpoint : uint8_t { Main, Status, Finalize, Approval, EphemeralContainers, Resize };
// "" is Main, "status" is Status, ...; nothing for subresources that are not a view of the object itself.
std::optional<Endpoint> endpoint_of(std::string_view subresource);

struct Context {
  Arena& arena;
  const types::Resource& resource;  // As requested: events.k8s.io has rules that core/v1 events do not.
  UnixTime now;
  const Caller* caller = nullptr;                              // CertificateSigningRequest records it.
  std::span<const std::string_view> service_ip_families = {};  // "IPv4", "IPv6", primary first; empty: IPv4 alone.
  bool allow_privileged = true;                                // --allow-privileged
  Value sent = {};  // The document that the object was decoded from, for error texts. Null: unknown.
};

enum class Deletion : uint8_t {
  Plain,
  Graceful,   // Pods: see grace_period.
  Namespace,  // First DELETE sets deletionTimestamp and phase Terminating; gone when spec.finalizers is empty.
};

enum class Propagation : uint8_t {
  Background,
  Orphan,  // ReplicationController and batch/v1 Job, unless the request says otherwise.
  None,    // Events: no finalizers whatever is asked.
};

struct Hooks;  // The functions of one kind; private to the module.

// What the verbs need to know about a kind. Kinds without rules of their own get those of a plain object.
struct Rules {
  std::string_view group, plural;
  const Hooks* hooks = nullptr;
  bool has_status = false;             // Has a status, which the main endpoint may not write.
  bool put_creates = false;            // PUT of a missing object creates it.
  bool unconditional_update = true;    // PUT without resourceVersion is taken.
  bool delete_answers_object = false;  // DELETE answers the last state rather than Status Success.
  bool name_may_be_empty = false;      // LimitRange: an empty name is not an error (the name becomes a UUID).
  bool generates_names = true;         // IPAddress: generateName becomes the name as it is.
  bool expires = false;                // Events: deleted after --event-ttl.
  bool watch_cached = true;  // Not events: lists honour a limit, and a future revision is an error, as in the store.
  Deletion deletion = Deletion::Plain;
  Propagation propagation = Propagation::Background;
};
const Rules& rules_of(std::string_view group, std::string_view plural);
inline const Rules& rules_of(const types::Resource& resource) { return rules_of(resource.group, resource.plural); }

// --- The steps -------------------------------------------------------------------------------------------------

// Scheme defaulting, with the fields that mirror each other. `resource` is the version the object is written in.
void set_defaults(Arena& arena, const types::Resource& resource, Draft::Node object);

// Before validation. Create wipes what clients may not set (deletionTimestamp, status, ...) and starts generation;
// update restores what this endpoint may not change and counts generation up. metadata.managedFields is not touched.
void prepare_for_create(Context& context, Draft::Node object);
void prepare_for_update(Context& context, Endpoint endpoint, Draft::Node next, const Value& old);

// The kind's validation and that of the metadata. Error: Invalid with every cause.
Result<Unit> validate_create(Context& context, const Value& object);
Result<Unit> validate_update(Context& context, Endpoint endpoint, const Value& next, const Value& old);

// Texts for Warning headers, from an object that passed validation. `old` is null for a create.
std::vector<std::string> warnings(Context& context, const Value& object, const Value* old,
                                  Endpoint endpoint = Endpoint::Main);
// metadata.name: this is used in Pod names ..., and the like, are in warnings() as well. Deprecated versions warn on
// every verb, before anything else: empty when there is nothing to say.
std::string_view deprecation_warning(const types::Resource& resource);

// Annotations that stand for fields which the version lacks: conversion to it makes them. PartialObjectMetadata does
// not have them.
std::span<const std::string_view> conversion_annotations(const types::Resource& resource);

// The object of a bookmark: Kubernetes' internal one with nothing in it, converted to the version. Beside the zero
// value of its type it has what the internal struct keeps by value and the version behind a pointer, and annotations
// that conversion makes. Without kind and apiVersion.
Value zero_object(Arena& arena, const types::Resource& resource);

// --- Names -----------------------------------------------------------------------------------------------------

// "base-" and five random letters; the base is cut so that the whole has at most 63 bytes.
std::string generate_name(std::string_view base, uint64_t random);

// --- Deletion --------------------------------------------------------------------------------------------------

// Seconds that a deleted object stays: of Deletion::Graceful kinds, as asked or as the object says; others 0.
int64_t grace_period(const Rules& rules, const Value& object, std::optional<int64_t> requested);

// --- Ownership -------------------------------------------------------------------------------------------------

// Paths that writes through an endpoint never own. "spec.containers[].resources": any item of the list.
struct ResetFields {
  std::span<const std::string_view> reset = {};
  std::span<const std::string_view> keep_only = {};  // If not empty: everything else is reset.
};
ResetFields reset_fields(const types::Resource& resource, Endpoint endpoint);

// --- Versions --------------------------------------------------------------------------------------------------

// From one served version of a built-in kind to another: HorizontalPodAutoscaler v1 <-> v2, Event core <->
// events.k8s.io. apiVersion and kind of the result are those of `to`. The same version: the object as it is.
Value convert(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object);

// --- Scale -----------------------------------------------------------------------------------------------------

// The autoscaling/v1 Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController.
Value scale_of(Arena& arena, const types::Resource& resource, const Value& object);
// Validates a Scale that someone writes (422 on Scale.autoscaling).
Result<Unit> validate_scale(const Value& scale);
// Puts spec.replicas of a Scale (absent: 0) into the object.
void apply_scale(Draft::Node object, const Value& scale);

// --- Pods ------------------------------------------------------------------------------------------------------

// pods/binding: checks the Binding against the pod, sets nodeName, labels, annotations, PodScheduled. Errors are those
// the API answers (409, or 500 without reason for a Binding that is itself wrong).
Result<Unit> bind_pod(Context& context, Draft::Node pod, const Value& binding);

// --- Services: addresses and node ports ------------------------------------------------------------------------

// What a Service needs from the pools before it can be written. The caller takes it (or undoes it when the write fails)
// and hands the results to fill_claims in the same order.
struct ServiceClaims {
  struct Ip {
    std::string_view family;  // "IPv4" or "IPv6".
    std::string_view wanted;  // Empty: any.
  };
  struct Port {
    int32_t wanted = 0;                // 0: any.
    std::string field;                 // spec.ports[0].nodePort or spec.healthCheckNodePort: where an error belongs.
    std::vector<uint32_t> ports = {};  // Positions in spec.ports that get it; none: healthCheckNodePort.
  };
  std::vector<Ip> ips;
  std::vector<Port> ports;
  std::vector<std::string_view> released_ips;  // To give back once the write is done.
  std::vector<int32_t> released_ports;
};
// Also completes clusterIPs, ipFamilies and ipFamilyPolicy. Runs before prepare.
Result<ServiceClaims> claims_of_create(Context& context, Draft::Node service);
// Also takes over what the client left out from `old`. Runs before prepare.
Result<ServiceClaims> claims_of_update(Context& context, Draft::Node service, const Value& old);
// What deleting the service gives back.
ServiceClaims claims_of_delete(const Value& service);
void fill_claims(Arena& arena, Draft::Node service, const ServiceClaims& claims, std::span<const std::string> ips,
                 std::span<const int32_t> ports);
// The answers when the pool refuses: `why` is "provided IP is already allocated" and the like.
Error ip_refused(const Value& service, const ServiceClaims& claims, size_t claim, std::string_view why);
Error port_refused(const Value& service, const ServiceClaims& claims, size_t claim, std::string_view why);

// --- Pieces that other modules share -----------------------------------------------------------------------------

// Each: what is wrong with the text, nothing when it is right. Kubernetes' own sentences.
std::vector<std::string> dns_label_errors(std::string_view text);      // RFC 1123 label.
std::vector<std::string> dns_subdomain_errors(std::string_view text);  // RFC 1123 subdomain.
std::vector<std::string> dns1035_label_errors(std::string_view text);
std::vector<std::string> qualified_name_errors(std::string_view text);  // Label keys, finalizers.
std::vector<std::string> label_value_errors(std::string_view text);
std::vector<std::string> path_segment_errors(std::string_view name);  // Any object's name.

// A name rule: `prefix` for generateName, whose trailing dash will be followed by letters.
using NameRule = std::vector<std::string> (*)(std::string_view name, bool prefix);
std::vector<std::string> name_is_dns_subdomain(std::string_view name, bool prefix);
std::vector<std::string> name_is_dns_label(std::string_view name, bool prefix);
std::vector<std::string> name_is_path_segment(std::string_view name, bool prefix);

// metadata of any object, custom resources too, at `at` (normally "metadata"). `rule` is a NameRule, or one that knows
// more than the name.
void validate_metadata(const Value& metadata, bool namespaced,
                       const std::function<std::vector<std::string>(std::string_view name, bool prefix)>& rule,
                       const Path& at, FieldErrors& errors);
void validate_metadata_update(const Value& next, const Value& old, const Path& at, FieldErrors& errors);
void validate_labels(const Value* labels, const Path& at, FieldErrors& errors);
void validate_annotations(const Value* annotations, const Path& at, FieldErrors& errors);
// A metav1.LabelSelector.
void validate_label_selector(const Value* selector, const Path& at, FieldErrors& errors);
// Whether a metav1.LabelSelector selects labels (a map, may be null). An absent selector selects nothing.
bool selects(const Value* selector, const Value* labels);

// Go's apiequality.Semantic.DeepEqual on canonical forms: quantities by value, times by instant, an empty list or map
// equals an absent one (an empty struct behind a pointer does not). Null pointers: absent.
bool semantic_equal(const types::Type& type, const Value* a, const Value* b);

// What Go prints for the zero value of a struct: members without omitempty, nested structs.
Value zero_value(Arena& arena, const types::Type& type);

}  // namespace holdfast::kinds
