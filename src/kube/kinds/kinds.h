// The rules of Kubernetes for each built-in kind: defaults, what a write may change, validation, warnings.
//
// Everything here is a plain function on Values in canonical typed form: exactly the members that Kubernetes prints,
// absent meaning Go's zero value. The steps of a write, in order (each function says which one it is):
//
//   decode -> set_defaults -> to storage version -> mutating admission -> uid, creationTimestamp, name
//     -> [Service: claims] -> prepare -> validate -> warnings -> validating admission -> store
//
// Objects read from the store go through set_defaults too. Kinds served in two versions (HorizontalPodAutoscaler,
// Event) are prepared and validated in their storage version.
//
// Threading: stateless; call from any thread.
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
#include "base/warnings.h"
#include "kinds/field_errors.h"
#include "kinds/selectable.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::kinds {

// The user of the request. The views must not outlive the request.
struct Caller {
  std::string_view name, uid;
  std::span<const std::string_view> groups = {};
  Value extra;  // A map of lists of strings, or null.
};

// The part of an object that a request writes.
enum class Endpoint : uint8_t { Main, Status, Finalize, Approval, EphemeralContainers, Resize };
// "" is Main, "status" is Status, ...; nullopt for subresources that are not a view of the object itself.
std::optional<Endpoint> endpoint_of(std::string_view subresource);

struct Context {
  Arena& arena;
  const types::Resource& resource;  // As requested: events.k8s.io has rules that core/v1 events do not have.
  UnixTime now;
  const Caller* caller = nullptr;                              // CertificateSigningRequest records it.
  std::span<const std::string_view> service_ip_families = {};  // "IPv4", "IPv6", primary first; empty means only IPv4.
  bool allow_privileged = true;                                // --allow-privileged
  Value sent = {};  // The document from which the object was decoded, for error messages. Null if unknown.
  // Added by prepare_for_create(), and sent even if the object is rejected afterwards; other warnings come from
  // add_warnings().
  std::vector<std::string> early_warnings = {};
};

enum class Deletion : uint8_t {
  Plain,
  Graceful,   // Pods: see grace_period.
  Namespace,  // The first DELETE sets deletionTimestamp and phase Terminating; removed once spec.finalizers is empty.
};

enum class Propagation : uint8_t {
  Background,
  Orphan,  // ReplicationController and batch/v1 Job, unless the request says otherwise.
  None,    // Events: no finalizers, whatever is requested.
};

struct Hooks;  // The functions of one kind; private to the module.

// What the verbs need to know about a kind. Kinds without their own rules get the default ones.
struct Rules {
  std::string_view group, plural;
  const Hooks* hooks = nullptr;
  bool has_status = false;             // Has a status that the main endpoint must not write.
  bool put_creates = false;            // PUT creates a missing object.
  bool unconditional_update = true;    // PUT without resourceVersion is accepted.
  bool delete_returns_object = false;  // DELETE returns the last state instead of a Status.
  bool name_may_be_empty = false;      // LimitRange: an empty name is not an error (the name becomes a UUID).
  bool generates_names = true;         // IPAddress: generateName is used as the name unchanged.
  bool expires = false;                // Events: deleted after --event-ttl.
  // False for events: lists honour a limit, and a future revision is an error, as in the store.
  bool watch_cached = true;
  Deletion deletion = Deletion::Plain;
  Propagation propagation = Propagation::Background;
};
const Rules& rules_of(std::string_view group, std::string_view plural);
inline const Rules& rules_of(const types::Resource& resource) { return rules_of(resource.group, resource.plural); }

// --- The steps -------------------------------------------------------------------------------------------------

// Scheme defaulting, including fields that mirror each other. `resource` is the version of the object.
void set_defaults(Arena& arena, const types::Resource& resource, Draft::Node object);

// Before validation. On create, drops what clients may not set (deletionTimestamp, status, ...) and starts generation;
// on update, restores what this endpoint may not change and increments generation. Does not touch
// metadata.managedFields.
void prepare_for_create(Context& context, Draft::Node object);
void prepare_for_update(Context& context, Endpoint endpoint, Draft::Node next, const Value& old);

// Validates the kind and its metadata. The error is Invalid with all causes.
Result<Unit> validate_create(Context& context, const Value& object);
Result<Unit> validate_update(Context& context, Endpoint endpoint, const Value& next, const Value& old);

// Adds the warnings about an object that passed validation. `old` is null on create.
void add_warnings(Context& context, const Value& object, const Value* old, Endpoint endpoint, Warnings& texts);
// Deprecated versions warn on every verb, before anything else; empty if not deprecated.
std::string_view deprecation_warning(const types::Resource& resource);

// The storage class of a claim or a volume: its annotation, even if that is empty, before its field.
std::string_view storage_class_of(const Value& object);

// Annotations for fields that the version lacks, created by conversion to it. PartialObjectMetadata omits them.
std::span<const std::string_view> conversion_annotations(const types::Resource& resource);

// The object of a bookmark: Kubernetes' empty internal object, converted to the version. In addition to the zero value
// of its type it has the fields that are values in the internal struct but pointers in the version, and the annotations
// created by conversion. Without kind and apiVersion.
Value zero_object(Arena& arena, const types::Resource& resource);

// --- Names -----------------------------------------------------------------------------------------------------

// "base-" and five random letters; the base is truncated so that the result has at most 63 bytes.
std::string generate_name(std::string_view base, uint64_t random);

// --- Deletion --------------------------------------------------------------------------------------------------

// Grace period in seconds: for Deletion::Graceful, as requested or as set in the object; otherwise 0.
int64_t grace_period(const Rules& rules, const Value& object, std::optional<int64_t> requested);
// Why a DELETE of this particular object is forbidden; empty if it is allowed.
std::string_view deletion_forbidden_reason(const types::Resource& resource, std::string_view name);

