#include "codec/typed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/base64.h"
#include "base/strings.h"
#include "codec/go_names.h"
#include "codec/go_time.h"
#include "codec/json.h"
#include "codec/member_position.h"
#include "codec/protobuf.h"
#include "codec/protobuf_read.h"
#include "codec/quantity.h"
#include "codec/text.h"

namespace holdfast::codec {
namespace {

using types::Field;
using types::Type;
using Kind = types::Shape;

// Represents a pointer to something that prints as null, where a missing pointer would be omitted.
Value printed_null() { return Value::raw("null"); }
bool is_printed_null(const Value& value) { return value.is_raw() && value.raw_json() == "null"; }

std::string_view short_name(const Type& type) { return type.name.substr(type.name.rfind('.') + 1); }

// The embedded structs between `owner` and one of its flattened members, by their Go names.
bool find_embedding(const Type& owner, const Field* member, std::vector<std::string_view>& names) {
  for (const Field& field : owner.fields) {
    if (&field == member) return true;
    if (!field.inlined) continue;
    names.push_back(short_name(*field.type));
    if (find_embedding(*field.type, member, names)) return true;
    names.pop_back();
  }
  return false;
}

class Typer {
 public:
  Typer(Arena& arena, const TypedOptions& options) : arena_(arena), options_(options) {}

  Result<Value> run(const Type& type, const Value& in) {
    Value out;
    if (!convert(type, in, options_.derived_from, out)) return bad_request(std::move(fatal_));
    if (!saved_.empty()) return bad_request(std::move(saved_));
    return out;
  }
  bool has_unknown() const { return has_unknown_; }

 private:
  // Each sets `out`, to null for Go's zero value where that is not printed by itself. False for errors that Go returns
  // immediately. Errors that Go only records (the first one wins) leave `out` at the zero value. `from` is the
  // corresponding value in the tree from which this one was derived, or null.
  bool convert(const Type& type, const Value& in, const Value* from, Value& out);
  bool structure(const Type& type, const Value& in, const Value* from, Value& out);
  bool list(const Type& type, const Value& in, const Value* from, Value& out);
  bool map(const Type& type, const Value& in, const Value* from, Value& out);
  bool integer(const Type& type, const Value& in, Value& out);
  bool bytes(const Type& type, const Value& in, Value& out);
  bool time(const Type& type, const Value& in, Value& out);
  bool quantity(const Value& in, Value& out);
  bool int_or_string(const Value& in, Value& out);
  bool raw(const Type& type, const Value& in, Value& out);
  Value reencoded(const Value& raw);
  bool schema_union(const Type& type, const Value& in, Value& out);

  // How a value of this type is printed if it was not given, apart from a struct's omit rules.
  bool zero(const Type& type, Value& out);
  bool emit(const Type& owner, const Field& field, Value value);

  struct Step {
    const Type* owner;    // For a struct's member.
    const Field* member;  // Null in lists and maps.
    std::string_view key;
    size_t position;  // In a list.
  };

  bool wrong(std::string_view found, std::string_view go_name) {
    if (saved_.empty()) saved_ = type_error(found, go_name);
    return true;
  }
  bool fatal(std::string message) {
    fatal_ = std::move(message);
    return false;
  }
  std::string type_error(std::string_view found, std::string_view go_name) const;
  // The number as it was sent.
  std::string number_text(const Value& value) const;
  std::string_view source_text() const;

