// Static types of expressions, schemas as declared types, and what functions exist. Private to the module.
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
  Any,  // google.protobuf.Any: dyn that nothing can iterate over.
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
  Param,  // Of a function's signature, or a variable of inference.
  Uint,
};

struct FieldType {
  std::string_view name;
  const Type* type;
};

struct Type {
  TypeKind kind = TypeKind::Dyn;
  std::string_view name;  // At run time: "int", "google.protobuf.Duration", "selfType.spec"; of a Param: "A", "_var3".
  std::span<const Type* const> parameters = {};
  int32_t variable = -1;  // Of a Param: number of the variable of inference; -1: a name in a signature.
  // Struct: declared fields, sorted by name. `any_field`: every field exists and is dyn (Object of mutations).
  std::span<const FieldType> fields = {};
  bool any_field = false;
  bool opaque = false;         // Struct: the type provider does not know it, and so none of its fields.
  const Decl* decl = nullptr;  // Struct: the schema it stands for.
};

// The shared types without parameters are the ones that cel.h names; these exist besides.
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
TypeRef any_list_type();  // What the names list and map stand for: list(A), map(A, B).
TypeRef any_map_type();
TypeRef list_of_dyn_type();
TypeRef map_of_dyn_type();

inline bool is_dyn(const Type* t) { return t->kind == TypeKind::Dyn || t->kind == TypeKind::Any; }
inline bool is_error(const Type* t) { return t->kind == TypeKind::Error; }
inline bool is_optional(const Type* t) { return t->kind == TypeKind::Opaque && t->name == "optional_type"; }

// Same structure; names of parameters count when `exact`.
bool is_same(const Type* a, const Type* b, bool exact = true);

// Makes types in an arena.
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
  std::string_view name;      // Escaped; empty: expressions cannot name it.
  const Decl* decl;
};

// What a schema says that CEL cares about (SchemaDeclType and UnstructuredToVal upstream).
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
  std::string_view schema_type;  // "object", "array", "string": as written.
  bool nullable = false;
  bool preserve_unknown = false;
  bool embedded_resource = false;
  bool has_properties = false;
  // False: expressions do not see it, though its data may be there (untyped, or made of what is untyped).
  bool visible = false;
  std::span<const DeclField> fields = {};  // Sorted by property.
  const Decl* element = nullptr;           // Items, or values of additionalProperties.
  const Decl* key = nullptr;               // Of a map; null: strings of whose size nothing is known.
  ListKind list_kind = ListKind::Plain;
  std::span<const std::string_view> list_keys = {};
  bool map_correlates = true;
  int64_t max_elements = 0;
  int64_t min_serialized_bytes = 0;
  const Type* type = nullptr;  // Null when not visible.
  const Value* schema = nullptr;

  const Decl* find(std::string_view property) const;
  const Decl* find_escaped(std::string_view name) const;
};

struct TypePool::Pool {
  Arena arena{512};
};

}  // namespace holdfast::cel
