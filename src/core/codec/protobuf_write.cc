// Encodes trees like gogo's generated marshallers: non-pointer scalars and structs are always written, even if zero;
// pointers, lists, maps and bytes only if present; maps sorted by key.
//
// A message is written backwards, so that the length of nested messages is known when it is needed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/base64.h"
#include "base/clock.h"
#include "base/varint.h"
#include "codec/json.h"
#include "codec/member_position.h"
#include "codec/protobuf.h"
#include "codec/protobuf_wire.h"
#include "codec/quantity.h"

namespace holdfast::codec {
namespace {

using types::Field;
using types::Type;
using Kind = types::Shape;

constexpr size_t kMaxMembers = 128;  // Flattened members of one struct; PodSpec and JSONSchemaProps have about 45.

class BackwardBuffer {
 public:
  size_t size() const { return bytes_.size() - start_; }
  std::string_view written() const { return std::string_view(bytes_).substr(start_); }

  void put(char c) { *room(1) = c; }
  void put(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
  }
  void put_varint(uint64_t value) {
    if (value < 0x80) {
      put(static_cast<char>(value));
    } else {
      write_varint(value, room(varint_size(value)));
    }
  }
  // Room for that many bytes before those already written.
  char* room(size_t count) {
    if (start_ < count) grow(count);
    start_ -= count;
    return bytes_.data() + start_;
  }
  void give_back(size_t count) { start_ += count; }

 private:
  // Out of line, so that room() is just a few inlined instructions.
  [[gnu::noinline]] void grow(size_t count) {
    const size_t used = size();
    constexpr size_t kLeast = 1024;
    std::string larger(std::max({used * 2, used + count, kLeast}), '\0');
    std::memcpy(larger.data() + larger.size() - used, bytes_.data() + start_, used);
    start_ = larger.size() - used;
    bytes_ = std::move(larger);
  }

  std::string bytes_;
  size_t start_ = 0;
};

class Encoder {
 public:
  bool structure(const Type& type, const Value& value);
  std::string_view written() const { return out_.written(); }

  Error error() const {
    std::string path;
    for (size_t i = path_.size(); i-- > 0;) {
      if (!path.empty() && !path_[i].starts_with('[')) path += '.';
      path += path_[i];
    }
    return bad_request(path.empty() ? what_ : path + ": " + what_);
  }

 private:
  bool message(const Type& type, std::span<const Value* const> members);
  bool field(const Field& field, const Value* value);
  bool single(const Type& type, const Value& value);
  bool scalar(const Type& type, const Value& value);
  bool list(const Field& field, const Value& value);
  bool map(const Field& field, const Value& value);
  bool wrapped_items(const Value& value);
  bool time(const Type& type, const Value& value);
  bool raw(const Value& value);
  bool schema_union(const Type& type, const Value& value);

  void tag(const Field& field, wire::Type wire_type) { out_.put_varint(uint64_t{field.number} << 3 | wire_type); }
  // Completes the bytes written since `before` as the value of a field.
  void close(const Field& field, size_t before) {
    out_.put_varint(out_.size() - before);
    tag(field, wire::kBytes);
  }
  bool wrong(const Value& value, std::string_view wanted);
  bool in_field(std::string_view name) {
    path_.emplace_back(name);
    return false;
  }

  BackwardBuffer out_;
  int depth_ = 0;
  std::string what_;
  std::vector<std::string> path_;
};

std::string_view name_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::Null:
      return "null";
    case Value::Kind::Bool:
      return "a boolean";
    case Value::Kind::Int:
      return "an integer";
    case Value::Kind::Double:
      return "a number";
    case Value::Kind::String:
      return "a string";
    case Value::Kind::Raw:
      return "raw JSON";
    case Value::Kind::List:
      return "a list";
    case Value::Kind::Map:
      return "a map";
  }
  return "";
}

bool Encoder::wrong(const Value& value, std::string_view wanted) {
  what_ = "expected " + std::string(wanted) + ", found " + std::string(name_of(value));
  return false;
}

bool Encoder::structure(const Type& type, const Value& value) {
  if (!value.is_map()) return wrong(value, "a map");
  if (depth_ == kMaxProtobufDepth) {
    what_ = "nested too deeply";
    return false;
  }
  assert(type.members.size() <= kMaxMembers);
  const Value* members[kMaxMembers];
  std::fill_n(members, type.members.size(), nullptr);
  size_t next = 0;
  for (const Member& member : value.members()) {
    const size_t at = member_position(type, member.key, next);
    if (at == type.members.size()) {
      what_ = "unknown field";
      return in_field(member.key);
    }
    members[at] = &member.value;
    next = at + 1;
  }
  ++depth_;
  const bool ok = message(type, {members, type.members.size()});
  --depth_;
  return ok;
}

