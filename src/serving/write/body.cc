#include "write/body.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "custom/custom_objects.h"
#include "ownership/ownership.h"
#include "resource/object_codec.h"

namespace holdfast::write {
namespace {

constexpr size_t kSummaryBytes = 30;

// Audit annotation with the effective field manager, wherever it was specified.
constexpr std::string_view kManagerAnnotation = "holdfast/field-manager";

// Versions that Kubernetes can still decode but no longer serves.
constexpr std::pair<std::string_view, std::string_view> kKnownVersions[] = {
    {"apps", "v1beta1"},
    {"apps", "v1beta2"},
    {"extensions", "v1beta1"},
    {"batch", "v1beta1"},
    {"policy", "v1beta1"},
    {"networking.k8s.io", "v1beta1"},
    {"rbac.authorization.k8s.io", "v1beta1"},
    {"rbac.authorization.k8s.io", "v1alpha1"},
    {"storage.k8s.io", "v1beta1"},
    {"storage.k8s.io", "v1alpha1"},
    {"scheduling.k8s.io", "v1beta1"},
    {"scheduling.k8s.io", "v1alpha1"},
    {"coordination.k8s.io", "v1beta1"},
    {"certificates.k8s.io", "v1beta1"},
    {"admissionregistration.k8s.io", "v1beta1"},
    {"admissionregistration.k8s.io", "v1alpha1"},
    {"authentication.k8s.io", "v1beta1"},
    {"authorization.k8s.io", "v1beta1"},
    {"discovery.k8s.io", "v1beta1"},
    {"events.k8s.io", "v1beta1"},
    {"node.k8s.io", "v1beta1"},
    {"flowcontrol.apiserver.k8s.io", "v1beta3"},
    {"resource.k8s.io", "v1beta1"},
    {"resource.k8s.io", "v1beta2"},
};

std::string summary_of(std::string_view bytes) {
  if (bytes.empty()) return "<empty>";
  const std::string_view head = bytes.substr(0, kSummaryBytes);
  std::string out = bytes.front() == '{' ? std::string(head) : to_hex(head);
  if (bytes.size() > kSummaryBytes) out += " ...";
  return out;
}

Error unrecognized(const Expected& expected, std::string_view why, std::string_view bytes) {
  return bad_request("the object provided is unrecognized (must be of type " + std::string(expected.kind) +
                     "): " + std::string(why) + " (" + summary_of(bytes) + ")");
}

struct Found {
  std::string_view group, version, kind;
};

Error not_handled(const Found& found, const Expected& expected, std::string_view why) {
  return bad_request(std::string(found.kind) + " in version " + go_quote(found.version) + " cannot be handled as a " +
                     std::string(expected.kind) + ": " + std::string(why));
}

constexpr std::string_view kPrefix = "couldn't get version/kind; json parse error: json: cannot unmarshal ";

// Go's error for a kind or apiVersion that is not a string; empty if both are.
std::string non_string_kind_error(const Value& tree) {
  for (const std::string_view key : {std::string_view("apiVersion"), std::string_view("kind")}) {
    const Value* value = tree.find(key);
    if (value == nullptr || value->is_null() || value->is_string()) continue;
    return std::string(kPrefix) + std::string(codec::json_kind(*value)) + " into Go struct field ." + std::string(key) +
           " of type string";
  }
  return {};
}

// apiVersion and kind, completed from the URL if missing.
Result<Found> find_kind(const Value& tree, const Expected& expected, std::string_view bytes) {
  if (!tree.is_map() && !tree.is_null()) {
    return unrecognized(expected, not_an_object_error(tree), bytes);
  }
  if (const std::string wrong = non_string_kind_error(tree); !wrong.empty())
    return unrecognized(expected, wrong, bytes);
  const std::string_view api_version = tree.text_at("apiVersion");
  const auto [group, version] = split_api_version(api_version);
  Found found{group, version, tree.text_at("kind")};
  if (found.kind.empty()) found.kind = expected.kind;
  if (found.version.empty() && (found.group.empty() || found.group == expected.group)) {
    found.group = expected.group;
    found.version = expected.version;
  }
  return found;
}

// The group of the internal type: Events of both groups are core's.
std::string_view internal_group(std::string_view group) { return group == "events.k8s.io" ? "" : group; }

std::string internal_package(std::string_view api_group) {
  const std::string_view group = internal_group(api_group);
  if (group.empty()) return "core";
  return std::string(group.substr(0, group.find('.')));
}

// Kubernetes names a scheme by the source location of its creation: that for bodies, or that for patched documents.
constexpr std::string_view kBodyScheme = "pkg/api/legacyscheme/scheme.go:30";
constexpr std::string_view kPatchScheme = "pkg/runtime/scheme.go:111";

std::string not_registered(std::string_view kind, std::string_view api_version, std::string_view scheme) {
  return "no kind " + go_quote(kind) + " is registered for version " + go_quote(api_version) + " in scheme " +
         go_quote(scheme);
}

// The type of a kind that Kubernetes' decoder for the expected one knows. CustomResourceDefinitions and APIServices
// have servers with decoders of their own.
const types::Type* registered_type(const Found& found, const Expected& expected) {
  const types::Type* type = types::find_type_of(found.group, found.version, found.kind);
  const bool own_decoder = expected.group == "apiextensions.k8s.io" || expected.group == "apiregistration.k8s.io";
  if (type == nullptr || found.group == "meta.k8s.io") return nullptr;
  if (!own_decoder || found.group == expected.group) return type;
  return found.group.empty() && type->name.starts_with("meta/v1.") ? type : nullptr;
}

// Why a document of another kind than the expected one is rejected. It is decoded as the kind it claims to be; only
// then does the conversion fail. `tree` is null if it was not JSON.
std::string why_not_converted(Arena& arena, const Value* tree, const Found& found, const Expected& expected,
                              std::string_view scheme) {
  const types::Type* type = registered_type(found, expected);
  if (type == nullptr) {
    return not_registered(found.kind, api_version_of(found.group, found.version), scheme);
  }
  if (tree != nullptr) {
    Result<Value> typed = codec::to_typed(arena, *type, *tree);
    if (!typed) return typed.error().message;
  }
  return "converting (" + std::string(type->go_name) + ") to (" + internal_package(expected.group) + "." +
         std::string(expected.kind) + "): unknown conversion";
}

// For a kind or version other than that in the URL, Kubernetes' message depends on whether it is registered.
Result<Unit> check_kind(Arena& arena, const Value* tree, const Found& found, const Expected& expected) {
  if (found.group == expected.group && found.version == expected.version && found.kind == expected.kind) return Unit{};
  // Evictions in the old version are still accepted, although that group version is no longer served.
  if (expected.kind == "Eviction" && found.kind == "Eviction" && found.group == "policy" &&
      found.version == "v1beta1") {
    return Unit{};
  }
  const std::string data_version = api_version_of(found.group, found.version);
  const bool served = types::find_kind(found.group, found.version, found.kind) != nullptr;
  const bool old = std::find(std::begin(kKnownVersions), std::end(kKnownVersions),
                             std::pair(found.group, found.version)) != std::end(kKnownVersions);
  if (found.kind == expected.kind && internal_group(found.group) == internal_group(expected.group) && (served || old)) {
    return bad_request("the API version in the data (" + data_version + ") does not match the expected API version (" +
                       api_version_of(expected.group, expected.version) + ")");
  }
  return not_handled(found, expected, why_not_converted(arena, tree, found, expected, kBodyScheme));
}

Value with_type_meta(Arena& arena, const Value& object, const Expected& expected) {
  MapBuilder map(arena);
  map.add("kind", Value::string(expected.kind));
  map.add("apiVersion", Value::string(arena, api_version_of(expected.group, expected.version)));
  for (const Member& member : object.members()) {
    if (member.key != "kind" && member.key != "apiVersion") map.add(member.key, member.value);
  }
  return map.build();
}

// A custom resource must specify kind and version; a wrong kind is left to validation.
Result<Found> find_custom_kind(const Value& tree, const Expected& expected, std::string_view bytes) {
  Result<Found> found = find_kind(tree, expected, bytes);
  if (!found) return found;
  if (tree.text_at("kind").empty()) {
    return unrecognized(expected, "Object 'Kind' is missing in '" + std::string(bytes) + "'", bytes);
  }
  const std::string wanted = api_version_of(expected.group, expected.version);
  if (tree.text_at("apiVersion") != wanted) {
    return bad_request("the API version in the data (" + std::string(tree.text_at("apiVersion")) +
                       ") does not match the expected API version (" + wanted + ")");
  }
  return found;
}

// Kubernetes' CBOR decoder only accepts quantities as text. The error names the top-level field.
const Value* number_as_quantity(const types::Type& type, const Value& value) {
  return find_scalar(type, value, [](types::Shape shape, const Value& scalar) {
    return shape == types::Shape::Quantity && scalar.is_number();
  });
}
Result<Unit> check_cbor_quantities(const types::Type& type, const Value& tree, const Expected& expected) {
  if (!tree.is_map()) return Unit{};
  for (const Member& member : tree.members()) {
    const types::Field* field = types::find_member(type, member.key);
    const Value* number = field == nullptr ? nullptr : number_as_quantity(*field->type, member.value);
    if (number == nullptr) continue;
    const std::string_view what = number->is_double()    ? "primitives"
                                  : number->as_int() < 0 ? "negative integer"
                                                         : "positive integer";
    return bad_request("cbor: cannot unmarshal " + std::string(what) + " into Go struct field " +
                       std::string(expected.version) + "." + std::string(expected.kind) + "." +
                       std::string(member.key) + " of type string");
  }
  return Unit{};
}

Result<Value> decode_protobuf_body(call::Call& call, std::string_view bytes, const Expected& expected) {
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(bytes);
  if (!envelope) return unrecognized(expected, envelope.error().message, bytes);
  MapBuilder meta(call.arena);
  meta.add("apiVersion", Value::string(envelope->type.api_version));
  meta.add("kind", Value::string(envelope->type.kind));
  Result<Found> found = find_kind(meta.build(), expected, bytes);
  if (!found) return found.take_error();
  Result<Unit> right = check_kind(call.arena, nullptr, *found, expected);
  if (!right) return right.take_error();
  Result<Value> object =
      codec::decode_protobuf(call.arena, *expected.type, envelope->message, {}, {.gates = &call.settings.gates});
  if (!object) return not_handled(*found, expected, object.error().message);
  return with_type_meta(call.arena, *object, expected);
}

// A decoded document.
struct Document {
  Value tree;
  std::vector<std::string> duplicates;  // JSON: field paths; YAML: lines.
  std::string huge_number;              // Number error in a custom object; reported after its kind has been checked.
};

// Duplicate keys in the format of the strict decoder.
std::vector<std::string> shown_duplicates(std::vector<std::string> duplicates, request::Format format,
                                          request::FieldValidation validation) {
  if (format != request::Format::Yaml || validation != request::FieldValidation::Strict || duplicates.empty()) {
    return duplicates;
  }
  std::string lines = "yaml: unmarshal errors:";
  for (const std::string& line : duplicates) lines += "\n  " + line;
  return {std::move(lines)};
}

// Rejects the request or adds warnings, depending on its fieldValidation.
Result<Unit> report_findings(call::Call& call, const std::vector<std::string>& findings, const Found& found,
                             const Expected& expected, request::FieldValidation validation) {
  if (findings.empty()) return Unit{};
  if (validation == request::FieldValidation::Strict) {
    return not_handled(found, expected, "strict decoding error: " + join(findings, ", "));
  }
  for (const std::string& finding : findings) call.warnings.add(finding);
  return Unit{};
}

Result<Value> finish_custom_body(call::Call& call, Document document, request::Format format, const Found& found,
                                 const Expected& expected, request::FieldValidation validation) {
  std::vector<std::string> unknown;
  const bool reports = validation != request::FieldValidation::Ignore;
  Result<Value> object = custom::normalize_custom(call.arena, *call.served->version, document.tree, call.settings.gates,
                                                  reports ? &unknown : nullptr);
  if (!object) return not_handled(found, expected, object.error().message);
  if (!reports) return object;
  std::vector<std::string> findings = shown_duplicates(std::move(document.duplicates), format, validation);
  findings.insert(findings.end(), unknown.begin(), unknown.end());
  if (Result<Unit> reported = report_findings(call, findings, found, expected, validation); !reported) {
    return reported.take_error();
  }
  return object;
}

Result<Value> finish_built_in_body(call::Call& call, std::string_view bytes, Document document, request::Format format,
                                   const Found& found, const Expected& expected, request::FieldValidation validation) {
  Arena& arena = call.arena;
  const Gates* gates = &call.settings.gates;
  if (Result<Unit> right = check_kind(arena, &document.tree, found, expected); !right) return right.take_error();
  if (format == request::Format::Cbor) {
    Result<Unit> quantities = check_cbor_quantities(*expected.type, document.tree, expected);
    if (!quantities) return not_handled(found, expected, quantities.error().message);
  }
  codec::TypedReport report;
  codec::TypedOptions options{.gates = gates};
  if (format == request::Format::Json) options.json_source = bytes;
  Result<Value> object = codec::to_typed(
      arena, *expected.type, document.tree.is_null() ? Value::empty_map() : document.tree, options, &report);
  if (!object) return not_handled(found, expected, object.error().message);

  object = with_ownership_reset(arena, *object, document.tree);
  if (validation != request::FieldValidation::Ignore && (report.has_unknown || !document.duplicates.empty())) {
    std::vector<std::string> findings;
    if (format == request::Format::Json) {
      findings = codec::strict_json_errors(*expected.type, bytes, gates);
    } else {
      findings = shown_duplicates(std::move(document.duplicates), format, validation);
      const std::vector<std::string> unknown = codec::strict_tree_errors(*expected.type, document.tree, gates);
      findings.insert(findings.end(), unknown.begin(), unknown.end());
    }
    if (Result<Unit> reported = report_findings(call, findings, found, expected, validation); !reported) {
      return reported.take_error();
    }
  }
  return with_type_meta(arena, *object, expected);
}

Result<Document> read_json_document(Arena& arena, std::string_view bytes, const Expected& expected, bool custom) {
  Document document;
  codec::JsonOptions reading{
      .duplicates = &document.duplicates, .keep_huge_numbers = !custom, .merge_duplicate_maps = true};
  Result<Value> tree = codec::decode_json(arena, bytes, reading);
  if (!tree && custom) {
    // If only the numbers are invalid, the kind is checked first.
    reading.keep_huge_numbers = true;
    if (Result<Value> readable = codec::decode_json(arena, bytes, reading)) {
      document.huge_number = tree.take_error().message;
      tree = std::move(readable);
    }
  }
  if (!tree) {
    return unrecognized(expected, "couldn't get version/kind; json parse error: " + tree.error().message, bytes);
  }
  document.tree = *tree;
  return document;
}

bool is_well_formed_cbor(std::string_view bytes) {
  const Result<size_t> item = codec::first_cbor_item(bytes);
  return item && *item > 0 && *item == bytes.size();
}

Result<Document> read_document(Arena& arena, std::string_view bytes, request::Format format, const Expected& expected,
                               bool custom) {
  if (format == request::Format::Json) return read_json_document(arena, bytes, expected, custom);
  Document document;
  if (format == request::Format::Yaml) {
    Result<Value> tree = codec::decode_yaml(arena, bytes, {.duplicates = &document.duplicates});
    if (!tree) return unrecognized(expected, tree.error().message, bytes);
    document.tree = *tree;
    return document;
  }
  Result<Value> tree = codec::decode_cbor(arena, bytes);
  if (!tree) {
    const std::string& why = tree.error().message;
    // Kubernetes decodes the kind first, which only requires well-formed bytes (Interpret() in
    // pkg/runtime/serializer/cbor); other errors are found afterwards.
    if (is_well_formed_cbor(bytes)) {
      return not_handled({expected.group, expected.version, expected.kind}, expected, why);
    }
    return unrecognized(expected, "unable to determine group/version/kind: " + why, bytes);
  }
  document.tree = *tree;
  return document;
}

}  // namespace

std::string not_an_object_error(const Value& tree) {
  return std::string(kPrefix) + std::string(codec::json_kind(tree)) +
         " into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
         "\"json:\\\"kind,omitempty\\\"\" }";
}

std::string type_meta_error(const Value& tree) {
  if (std::string wrong = non_string_kind_error(tree); !wrong.empty()) return wrong;
  const std::string_view api_version = tree.text_at("apiVersion");
  if (std::count(api_version.begin(), api_version.end(), '/') <= 1) return {};
  return "unexpected GroupVersion string: " + std::string(api_version);
}

std::string unregistered_kind_error(const Value& tree) {
  return not_registered(tree.text_at("kind"), tree.text_at("apiVersion"), kBodyScheme);
}

std::string missing_kind_error(const Value& tree) {
  if (std::string unreadable = type_meta_error(tree); !unreadable.empty()) return unreadable;
  if (!tree.text_at("kind").empty()) return {};
  return "Object 'Kind' is missing in '" + codec::encode_json_sorted(tree) + "'";
}

std::string changed_kind_error(Arena& arena, const Value& tree, const Expected& expected) {
  if (std::string unreadable = type_meta_error(tree); !unreadable.empty()) return unreadable;
  const std::string_view api_version = tree.text_at("apiVersion");
  const auto [group, version] = split_api_version(api_version);
  Found found{group, version, tree.text_at("kind")};
  if (found.kind.empty()) found.kind = expected.kind;
  if (api_version.empty() ||
      (found.group == expected.group && found.version == expected.version && found.kind == expected.kind)) {
    return {};
  }
  return why_not_converted(arena, &tree, found, expected, kPatchScheme);
}

const Value* find_scalar(const types::Type& type, const Value& value, ScalarTest test) {
  switch (type.shape) {
    case types::Shape::List:
      if (!value.is_list() || type.element == nullptr) return nullptr;
      for (const Value& item : value.items()) {
        if (const Value* found = find_scalar(*type.element, item, test)) return found;
      }
      return nullptr;
    case types::Shape::Map:
    case types::Shape::Struct:
      if (!value.is_map()) return nullptr;
      for (const Member& member : value.members()) {
        const types::Type* inner = type.element;
        if (type.shape == types::Shape::Struct) {
          const types::Field* field = types::find_member(type, member.key);
          inner = field == nullptr ? nullptr : field->type;
        }
        if (inner == nullptr) continue;
        if (const Value* found = find_scalar(*inner, member.value, test)) return found;
      }
      return nullptr;
    default:
      return test(type.shape, value) ? &value : nullptr;
  }
}

Expected expected_of(const resource::Served& served) {
  return {served.resource->group, served.resource->version, served.resource->kind, served.resource->type};
}

Expected expected_of(const call::Call& call) {
  const types::Subresource* sub = call.subresource;
  if (sub == nullptr || sub->kind.empty() || sub->kind == call.served->resource->kind) return expected_of(*call.served);
  Expected expected{sub->group, sub->version, sub->kind, nullptr};
  if (expected.version.empty()) {
    expected.group = call.served->resource->group;
    expected.version = call.served->resource->version;
  }
  if (const types::Resource* resource = types::find_kind(expected.group, expected.version, expected.kind)) {
    expected.type = resource->type;
  }
  if (expected.type == nullptr) {
    // Kinds that are not resources (Scale, Eviction, ...) are looked up by type.
    const std::string package = internal_package(expected.group);
    expected.type = types::find_type(package + "/" + std::string(expected.version) + "." + std::string(expected.kind));
  }
  return expected;
}

Value with_ownership_reset(Arena& arena, const Value& typed, const Value& sent) {
  const Value* managed = sent.get("metadata", "managedFields");
  if (managed == nullptr || !managed->is_list() || managed->count() > 0) return typed;
  const Value* metadata = typed.find("metadata");
  return with_member(
      arena, typed, "metadata",
      with_member(arena, metadata == nullptr ? Value::empty_map() : *metadata, "managedFields", Value::empty_list()));
}

namespace {

Result<Value> decode_object(call::Call& call, std::string_view bytes, request::Format format, const Expected& expected,
                            request::FieldValidation validation) {
  if (format == request::Format::Protobuf) {
    if (expected.type == call.served->resource->type && call.served->custom) {
      std::vector<request::Format> taken;
      for (const request::Format served : request::served_formats(call.settings.gates)) {
        if (served != request::Format::Protobuf) taken.push_back(served);
      }
      return Error{Reason::UnsupportedMediaType,
                   "the body of the request was in an unknown format - accepted media types include: " +
                       request::media_types(taken)};
    }
    return decode_protobuf_body(call, bytes, expected);
  }

  const bool custom = call.served->custom && expected.type == call.served->resource->type;
  Result<Document> document = read_document(call.arena, bytes, format, expected, custom);
  if (!document) return document.take_error();
  call.document = document->tree;
  Result<Found> found =
      custom ? find_custom_kind(document->tree, expected, bytes) : find_kind(document->tree, expected, bytes);
  if (!found) return found.take_error();
  if (!document->huge_number.empty()) return not_handled(*found, expected, document->huge_number);
  if (custom) return finish_custom_body(call, std::move(*document), format, *found, expected, validation);
  return finish_built_in_body(call, bytes, std::move(*document), format, *found, expected, validation);
}

}  // namespace

Result<Value> decode_body(call::Call& call, std::string_view bytes, request::Format format, const Expected& expected,
                          request::WriteOptions& options) {
  Result<Value> object = decode_object(call, bytes, format, expected, options.field_validation);
  if (!object) return object;
  return take_declared_manager(call, *object, options);
}

// --- metadata.options ---

namespace {

const Value* declared_options(const call::Call& call, const Value& object) {
  if (!call.settings.gates.on(Gate::DeclarativeFieldManager)) return nullptr;
  const Value* metadata = object.find("metadata");
  return metadata == nullptr || !metadata->is_map() ? nullptr : metadata->find("options");
}

Value without_options(Arena& arena, const Value& object) {
  return with_member(arena, object, "metadata", without_member(arena, *object.find("metadata"), "options"));
}

std::vector<Cause> check_declared_options(const Value& options) {
  std::vector<Cause> causes;
  if (options.is_null()) return causes;
  if (!options.is_map()) {
    causes.push_back(field_invalid("metadata.options", codec::encode_json(options), "must be a map of strings"));
    return causes;
  }
  for (const Member& option : options.members()) {
    const std::string field = "metadata.options[" + std::string(option.key) + "]";
    if (option.key != "fieldManager") {
      static constexpr std::string_view kKnown[] = {"fieldManager"};
      causes.push_back(field_not_supported(field, option.key, kKnown));
    } else if (!option.value.is_string() && !option.value.is_null()) {
      causes.push_back(field_invalid(field, codec::encode_json(option.value), "must be a string"));
    } else if (option.value.is_string()) {
      for (Cause& cause : request::check_declared_manager(option.value.as_string(), field)) {
        causes.push_back(std::move(cause));
      }
    }
  }
  return causes;
}

}  // namespace

bool declares_manager(const call::Call& call, const Value& object) {
  const Value* options = declared_options(call, object);
  return options != nullptr && (!options->text_at("fieldManager").empty() || !check_declared_options(*options).empty());
}

Value without_declared_options(call::Call& call, const Value& object, std::string_view culprit) {
  if (declared_options(call, object) == nullptr) return object;
  call.warnings.add("metadata.options set by " + std::string(culprit) +
                    " was ignored: only the request itself can declare its field manager");
  return without_options(call.arena, object);
}

Result<Value> take_declared_manager(call::Call& call, const Value& object, request::WriteOptions& options) {
  Value bare = object;
  if (const Value* declared = declared_options(call, object)) {
    std::vector<Cause> causes = check_declared_options(*declared);
    const std::string_view manager = declared->is_map() ? declared->text_at("fieldManager") : std::string_view();
    const std::set<std::string, std::less<>>& yielding = call.settings.yielding_field_managers;
    if (causes.empty() && !manager.empty() && !options.field_manager.empty() && manager != options.field_manager &&
        !yielding.contains(options.field_manager)) {
      causes.push_back(field_invalid_text(
          "metadata.options[fieldManager]", manager,
          "must be the fieldManager of the request, " + go_quote(options.field_manager) +
              ", when both are given (kubectl always sends one: use --field-manager=" + std::string(manager) + ")"));
    }
    if (!causes.empty()) {
      const Expected expected = expected_of(call);
      return invalid({expected.group, expected.kind}, object.text_at("metadata", "name"), std::move(causes));
    }
    if (!manager.empty()) options.field_manager = manager;
    bare = without_options(call.arena, object);
  }
  record_annotation(call, std::string(kManagerAnnotation), manager_of(call, options));
  return bare;
}

std::string manager_of(const call::Call& call, const request::WriteOptions& options) {
  return ownership::manager_name(options.field_manager, call.request.headers.get("user-agent"));
}

Result<WriteBody> read_write_body(call::Call& call, request::WriteKind kind, std::string_view bytes,
                                  request::Format format) {
  Result<request::WriteOptions> options = parse_write_options(call.query, kind);
  if (!options) return options.take_error();
  Result<Value> object = decode_body(call, bytes, format, expected_of(call), *options);
  if (!object) return object.take_error();
  return WriteBody{*object, std::move(*options)};
}

Result<WriteBody> read_placed_body(call::Call& call, request::WriteKind kind, std::string_view bytes,
                                   request::Format format) {
  Result<WriteBody> body = read_write_body(call, kind, bytes, format);
  if (!body) return body;
  Result<Value> placed = with_request_namespace(call, body->object);
  if (!placed) return placed.take_error();
  body->object = *placed;
  return body;
}

// --- Names, namespaces, owners ---

Result<Value> with_request_namespace(call::Call& call, const Value& object) {
  const Value* metadata = object.find("metadata");
  const std::string_view given = metadata == nullptr ? std::string_view{} : metadata->text_at("namespace");
  const std::string_view wanted = call.ns();
  if (given == wanted) return object;
  if (wanted.empty()) {
    return with_member(call.arena, object, "metadata", without_member(call.arena, *metadata, "namespace"));
  }
  if (!given.empty()) {
    return bad_request("the namespace of the provided object does not match the namespace sent on the request");
  }
  return with_member(call.arena, object, "metadata",
                     with_member(call.arena, metadata == nullptr ? Value::empty_map() : *metadata, "namespace",
                                 Value::string(wanted)));
}

Result<Unit> check_name(const call::Call& call, const Value& object) {
  const std::string_view name = object.text_at("metadata", "name");
  if (name.empty()) {
    return bad_request("the name of the object (" + std::string(call.info.name) +
                       " based on URL) was undeterminable: name must be provided");
  }
  if (name != call.info.name) {
    return bad_request("the name of the object (" + std::string(name) + ") does not match the name on the URL (" +
                       std::string(call.info.name) + ")");
  }
  return Unit{};
}

Value without_duplicate_owners(call::Call& call, const Value& object, bool after_admission) {
  const std::span<const Value> owners = object.items_at("metadata", "ownerReferences");
  if (owners.size() < 2) return object;
  std::vector<Value> kept;
  std::vector<std::string> repeated;
  const auto value_hash = [](const Value& value) { return static_cast<size_t>(hash(value)); };
  const auto same = [](const Value& a, const Value& b) { return equal(a, b); };
  std::unordered_set<Value, decltype(value_hash), decltype(same)> known(owners.size(), value_hash, same);
  for (const Value& owner : owners) {
    if (known.insert(owner).second) {
      kept.push_back(owner);
    } else {
      repeated.emplace_back(owner.text_at("uid"));
    }
  }
  if (repeated.empty()) return object;
  call.warnings.add(".metadata.ownerReferences contains duplicate entries" +
                    std::string(after_admission ? " after mutating admission happens" : "") +
                    "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "
                    "please fix your requests; duplicate UID(s) observed: " +
                    join(repeated, ", "));
  return with_member(call.arena, object, "metadata",
                     with_member(call.arena, *object.find("metadata"), "ownerReferences",
                                 Value::list(call.arena.copy(std::span<const Value>(kept)))));
}

}  // namespace holdfast::write
