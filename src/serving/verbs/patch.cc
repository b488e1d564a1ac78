// PATCH: JSON, merge and strategic merge patches, and apply.
#include "verbs/patch.h"
#include "verbs/each.h"

#include <algorithm>
#include <cmath>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/strings.h"
#include "base/text.h"
#include "call/call.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "custom/conversions.h"
#include "custom/custom_objects.h"
#include "patch/patch.h"
#include "resource/managed.h"
#include "resource/object_codec.h"
#include "verbs/markers.h"
#include "verbs/subresources.h"
#include "write/body.h"

namespace holdfast::verbs {
namespace {

// The type Kubernetes decodes JSON patches into, []jsonPatchOp. Unknown and duplicate members are field validation
// errors.
const types::Type& json_patch_type() {
  static constexpr types::Type kText{.shape = types::Shape::String}, kAny{.shape = types::Shape::Any};
  static constexpr types::Field kFields[] = {{.name = "from", .type = &kText},
                                             {.name = "op", .type = &kText},
                                             {.name = "path", .type = &kText},
                                             {.name = "value", .type = &kAny}};
  static constexpr const types::Field* kMembers[] = {&kFields[0], &kFields[1], &kFields[2], &kFields[3]};
  static constexpr uint16_t kByName[] = {0, 1, 2, 3};
  static constexpr types::Type kOperation{
      .shape = types::Shape::Struct, .fields = kFields, .members = kMembers, .members_by_name = kByName};
  static constexpr types::Type kPatch{.shape = types::Shape::List, .element = &kOperation};
  return kPatch;
}

// Go's error for the first op, path or from that is not a string; empty if there is none.
std::string non_string_member_error(const Value& patch) {
  for (const Value& operation : patch.items()) {
    if (!operation.is_map()) continue;
    for (const Member& member : operation.members()) {
      if (member.key != "op" && member.key != "path" && member.key != "from") continue;
      if (member.value.is_string() || member.value.is_null()) continue;
      return "json: cannot unmarshal " + std::string(codec::json_kind(member.value)) +
             " into Go struct field jsonPatchOp." + std::string(member.key) + " of type string";
    }
  }
  return {};
}

bool is_integral(const Value& value) { return value.is_double() && std::floor(value.as_double()) == value.as_double(); }

// Whether a double with an integral value is used where the type has an integer.
bool has_integral_double(const types::Type& type, const Value& value) {
  return write::find_scalar(type, value, [](types::Shape shape, const Value& scalar) {
           return (shape == types::Shape::Int32 || shape == types::Shape::Int64) && is_integral(scalar);
         }) != nullptr;
}

// Formats integral doubles as raw text with a fraction.
Value with_written_doubles(Arena& arena, const Value& value) {
  if (is_integral(value)) {
    return Value::raw(arena.copy(codec::float_text(value.as_double(), codec::FloatText::Json) + ".0"));
  }
  if (value.is_list()) {
    ListBuilder list(arena);
    for (const Value& item : value.items()) list.add(with_written_doubles(arena, item));
    return list.build();
  }
  if (value.is_map()) {
    MapBuilder map(arena);
    for (const Member& member : value.members()) map.add(member.key, with_written_doubles(arena, member.value));
    return map.build();
  }
  return value;
}

// Without apiVersion, a document is decoded into Kubernetes' internal structs, which have no JSON names.
Error without_version(call::Call& call, const Value& patched, request::FieldValidation validation,
                      const std::function<Error(const std::string&)>& refused) {
  std::vector<std::string> findings;
  for (const Member& member : patched.members()) {
    if (member.key == "kind" || member.key == "apiVersion") continue;
    findings.push_back("unknown field " + go_quote(member.key));
  }
  std::sort(findings.begin(), findings.end());
  if (validation == request::FieldValidation::Strict) return refused("strict decoding error: " + join(findings, ", "));
  if (validation == request::FieldValidation::Warn) {
    for (const std::string& finding : findings) call.warnings.add(finding);
  }
  return bad_request("the name of the object (" + std::string(call.info.name) +
                     " based on URL) was undeterminable: name must be provided");
}

// The JSON number that ends at `end`.
std::string_view number_before(std::string_view json, size_t end) {
  const size_t before = json.substr(0, end).find_last_not_of("+-.0123456789Ee");
  const size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return json.substr(begin, end - begin);
}

bool reaches_ownership(std::string_view path) {
  constexpr std::string_view kOwnership = "/metadata/managedFields";
  return path.starts_with(kOwnership) || kOwnership.starts_with(path);
}

}  // namespace

Result<DecodedPatch> decode_patch(call::Call& call, request::PatchType type, std::string_view bytes,
                                  request::FieldValidation validation) {
  DecodedPatch patch;
  patch.type = type;
  const bool checks = validation != request::FieldValidation::Ignore;
  const std::string prefix = checks && type != request::PatchType::Strategic ? "error decoding patch: " : "";
  std::vector<std::string> duplicates;
  codec::JsonError error;
  Result<Value> value = codec::decode_json(call.arena, bytes, {.duplicates = &duplicates, .error = &error});
  if (!value) {
    if (type == request::PatchType::Merge && !checks) return bad_request("Invalid JSON Patch");
    // Only operation values are decoded as numbers, so an out-of-range number must be one of them.
    if (type == request::PatchType::Json && checks &&
        codec::decode_json(call.arena, bytes, {.keep_huge_numbers = true}).ok()) {
      return bad_request(prefix + "json: cannot unmarshal number " + std::string(number_before(bytes, error.offset)) +
                         " into Go struct field jsonPatchOp.value of type float64");
    }
    return bad_request(prefix + value.error().message);
  }
  patch.value = *value;
  if (type == request::PatchType::Json) {
    if (!value->is_list() && !value->is_null()) {
      return bad_request(prefix + "json: cannot unmarshal " + std::string(codec::json_kind(*value)) +
                         " into Go value of type " + (checks ? "[]handlers.jsonPatchOp" : "jsonpatch.Patch"));
    }
    if (value->is_null()) patch.value = Value::empty_list();
    for (const Value& operation : patch.value.items()) {
      if (operation.is_map() || operation.is_null()) continue;
      return bad_request(prefix + "json: cannot unmarshal " + std::string(codec::json_kind(operation)) +
                         " into Go value of type " + (checks ? "handlers.jsonPatchOp" : "jsonpatch.Operation"));
    }
    if (const std::string wrong = checks ? non_string_member_error(patch.value) : ""; !wrong.empty()) {
      return bad_request(prefix + wrong);
    }
    if (checks) {
      for (const std::string& finding : codec::strict_json_errors(json_patch_type(), bytes, nullptr)) {
        patch.findings.push_back("json patch " + finding);
      }
    }
    for (const Value& operation : patch.value.items()) {
      patch.accesses_managed_fields = patch.accesses_managed_fields || reaches_ownership(operation.text_at("path")) ||
                                      (operation.has("from") && reaches_ownership(operation.text_at("from")));
    }
  } else {
    if (!value->is_map() && !value->is_null()) {
      return bad_request(prefix + "json: cannot unmarshal " + std::string(codec::json_kind(*value)) +
                         " into Go value of type map[string]interface {}");
    }
    if (value->is_null()) {
      if (type == request::PatchType::Merge) return bad_request("Invalid JSON Patch");
      patch.value = Value::empty_map();
    }
    patch.findings = duplicates;
    const Value* metadata = patch.value.find("metadata");
    if (metadata != nullptr && metadata->is_map()) {
      patch.accesses_managed_fields =
          metadata->has("managedFields") || metadata->has("$patch") || metadata->has("$retainKeys");
      for (const Member& member : metadata->members()) {
        patch.accesses_managed_fields =
            patch.accesses_managed_fields || member.key.find("managedFields") != std::string_view::npos;
      }
    } else {
      patch.accesses_managed_fields = metadata != nullptr || patch.value.has("$patch");
    }
  }
  if (!checks) patch.findings.clear();
  return patch;
}

Value with_visible_ownership(Arena& arena, const Value& object, const ownership::Managed& managed, bool custom) {
  std::vector<ownership::ManagedEntry> entries = resource::stored_entries(arena, managed, custom);
  Value list = resource::managed_fields_value(arena, entries);
  if (list.is_null()) return object;
  // Patches may access fieldsV1, so the raw text is parsed into a tree.
  ListBuilder opened(arena);
  for (const Value& item : list.items()) {
    const Value* fields = item.find("fieldsV1");
    Result<Value> tree =
        fields == nullptr ? Result<Value>(Value::null()) : codec::decode_json(arena, fields->raw_json());
    opened.add(fields == nullptr || !tree ? item : with_member(arena, item, "fieldsV1", *tree));
  }
  const Value* metadata = object.find("metadata");
  return with_member(
      arena, object, "metadata",
      with_member(arena, metadata == nullptr ? Value::empty_map() : *metadata, "managedFields", opened.build()));
}

Result<Value> apply_patch(Arena& arena, const DecodedPatch& patch, const Value& object, const types::Type& type) {
  switch (patch.type) {
    case request::PatchType::Json:
      return patch::apply_json_patch(arena, object, patch.value);
    case request::PatchType::Merge:
      return patch::apply_merge_patch(arena, object, patch.value);
    default:
      return patch::apply_strategic_patch(arena, object, patch.value, type);
  }
}

namespace {

Result<Value> decode_patched(call::Call& call, const DecodedPatch& patch, const Value& patched,
                             const std::function<Value()>& shown, const types::Type& type,
                             request::FieldValidation validation) {
  Arena& arena = call.arena;
  const Gates* gates = &call.settings.gates;
  const write::Expected expected = write::expected_of(call);
  call.document = patched;
  const bool strategic = patch.type == request::PatchType::Strategic;
  const auto refused = [&](const std::string& why) {
    const std::string text = strategic             ? codec::go_text(shown())
                             : call.served->custom ? codec::encode_json_sorted(shown())
                                                   : codec::encode_json(shown());
    return invalid({"", ""}, "", {field_invalid_text("patch", text, why)});
  };
  if (call.served->custom && &type == call.served->resource->type) {
    std::vector<std::string> findings = patch.findings;
    const bool reports = validation != request::FieldValidation::Ignore;
    std::vector<std::string> unknown;
    if (std::string why = write::missing_kind_error(patched); !why.empty()) return refused(why);
    if (patched.text_at("apiVersion").empty()) {
      return internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'");
    }
    Result<Value> object =
        custom::normalize_custom(arena, *call.served->version, patched, *gates, reports ? &unknown : nullptr);
    if (!object) return refused(object.error().message);
    findings.insert(findings.end(), unknown.begin(), unknown.end());
    if (!reports || findings.empty()) return object;
    if (validation == request::FieldValidation::Strict)
      return refused("strict decoding error: " + join(findings, ", "));
    for (const std::string& finding : findings) call.warnings.add(finding);
    return object;
  }
  Value tree = patched;
  if (strategic) {
    Result<Value> converted = patch::with_converted_numbers(arena, type, patched);
    if (!converted) return refused(converted.error().message);
    tree = *converted;
  } else {
    if (const std::string why = write::changed_kind_error(arena, patched, expected); !why.empty()) return refused(why);
    if (patched.text_at("apiVersion").empty()) return without_version(call, patched, validation, refused);
  }
  // Overrides these members of the patch.
  if (tree.text_at("kind") != expected.kind) {
    tree = with_member(arena, tree, "kind", Value::string(expected.kind));
  }
  if (strategic) {
    const std::string version = api_version_of(expected.group, expected.version);
    if (tree.text_at("apiVersion") != version) {
      tree = with_member(arena, tree, "apiVersion", Value::string(arena, version));
    }
  }
  codec::TypedReport report;
  using Errors = codec::TypedOptions::Errors;
  using RawText = codec::TypedOptions::RawText;
  codec::TypedOptions options{.gates = gates,
                              .errors = strategic ? Errors::OfSingleValue : Errors::OfDocument,
                              .raw_text = strategic ? RawText::Sorted : RawText::Compact};
  std::string text;
  if (!strategic && has_integral_double(type, tree)) {
    // Kubernetes does not accept 2.0 as an integer; the error message needs the original text.
    text = codec::encode_json(with_written_doubles(arena, tree));
    Result<Value> again = codec::decode_json(arena, text);
    if (!again) return again.take_error();
    tree = *again;
    options.json_source = text;
  }
  Result<Value> object = codec::to_typed(arena, type, tree, options, &report);
  if (!object) return refused(object.error().message);
  object = write::with_ownership_reset(arena, *object, patched);
  if (validation != request::FieldValidation::Ignore && (report.has_unknown || !patch.findings.empty())) {
    std::vector<std::string> findings = patch.findings;
    if (report.has_unknown) {
      const bool strategic = patch.type == request::PatchType::Strategic;
      for (std::string& finding : codec::strict_tree_errors(type, patched, gates, strategic)) {
        findings.push_back(std::move(finding));
      }
    }
    if (validation == request::FieldValidation::Strict)
      return refused("strict decoding error: " + join(findings, ", "));
    for (const std::string& finding : findings) call.warnings.add(finding);
  }
  return object;
}

}  // namespace

Value shown_in_errors(Arena& arena, const DecodedPatch& patch, const Value& object, const ownership::Managed& managed,
                      bool custom, const types::Type& type) {
  // The document includes managedFields even if the patch does not use them.
  const Value whole = with_visible_ownership(arena, object, managed, custom);
  if (patch.type == request::PatchType::Strategic) {
    return patch::remaining_strategic_patch(arena, whole, patch.value, type);
  }
  Result<Value> patched = apply_patch(arena, patch, whole, type);
  return patched ? *patched : whole;
}

Result<Value> typed_from_patch(call::Call& call, const DecodedPatch& patch, const Value& patched,
                               const std::function<Value()>& shown, const types::Type& type,
                               request::WriteOptions& options) {
  Result<Value> typed = decode_patched(call, patch, patched, shown, type, options.field_validation);
  if (!typed) return typed;
  return write::take_declared_manager(call, *typed, options);
}

namespace {

Task<Result<write::NextObject>> finish_change(call::Call& call, write::Writer& writer,
                                              const request::WriteOptions& options, ownership::Managed managed,
                                              Value object, const write::LiveObject* live) {
  Result<Value> placed = write::with_request_namespace(call, object);
  if (!placed) co_return placed.take_error();
  Result<Unit> named = write::check_name(call, *placed);
  if (!named) co_return named.take_error();
  Result<write::NextObject> next = co_await writer.mutate(
      call, live == nullptr ? write::AdmissionOperation::Create : write::AdmissionOperation::Update, options,
      write::NextObject{*placed, std::move(managed)}, live);
  if (!next) co_return next.take_error();
  next->object = write::without_duplicate_owners(call, next->object, true);
  co_return next;
}

Task<Result<write::NextObject>> patch_live(call::Call& call, write::Writer& writer, request::WriteOptions options,
                                           kinds::Endpoint endpoint, const DecodedPatch& patch,
                                           const write::LiveObject* live) {
  Arena& arena = call.arena;
  const types::Resource& resource = *call.served->resource;
  const bool custom = call.served->custom;
  Value object = live->object;
  if (!custom && !object.same(live->stored)) {
    // A converted object may not have the member order of its type, which errors show.
    Result<Value> typed = codec::to_typed(arena, *resource.type, object, {.gates = &call.settings.gates});
    if (!typed) co_return typed.take_error();
    object = *typed;
  }
  Result<Value> patched =
      apply_patch(arena, patch,
                  patch.accesses_managed_fields ? with_visible_ownership(arena, object, live->managed, custom) : object,
                  *resource.type);
  if (!patched) co_return patched.take_error();
  const auto shown = [&] { return shown_in_errors(arena, patch, object, live->managed, custom, *resource.type); };
  Result<Value> typed = typed_from_patch(call, patch, *patched, shown, *resource.type, options);
  if (!typed) co_return typed.take_error();
  const std::string manager = write::manager_of(call, options);
  const Value next = call.served->object_rules->with_defaults(arena, *typed);
  Result<ownership::UpdateResult> owned =
      co_await custom::with_conversions(call, [&](resource::MissingConversions& missing) {
        return call.served->managers->at(endpoint).update(arena,
                                                          {.live = &live->object,
                                                           .live_managed = &live->managed,
                                                           .object = next,
                                                           .manager = manager,
                                                           .now = call.view.now,
                                                           .convert = call.served->managers->converter(missing)});
      });
  if (!owned) co_return owned.take_error();
  co_return co_await finish_change(call, writer, options, std::move(owned->managed), owned->object, live);
}

Task<Result<write::NextObject>> apply_live(call::Call& call, write::Writer& writer,
                                           const request::WriteOptions& options, kinds::Endpoint endpoint,
                                           const DecodedConfig& config, UnsetFields& unset,
                                           const write::LiveObject* live) {
  Arena& arena = call.arena;
  const types::Resource& resource = *call.served->resource;
  if (live != nullptr && !live->managed_problem.empty()) {
    co_return untyped("failed to decode managed fields: " + live->managed_problem);
  }
  Result<ownership::ApplyResult> applied =
      co_await custom::with_conversions(call, [&](resource::MissingConversions& missing) {
        return call.served->managers->at(endpoint).apply(arena,
                                                         {.live = live == nullptr ? nullptr : &live->object,
                                                          .live_managed = live == nullptr ? nullptr : &live->managed,
                                                          .config = config.value,
                                                          .manager = options.field_manager,
                                                          .force = options.force.value_or(false),
                                                          .now = call.view.now,
                                                          .convert = call.served->managers->converter(missing)});
      });
  if (!applied) co_return applied.take_error();
  Result<Unit> strict = report_config_findings(call, config, options.field_validation);
  if (!strict) co_return strict.take_error();

  Value object = applied->object;
  if (live == nullptr || applied->changed) {
    if (!call.served->custom) {
      // A converted object may not be in decoded form.
      const Value* read = live != nullptr && live->object.same(live->stored) ? &live->object : nullptr;
      Result<Value> typed = typed_from_config(call, object, config.value, *resource.type, read);
      if (!typed) co_return typed.take_error();
      object = *typed;
    } else {
      Result<Value> typed = custom::with_typed_metadata(arena, *call.served->version, object, call.settings.gates);
      if (!typed) co_return typed.take_error();
      object = *typed;
    }
    object = call.served->object_rules->with_defaults(arena, object);
  }
  unset.paths = applied->unset;
  unset.defaulted = call.served->managers->at(endpoint).restored(arena, object, applied->unset);
  if (live == nullptr) {
    Result<Unit> allowed = writer.authorize_create(call);
    if (!allowed) co_return allowed.take_error();
    if (const std::string_view uid = object.text_at("metadata", "uid"); !uid.empty()) {
      co_return conflict(
          call.group_resource(), call.info.name,
          "uid mismatch: the provided object specified uid " + std::string(uid) + ", and no existing object was found");
    }
  }
  co_return co_await finish_change(call, writer, options, std::move(applied->managed), object, live);
}

Task<Result<write::Written>> patch_object(call::Call& call, write::Writer& writer, request::PatchType type,
                                          const std::string& bytes, kinds::Endpoint endpoint) {
  write::WriteRequest request;
  request.endpoint = endpoint;
  if (type == request::PatchType::ApplyYaml || type == request::PatchType::ApplyCbor) {
    DecodedConfig config;
    Result<request::WriteOptions> options = parse_apply_options(call, type, bytes, config);
    if (!options) co_return options.take_error();
    request.options = *options;
    request.may_create = endpoint == kinds::Endpoint::Main;
    request.keeps_ownership_if_too_large = true;
    const request::WriteOptions chosen = *options;
    UnsetFields unset;
    Result<write::Written> written = co_await writer.write_object(
        call, std::move(request),
        [&](const write::LiveObject* live) { return apply_live(call, writer, chosen, endpoint, config, unset, live); });
    if (!written) co_return written;
    Result<Unit> reported = co_await report_unset(call, call.served->managers->at(endpoint), chosen, unset, *written);
    if (!reported) co_return reported.take_error();
    co_return written;
  }
  Result<request::WriteOptions> options = parse_write_options(call.query, request::WriteKind::Patch);
  if (!options) co_return options.take_error();
  // A missing object is reported before an invalid patch, so the patch is decoded on first use.
  request.options = *options;
  const request::WriteOptions chosen = *options;
  std::optional<Result<DecodedPatch>> decoded;
  Result<write::Written> written = co_await writer.write_object(
      call, std::move(request), [&](const write::LiveObject* live) -> Task<Result<write::NextObject>> {
        if (!decoded) decoded.emplace(decode_patch(call, type, bytes, chosen.field_validation));
        if (!*decoded) return failed_change((*decoded).error());
        return patch_live(call, writer, chosen, endpoint, **decoded, live);
      });
  warn_about_stored_markers(call, bytes, written);
  co_return written;
}

}  // namespace

Task<Result<write::NextObject>> failed_change(Error error) { co_return error; }

Task<void> serve_patch(call::Call& call, const Parts& parts) {
  Result<request::PatchType> type =
      request::patch_type(call.request.headers.get("content-type"), call.served->custom, call.settings.gates);
  if (!type) co_return respond_error(call, type.error());
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  Result<std::string> bytes = co_await read_body(call);
  if (!bytes) co_return respond_error(call, bytes.error());
  record_request(call, *type == request::PatchType::ApplyCbor ? request::Format::Cbor : request::Format::Yaml, *bytes);
  if (call.info.subresource == "scale") {
    co_await patch_scale(call, parts.writer, *type, *bytes);
    co_return;
  }
  const std::optional<kinds::Endpoint> endpoint = kinds::endpoint_of(call.info.subresource);
  if (!endpoint) co_return respond_error(call, method_not_supported(call.group_resource(), "patch"));
  co_await respond_to_write(call, parts, co_await patch_object(call, parts.writer, *type, *bytes, *endpoint));
}

}  // namespace holdfast::verbs