bool Encoder::message(const Type& type, std::span<const Value* const> members) {
  const auto order = type.fields_by_number;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t start = type.member_starts[order[i]];
    // Most fields of most structs are absent pointers, lists and maps, for which nothing is written.
    if (members[start] == nullptr && type.plan[order[i]].omit == types::FieldPlan::kWhenAbsent) continue;
    const Field& field = type.fields[order[i]];
    if (field.inlined) {
      const size_t before = out_.size();
      if (!message(*field.type, members.subspan(start, field.type->members.size()))) return false;
      close(field, before);
    } else if (!this->field(field, members[start])) {
      return in_field(field.name);
    }
  }
  return true;
}

bool Encoder::field(const Field& field, const Value* value) {
  const Type& type = *field.type;
  const bool absent = value == nullptr || value->is_null();
  switch (type.shape) {
    case Kind::Bool:
    case Kind::Int32:
    case Kind::Int64:
    case Kind::Double:
      if (absent && field.pointer) return true;
      if (!scalar(type, absent ? Value::integer(0) : *value)) return false;
      tag(field, type.shape == Kind::Double ? wire::kFixed64 : wire::kVarint);
      return true;
    case Kind::List:
      if (absent) return true;
      if (type.wrapped) break;
      return list(field, *value);
    case Kind::Map:
      return absent || map(field, *value);
    case Kind::Bytes:
      if (absent) return true;
      break;
    default:
      if (absent && field.pointer) return true;
      break;
  }
  const size_t before = out_.size();
  if (!single(type, absent ? Value::null() : *value)) return false;
  close(field, before);
  return true;
}

bool Encoder::scalar(const Type& type, const Value& value) {
  switch (type.shape) {
    case Kind::Bool:
      if (value.is_bool()) {
        out_.put(value.as_bool() ? '\1' : '\0');
      } else if (value.is_int() && value.as_int() == 0) {
        out_.put('\0');
      } else {
        return wrong(value, "a boolean");
      }
      return true;
    case Kind::Double: {
      if (!value.is_number()) return wrong(value, "a number");
      const double number = value.number_value();
      std::memcpy(out_.room(sizeof number), &number, sizeof number);
      return true;
    }
    default:
      if (!value.is_int()) return wrong(value, "an integer");
      out_.put_varint(static_cast<uint64_t>(value.as_int()));
      return true;
  }
}

// A value with wire type bytes, without its length. Null means Go's zero value.
bool Encoder::single(const Type& type, const Value& value) {
  // A non-null pointer to something that prints as null.
  if (value.is_raw() && value.raw_json() == "null") return single(type, Value::null());
  switch (type.shape) {
    case Kind::Struct:
      return structure(type, value.is_null() ? Value::empty_map() : value);
    case Kind::String:
      if (value.is_null()) return true;
      if (!value.is_string()) return wrong(value, "a string");
      out_.put(value.as_string());
      return true;
    case Kind::Bytes: {
      if (value.is_null()) return true;
      if (!value.is_string()) return wrong(value, "base64 text");
      // Decoded forwards, then moved to the end of the reserved room.
      const std::string_view text = value.as_string();
      const size_t most = base64_decoded_size(text.size());
      char* const to = out_.room(most);
      const std::optional<char*> end = base64_decode(text, to);
      if (!end) {
        what_ = "illegal base64 data";
        return false;
      }
      const auto size = static_cast<size_t>(*end - to);
      std::memmove(to + most - size, to, size);
      out_.give_back(most - size);
      return true;
    }
    case Kind::Time:
    case Kind::MicroTime:
      return time(type, value);
    case Kind::Quantity: {
      if (!value.is_null() && !value.is_string()) return wrong(value, "a quantity");
      const std::string_view text = value.is_null() ? std::string_view("0") : value.as_string();
      out_.put(text);
      out_.put_varint(text.size());
      out_.put('\x0a');
      return true;
    }
    case Kind::IntOrString: {
      if (!value.is_null() && !value.is_int() && !value.is_string()) return wrong(value, "an integer or a string");
      const std::string_view text = value.is_string() ? value.as_string() : std::string_view();
      out_.put(text);
      out_.put_varint(text.size());
      out_.put('\x1a');
      out_.put_varint(static_cast<uint64_t>(value.is_int() ? value.as_int() : 0));
      out_.put('\x10');
      out_.put(value.is_string() ? '\1' : '\0');
      out_.put('\x08');
      return true;
    }
    case Kind::FieldsV1:
    case Kind::Raw:
      return raw(value);
    case Kind::SchemaOrBool:
    case Kind::SchemaOrArray:
    case Kind::SchemaOrStringArray:
      return schema_union(type, value);
    case Kind::List:
      return wrapped_items(value);
    default:
      what_ = "has no Protobuf form";
      return false;
  }
}