  Arena& arena_;
  const TypedOptions& options_;
  bool has_unknown_ = false;
  bool report_unknown_ = true;
  std::string saved_, fatal_;
  std::vector<Step> path_;
  std::vector<Value> slots_;  // A stack: for each open struct, one value per member in declaration order.
  size_t slots_used_ = 0;
  std::vector<Member> output_;  // A stack: the output of each open struct or map.
};

std::string Typer::type_error(std::string_view found, std::string_view go_name) const {
  std::string fields;
  const Type* owner = nullptr;
  for (const Step& step : path_) {
    if (step.member == nullptr || options_.errors == TypedOptions::Errors::OfSingleValue) continue;
    owner = step.owner;
    std::vector<std::string_view> embedded;
    find_embedding(*owner, step.member, embedded);
    for (std::string_view name : embedded) fields += "." + std::string(name);
    fields += "." + std::string(step.member->name);
  }
  std::string text = "json: cannot unmarshal " + std::string(found) + " into Go ";
  text += owner == nullptr ? std::string("value") : "struct field " + std::string(short_name(*owner)) + fields;
  return text + " of type " + std::string(go_name);
}

std::string_view Typer::source_text() const {
  if (options_.json_source.empty()) return {};
  std::vector<std::string> path;
  for (const Step& step : path_) {
    const bool in_list = step.member == nullptr && step.key.data() == nullptr;
    path.push_back(in_list ? std::to_string(step.position) : std::string(step.key));
  }
  return json_text_at(options_.json_source, path);
}

std::string Typer::number_text(const Value& value) const {
  if (value.is_int()) return std::to_string(value.as_int());
  if (const std::string_view text = source_text(); !text.empty()) return std::string(text);
  return std::isfinite(value.as_double()) ? float_text(value.as_double(), FloatText::Json) : "";
}

// The member of a map in a tree; the one at `hint` is tried first.
const Value* member_of(const Value* map, std::string_view key, size_t hint) {
  if (map == nullptr || !map->is_map()) return nullptr;
  const std::span<const Member> members = map->members();
  return hint < members.size() && same_text(members[hint].key, key) ? &members[hint].value : map->find(key);
}

bool Typer::convert(const Type& type, const Value& in, const Value* from, Value& out) {
  if (from != nullptr && (in.is_map() || in.is_list()) && in.same(*from)) {
    out = in;
    return true;
  }
  out = Value::null();
  switch (type.shape) {
    case Kind::Struct:
      return structure(type, in, from, out);
    case Kind::String:
      if (in.is_string()) {
        out = in;
      } else if (!in.is_null()) {
        wrong(json_kind(in), type.go_name);
      }
      return true;
    case Kind::Bool:
      if (in.is_bool()) {
        out = in;
      } else if (!in.is_null()) {
        wrong(json_kind(in), type.go_name);
      }
      return true;
    case Kind::Int32:
    case Kind::Int64:
      return integer(type, in, out);
    case Kind::Double:
      if (in.is_double() && !std::isfinite(in.as_double())) {
        wrong("number " + number_text(in), type.go_name);
      } else if (in.is_number()) {
        out = in.is_double() ? in : Value::number(in.number_value());
      } else if (!in.is_null()) {
        wrong(json_kind(in), type.go_name);
      }
      return true;
    case Kind::Bytes:
      return bytes(type, in, out);
    case Kind::List:
      return list(type, in, from, out);
    case Kind::Map:
      return map(type, in, from, out);
    case Kind::Time:
    case Kind::MicroTime:
      return time(type, in, out);
    case Kind::Quantity:
      return quantity(in, out);
    case Kind::IntOrString:
      return int_or_string(in, out);
    case Kind::FieldsV1:
      out = in;
      return true;
    case Kind::Raw:
      return raw(type, in, out);
    case Kind::SchemaOrBool:
    case Kind::SchemaOrArray:
    case Kind::SchemaOrStringArray:
      return schema_union(type, in, out);
    default:
      out = in;
      return true;
  }
}

bool Typer::structure(const Type& type, const Value& in, const Value* from, Value& out) {
  if (!in.is_map() && !in.is_null()) return wrong(json_kind(in), type.go_name);
  if (path_.size() >= static_cast<size_t>(kMaxProtobufDepth) * 2) return fatal("exceeded max depth");
  const size_t frame = slots_used_;
  slots_used_ += type.members.size();
  if (slots_.size() < slots_used_) slots_.resize(2 * slots_used_);
  std::fill_n(slots_.begin() + static_cast<std::ptrdiff_t>(frame), type.members.size(), Value());
  uint64_t given = 0;  // Bitmask of the given members, for structs with at most 64.
  bool same = true;    // Whether the output equals the input, member for member.
  size_t next = 0;
  const std::span<const Member> members = in.is_map() ? in.members() : std::span<const Member>();
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const size_t at = member_position(type, member.key, next);
    const Field* field = at < type.members.size() ? type.members[at] : nullptr;
    if (field == nullptr || !field->exists(options_.gates) || (field->root_only && path_.size() != 1)) {
      has_unknown_ = has_unknown_ || report_unknown_;
      same = false;
      continue;
    }
    if (at < next) same = false;
    next = at + 1;
    path_.push_back({&type, field, member.key, 0});
    const Value* before = member_of(from, member.key, i);
    Value value;
    if (!field->pointer) {
      if (!convert(*field->type, member.value, before, value)) return false;
    } else if (is_printed_null(member.value)) {
      value = member.value;
    } else if (!member.value.is_null()) {
      if (!convert(*field->type, member.value, before, value)) return false;
      // The pointer is set, even if only to Go's zero value.
      if (value.is_null() && !zero(*field->type, value)) return false;
      if (value.is_null()) value = printed_null();
    }
    path_.pop_back();
    slots_[frame + at] = value;
    given |= uint64_t{1} << (at & 63);
  }