// --- Ownership -------------------------------------------------------------------------------------------------

// Paths that writes to an endpoint never own. "[]" stands for every item: "spec.containers[].resources".
struct ResetFields {
  std::span<const std::string_view> reset = {};
  std::span<const std::string_view> keep_only = {};  // If not empty, everything else is reset.
};
ResetFields reset_fields(const types::Resource& resource, Endpoint endpoint);

// --- Versions --------------------------------------------------------------------------------------------------

// Converts between served versions of a built-in kind: HorizontalPodAutoscaler v1 <-> v2, Event core <-> events.k8s.io.
// The result has apiVersion and kind of `to`. For the same version, the object is returned unchanged.
Value convert(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object);

// --- Scale -----------------------------------------------------------------------------------------------------

// The autoscaling/v1 Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController.
Value scale_of(Arena& arena, const types::Resource& resource, const Value& object);
// The Scale of any object, from its metadata and these fields; without a selector if that is empty.
struct ScaleFields {
  int64_t spec_replicas = 0, status_replicas = 0;
  std::string selector;
};
Value make_scale(Arena& arena, const Value& object, const ScaleFields& fields);
// Validates a Scale to be written (422 on Scale.autoscaling).
Result<Unit> validate_scale(const Value& scale);
// Sets the object's spec.replicas to that of a Scale (0 if absent).
void apply_scale(Draft::Node object, const Value& scale);

// --- Pods ------------------------------------------------------------------------------------------------------

// pods/binding: checks the Binding against the pod, sets nodeName, labels, annotations, PodScheduled. Errors are those
// of the API (409, or 500 without reason for an invalid Binding).
Result<Unit> bind_pod(Context& context, Draft::Node pod, const Value& binding);

// --- Services: addresses and node ports ------------------------------------------------------------------------

// What a Service needs from the pools before it can be written. The caller allocates it (and releases it if the write
// fails) and passes the results to fill_claims in the same order.
struct ServiceClaims {
  struct Ip {
    std::string_view family;  // "IPv4" or "IPv6".
    std::string_view wanted;  // Empty means any.
  };
  struct Port {
    int32_t wanted = 0;                // 0 means any.
    std::string field;                 // spec.ports[0].nodePort or spec.healthCheckNodePort: the field of an error.
    std::vector<uint32_t> ports = {};  // Positions in spec.ports that get it; empty for healthCheckNodePort.
  };
  std::vector<Ip> ips;
  std::vector<Port> ports;
  std::vector<std::string_view> released_ips;  // To release after the write.
  std::vector<int32_t> released_ports;
};
// Also completes clusterIPs, ipFamilies and ipFamilyPolicy. Runs before prepare.
Result<ServiceClaims> claims_of_create(Context& context, Draft::Node service);
// Also fills in from `old` what the client omitted. Runs before prepare.
Result<ServiceClaims> claims_of_update(Context& context, Draft::Node service, const Value& old);
// What deleting the service releases.
ServiceClaims claims_of_delete(const Value& service);
void fill_claims(Arena& arena, Draft::Node service, const ServiceClaims& claims, std::span<const std::string> ips,
                 std::span<const int32_t> ports);
// The errors if the pool rejects a claim: `why` is "provided IP is already allocated" and the like.
Error ip_refused(const Value& service, const ServiceClaims& claims, size_t claim, std::string_view why);
Error port_refused(const Value& service, const ServiceClaims& claims, size_t claim, std::string_view why);

// --- Shared with other modules -----------------------------------------------------------------------------------

// Each returns what is wrong with the text, in Kubernetes' words; empty if it is valid.
std::vector<std::string> dns_label_errors(std::string_view text);      // RFC 1123 label.
std::vector<std::string> dns_subdomain_errors(std::string_view text);  // RFC 1123 subdomain.
std::vector<std::string> dns1035_label_errors(std::string_view text);
std::vector<std::string> qualified_name_errors(std::string_view text);  // Label keys, finalizers.
std::vector<std::string> label_value_errors(std::string_view text);
std::vector<std::string> path_segment_errors(std::string_view name);  // The name of any object.
// Fails for a name that no object can have because it would change the path: "..", "a%b". Called before an object is
// read or written by name.
Result<Unit> check_path_name(std::string_view name);

// A name rule. `prefix` is set for generateName, whose trailing dash will be followed by letters.
using NameRule = std::vector<std::string> (*)(std::string_view name, bool prefix);
std::vector<std::string> name_is_dns_subdomain(std::string_view name, bool prefix);
std::vector<std::string> name_is_dns_label(std::string_view name, bool prefix);
std::vector<std::string> name_is_path_segment(std::string_view name, bool prefix);

// Validates the metadata of any object, including custom resources, at `at` (normally "metadata"). `rule` is a
// NameRule, or a function that knows more than the name.
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
// A metav1.LabelSelector as text, sorted by key: "a=b,c in (d,e)". Empty if the selector is absent.
std::string selector_text(const Value* selector);
// The same for a map of labels, the selector of a ReplicationController.
std::string selector_text(std::span<const Member> labels);
// Whether a resource such as "cpu" or "example.com/gpu" is one of Kubernetes' own.
bool is_native_resource(std::string_view name);

// Go's apiequality.Semantic.DeepEqual on canonical forms: quantities by value, times by instant, an empty list or map
// equals an absent one (an empty struct behind a pointer does not). Null pointers mean absent.
bool semantic_equal(const types::Type& type, const Value* a, const Value* b);

// What Go prints for the zero value of a struct: members without omitempty, nested structs.
Value zero_value(Arena& arena, const types::Type& type);

}  // namespace holdfast::kinds
