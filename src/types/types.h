// What an object may look like: the types and resources of the API, as constant data.
//
// The built-in kinds are the catalog (catalog/*.types), compiled into constant tables: nothing is parsed or allocated
// at start. A CustomResourceDefinition produces the same structures at run time (schema/). Codecs, merge, defaulting,
// validation, OpenAPI, discovery and tables all read these structures; there is no code per kind for them.
//
//   Resource --type--> Type(Struct) --members--> Field --type--> Type(List, keyed by "name") --element--> Type ...
//
// Lifetime: built-in types live forever; the types of a CRD live as long as the Schema that made them.
// Threading: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/gates.h"
#include "value/value.h"

namespace holdfast::types {

// The JSON form of a value, and with it its Protobuf form.
enum class Shape : uint8_t {
  Any,  // No type stated: any JSON. In merge: untyped scalar, atomic list, map of itself (see `any_map`).
  Bool,
  Int32,
  Int64,
  Double,
  String,
  Bytes,  // base64 text in JSON, bytes elsewhere.
  Time,   // RFC 3339, whole seconds; a message {seconds, nanos} in Protobuf.
  MicroTime,
  Duration,  // Go duration text in JSON.
  Quantity,  // Text, canonicalised; a message {string} in Protobuf.
  IntOrString,
  FieldsV1,      // JSON object kept as raw bytes.
  Raw,           // RawExtension and apiextensions.JSON: any JSON, carried verbatim.
  SchemaOrBool,  // JSONSchemaProps' unions, whose JSON form is one of the alternatives itself.
  SchemaOrArray,
  SchemaOrStringArray,
  List,
  Map,  // Keys are strings; values are `element`.
  Struct,
};

enum class ListKind : uint8_t { Atomic, Set, Keyed };
enum class MapKind : uint8_t { Granular, Atomic };

// What maps (and unknown members) of an untyped value are to the merge engine.
enum class AnyKind : uint8_t {
  Deduced,  // Maps granular, lists atomic: __untyped_deduced_.
  Atomic,   // Everything atomic: __untyped_atomic_.
};

struct Type;

enum PatchStrategy : uint8_t { kPatchNone = 0, kPatchMerge = 1, kPatchRetainKeys = 2, kPatchReplace = 4 };

struct Field {
  std::string_view name = {};  // As in JSON. Empty for an inlined struct.
  const Type* type = nullptr;
  uint32_t number = 0;      // In Protobuf; 0 when Protobuf does not have the field.
  bool omit_empty = false;  // Go's omitempty.
  bool omit_zero = false;   // Go's omitzero.
  bool pointer = false;     // A Go pointer: absent and zero are different things, on the wire too.
  bool required = false;    // In OpenAPI.
  bool inlined = false;  // An embedded struct whose members appear in the parent's JSON (TypeMeta, VolumeSource, ...).
  // x-kubernetes-map-type beside a reference: overrides the referenced map's or struct's own.
  bool overrides_map_kind = false;
  MapKind map_kind = MapKind::Granular;
  uint8_t patch_strategy = kPatchNone;
  std::string_view patch_merge_key = {};
  const Value* default_value = nullptr;  // Declared (OpenAPI) default; null when there is none.
  std::span<const std::string_view> enum_values = {};
  std::string_view description = {};
  // A field of ours that Kubernetes does not have (metadata.options, fieldsV2): while its gate is off it does not
  // exist. kCount: it always exists. Readers of types ask exists().
  Gate gate = Gate::kCount;
  bool root_only = false;  // Only in the metadata of the object itself, not of a template inside it.
  // A list whose items carry apiVersion and kind in JSON although Protobuf has neither (volumeClaimTemplates).
  std::string_view item_api_version = {}, item_kind = {};

  bool exists(const Gates* gates) const { return gate == Gate::kCount || (gates != nullptr && gates->on(gate)); }
};

// What the Protobuf codec needs to know of each field while it passes over a message, in two bytes: a message of forty
// fields is decided within two cache lines. Follows from the Field; types_test holds it to that.
struct FieldPlan {
  enum How : uint8_t {
    kNone,  // Not in Protobuf.
    kVarint,
    kVarint32,
    kFixed64,
    kText,     // Bytes of which the last occurrence counts.
    kMessage,  // Bytes that add up over several occurrences.
    kRepeated,
    kRepeatedVarint,
    kRepeatedFixed64,
  };
  enum Omit : uint8_t {
    kShown,  // JSON shows it even when it is absent.
    kWhenAbsent,
    kWhenEmpty,  // Left out when absent, zero or of no bytes.
  };
  How how = kNone;
  Omit omit = kShown;
};

// A struct of which one member at a time has a meaning, chosen by a discriminator (x-kubernetes-unions).
struct Union {
  struct Field {
    std::string_view name, value;
  };
  std::string_view discriminator;
  std::span<const Field> fields;
};

// Limits that a CRD's schema states. Built-in types have none; their rules are code (kinds/).
struct Constraints;

struct Type {
  Shape shape = Shape::Any;
  std::string_view name = {};          // "core/v1.Pod"; empty for lists, maps and a CRD's inner types.
  std::string_view openapi_name = {};  // "io.k8s.api.core.v1.Pod"; empty: written in place.

  // Struct.
  std::span<const Field> fields = {};          // In declaration order, inlined structs as one field. Protobuf's view.
  std::span<const Field* const> members = {};  // The same with inlined structs flattened. JSON's view.
  std::span<const uint16_t> members_by_name = {};  // Positions in `members`, sorted bytewise by name.
  std::span<const uint8_t> fields_by_number = {};  // Positions in `fields` by rising Protobuf number.
  std::span<const uint8_t> field_at_number = {};   // Protobuf number -> position in `fields` plus one; 0: none.
  std::span<const FieldPlan> plan = {};            // A plan for each of `fields`.
  std::span<const uint8_t> member_starts = {};     // Of each of `fields`: its first position in `members`.
  uint64_t shown_fields = 0;                       // Bits of the fields whose plan says kShown.
  uint64_t gated_fields = 0;                       // Bits of the fields that exist only while a gate is on.