  const size_t start = output_.size();
  // Most members of most structs are absent and omitted.
  if (type.fields.size() == type.members.size()) {
    for (uint64_t left = given | type.shown_fields; left != 0; left &= left - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(left));
      if (!emit(type, *type.members[i], slots_[frame + i])) return false;
    }
  } else {
    for (size_t i = 0; i < type.members.size(); ++i) {
      if (!emit(type, *type.members[i], slots_[frame + i])) return false;
    }
  }
  slots_used_ = frame;
  const std::span<const Member> printed(output_.data() + start, output_.size() - start);
  same = same && in.is_map() && printed.size() == members.size();
  for (size_t i = 0; same && i < printed.size(); ++i) {
    same = printed[i].value.same(members[i].value) && same_text(printed[i].key, members[i].key);
  }
  if (same) {
    out = in;
  } else {
    out = printed.empty() ? Value::empty_map() : Value::map(arena_, printed);
  }
  output_.resize(start);
  return true;
}

bool Typer::zero(const Type& type, Value& out) {
  switch (type.shape) {
    case Kind::Bool:
      out = Value::boolean(false);
      return true;
    case Kind::Int32:
    case Kind::Int64:
    case Kind::IntOrString:
      out = Value::integer(0);
      return true;
    case Kind::Double:
      out = Value::number(0);
      return true;
    case Kind::String:
      out = Value::string("");
      return true;
    case Kind::Quantity:
      out = Value::string("0");
      return true;
    case Kind::Struct:
      return structure(type, Value::null(), nullptr, out);
    case Kind::SchemaOrBool:
      out = Value::boolean(false);
      return true;
    default:
      out = Value::null();
      return true;
  }
}

// Adds the member to the output of its struct, or omits it. Null if it was not given or is Go's zero value.
bool Typer::emit(const Type& owner, const Field& field, Value value) {
  const Type& type = *field.type;
  if (field.pointer) {
    if (value.is_null() && field.omit_empty) return true;
    output_.push_back({field.name, value});
    return true;
  }
  switch (type.shape) {
    case Kind::Bool:
    case Kind::Int32:
    case Kind::Int64:
    case Kind::Double:
    case Kind::String:
      if (field.omit_empty && is_zero(value)) return true;
      break;
    case Kind::List:
    case Kind::Map:
    case Kind::Bytes:
    case Kind::Any:
      if (field.omit_empty &&
          (value.is_null() || (type.shape != Kind::Any && !field.empty_differs && value.count() == 0))) {
        return true;
      }
      if (value.is_null() && field.name == "items" && owner.name.ends_with("List")) value = Value::empty_list();
      break;
    case Kind::Time:
    case Kind::MicroTime:
      if (field.omit_zero && value.is_null()) return true;
      break;
    default:
      break;
  }
  if (value.is_null() && !zero(type, value)) return false;
  output_.push_back({field.name, value});
  return true;
}

bool Typer::list(const Type& type, const Value& in, const Value* from, Value& out) {
  if (in.is_null()) return true;
  if (!in.is_list()) return wrong(json_kind(in), type.go_name);
  const Type& element = *type.element;
  const auto items = in.items();
  Value* changed = nullptr;  // Allocated when the first item differs from the input.
  path_.push_back({nullptr, nullptr, {}, 0});
  for (size_t i = 0; i < items.size(); ++i) {
    path_.back().position = i;
    Value value;
    const bool had = from != nullptr && from->is_list() && i < from->count();
    if (!convert(element, items[i], had ? &from->items()[i] : nullptr, value)) return false;
    if (value.is_null() && !zero(element, value)) return false;
    if (changed == nullptr && !value.same(items[i])) {
      changed = arena_.allocate_array<Value>(items.size());
      std::copy(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i), changed);
    }
    if (changed != nullptr) changed[i] = value;
  }
  path_.pop_back();
  out = changed == nullptr ? in : Value::list({changed, items.size()});
  return true;
}

