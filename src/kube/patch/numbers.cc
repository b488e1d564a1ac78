#include <cmath>

#include "base/api_error.h"
#include "codec/codec.h"
#include "patch/patch.h"
#include "value/map_edit.h"

namespace holdfast::patch {
namespace {

std::string_view int_name(types::Shape shape) { return shape == types::Shape::Int32 ? "int32" : "int64"; }

Result<Value> converted_number(const types::Type& type, const Value& value) {
  int64_t whole = 0;
  if (value.is_double()) {
    const double number = value.as_double();
    if (std::floor(number) != number) {
      return bad_request("cannot convert float64 to " + std::string(type.go_name));
    }
    // Out of range, Go's conversion gives the smallest integer.
    whole = std::abs(number) < 9.3e18 && number < 9223372036854775808.0 && number >= -9223372036854775808.0
                ? static_cast<int64_t>(number)
                : INT64_MIN;
  } else {
    whole = value.as_int();
  }
  if (type.shape == types::Shape::Int32) whole = static_cast<int32_t>(static_cast<uint32_t>(whole));
  return Value::integer(whole);
}

bool stands_before(const types::Type& type, const types::Field& one, const types::Field& other) {
  for (const types::Field* field : type.members) {
    if (field == &one) return true;
    if (field == &other) return false;
  }
  return false;
}

}  // namespace

Result<Value> with_converted_numbers(Arena& arena, const types::Type& type, const Value& value) {
  if (value.is_null()) return value;
  const auto no = [&](std::string_view text) { return bad_request(std::string(text)); };
  const auto no_such = [&](std::string_view what) {
    return bad_request("cannot restore " + std::string(what) + " " + std::string(codec::go_kind(value)));
  };
  switch (type.shape) {
    case types::Shape::Int32:
    case types::Shape::Int64:
      if (value.is_number()) return converted_number(type, value);
      return no("unrecognized type: " + std::string(int_name(type.shape)));
    case types::Shape::Double:
      return value.is_number() ? Result<Value>(value) : no("unrecognized type: float64");
    case types::Shape::Bool:
      return value.is_bool() ? Result<Value>(value) : no("unrecognized type: bool");
    case types::Shape::String:
      if (value.is_string()) return value;
      return no(value.is_int() ? "cannot convert int64 to " + std::string(type.go_name) : "unrecognized type: string");
    case types::Shape::Bytes:
      return value.is_string() || value.is_list() ? Result<Value>(value) : no_such("slice from");
    case types::Shape::List: {
      if (!value.is_list()) return no_such("slice from");
      if (type.element == nullptr) return value;
      Value* items = nullptr;
      for (size_t i = 0; i < value.items().size(); ++i) {
        Result<Value> item = with_converted_numbers(arena, *type.element, value.items()[i]);
        if (!item) return item;
        if (item->same(value.items()[i])) continue;
        if (items == nullptr) items = arena.copy(value.items()).data();
        items[i] = *item;
      }
      return items == nullptr ? value : Value::list({items, value.items().size()});
    }
    case types::Shape::Map: {
      if (!value.is_map()) return no_such("map from");
      if (type.element == nullptr) return value;
      MapEdit edit(arena, value);
      for (const Member& member : value.members()) {
        Result<Value> converted = with_converted_numbers(arena, *type.element, member.value);
        if (!converted) return converted;
        if (!converted->same(member.value)) edit.replace(member.value, *converted);
      }
      return edit.build();
    }
    case types::Shape::Struct: {
      if (!value.is_map()) return no_such("struct from:");
      MapEdit edit(arena, value);
      // Go visits the fields in struct order: the first invalid one determines the error.
      const types::Field* refused = nullptr;
      Error why;
      for (const Member& member : value.members()) {
        const types::Field* field = types::find_member(type, member.key);
        if (field == nullptr) continue;
        Result<Value> converted = with_converted_numbers(arena, *field->type, member.value);
        if (!converted) {
          if (refused == nullptr || stands_before(type, *field, *refused)) {
            refused = field;
            why = converted.take_error();
          }
          continue;
        }
        if (!converted->same(member.value)) edit.replace(member.value, *converted);
      }
      if (refused != nullptr) return why;
      return edit.build();
    }
    default:
      return value;
  }
}

}  // namespace holdfast::patch
