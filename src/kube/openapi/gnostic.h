// Private to the module: shared by the writers of both gnostic Protobuf formats (packages openapi.v2 and openapi.v3).
// They are proto3, so zero scalars are omitted.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/varint.h"
#include "codec/codec.h"
#include "value/value.h"

namespace holdfast::openapi {

class Message {
 public:
  void text(int field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
  }
  void bytes(int field, std::string_view value) {
    put_varint(out_, static_cast<uint64_t>(field) << 3 | 2);
    put_varint(out_, value.size());
    out_ += value;
  }
  void message(int field, const Message& value) { bytes(field, value.out_); }
  void boolean(int field, bool value) {
    if (value) set_boolean(field, value);
  }
  void integer(int field, int64_t value) {
    if (value == 0) return;
    put_varint(out_, static_cast<uint64_t>(field) << 3);
    put_varint(out_, static_cast<uint64_t>(value));
  }
  void number(int field, double value) {
    if (value != 0) set_number(field, value);
  }
  // In a oneof: written even if it is zero.
  void set_boolean(int field, bool value) {
    put_varint(out_, static_cast<uint64_t>(field) << 3);
    put_varint(out_, value ? 1 : 0);
  }
  void set_number(int field, double value) {
    put_varint(out_, static_cast<uint64_t>(field) << 3 | 1);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

inline bool flag(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

inline double number_at(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->is_number() ? value->number_value() : 0;
}

// Any{yaml}: the value as YAML text.
inline Message any(const Value& value) {
  Message message;
  std::string yaml;
  // Only texts with control characters have no YAML form; such an extension is left empty.
  if (codec::encode_yaml(value, yaml)) message.text(2, yaml);
  return message;
}

inline void vendor_extensions(Message& message, int field, const Value& map) {
  for (const Member& member : map.members()) {
    if (!member.key.starts_with("x-")) continue;
    Message named;
    named.text(1, member.key);
    named.message(2, any(member.value));
    message.message(field, named);
  }
}

inline void texts(Message& message, int field, std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.is_string()) message.bytes(field, value.as_string());
  }
}

// The constraints of a schema. Both versions number them consecutively, starting at `first`.
inline void validations(Message& message, int first, const Value& schema) {
  message.number(first, number_at(schema, "multipleOf"));
  message.number(first + 1, number_at(schema, "maximum"));
  message.boolean(first + 2, flag(schema, "exclusiveMaximum"));
  message.number(first + 3, number_at(schema, "minimum"));
  message.boolean(first + 4, flag(schema, "exclusiveMinimum"));
  message.integer(first + 5, schema.int_at_or(0, "maxLength"));
  message.integer(first + 6, schema.int_at_or(0, "minLength"));
  message.text(first + 7, schema.text_at("pattern"));
  message.integer(first + 8, schema.int_at_or(0, "maxItems"));
  message.integer(first + 9, schema.int_at_or(0, "minItems"));
  message.boolean(first + 10, flag(schema, "uniqueItems"));
  message.integer(first + 11, schema.int_at_or(0, "maxProperties"));
  message.integer(first + 12, schema.int_at_or(0, "minProperties"));
  texts(message, first + 13, schema.items_at("required"));
  for (const Value& value : schema.items_at("enum")) message.message(first + 14, any(value));
}

}  // namespace holdfast::openapi