bool Typer::map(const Type& type, const Value& in, const Value* from, Value& out) {
  if (in.is_null()) return true;
  if (!in.is_map()) return wrong(json_kind(in), type.go_name);
  const Type& element = *type.element;
  const auto members = in.members();
  const size_t start = output_.size();
  bool same = true;
  bool sorted = true;
  path_.push_back({nullptr, nullptr, {}, 0});
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    path_.back().key = member.key.data() == nullptr ? std::string_view("") : member.key;
    Value value;
    if (!convert(element, member.value, member_of(from, member.key, i), value)) return false;
    if (value.is_null() && !zero(element, value)) return false;
    same = same && value.same(member.value);
    sorted = sorted && (i == 0 || members[i - 1].key < member.key);
    output_.push_back({member.key, value});
  }
  path_.pop_back();
  if (!sorted) {
    std::sort(output_.begin() + static_cast<std::ptrdiff_t>(start), output_.end(),
              [](const Member& a, const Member& b) { return a.key < b.key; });
  }
  if (same && sorted) {
    out = in;
  } else {
    out = Value::map(arena_, std::span<const Member>(output_.data() + start, output_.size() - start));
  }
  output_.resize(start);
  return true;
}

bool Typer::integer(const Type& type, const Value& in, Value& out) {
  if (in.is_null()) return true;
  if (!in.is_number()) return wrong(json_kind(in), type.go_name);
  const bool narrow = type.shape == Kind::Int32;
  if (in.is_int()) {
    if (narrow && in.as_int() != static_cast<int32_t>(in.as_int())) {
      return wrong("number " + std::to_string(in.as_int()), type.go_name);
    }
    out = in;
    return true;
  }
  // To Go, only plain digits are an integer. YAML's 1.0 has become 1 by then, JSON's has not.
  const std::string text = number_text(in);
  const std::optional<int64_t> number = parse_number<int64_t>(text);
  if (!number || (narrow && *number != static_cast<int32_t>(*number))) return wrong("number " + text, type.go_name);
  out = Value::integer(*number);
  return true;
}

bool Typer::bytes(const Type& type, const Value& in, Value& out) {
  if (in.is_null()) return true;
  std::string decoded;
  if (in.is_string()) {
    size_t at = 0;
    std::optional<std::string> found = base64_decode(in.as_string(), &at);
    if (!found) {
      if (!saved_.empty()) return true;
      if (options_.errors == TypedOptions::Errors::OfSingleValue) saved_ = "error decoding from json: ";
      saved_ += "illegal base64 data at input byte " + std::to_string(at);
      return true;
    }
    decoded = std::move(*found);
  } else if (in.is_list()) {  // Go accepts a list of small numbers as bytes.
    for (const Value& item : in.items()) {
      if (item.is_null()) {
        decoded += '\0';
      } else if (!item.is_number()) {
        return wrong(json_kind(item), "uint8");
      } else if (!item.is_int() || item.as_int() < 0 || item.as_int() > 255) {
        return wrong("number " + number_text(item), "uint8");
      } else {
        decoded += static_cast<char>(item.as_int());
      }
    }
  } else {
    return wrong(json_kind(in), type.go_name);
  }
  const size_t size = base64_size(decoded.size());
  auto* text = arena_.allocate_array<char>(size);
  base64_encode(decoded, text);
  const Value canonical = Value::string({text, size});
  out = in.is_string() && in.as_string() == canonical.as_string() ? in : canonical;
  return true;
}

bool Typer::time(const Type& type, const Value& in, Value& out) {
  if (in.is_null()) return true;
  if (!in.is_string()) return fatal(type_error(json_kind(in), "string"));
  const bool micro = type.shape == Kind::MicroTime;
  std::string error;
  const std::optional<UnixTime> when =
      parse_go_time(in.as_string(), micro ? TimeLayout::Micro : TimeLayout::Seconds, error);
  if (!when) return fatal(std::move(error));
  if (when->seconds == kZeroTimeSeconds && when->nanos == 0) return true;
  char text[kMaxRfc3339];
  const char* end = micro ? write_rfc3339_micro(*when, text) : write_rfc3339(*when, text);
  const std::string_view canonical(text, static_cast<size_t>(end - text));
  out = in.as_string() == canonical ? in : Value::string(arena_, canonical);
  return true;
}

