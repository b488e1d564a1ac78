#include "schema/schema.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/limits.h"
#include "base/packing.h"
#include "codec/codec.h"

namespace holdfast::schema {
namespace {

using types::Constraints;
using types::Field;
using types::Shape;
using types::Type;

bool flag(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

// Builds types in an arena. They do not reference the source schema, most of which is descriptions if it is large.
class Builder {
 public:
  Builder(Arena& arena, bool open_everywhere) : arena_(arena), open_everywhere_(open_everywhere) {}

  const Type* root(const Value& schema) {
    Type* type = convert(schema, open_everywhere_);
    if (type->shape != Shape::Struct) {
      type = arena_.make<Type>();
      type->shape = Shape::Struct;
      type->preserve_unknown = type->open_to_merge = true;
    }
    if (!schema.is_map()) type->preserve_unknown = type->open_to_merge = true;
    add_resource_members(*type);
    return type;
  }

 private:
  template <class T>
  const T* keep(T value) {
    return arena_.make<T>(value);
  }
  // Texts repeat, above all field names.
  std::string_view text(std::string_view written) {
    if (written.empty()) return {};
    const auto known = texts_.find(written);
    return known != texts_.end() ? *known : *texts_.insert(arena_.copy(written)).first;
  }
  std::string_view text_at(const Value& schema, std::string_view key) { return text(schema.text_at(key)); }
  std::span<const Value> values(std::span<const Value> items) {
    auto* result = arena_.allocate_array<Value>(items.size());
    for (size_t i = 0; i < items.size(); ++i) new (&result[i]) Value(deep_copy(arena_, items[i]));
    return {result, items.size()};
  }

  const int64_t* limit(const Value& schema, std::string_view key) {
    const Value* value = schema.find(key);
    if (value == nullptr || !value->is_number()) return nullptr;
    return keep<int64_t>(value->is_int() ? value->as_int() : static_cast<int64_t>(value->as_double()));
  }
  const double* bound(const Value& schema, std::string_view key) {
    const Value* value = schema.find(key);
    return value != nullptr && value->is_number() ? keep<double>(value->number_value()) : nullptr;
  }
  std::span<const std::string_view> names(const Value& schema, std::string_view key) {
    const auto items = schema.items_at(key);
    auto* result = arena_.allocate_array<std::string_view>(items.size());
    size_t count = 0;
    for (const Value& item : items) {
      if (item.is_string()) new (&result[count++]) std::string_view(text(item.as_string()));
    }
    return {result, count};
  }
  std::span<const Type* const> alternatives(const Value& schema, std::string_view key) {
    const auto items = schema.items_at(key);
    auto* result = arena_.allocate_array<const Type*>(items.size());
    for (size_t i = 0; i < items.size(); ++i) result[i] = convert(items[i], false);
    return {result, items.size()};
  }

  const Constraints* constraints(const Value& schema) {
    Constraints c;
    c.minimum = bound(schema, "minimum");
    c.maximum = bound(schema, "maximum");
    c.exclusive_minimum = flag(schema, "exclusiveMinimum");
    c.exclusive_maximum = flag(schema, "exclusiveMaximum");
    c.multiple_of = bound(schema, "multipleOf");
    c.min_length = limit(schema, "minLength");
    c.max_length = limit(schema, "maxLength");
    c.min_items = limit(schema, "minItems");
    c.max_items = limit(schema, "maxItems");
    c.min_properties = limit(schema, "minProperties");
    c.max_properties = limit(schema, "maxProperties");
    c.unique_items = flag(schema, "uniqueItems");
    c.pattern = text_at(schema, "pattern");
    c.enum_values = values(schema.items_at("enum"));
    c.required = names(schema, "required");
    c.all_of = alternatives(schema, "allOf");
    c.any_of = alternatives(schema, "anyOf");
    c.one_of = alternatives(schema, "oneOf");
    if (const Value* negated = schema.find("not"); negated != nullptr && negated->is_map())
      c.not_schema = convert(*negated, false);
    const auto rules = schema.items_at("x-kubernetes-validations");
    auto* written = arena_.allocate_array<types::ValidationRule>(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) {
      const Value& rule = rules[i];
      new (&written[i])
          types::ValidationRule{text_at(rule, "rule"),   text_at(rule, "message"),   text_at(rule, "messageExpression"),
                                text_at(rule, "reason"), text_at(rule, "fieldPath"), flag(rule, "optionalOldSelf")};
    }
    c.rules = {written, rules.size()};
    const bool any = c.minimum || c.maximum || c.multiple_of || c.min_length || c.max_length || c.min_items ||
                     c.max_items || c.min_properties || c.max_properties || c.unique_items || !c.pattern.empty() ||
                     !c.enum_values.empty() || !c.required.empty() || !c.all_of.empty() || !c.any_of.empty() ||
                     !c.one_of.empty() || c.not_schema || !c.rules.empty();
    return any ? keep(c) : nullptr;
  }

  // Most fields are plain strings, numbers and booleans: identical ones share a type. Null if this one is not plain.
  Type* plain(const Value& schema, bool open) {
    const std::string_view name = schema.text_at("type");
    const Shape shape = name == "string"    ? Shape::String
                        : name == "integer" ? Shape::Int64
                        : name == "boolean" ? Shape::Bool
                        : name == "number"  ? Shape::Double
                                            : Shape::Any;
    if (shape == Shape::Any || open_everywhere_) return nullptr;
    for (const Member& member : schema.members()) {
      if (member.key != "type" && member.key != "description" && member.key != "format") return nullptr;
    }
    const std::string_view format = schema.text_at("format");
    for (Type* known : plain_) {
      if (known->shape == shape && known->open_to_merge == open && known->format == format) return known;
    }
    Type* type = arena_.make<Type>();
    type->shape = shape;
    type->open_to_merge = open;
    type->format = text(format);
    plain_.push_back(type);
    return type;
  }

  // `open`: this node is below one that preserves unknown members.
  Type* convert(const Value& schema, bool open) {
    if (schema.is_map()) {
      if (Type* shared = plain(schema, open)) return shared;
    }
    Type* type = arena_.make<Type>();
    if (!schema.is_map()) {
      type->shape = Shape::Any;
      return type;
    }
    const std::string_view name = schema.text_at("type");
    type->nullable = flag(schema, "nullable");
    type->preserve_unknown = open_everywhere_ || flag(schema, "x-kubernetes-preserve-unknown-fields");
    type->open_to_merge = open || type->preserve_unknown;
    type->embedded_resource = flag(schema, "x-kubernetes-embedded-resource");
    type->format = text_at(schema, "format");
    type->constraints = constraints(schema);
    if (const Value* value = schema.find("default")) type->default_value = keep(deep_copy(arena_, *value));
    if (flag(schema, "x-kubernetes-int-or-string")) {
      type->shape = Shape::IntOrString;
    } else if (name == "object" || (name.empty() && (schema.has("properties") || schema.has("additionalProperties")))) {
      object(*type, schema);
    } else if (name == "array" || (name.empty() && schema.has("items"))) {
      list(*type, schema);
    } else if (name == "integer") {
      type->shape = Shape::Int64;
    } else if (name == "number") {
      type->shape = Shape::Double;
    } else if (name == "boolean") {
      type->shape = Shape::Bool;
    } else if (name == "string") {
      type->shape = Shape::String;
    } else {
      type->shape = Shape::Any;
    }
    return type;
  }

  void object(Type& type, const Value& schema) {
    type.map_kind =
        schema.text_at("x-kubernetes-map-type") == "atomic" ? types::MapKind::Atomic : types::MapKind::Granular;
    const Value* additional = schema.find("additionalProperties");
    const bool has_properties = !schema.members_at("properties").empty();
    if (additional != nullptr && !has_properties && (!additional->is_bool() || additional->as_bool())) {
      type.shape = Shape::Map;
      type.element = convert(*additional, type.open_to_merge);
      return;
    }
    type.shape = Shape::Struct;
    const auto required_names = names(schema, "required");
    const std::unordered_set<std::string_view, KeyHash> required(required_names.begin(), required_names.end());
    const auto properties = schema.members_at("properties");
    auto* fields = arena_.allocate_array<Field>(properties.size());
    for (size_t i = 0; i < properties.size(); ++i) {
      const Value& property = properties[i].value;
      Field field;
      field.name = text(properties[i].key);
      Type* member = convert(property, type.open_to_merge);
      field.type = member;
      field.pointer = field.omit_empty = true;  // Absent and zero differ; present values are always printed.
      field.required = required.contains(field.name);
      field.default_value = member->default_value;
      new (&fields[i]) Field(field);
    }
    set_fields(type, {fields, properties.size()});
    if (type.embedded_resource) add_resource_members(type);
  }

  void set_fields(Type& type, std::span<const Field> fields) {
    auto* members = arena_.allocate_array<const Field*>(fields.size());
    auto* by_name = arena_.allocate_array<uint16_t>(fields.size());
    for (size_t i = 0; i < fields.size(); ++i) {
      members[i] = &fields[i];
      by_name[i] = static_cast<uint16_t>(i);
    }
    std::sort(by_name, by_name + fields.size(),
              [&fields](uint16_t a, uint16_t b) { return fields[a].name < fields[b].name; });
    type.fields = fields;
    type.members = {members, fields.size()};
    type.members_by_name = {by_name, fields.size()};
  }

  // Every object has these. A schema can only restrict them further.
  void add_resource_members(Type& type) {
    static const Type text{.shape = Shape::String, .name = "implied"};
    const std::pair<std::string_view, const Type*> kMembers[] = {
        {"apiVersion", &text}, {"kind", &text}, {"metadata", types::find_type("meta/v1.ObjectMeta")}};
    auto* fields = arena_.allocate_array<Field>(type.fields.size() + std::size(kMembers));
    size_t count = 0;
    for (const auto& [name, implied] : kMembers) {
      const auto written = std::find_if(type.fields.begin(), type.fields.end(),
                                        [&name = name](const Field& field) { return field.name == name; });
      Field field;
      field.name = name;
      field.type = written == type.fields.end() ? implied : limited(*implied, *written->type);
      field.omit_empty = field.pointer = true;
      field.default_value = field.type->default_value;
      new (&fields[count++]) Field(field);
    }
    for (const Field& field : type.fields) {
      if (field.name != "apiVersion" && field.name != "kind" && field.name != "metadata")
        new (&fields[count++]) Field(field);
    }
    set_fields(type, {fields, count});
  }

  // A built-in type with the constraints and defaults that a schema adds; members that the built-in type does not have
  // remain unknown. It has no name, like all types that come from a schema.
  const Type* limited(const Type& own, const Type& written) {
    Type* type = arena_.make<Type>(own);
    type->name = {};
    type->constraints = written.constraints;
    type->nullable = written.nullable;
    if (type->format.empty()) type->format = written.format;
    type->default_value = written.default_value;
    if (own.element != nullptr && written.element != nullptr) type->element = limited(*own.element, *written.element);
    if (own.shape != Shape::Struct) return type;
    auto* fields = arena_.allocate_array<Field>(own.members.size());
    for (size_t i = 0; i < own.members.size(); ++i) {
      Field field = *own.members[i];
      const Field* further = written.shape == Shape::Struct ? types::find_member(written, field.name) : nullptr;
      if (further != nullptr) field.type = limited(*field.type, *further->type);
      field.default_value = further == nullptr ? nullptr : further->default_value;
      new (&fields[i]) Field(field);
    }
    set_fields(*type, {fields, own.members.size()});
    return type;
  }

  void list(Type& type, const Value& schema) {
    type.shape = Shape::List;
    const Value* items = schema.find("items");
    type.element = convert(items == nullptr ? Value::empty_map() : *items, type.open_to_merge);
    const std::string_view kind = schema.text_at("x-kubernetes-list-type");
    if (kind == "set") type.list_kind = types::ListKind::Set;
    if (kind == "map") {
      type.list_kind = types::ListKind::Keyed;
      type.list_keys = names(schema, "x-kubernetes-list-map-keys");
    }
  }

  Arena& arena_;
  const bool open_everywhere_;
  std::vector<Type*> plain_;  // Shared; never changed.
  std::unordered_set<std::string_view, KeyHash> texts_;
};

// The path of the current member, formatted only when needed.
struct Trail {
  const Trail* parent = nullptr;
  std::string_view name = {};
  int64_t index = -1;

  std::string text() const {
    std::string path = parent == nullptr ? "" : parent->text();
    if (index >= 0) return path + "[" + std::to_string(index) + "]";
    if (name.empty()) return path;
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }
};

struct Pruner {
  Arena& arena;
  std::vector<std::string>* unknown;
  size_t reported_bytes = 0;

  Value any(const Type& type, const Value& value, bool root, const Trail& at) {
    if (value.is_map()) return map(type, value, root || type.embedded_resource, at);
    if (value.is_list() && type.shape == Shape::List) return list(type, value, at);
    return value;
  }

  Value map(const Type& type, const Value& value, bool resource, const Trail& at) {
    // The schema of a scalar declares no members; validation rejects the value later.
    if (type.shape == Shape::Any || type.shape == Shape::IntOrString) {
      if (type.preserve_unknown) return value;
    }
    return with_each_member(arena, value, [&](const Member& member) -> std::optional<Value> {
      if (resource && (member.key == "apiVersion" || member.key == "kind" || member.key == "metadata")) {
        return member.value;
      }
      const Trail here{&at, member.key};
      const types::Field* field = type.shape == Shape::Struct ? types::find_member(type, member.key) : nullptr;
      const Type* child = field != nullptr ? field->type : type.shape == Shape::Map ? type.element : nullptr;
      if (child != nullptr) return any(*child, member.value, false, here);
      if (type.preserve_unknown) return member.value;
      if (unknown != nullptr && reported_bytes < limits::kReportedBytes) {
        unknown->push_back(here.text());
        reported_bytes += unknown->back().size();
      }
      return std::nullopt;
    });
  }

  Value list(const Type& type, const Value& value, const Trail& at) {
    int64_t index = 0;
    return with_each_item(arena, value,
                          [&](const Value& item) { return any(*type.element, item, false, {&at, {}, index++}); });
  }
};

// Whether a member does not accept null.
bool rejects_null(const Type& type) { return !type.nullable; }

struct NullDropper {
  Arena& arena;

  Value any(const Type& type, const Value& value) {
    if (!type.name.empty()) return value;  // Built-in type, inside metadata.
    if (value.is_list() && type.shape == Shape::List) {
      return with_each_item(arena, value, [&](const Value& item) { return any(*type.element, item); });
    }
    if (!value.is_map()) return value;
    return with_each_member(arena, value, [&](const Member& member) -> std::optional<Value> {
      const Type* child = member_type(type, member.key);
      if (child == nullptr) return member.value;
      if (member.value.is_null() && rejects_null(*child) && child->default_value == nullptr) return std::nullopt;
      return any(*child, member.value);
    });
  }
};

struct Defaulter {
  Arena& arena;

  // The value itself, or the default of its schema if null is not accepted.
  const Value& or_default(const Type& type, const Value& value) {
    return value.is_null() && !type.nullable && type.default_value != nullptr ? *type.default_value : value;
  }

  Value any(const Type& type, const Value& value) {
    if (!type.name.empty()) return value;  // Built-in type, inside metadata.
    if (value.is_list() && type.shape == Shape::List) {
      return with_each_item(arena, value,
                            [&](const Value& item) { return any(*type.element, or_default(*type.element, item)); });
    }
    if (!value.is_map()) return value;
    MapBuilder result(arena);
    bool changed = false;
    for (const Member& member : value.members()) {
      const Type* child = member_type(type, member.key);
      const Value set = child == nullptr ? member.value : any(*child, or_default(*child, member.value));
      changed |= !set.same(member.value);
      result.add(member.key, set);
    }
    if (type.shape == Shape::Struct) {
      for (const Field* field : type.members) {
        if (field->default_value == nullptr || value.has(field->name)) continue;
        result.add(field->name, any(*field->type, *field->default_value));
        changed = true;
      }
    }
    return changed ? result.build() : value;
  }
};

}  // namespace

const Type* member_type(const Type& type, std::string_view key) {
  if (type.shape == Shape::Map) return type.element;
  if (type.shape != Shape::Struct) return nullptr;
  const types::Field* field = types::find_member(type, key);
  return field == nullptr || !field->type->name.empty() ? nullptr : field->type;
}

struct Schema::Known {
  std::mutex mutex;
  std::unordered_multimap<uint64_t, std::weak_ptr<const Schema>> schemas;  // By the hash of their source.
};

Schema::Known& Schema::known() {
  static auto* all = new Known;  // Schemas may outlive every other static.
  return *all;
}

Schema::Schema(std::string_view text, uint64_t hash, bool preserve_unknown_fields)
    : packed_(pack_without_dictionary(text)),
      plain_bytes_(text.size()),
      hash_(hash),
      preserve_unknown_fields_(preserve_unknown_fields) {
  if (packed_.empty()) packed_ = text;
  packed_.shrink_to_fit();
}

std::shared_ptr<const Schema> Schema::build(const Value& schema, bool preserve_unknown_fields) {
  const std::string text = schema.is_map() ? codec::encode_json(schema) : std::string();
  const uint64_t hash = hash_key(text) + (preserve_unknown_fields ? 1 : 0);
  std::shared_ptr<const Schema> made(new Schema(text, hash, preserve_unknown_fields), [hash](const Schema* gone) {
    {
      const std::lock_guard lock(known().mutex);
      const auto [first, last] = known().schemas.equal_range(hash);
      for (auto it = first; it != last;) it = it->second.expired() ? known().schemas.erase(it) : std::next(it);
    }
    delete gone;
  });
  std::vector<std::shared_ptr<const Schema>> others;  // Released after the lock: these may be the last references.
  const std::lock_guard lock(known().mutex);
  const auto [first, last] = known().schemas.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    std::shared_ptr<const Schema> other = it->second.lock();
    if (other == nullptr) continue;
    if (other->plain_bytes_ == made->plain_bytes_ && other->packed_ == made->packed_ &&
        other->preserve_unknown_fields_ == preserve_unknown_fields)
      return other;
    others.push_back(std::move(other));
  }
  known().schemas.emplace(hash, made);
  return made;
}

Value Schema::written(Arena& arena) const {
  if (plain_bytes_ == 0) return Value::null();
  char* text = arena.allocate_array<char>(plain_bytes_);
  if (packed_.size() == plain_bytes_) {
    std::memcpy(text, packed_.data(), plain_bytes_);
  } else {
    const bool unpacked = unpack_alone(packed_, text, plain_bytes_);
    assert(unpacked);
    (void)unpacked;
  }
  Result<Value> tree = codec::decode_json(arena, {text, plain_bytes_});
  assert(tree);
  return *tree;
}

const Type& Schema::root() const {
  std::call_once(made_, [this] {
    Arena scratch;
    root_ = &types_of(arena_, written(scratch), preserve_unknown_fields_);
  });
  return *root_;
}

const Type& types_of(Arena& arena, const Value& schema, bool preserve_unknown_fields) {
  return *Builder(arena, preserve_unknown_fields).root(schema);
}

Value prune(Arena& arena, const Type& root, const Value& object, std::vector<std::string>* unknown) {
  const size_t before = unknown == nullptr ? 0 : unknown->size();
  const Value pruned = Pruner{arena, unknown}.any(root, object, true, {});
  if (unknown != nullptr) std::sort(unknown->begin() + static_cast<ptrdiff_t>(before), unknown->end());
  return pruned;
}

Value drop_nulls(Arena& arena, const Type& root, const Value& object) { return NullDropper{arena}.any(root, object); }

Value apply_defaults(Arena& arena, const Type& root, const Value& object) { return Defaulter{arena}.any(root, object); }

}  // namespace holdfast::schema
