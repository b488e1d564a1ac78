// The types and resources of the API, as constant data.
//
// The catalog of built-in kinds (catalog/*.types) is compiled into constant tables: nothing is parsed or allocated at
// startup. A CustomResourceDefinition produces the same structures at run time (schema/). Codecs, merge, defaulting,
// validation, OpenAPI, discovery and tables all read these structures; none of them has code per kind.
//
//   Resource --type--> Type(Struct) --members--> Field --type--> Type(List, keyed by "name") --element--> Type ...
//
// Lifetime: built-in types are never destroyed; the types of a CRD belong to the Schema that created them.
// Threading: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/gates.h"
#include "value/value.h"

namespace holdfast::types {

// The form of a value in JSON, which also determines its form in Protobuf.
enum class Shape : uint8_t {
  Any,  // No declared type: any JSON. In merge: untyped scalar, atomic list, map of itself (see `any_kind`).
  Bool,
  Int32,
  Int64,
  Double,
  String,
  Bytes,  // base64 text in JSON, bytes elsewhere.
  Time,   // RFC 3339, whole seconds; a message {seconds, nanos} in Protobuf.
  MicroTime,
  Duration,  // Go duration text in JSON.
  Quantity,  // Text, canonicalized; a message {string} in Protobuf.
  IntOrString,
  FieldsV1,      // A JSON object kept as raw bytes.
  Raw,           // RawExtension and apiextensions.JSON: any JSON, kept verbatim.
  SchemaOrBool,  // JSONSchemaProps' unions; their JSON form is that of the chosen alternative.
  SchemaOrArray,
  SchemaOrStringArray,
  List,
  Map,  // Keys are strings; values are `element`.
  Struct,
};

enum class ListKind : uint8_t { Atomic, Set, Keyed };
enum class MapKind : uint8_t { Granular, Atomic };

// How the merge engine treats maps (and unknown members) of an untyped value.
enum class AnyKind : uint8_t {
  Deduced,  // Maps granular, lists atomic: __untyped_deduced_.
  Atomic,   // Everything atomic: __untyped_atomic_.
};

struct Type;

enum PatchStrategy : uint8_t { kPatchNone = 0, kPatchMerge = 1, kPatchRetainKeys = 2, kPatchReplace = 4 };

struct Field {
  std::string_view name = {};  // As in JSON. Empty for an inlined struct.
  const Type* type = nullptr;
  uint32_t number = 0;         // In Protobuf; 0 if the field does not exist there.
  bool omit_empty = false;     // Go's omitempty.
  bool omit_zero = false;      // Go's omitzero.
  bool empty_differs = false;  // to_typed() keeps an empty list although it is omitempty: absent means something else.
  bool pointer = false;        // A Go pointer: absent and zero differ, on the wire too.
  bool required = false;       // In OpenAPI.
  bool inlined = false;  // An embedded struct whose members appear in the parent's JSON (TypeMeta, VolumeSource, ...).
  // x-kubernetes-map-type next to a reference: overrides that of the referenced map or struct.
  bool overrides_map_kind = false;
  MapKind map_kind = MapKind::Granular;
  uint8_t patch_strategy = kPatchNone;
  std::string_view patch_merge_key = {};
  const Value* default_value = nullptr;  // Declared (OpenAPI) default, or null.
  std::span<const std::string_view> enum_values = {};
  std::string_view description = {};
  // For a Holdfast field that Kubernetes does not have (metadata.options, fieldsV2): it exists only while this gate is
  // on. kCount if the field always exists. Use exists() to check.
  Gate gate = Gate::kCount;
  bool root_only = false;  // Only in the metadata of the object itself, not in that of a template inside it.
  // Set for a list whose items have apiVersion and kind in JSON but not in Protobuf (volumeClaimTemplates).
  std::string_view item_api_version = {}, item_kind = {};

  bool exists(const Gates* gates) const { return gate == Gate::kCount || (gates != nullptr && gates->on(gate)); }
};

// What the Protobuf codec needs to know about each field while scanning a message, in two bytes: forty fields fit into
// two cache lines. Derived from the Field; types_test checks that they agree.
struct FieldPlan {
  enum How : uint8_t {
    kNone,  // Not in Protobuf.
    kVarint,
    kVarint32,
    kFixed64,
    kText,     // Bytes; the last occurrence wins.
    kMessage,  // Bytes; several occurrences are merged.
    kRepeated,
    kRepeatedVarint,
    kRepeatedFixed64,
  };
  enum Omit : uint8_t {
    kShown,  // Present in JSON even if absent.
    kWhenAbsent,
    kWhenEmpty,  // Omitted if absent, zero or empty.
  };
  How how = kNone;
  Omit omit = kShown;
};

// A struct where only the member selected by a discriminator is meaningful (x-kubernetes-unions).
struct Union {
  struct Field {
    std::string_view name, value;
  };
  std::string_view discriminator;
  std::span<const Field> fields;
};

// Constraints declared by a CRD's schema. Built-in types have none; they are validated by code (kinds/).
struct Constraints;

struct Type {
  Shape shape = Shape::Any;
  std::string_view name = {};          // "core/v1.Pod"; empty for lists, maps and a CRD's inner types.
  std::string_view openapi_name = {};  // "io.k8s.api.core.v1.Pod"; empty if the type is inlined.