bool Encoder::list(const Field& field, const Value& value) {
  if (!value.is_list()) return wrong(value, "a list");
  const Type& element = *field.type->element;
  const auto items = value.items();
  for (size_t i = items.size(); i-- > 0;) {
    bool ok = true;
    switch (element.shape) {
      case Kind::Bool:
      case Kind::Int32:
      case Kind::Int64:
      case Kind::Double:
        ok = scalar(element, items[i].is_null() ? Value::integer(0) : items[i]);
        tag(field, element.shape == Kind::Double ? wire::kFixed64 : wire::kVarint);
        break;
      default: {
        const size_t before = out_.size();
        ok = single(element, items[i]);
        close(field, before);
      }
    }
    if (!ok) return in_field("[" + std::to_string(i) + "]");
  }
  return true;
}

bool Encoder::map(const Field& field, const Value& value) {
  if (!value.is_map()) return wrong(value, "a map");
  const Type& element = *field.type->element;
  const auto by_key = [](const Member& a, const Member& b) { return a.key < b.key; };
  std::span<const Member> members = value.members();
  std::vector<Member> sorted;
  if (!std::is_sorted(members.begin(), members.end(), by_key)) {
    sorted.assign(members.begin(), members.end());
    std::stable_sort(sorted.begin(), sorted.end(), by_key);
    members = sorted;
  }
  for (size_t i = members.size(); i-- > 0;) {
    const Member& member = members[i];
    const size_t entry = out_.size();
    switch (element.shape) {
      case Kind::Bool:
      case Kind::Int32:
      case Kind::Int64:
      case Kind::Double:
        if (!scalar(element, member.value.is_null() ? Value::integer(0) : member.value)) return in_field(member.key);
        out_.put(static_cast<char>(2 << 3 | (element.shape == Kind::Double ? wire::kFixed64 : wire::kVarint)));
        break;
      default:
        // Null bytes, unlike empty ones, have no value in their entry.
        if (element.shape == Kind::Bytes && member.value.is_null()) break;
        if (!single(element, member.value)) return in_field(member.key);
        out_.put_varint(out_.size() - entry);
        out_.put('\x12');
    }
    out_.put(member.key);
    out_.put_varint(member.key.size());
    out_.put('\x0a');
    close(field, entry);
  }
  return true;
}

bool Encoder::wrapped_items(const Value& value) {
  if (value.is_null()) return true;
  if (!value.is_list()) return wrong(value, "a list");
  const auto items = value.items();
  for (size_t i = items.size(); i-- > 0;) {
    if (!items[i].is_string()) return wrong(items[i], "a string") || in_field("[" + std::to_string(i) + "]");
    out_.put(items[i].as_string());
    out_.put_varint(items[i].as_string().size());
    out_.put('\x0a');
  }
  return true;
}

bool Encoder::time(const Type& type, const Value& value) {
  if (value.is_null()) return true;  // The zero time is an empty message.
  if (!value.is_string()) return wrong(value, "a time");
  const std::optional<UnixTime> when = parse_rfc3339(value.as_string());
  if (!when) return wrong(value, "an RFC 3339 time");
  out_.put_varint(type.shape == Kind::MicroTime ? static_cast<uint64_t>(when->nanos / 1000 * 1000) : 0);
  out_.put('\x10');
  out_.put_varint(static_cast<uint64_t>(when->seconds));
  out_.put('\x08');
  return true;
}

bool Encoder::raw(const Value& value) {
  if (value.is_null()) return true;
  std::string text;
  std::string_view json;
  if (value.is_raw()) {
    json = value.raw_json();
  } else {
    encode_json(value, text);
    json = text;
  }
  out_.put(json);
  out_.put_varint(json.size());
  out_.put('\x0a');
  return true;
}

bool Encoder::schema_union(const Type& type, const Value& value) {
  const bool or_bool = type.shape == Kind::SchemaOrBool;
  const Field& schema = type.fields[or_bool ? 1 : 0];
  const size_t before = out_.size();
  switch (value.kind()) {
    case Value::Kind::Map:
      if (!structure(*schema.type, value)) return false;
      close(schema, before);
      if (or_bool) out_.put("\x08\x01");
      return true;
    case Value::Kind::Bool:
      if (!or_bool) break;
      out_.put(value.as_bool() ? std::string_view("\x08\x01", 2) : std::string_view("\x08\x00", 2));
      return true;
    case Value::Kind::List:
      if (or_bool) break;
      return list(type.fields[1], value);
    case Value::Kind::Null:
      if (or_bool) out_.put(std::string_view("\x08\x00", 2));
      return true;
    default:
      break;
  }
  return wrong(value, "a schema");
}

}  // namespace

Result<Unit> encode_protobuf(const types::Type& type, const Value& value, std::string& out) {
  Encoder encoder;
  if (!encoder.structure(type, value)) return encoder.error();
  out += encoder.written();
  return Unit{};
}

}  // namespace holdfast::codec