bool Typer::quantity(const Value& in, Value& out) {
  if (in.is_null()) {
    out = Value::string("0");
    return true;
  }
  if (in.is_string() && Quantity::surely_canonical(in.as_string())) {
    out = in;
    return true;
  }
  std::string text;
  if (in.is_string()) {
    text = in.as_string();
  } else if (in.is_number()) {
    text = number_text(in);
  } else {
    text = encode_json(in);  // Go passes the value's own text to the parser, which rejects it.
  }
  Result<Quantity> parsed = Quantity::parse(text);
  if (!parsed) return fatal(parsed.error().message);
  const std::string printed = parsed->text();
  out = in.is_string() && in.as_string() == printed ? in : Value::string(arena_, printed);
  return true;
}

bool Typer::int_or_string(const Value& in, Value& out) {
  if (in.is_null()) {
    out = Value::integer(0);
    return true;
  }
  if (in.is_string()) {
    out = in;
    return true;
  }
  if (!in.is_number()) return fatal(type_error(json_kind(in), "int32"));
  const std::string text = number_text(in);
  const std::optional<int32_t> number = parse_number<int32_t>(text);
  if (!number) return fatal(type_error("number " + text, "int32"));
  out = in.is_int() ? in : Value::integer(*number);
  return true;
}

Value Typer::reencoded(const Value& raw) {
  std::string text;
  switch (options_.raw_text) {
    case TypedOptions::RawText::AsIs:
      return raw;
    case TypedOptions::RawText::Compact:
      compact_json(raw.raw_json(), text);
      break;
    case TypedOptions::RawText::Sorted: {
      Result<Value> tree = decode_json(arena_, raw.raw_json());
      if (!tree) return raw;
      encode_json_sorted(*tree, text);
      break;
    }
  }
  return text == raw.raw_json() ? raw : Value::raw(arena_.copy(std::string_view(text)));
}

bool Typer::raw(const Type& type, const Value& in, Value& out) {
  if (in.is_null()) {
    out = in;
    return true;
  }
  if (in.is_raw()) {
    out = reencoded(in);
    return true;
  }
  // RawExtension keeps the sender's bytes; apiextensions JSON is decoded and encoded again, which sorts it.
  if (type.name == "runtime.RawExtension") {
    if (const std::string_view text = source_text(); !text.empty()) {
      out = Value::raw(is_valid_utf8(text) ? text : arena_.copy(replace_invalid_utf8(text)));
      return true;
    }
  }
  std::string text;
  encode_json_sorted(in, text);
  out = Value::raw(arena_.copy(std::string_view(text)));
  return true;
}

bool Typer::schema_union(const Type& type, const Value& in, Value& out) {
  const bool or_bool = type.shape == Kind::SchemaOrBool;
  // Upstream decodes the content with a separate decoder: not strict, and its errors are final.
  const std::string saved_before = std::exchange(saved_, {});
  const bool report_before = std::exchange(report_unknown_, false);
  bool ok = true;
  if (in.is_map()) {
    ok = structure(*type.fields[or_bool ? 1 : 0].type, in, nullptr, out);
  } else if (or_bool) {
    if (!in.is_bool()) return fatal("boolean or JSON schema expected");
    out = in;
  } else if (in.is_list()) {
    ok = list(*type.fields[1].type, in, nullptr, out);
    if (ok && out.count() == 0) out = Value::null();
  }
  report_unknown_ = report_before;
  if (!ok) return false;
  if (!saved_.empty()) return fatal(std::move(saved_));
  saved_ = saved_before;
  return true;
}

}  // namespace

Result<Value> to_typed(Arena& arena, const types::Type& type, const Value& in, const TypedOptions& options,
                       TypedReport* report) {
  Typer typer(arena, options);
  Result<Value> typed = typer.run(type, in);
  if (report != nullptr) report->has_unknown = typer.has_unknown();
  return typed;
}

}  // namespace holdfast::codec