  // For Struct:
  std::span<const Field> fields = {};          // In declaration order, an inlined struct as one field. For Protobuf.
  std::span<const Field* const> members = {};  // The same with inlined structs flattened. For JSON.
  std::span<const uint16_t> members_by_name = {};  // Positions in `members`, sorted bytewise by name.
  std::span<const uint8_t> fields_by_number = {};  // Positions in `fields`, sorted by Protobuf number.
  std::span<const uint8_t> field_at_number = {};   // Protobuf number -> position in `fields` + 1, or 0.
  std::span<const FieldPlan> plan = {};            // One plan per field of `fields`.
  std::span<const uint8_t> member_starts = {};     // The position in `members` where each field starts.
  uint64_t shown_fields = 0;                       // Bitmask of the fields whose plan is kShown.
  uint64_t gated_fields = 0;                       // Bitmask of the fields that exist only while a gate is on.

  // For List and Map; also the type of undeclared members of a Struct (additionalProperties next to properties).
  const Type* element = nullptr;
  ListKind list_kind = ListKind::Atomic;
  std::span<const std::string_view> list_keys = {};  // Of keyed lists: at least one.
  MapKind map_kind = MapKind::Granular;              // For Map and Struct.
  AnyKind any_kind = AnyKind::Deduced;               // For Any, and for unknown members under preserve_unknown.

  bool wrapped = false;           // A named list that is a message {1: items} in Protobuf (Verbs, ExtraValue).
  std::string_view go_name = {};  // As named in the errors of Go's decoder: "v1.Pod", "[]v1.Container". Built-in only.
  std::span<const Union> unions = {};

  // For custom resources:
  bool preserve_unknown = false;  // Undeclared members of this Struct are kept.
  // Below a node with preserve_unknown: the merge engine treats undeclared members as untyped data, although pruning
  // removes them.
  bool open_to_merge = false;
  bool embedded_resource = false;
  bool nullable = false;
  bool element_pointer = false;  // A list or map of Go pointers (none in the catalog today).
  const Value* default_value = nullptr;
  const Constraints* constraints = nullptr;
  std::string_view format = {};  // OpenAPI format, if not implied by the shape.
  std::string_view description = {};
};

// Finds a struct's member by its JSON name, including those of inlined structs; null if it is not declared.
const Field* find_member(const Type& type, std::string_view name);

// One rule of x-kubernetes-validations, in source form. Compiled elsewhere.
struct ValidationRule {
  std::string_view rule, message, message_expression, reason, field_path;
  bool optional_old_self = false;
};

struct Constraints {
  const double* minimum = nullptr;
  const double* maximum = nullptr;
  bool exclusive_minimum = false, exclusive_maximum = false;
  const double* multiple_of = nullptr;
  const int64_t* min_length = nullptr;  // In characters.
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
  std::string_view group, version, kind;  // Of the body; empty group and version refer to those of the resource.
  std::span<const std::string_view> verbs;
};

// A type that is built on first use: of thousands of custom resources, few are used.
class LazyType {
 public:
  virtual const Type& type() const = 0;

 protected:
  ~LazyType() = default;
};

// A reference to a type that may not be built yet.
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
  std::string_view storage_prefix = {};  // Path below /registry/: "pods", "services/specs", ...; empty if never stored.
  bool stored_as_json = false;           // CRDs and APIServices; all other built-in kinds are stored as Protobuf.
  std::string_view list_kind = {};       // Set by a CRD; if empty, the kind followed by "List".
};

// Every built-in resource, in discovery order: groups in Kubernetes' order, resources by name.
std::span<const Resource> builtin_resources();
const Resource* find_resource(std::string_view group, std::string_view version, std::string_view plural);
const Resource* find_kind(std::string_view group, std::string_view version, std::string_view kind);

// The type of a body with this apiVersion and kind: a resource's kind, its list, the bodies of subresources (Scale,
// Eviction, TokenRequest, ...), and the kinds that every group version has (Status, DeleteOptions, WatchEvent, ...).
// Null if there is none.
const Type* find_type_of(std::string_view group, std::string_view version, std::string_view kind);

// All types of the catalog, sorted by name ("core/v1.Pod"), including those that are not resources (Status,
// DeleteOptions, Table, ListMeta, ...).
std::span<const Type* const> builtin_types();
const Type* find_type(std::string_view name);
const Type* find_type_by_openapi_name(std::string_view openapi_name);

}  // namespace holdfast::types