  // List and Map; also the type of undeclared members of a Struct (additionalProperties beside properties).
  const Type* element = nullptr;
  ListKind list_kind = ListKind::Atomic;
  std::span<const std::string_view> list_keys = {};  // Keyed lists: at least one.
  MapKind map_kind = MapKind::Granular;              // Map and Struct.
  AnyKind any_kind = AnyKind::Deduced;               // Any, and unknown members under preserve_unknown.

  bool wrapped = false;           // A named list that is a message {1: items} in Protobuf (Verbs, ExtraValue).
  std::string_view go_name = {};  // As Go's decoder names it in errors: "v1.Pod", "[]v1.Container". Built-in only.
  std::span<const Union> unions = {};

  // Custom resources.
  bool preserve_unknown = false;  // Undeclared members of this Struct are kept.
  // Lies below a node with preserve_unknown: to the merge engine undeclared members are untyped data, though pruning
  // removes them.
  bool open_to_merge = false;
  bool embedded_resource = false;
  bool nullable = false;
  bool element_pointer = false;  // List or map of Go pointers (none in the catalog today).
  const Value* default_value = nullptr;
  const Constraints* constraints = nullptr;
  std::string_view format = {};  // OpenAPI format where it is not implied by the shape.
  std::string_view description = {};
};

// The member of a struct, as JSON names it (inlined structs looked through); null when it is not declared.
const Field* find_member(const Type& type, std::string_view name);

// One rule of x-kubernetes-validations, as written. Compiled elsewhere.
struct ValidationRule {
  std::string_view rule, message, message_expression, reason, field_path;
  bool optional_old_self = false;
};

struct Constraints {
  const double* minimum = nullptr;
  const double* maximum = nullptr;
  bool exclusive_minimum = false, exclusive_maximum = false;
  const double* multiple_of = nullptr;
  const int64_t* min_length = nullptr;  // Characters of a string.
  const int64_t* max_length = nullptr;
  const int64_t* min_items = nullptr;
  const int64_t* max_items = nullptr;
  const int64_t* min_properties = nullptr;
  const int64_t* max_properties = nullptr;
  bool unique_items = false;
  std::string_view pattern = {};
  std::span<const Value> enum_values = {};
  std::span<const std::string_view> required = {};
  std::span<const Type* const> all_of = {}, any_of = {}, one_of = {};
  const Type* not_schema = nullptr;
  std::span<const ValidationRule> rules = {};
};

struct Column {
  std::string_view name, type, format, description;
  int32_t priority = 0;
  std::string_view json_path = {};  // Custom resources only.
};

struct Subresource {
  std::string_view name;                  // "status", "scale", "binding", ...
  std::string_view group, version, kind;  // Of the body; empty group and version: the resource's own.
  std::span<const std::string_view> verbs;
};

// A type that is built on first use: of thousands of custom resources, few are in use.
class LazyType {
 public:
  virtual const Type& type() const = 0;

 protected:
  ~LazyType() = default;
};

// Refers to a type, built or not.
class TypeRef {
 public:
  constexpr TypeRef() = default;
  constexpr TypeRef(const Type* type) : type_(type) {}
  explicit TypeRef(const LazyType& lazy) : lazy_(&lazy) {}

  operator const Type*() const { return lazy_ == nullptr ? type_ : &lazy_->type(); }
  const Type* operator->() const { return *this; }

 private:
  const Type* type_ = nullptr;
  const LazyType* lazy_ = nullptr;
};

struct Resource {
  std::string_view group, version;  // "" and "v1" for the core group.
  std::string_view plural, singular, kind;
  bool namespaced = true;
  std::span<const std::string_view> short_names = {}, categories = {}, verbs = {};
  std::span<const Subresource> subresources = {};
  std::span<const Column> columns = {};
  TypeRef type = {};  // Null for resources without a stored object of their own type.
  const Type* list_type = nullptr;
  std::string_view storage_group = {}, storage_version = {};  // As stored (events: core v1, HPA: v2, ...).
  std::string_view storage_prefix = {};  // Path below /registry/: "pods", "services/specs", ...; empty: never stored.
  bool stored_as_json = false;           // CRDs and APIServices; everything else built in is stored as Protobuf.
  std::string_view list_kind = {};       // A custom resource's choice; empty: the kind and "List".
};

// Every built-in resource, in discovery order: groups in Kubernetes' order, resources by name.
std::span<const Resource> builtin_resources();
const Resource* find_resource(std::string_view group, std::string_view version, std::string_view plural);
const Resource* find_kind(std::string_view group, std::string_view version, std::string_view kind);

// The type of a body that calls itself so: a resource's kind, its list, the bodies of subresources (Scale, Eviction,
// TokenRequest, ...), and the kinds that every group version has (Status, DeleteOptions, WatchEvent, ...); null when
// there is none.
const Type* find_type_of(std::string_view group, std::string_view version, std::string_view kind);

// Every type of the catalog, sorted by name ("core/v1.Pod"); types that are not resources (Status, DeleteOptions,
// Table, ListMeta, ...) are found here.
std::span<const Type* const> builtin_types();
const Type* find_type(std::string_view name);
const Type* find_type_by_openapi_name(std::string_view openapi_name);

}  // namespace holdfast::types
