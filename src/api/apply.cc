// What is particular to apply: its configuration, and what becomes of its values.
#include <cmath>

#include "api/body.h"
#include "api/object_codec.h"
#include "api/patch.h"
#include "api/state.h"
#include "base/api_error.h"
#include "codec/codec.h"
#include "codec/typed.h"

namespace holdfast::api {
namespace {

Result<Value> decode_config(Call& call, PatchType type, std::string_view bytes, std::vector<std::string>& duplicates) {
  if (type == PatchType::ApplyCbor) {
    Result<Value> value = codec::decode_cbor(call.arena, bytes);
    if (!value) return bad_request("error decoding YAML: " + value.error().message);
    return *value;
  }
  Result<Value> value = codec::decode_yaml(call.arena, bytes, {.duplicates = &duplicates});
  if (!value) return bad_request("error decoding YAML: error converting YAML to JSON: " + value.error().message);
  if (value->is_null()) return Value::empty_map();
  if (!value->is_map()) {
    return bad_request("error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal " +
                       std::string(codec::json_kind(*value)) + " into Go value of type map[string]interface {}");
  }
  return *value;
}

// "(ns/name; apps/v1, Kind=Deployment)", as errors about a converted object show it.
std::string shown_object(const Call& call, const Value& object) {
  const Expected kind = expected_of(call);
  return "(" + std::string(object.text_at("metadata", "namespace")) + "/" +
         std::string(object.text_at("metadata", "name")) + "; " + std::string(kind.group) + "/" +
         std::string(kind.version) + ", Kind=" + std::string(kind.kind) + ")";
}

std::string_view int_name(types::Shape shape) { return shape == types::Shape::Int32 ? "int32" : "int64"; }

Result<Value> converted_number(const types::Type& type, const Value& value) {
  int64_t whole = 0;
  if (value.is_double()) {
    const double number = value.as_double();
    if (std::floor(number) != number) {
      return bad_request("cannot convert float64 to " + std::string(int_name(type.shape)));
    }
    // Beyond int64 Go's conversion gives the smallest integer.
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
      return no(value.is_int() ? "cannot convert int64 to string" : "unrecognized type: string");
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
      Value changed = value;
      for (const Member& member : value.members()) {
        Result<Value> converted = with_converted_numbers(arena, *type.element, member.value);
        if (!converted) return converted;
        if (!converted->same(member.value)) changed = with_member(arena, changed, member.key, *converted);
      }
      return changed;
    }
    case types::Shape::Struct: {
      if (!value.is_map()) return no_such("struct from:");
      Value changed = value;
      // Go goes through the fields of the struct: the first of them that does not fit is what the error is about.
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
        if (!converted->same(member.value)) changed = with_member(arena, changed, member.key, *converted);
      }
      if (refused != nullptr) return why;
      return changed;
    }
    default:
      return value;
  }
}

std::string as_single_value(std::string message) {
  if (message.starts_with("illegal base64 data")) return "error decoding from json: " + message;
  constexpr std::string_view kField = " into Go struct field ";
  const size_t at = message.find(kField);
  if (!message.starts_with("json: cannot unmarshal ") || at == std::string::npos) return message;
  const size_t end = message.find(' ', at + kField.size());
  if (end != std::string::npos) message.replace(at, end - at, " into Go value");
  return message;
}

Result<WriteOptions> parse_apply_options(Call& call, PatchType type, std::string_view bytes, DecodedConfig& config) {
  Result<Value> decoded = decode_config(call, type, bytes, config.duplicates);
  Result<WriteOptions> options = parse_write_options(call.query, WriteKind::Apply);
  if (!call.api.options.gates.on(Gate::DeclarativeFieldManager)) {
    if (!options) return options;
    if (!decoded) return decoded.take_error();
    config.value = *decoded;
    return options;
  }
  // The configuration may name its manager; then the query need not.
  if (!decoded) {
    if (!options) return options;
    return decoded.take_error();
  }
  Result<DeclaredOptions> declared = take_declared_options(call, *decoded);
  const bool names_manager = !declared || declared->field_manager;
  if (!options && names_manager && call.query.get("fieldManager").empty()) {
    options = parse_write_options(call.query, WriteKind::Apply, WriteManager::GivenElsewhere);
  }
  if (!options) return options;
  if (!declared) return declared.take_error();
  config.value = declared->object;
  Result<std::string> manager = effective_manager(call, *options, *declared, call.info.name);
  if (!manager) return manager.take_error();
  options->field_manager = *manager;
  return options;
}

Result<Unit> report_config_findings(Call& call, const DecodedConfig& config, FieldValidation validation) {
  if (validation == FieldValidation::Ignore || config.duplicates.empty()) return Unit{};
  if (validation == FieldValidation::Strict) {
    std::string text = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:";
    for (const std::string& line : config.duplicates) text += "\n  " + line;
    return bad_request(std::move(text));
  }
  for (const std::string& line : config.duplicates) call.warnings.add(line);
  return Unit{};
}

Result<Value> typed_from_config(Call& call, const Value& object, const Value& config, const types::Type& type,
                                const Value* live) {
  const auto refused = [&](std::string_view why) {
    const Expected kind = expected_of(call);
    return untyped("failed to convert new object " + shown_object(call, config) +
                   " to proper version: unable to convert unstructured object to " + std::string(kind.group) + "/" +
                   std::string(kind.version) + ", Kind=" + std::string(kind.kind) + ": " + std::string(why));
  };
  call.document = object;
  // What fits its type as it is, all of it, would be neither converted nor refused on the way.
  codec::TypedReport report;
  const codec::TypedOptions options{.gates = &call.api.options.gates, .made_from = live};
  Result<Value> fitting = codec::to_typed(call.arena, type, object, options, &report);
  if (fitting && !report.has_unknown) return fitting;
  Result<Value> numbers = with_converted_numbers(call.arena, type, object);
  if (!numbers) return refused(numbers.error().message);
  Result<Value> typed = codec::to_typed(call.arena, type, *numbers, {.gates = &call.api.options.gates});
  if (!typed) return refused(as_single_value(typed.take_error().message));
  return typed;
}

}  // namespace holdfast::api
