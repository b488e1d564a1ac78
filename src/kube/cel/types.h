// Static types of expressions and declared types of schemas. Private to the module.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/cel.h"

namespace holdfast::cel {

enum class TypeKind : uint8_t {
  Dyn,
  Any,  // google.protobuf.Any: dyn that cannot be iterated over.
  Bool,
  Bytes,
  Double,
  Duration,
  Error,
  Int,
  List,
  Map,
  Null,
  Opaque,  // optional_type(T), net.IP, net.CIDR.
  String,
  Struct,
  Timestamp,
  Type,
  Param,  // A type parameter of a signature, or an inference variable.
  Uint,
};

struct FieldType {
  std::string_view name;
  const Type* type;
};

struct Type {
  TypeKind kind = TypeKind::Dyn;
  std::string_view name;  // At run time: "int", "google.protobuf.Duration", "selfType.spec"; for a Param: "A", "_var3".
  std::span<const Type* const> parameters = {};
  int32_t variable = -1;  // Param: number of the inference variable; -1 for a name in a signature.
  // Struct: declared fields, sorted by name. `any_field`: every field exists and is dyn (Object in mutations).
  std::span<const FieldType> fields = {};
  bool any_field = false;
  bool opaque = false;         // Struct: unknown to the type provider, so it has no known fields.
  const Decl* decl = nullptr;  // Struct: the schema it represents.
};

// Shared types without parameters, in addition to those in cel.h.
TypeRef any_type();
TypeRef error_type();
TypeRef type_type();
TypeRef quantity_type();
TypeRef ip_type();
TypeRef cidr_type();
TypeRef url_type();
TypeRef semver_type();
TypeRef format_type();
TypeRef path_check_type();
TypeRef group_check_type();
TypeRef decision_type();
TypeRef any_list_type();  // The types that the names list and map denote: list(A), map(A, B).
TypeRef any_map_type();
TypeRef list_of_dyn_type();
TypeRef map_of_dyn_type();

inline bool is_dyn(const Type* t) { return t->kind == TypeKind::Dyn || t->kind == TypeKind::Any; }
inline bool is_error(const Type* t) { return t->kind == TypeKind::Error; }
inline bool is_optional(const Type* t) { return t->kind == TypeKind::Opaque && t->name == "optional_type"; }

// Structural equality; parameter names matter only if `exact`.
bool is_same(const Type* a, const Type* b, bool exact = true);

// Creates types in an arena.
class TypeMaker {
 public:
  explicit TypeMaker(Arena& arena) : arena_(arena) {}
  TypeRef list(TypeRef element) { return make(TypeKind::List, "list", {element}); }
  TypeRef map(TypeRef key, TypeRef value) { return make(TypeKind::Map, "map", {key, value}); }
  TypeRef optional(TypeRef value) { return make(TypeKind::Opaque, "optional_type", {value}); }
  TypeRef type_of(TypeRef type) { return make(TypeKind::Type, "type", {type}); }
  TypeRef opaque(std::string_view name, std::span<const TypeRef> parameters) {
    return make(TypeKind::Opaque, name, parameters);
  }
  TypeRef parameter(std::string_view name) { return make(TypeKind::Param, name, {}); }
  TypeRef object(std::string_view name, std::span<const FieldType> fields, bool any_field, const Decl* decl);

  TypeRef make(TypeKind kind, std::string_view name, std::initializer_list<TypeRef> parameters) {
    return make(kind, name, std::span<const TypeRef>(parameters.begin(), parameters.size()));
  }
  TypeRef make(TypeKind kind, std::string_view name, std::span<const TypeRef> parameters);
  Arena& arena() { return arena_; }

 private:
  Arena& arena_;
};

// --- Schemas --------------------------------------------------------------------------------------------------------

struct DeclField {
  std::string_view property;  // As in the object.
  std::string_view name;      // Escaped; empty if expressions cannot refer to it.
  const Decl* decl;
};

// The parts of a schema relevant to CEL (upstream: SchemaDeclType and UnstructuredToVal).
struct Decl {
  enum class Kind : uint8_t {
    None,
    IntOrString,
    Object,
    Map,
    List,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    Number,
    Integer,
    Boolean
  };
  enum class ListKind : uint8_t { Atomic, Set, Keyed, Plain };  // Plain: no x-kubernetes-list-type.

  Kind kind = Kind::None;
  std::string_view schema_type;  // "object", "array", "string": as in the schema.
  bool nullable = false;
  bool preserve_unknown = false;
  bool embedded_resource = false;
  bool has_properties = false;
  // If false, expressions cannot access it even if there is data (it is untyped, or consists of untyped parts).
  bool visible = false;
  std::span<const DeclField> fields = {};  // Sorted by property.
  const Decl* element = nullptr;           // Type of items, or of additionalProperties.
  const Decl* key = nullptr;               // Keys of a map; null means strings of unknown size.
  ListKind list_kind = ListKind::Plain;
  std::span<const std::string_view> list_keys = {};
  bool map_correlates = true;
  int64_t max_elements = 0;
  int64_t min_serialized_bytes = 0;
  const Type* type = nullptr;  // Null if not visible.
  const Value* schema = nullptr;

  const Decl* find(std::string_view property) const;
  const Decl* find_escaped(std::string_view name) const;
};

struct TypePool::Pool {
  Arena arena{512};
};

}  // namespace holdfast::cel
