// Reads, compares and builds trees by their type.

#include <algorithm>

#include "kinds/hooks.h"
#include "kinds/internal.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {

using types::Field;
using types::Shape;
using types::Type;

const Value& sub(const Value& object, std::string_view key) {
  static constexpr Value kNull;
  const Value* found = object.find(key);
  return found == nullptr ? kNull : *found;
}

bool is_true(const Value& object, std::string_view key) {
  const Value* found = object.find(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

bool is_empty(const Value* value) {
  if (value == nullptr || value->is_null()) return true;
  return (value->is_list() || value->is_map() || value->is_string()) && value->count() == 0;
}

bool contains(std::span<const std::string_view> texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool contains_text(std::span<const Value> items, std::string_view text) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return item.is_string() && item.as_string() == text; });
}

void restore(Draft::Node next, const Value& old, std::string_view key) {
  const Value* before = old.find(key);
  if (before != nullptr) {
    next.set(key, *before);
  } else {
    next.remove(key);
  }
}

Value time_value(Arena& arena, UnixTime time) { return Value::string(arena, format_rfc3339(time)); }

void remove_if_empty(Draft::Node object, std::string_view key) {
  if (object.has(key) && is_empty(object.find(key))) object.remove(key);
}

void validate_enum(const Value& object, std::string_view key, std::span<const std::string_view> values, const Path& at,
                   FieldErrors& errors) {
  const std::string_view text = object.text_at(key);
  if (!contains(values, text)) errors.not_supported(at.child(key), text, values);
}

void validate_non_negative(const Value& object, std::string_view key, const Path& at, FieldErrors& errors) {
  const int64_t number = object.int_at_or(0, key);
  if (number < 0) errors.invalid(at.child(key), number, kNegative);
}

const Type& member_type(const Type& type, std::string_view name) {
  const Field* field = types::find_member(type, name);
  assert(field != nullptr);
  return *field->type;
}

const Type& type_named(std::string_view name) {
  const Type* type = types::find_type(name);
  assert(type != nullptr);
  return *type;
}

bool unchanged(const Type& parent, const Value& next, const Value& old, std::string_view key) {
  return semantic_equal(member_type(parent, key), next.find(key), old.find(key));
}

void validate_immutable(const Type& parent, const Value& next, const Value& old, std::string_view key, const Path& at,
                        FieldErrors& errors) {
  if (!unchanged(parent, next, old, key)) errors.invalid(at.child(key), shown_internal(parent, next, key), kImmutable);
}

namespace {

bool is_absent(const Value* value) { return value == nullptr || value->is_null(); }

bool same_instant(const Value& a, const Value& b) {
  if (!a.is_string() || !b.is_string()) return equal(a, b);
  if (a.as_string() == b.as_string()) return true;
  const auto x = parse_rfc3339(a.as_string()), y = parse_rfc3339(b.as_string());
  return x && y && *x == *y;
}

bool same_fields(const Type& type, const Value& a, const Value& b);

bool is_zero_scalar(const Value& value) {
  return (value.is_bool() && !value.as_bool()) || (value.is_int() && value.as_int() == 0) ||
         (value.is_double() && value.as_double() == 0) || (value.is_string() && value.count() == 0);
}

// Members of a struct that are not pointers have a zero value, which may or may not be printed.
bool same_member(const Field& field, const Value* a, const Value* b) {
  const bool a_absent = is_absent(a), b_absent = is_absent(b);
  if (a_absent && b_absent) return true;
  if (a_absent != b_absent && !field.pointer) {
    const Value& there = a_absent ? *b : *a;
    if (is_zero_scalar(there)) return true;
    if (field.type->shape == Shape::Quantity) return quantity_of(&there).is_zero();
    if (field.type->shape == Shape::Struct && there.is_map()) {
      return same_fields(*field.type, there, Value::empty_map());
    }
  }
  return semantic_equal(*field.type, a, b);
}

bool same_fields(const Type& type, const Value& a, const Value& b) {
  for (const Member& member : a.members()) {
    const Field* field = types::find_member(type, member.key);
    const Value* other = b.find(member.key);
    if (field == nullptr ? other == nullptr || !equal(member.value, *other)
                         : !same_member(*field, &member.value, other)) {
      return false;
    }
  }
  for (const Member& member : b.members()) {
    if (a.has(member.key)) continue;
    const Field* field = types::find_member(type, member.key);
    if (field == nullptr || !same_member(*field, nullptr, &member.value)) return false;
  }
  return true;
}

}  // namespace

bool semantic_equal(const Type& type, const Value* a, const Value* b) {
  if (type.shape == Shape::List || type.shape == Shape::Map) {
    if (is_empty(a) && is_empty(b)) return true;
  }
  if (is_absent(a) || is_absent(b)) return is_absent(a) && is_absent(b);
  if (a->same(*b)) return true;
  if (a->kind() != b->kind()) return false;
  switch (type.shape) {
    case Shape::Quantity:
      return quantity_of(a) == quantity_of(b);
    case Shape::Time:
    case Shape::MicroTime:
      return same_instant(*a, *b);
    case Shape::List: {
      if (!a->is_list() || a->count() != b->count()) return equal(*a, *b);
      for (uint32_t i = 0; i < a->count(); ++i) {
        if (!semantic_equal(*type.element, &a->items()[i], &b->items()[i])) return false;
      }
      return true;
    }
    case Shape::Map: {
      if (!a->is_map() || a->count() != b->count()) return equal(*a, *b);
      for (const Member& member : a->members()) {
        const Value* other = b->find(member.key);
        if (other == nullptr || !semantic_equal(*type.element, &member.value, other)) return false;
      }
      return true;
    }
    case Shape::Struct:
      return a->is_map() ? same_fields(type, *a, *b) : equal(*a, *b);
    default:
      return equal(*a, *b);
  }
}

// omitempty has no effect on structs: Go prints empty ones.
static bool is_go_struct(Shape shape) {
  return shape == Shape::Struct || shape == Shape::Time || shape == Shape::MicroTime || shape == Shape::Quantity ||
         shape == Shape::IntOrString || shape == Shape::Duration || shape == Shape::Raw;
}

Value zero_value(Arena& arena, const Type& type) {
  switch (type.shape) {
    case Shape::Bool:
      return Value::boolean(false);
    case Shape::Int32:
    case Shape::Int64:
    case Shape::IntOrString:
    case Shape::Double:
      return Value::integer(0);
    case Shape::String:
      return Value::string("");
    case Shape::Quantity:
      return Value::string("0");
    case Shape::Duration:
      return Value::string("0s");
    case Shape::Struct: {
      MapBuilder builder(arena);
      for (const Field* field : type.members) {
        if (!field->exists(nullptr)) continue;
        if (field->pointer || field->omit_zero) {
          if (field->pointer && !field->omit_empty && !field->omit_zero) builder.add(field->name, Value::null());
          continue;
        }
        if (field->omit_empty && !is_go_struct(field->type->shape)) continue;
        builder.add(field->name, zero_value(arena, *field->type));
      }
      return builder.build();
    }
    default:
      return Value::null();
  }
}

}  // namespace holdfast::kinds
