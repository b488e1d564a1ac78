#include "cel/types.h"

#include <algorithm>

namespace holdfast::cel {
namespace {

constexpr Type kDyn{.kind = TypeKind::Dyn, .name = "dyn"};
constexpr Type kAny{.kind = TypeKind::Any, .name = "google.protobuf.Any"};
constexpr Type kBool{.kind = TypeKind::Bool, .name = "bool"};
constexpr Type kInt{.kind = TypeKind::Int, .name = "int"};
constexpr Type kUint{.kind = TypeKind::Uint, .name = "uint"};
constexpr Type kDouble{.kind = TypeKind::Double, .name = "double"};
constexpr Type kString{.kind = TypeKind::String, .name = "string"};
constexpr Type kBytes{.kind = TypeKind::Bytes, .name = "bytes"};
constexpr Type kNull{.kind = TypeKind::Null, .name = "null_type"};
constexpr Type kTimestamp{.kind = TypeKind::Timestamp, .name = "google.protobuf.Timestamp"};
constexpr Type kDuration{.kind = TypeKind::Duration, .name = "google.protobuf.Duration"};
constexpr Type kError{.kind = TypeKind::Error, .name = "error"};
constexpr Type kType{.kind = TypeKind::Type, .name = "type"};
constexpr Type kQuantity{.kind = TypeKind::Struct, .name = "kubernetes.Quantity", .opaque = true};
constexpr Type kIp{.kind = TypeKind::Opaque, .name = "net.IP"};
constexpr Type kCidr{.kind = TypeKind::Opaque, .name = "net.CIDR"};
constexpr Type kUrl{.kind = TypeKind::Struct, .name = "kubernetes.URL", .opaque = true};
constexpr Type kSemver{.kind = TypeKind::Struct, .name = "kubernetes.Semver", .opaque = true};
constexpr Type kFormat{.kind = TypeKind::Struct, .name = "kubernetes.NamedFormat", .opaque = true};
constexpr Type kAuthorizer{.kind = TypeKind::Struct, .name = "kubernetes.authorization.Authorizer", .opaque = true};
constexpr Type kPathCheck{.kind = TypeKind::Struct, .name = "kubernetes.authorization.PathCheck", .opaque = true};
constexpr Type kGroupCheck{.kind = TypeKind::Struct, .name = "kubernetes.authorization.GroupCheck", .opaque = true};
constexpr Type kResourceCheck{
    .kind = TypeKind::Struct, .name = "kubernetes.authorization.ResourceCheck", .opaque = true};
constexpr Type kDecision{.kind = TypeKind::Struct, .name = "kubernetes.authorization.Decision", .opaque = true};
constexpr FieldType kPatchFields[] = {{"from", &kString}, {"op", &kString}, {"path", &kString}, {"value", &kDyn}};
constexpr Type kJsonPatch{.kind = TypeKind::Struct, .name = "JSONPatch", .fields = kPatchFields};
constexpr Type kObject{.kind = TypeKind::Struct, .name = "Object", .any_field = true};
constexpr Type kParamA{.kind = TypeKind::Param, .name = "A"};
constexpr Type kParamB{.kind = TypeKind::Param, .name = "B"};
constexpr const Type* kParams[] = {&kParamA, &kParamB};
constexpr Type kList{.kind = TypeKind::List, .name = "list", .parameters = {kParams, 1}};
constexpr Type kMap{.kind = TypeKind::Map, .name = "map", .parameters = {kParams, 2}};
constexpr const Type* kDynParameters[] = {&kDyn, &kDyn};
constexpr Type kListOfDyn{.kind = TypeKind::List, .name = "list", .parameters = {kDynParameters, 1}};
constexpr Type kMapOfDyn{.kind = TypeKind::Map, .name = "map", .parameters = {kDynParameters, 2}};

}  // namespace

TypeRef dyn_type() { return &kDyn; }
TypeRef bool_type() { return &kBool; }
TypeRef int_type() { return &kInt; }
TypeRef uint_type() { return &kUint; }
TypeRef double_type() { return &kDouble; }
TypeRef string_type() { return &kString; }
TypeRef bytes_type() { return &kBytes; }
TypeRef null_type() { return &kNull; }
TypeRef timestamp_type() { return &kTimestamp; }
TypeRef duration_type() { return &kDuration; }
TypeRef any_type() { return &kAny; }
TypeRef error_type() { return &kError; }
TypeRef type_type() { return &kType; }
TypeRef quantity_type() { return &kQuantity; }
TypeRef ip_type() { return &kIp; }
TypeRef cidr_type() { return &kCidr; }
TypeRef url_type() { return &kUrl; }
TypeRef semver_type() { return &kSemver; }
TypeRef format_type() { return &kFormat; }
TypeRef authorizer_type() { return &kAuthorizer; }
TypeRef path_check_type() { return &kPathCheck; }
TypeRef group_check_type() { return &kGroupCheck; }
TypeRef resource_check_type() { return &kResourceCheck; }
TypeRef decision_type() { return &kDecision; }
TypeRef json_patch_type() { return &kJsonPatch; }
TypeRef object_root_type() { return &kObject; }
TypeRef any_list_type() { return &kList; }
TypeRef any_map_type() { return &kMap; }
TypeRef list_of_dyn_type() { return &kListOfDyn; }
TypeRef map_of_dyn_type() { return &kMapOfDyn; }

bool is_same(const Type* a, const Type* b, bool exact) {
  if (a == b) return true;
  if (a->kind != b->kind || a->parameters.size() != b->parameters.size()) return false;
  if ((exact || a->kind != TypeKind::Param) && a->name != b->name) return false;
  for (size_t i = 0; i < a->parameters.size(); ++i) {
    if (!is_same(a->parameters[i], b->parameters[i], exact)) return false;
  }
  return true;
}

bool same_type(TypeRef a, TypeRef b) { return is_same(a, b); }

namespace {

void append_parameters(const Type* type, std::string& out, std::string (*text)(const Type*)) {
  out += '(';
  for (size_t i = 0; i < type->parameters.size(); ++i) {
    if (i > 0) out += ", ";
    out += text(type->parameters[i]);
  }
  out += ')';
}

}  // namespace

std::string type_text(TypeRef type) {
  switch (type->kind) {
    case TypeKind::Any:
      return "any";
    case TypeKind::Duration:
      return "duration";
    case TypeKind::Error:
      return "!error!";
    case TypeKind::Null:
      return "null";
    case TypeKind::Timestamp:
      return "timestamp";
    default:
      break;
  }
  std::string text(type->name);
  if (!type->parameters.empty()) append_parameters(type, text, type_text);
  return text;
}

std::string go_type_text(const Type* type) {
  if (type->kind == TypeKind::Param) return "<" + std::string(type->name) + ">";
  std::string text(type->name);
  if (!type->parameters.empty()) append_parameters(type, text, go_type_text);
  return text;
}

TypeRef TypeMaker::make(TypeKind kind, std::string_view name, std::span<const TypeRef> parameters) {
  Type* type = arena_.make<Type>();
  type->kind = kind;
  type->name = name;
  type->parameters = arena_.copy(parameters);
  return type;
}

TypeRef TypeMaker::object(std::string_view name, std::span<const FieldType> fields, bool any_field, const Decl* decl) {
  Type* type = arena_.make<Type>();
  type->kind = TypeKind::Struct;
  type->name = arena_.copy(name);
  const std::span<FieldType> kept = arena_.copy(fields);
  std::sort(kept.begin(), kept.end(), [](const FieldType& a, const FieldType& b) { return a.name < b.name; });
  type->fields = kept;
  type->any_field = any_field;
  type->decl = decl;
  return type;
}

TypePool::TypePool() : pool_(std::make_shared<Pool>()) {}
TypePool::~TypePool() = default;
TypePool::TypePool(TypePool&&) noexcept = default;
TypePool& TypePool::operator=(TypePool&&) noexcept = default;
TypeRef TypePool::list(TypeRef element) { return TypeMaker(pool_->arena).list(element); }
TypeRef TypePool::map(TypeRef key, TypeRef value) { return TypeMaker(pool_->arena).map(key, value); }
TypeRef TypePool::optional(TypeRef value) { return TypeMaker(pool_->arena).optional(value); }
TypeRef TypePool::as_variable(TypeRef type) {
  switch (type->kind) {
    case TypeKind::Bool:
      return bool_type();
    case TypeKind::Bytes:
      return bytes_type();
    case TypeKind::Double:
      return double_type();
    case TypeKind::Duration:
      return duration_type();
    case TypeKind::Int:
      return int_type();
    case TypeKind::Null:
      return null_type();
    case TypeKind::String:
      return string_type();
    case TypeKind::Timestamp:
      return timestamp_type();
    case TypeKind::Uint:
      return uint_type();
    case TypeKind::List:
      return list(as_variable(type->parameters[0]));
    case TypeKind::Map:
      return map(as_variable(type->parameters[0]), as_variable(type->parameters[1]));
    default:
      return dyn_type();
  }
}
TypeRef TypePool::object(std::string_view name, std::span<const std::pair<std::string, TypeRef>> fields) {
  std::vector<FieldType> copied;
  for (const auto& [field, type] : fields) copied.push_back({pool_->arena.copy(field), type});
  return TypeMaker(pool_->arena).object(name, copied, false, nullptr);
}

}  // namespace holdfast::cel
