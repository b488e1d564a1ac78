// Apply-specific parts: decoding the configuration, and converting the result.
#include "base/api_error.h"
#include "base/api_version.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "patch/patch.h"
#include "resource/object_codec.h"
#include "verbs/patch.h"
#include "write/body.h"

namespace holdfast::verbs {
namespace {

Result<Value> decode_config(call::Call& call, request::PatchType type, std::string_view bytes,
                            std::vector<std::string>& duplicates) {
  if (type == request::PatchType::ApplyCbor) {
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

// "(ns/name; apps/v1, Kind=Deployment)", as shown in errors about a converted object.
std::string shown_object(const call::Call& call, const Value& object) {
  const write::Expected kind = write::expected_of(call);
  return "(" + std::string(object.text_at("metadata", "namespace")) + "/" +
         std::string(object.text_at("metadata", "name")) + "; " + go_kind_text(kind.group, kind.version, kind.kind) +
         ")";
}

Result<request::WriteOptions> decode_apply(call::Call& call, request::PatchType type, std::string_view bytes,
                                           DecodedConfig& config) {
  Result<Value> decoded = decode_config(call, type, bytes, config.duplicates);
  Result<request::WriteOptions> options = parse_write_options(call.query, request::WriteKind::Apply);
  // The configuration may declare its manager; then the query need not.
  if (!options && call.query.get("fieldManager").empty() && decoded && write::declares_manager(call, *decoded)) {
    options = parse_write_options(call.query, request::WriteKind::Apply, request::WriteManager::GivenElsewhere);
  }
  if (!options) return options;
  if (!decoded) return decoded.take_error();
  Result<Value> bare = write::take_declared_manager(call, *decoded, *options);
  if (!bare) return bare.take_error();
  config.value = *bare;
  return options;
}

}  // namespace

Result<request::WriteOptions> parse_apply_options(call::Call& call, request::PatchType type, std::string_view bytes,
                                                  DecodedConfig& config) {
  return decode_apply(call, type, bytes, config);
}

Result<Unit> report_config_findings(call::Call& call, const DecodedConfig& config,
                                    request::FieldValidation validation) {
  if (validation == request::FieldValidation::Ignore || config.duplicates.empty()) return Unit{};
  if (validation == request::FieldValidation::Strict) {
    std::string text = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:";
    for (const std::string& line : config.duplicates) text += "\n  " + line;
    return bad_request(std::move(text));
  }
  for (const std::string& line : config.duplicates) call.warnings.add(line);
  return Unit{};
}

Result<Value> typed_from_config(call::Call& call, const Value& object, const Value& config, const types::Type& type,
                                const Value* live) {
  const auto refused = [&](std::string_view why) {
    const write::Expected kind = write::expected_of(call);
    return untyped("failed to convert new object " + shown_object(call, config) +
                   " to proper version: unable to convert unstructured object to " +
                   go_kind_text(kind.group, kind.version, kind.kind) + ": " + std::string(why));
  };
  call.document = object;
  // Fast path: a result that already fits its type completely needs no conversion and cannot fail.
  codec::TypedReport report;
  const codec::TypedOptions options{.gates = &call.settings.gates, .derived_from = live};
  Result<Value> fitting = codec::to_typed(call.arena, type, object, options, &report);
  if (fitting && !report.has_unknown) return fitting;
  Result<Value> numbers = patch::with_converted_numbers(call.arena, type, object);
  if (!numbers) return refused(numbers.error().message);
  Result<Value> typed =
      codec::to_typed(call.arena, type, *numbers,
                      {.gates = &call.settings.gates, .errors = codec::TypedOptions::Errors::OfSingleValue});
  if (!typed) return refused(typed.error().message);
  return typed;
}

}  // namespace holdfast::verbs
