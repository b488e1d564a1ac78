// Content negotiation: the encoding and form of the response, and whether it includes managedFields
// (docs/opting-out.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/gates.h"

namespace holdfast::request {

enum class Format : uint8_t { Json, Yaml, Protobuf, Cbor };  // In the server's order of preference.
std::string_view media_type(Format format);
// The enabled formats, in that order: all of them, or all except CBOR (gate CBORServingAndStorage).
std::span<const Format> served_formats(const Gates& gates);
// "application/json, application/yaml": the formats as listed in Kubernetes' error messages.
std::string media_types(std::span<const Format> formats);

// The shape of the response, independent of its encoding.
enum class Form : uint8_t { Object, Table, PartialMetadata, PartialMetadataList };

// How managedFields appear in a response.
enum class Ownership : uint8_t {
  AsIs,  // Each entry as FieldsV1 (default).
  Omitted,
  V1,
  V2,
};

struct Accepted {
  Format format = Format::Json;
  bool pretty = false;
  Form form = Form::Object;
  std::string meta_version = "v1";  // Version of Table and PartialObjectMetadata: v1 or v1beta1.
  Ownership ownership = Ownership::AsIs;
  // The first spelling that requested it, for the metric; empty if none did.
  std::string_view opt_out_kind;
  // Dotted paths to drop in addition to managedFields (gate DropAnyField).
  std::vector<std::string> drop_paths;
};

// What an endpoint can produce.
struct Offer {
  bool protobuf_objects = true;  // False for custom resources, where Protobuf is limited to metadata and Status.
  bool table = true;             // The resource has columns.
  bool transforms = true;        // False if `as` is not supported (errors, discovery).
  bool reads = true;             // The verb is get, list or watch: DropAnyField applies.
};

// How Accept is parsed, and what a clause with `drop=` means.
enum class AcceptRule : uint8_t {
  // The grammar of media types. What a server does not know how to drop is ignored.
  Lenient,
  // As Kubernetes 1.38: case-sensitive names, no quotes, no tabs. A clause with any other value of drop= than
  // metadata.managedFields does not match, and nothing else opts out.
  Kubernetes,
};

struct AcceptClause {
  std::string_view type, subtype;
  // Of the names we know; lower-cased and with unquoted values by the grammar of media types. The last of a repeated
  // parameter wins.
  std::vector<std::pair<std::string_view, std::string_view>> parameters;
  double q = 1.0;
  std::vector<std::unique_ptr<const std::string>> unescaped;  // Values with backslash escapes in their quotes.
  bool has(std::string_view name) const;
  std::string_view parameter(std::string_view name) const;  // Empty if absent.
};
// Sorted in the order Kubernetes tries them.
std::vector<AcceptClause> parse_accept(std::string_view header, AcceptRule rule = AcceptRule::Lenient);
// Whether the rule lets the clause match, by its value of drop=.
bool may_match(const AcceptClause& clause, AcceptRule rule, const Gates& gates);

struct NegotiationInput {
  std::string_view accept;
  AcceptRule rule = AcceptRule::Lenient;
  std::string_view user_agent;
  std::string_view pretty;               // The query parameter.
  std::string_view show_managed_fields;  // The query parameter; empty if absent.
  bool has_show_managed_fields = false;
};

// 406 listing the supported types.
Result<Accepted> negotiate(const NegotiationInput& input, const Offer& offer, const Gates& gates);
// The selected type must support streaming. Like upstream, this is checked only after the selection, without trying the
// next type. 406.
Result<Unit> check_streams(const Accepted& accepted, const Gates& gates);
// For error bodies: no transforms, and indented JSON if nothing matches.
Accepted negotiate_error(const NegotiationInput& input, const Gates& gates);

// The router's own check for built-in resources: the header must literally contain */* or a produced type.
Result<Unit> check_accept_route(std::string_view accept, bool list_route, const Gates& gates);

// Same, for a route that produces only these types. 406 with the router's message.
Result<Unit> check_accept_route(std::string_view accept, std::span<const std::string_view> produced);

// Format of a debugging page: text, or the object `kind` of config.k8s.io in one of its versions.
struct PageForm {
  bool text = true;
  Format format = Format::Json;  // Of the object, like the members below.
  bool pretty = false;
  std::string_view version;  // v1alpha1 or v1beta1.
};
// 406 listing the types supported by such pages.
Result<PageForm> negotiate_page(const NegotiationInput& input, std::string_view kind, const Gates& gates);

// Encoding of a request body. 415.
Result<Format> body_format(std::string_view content_type, const Gates& gates);

enum class PatchType : uint8_t { Json, Merge, Strategic, ApplyYaml, ApplyCbor };
// 415 with the router's message for built-in kinds; for custom ones, which do not support strategic merge, with the
// list of types.
Result<PatchType> patch_type(std::string_view content_type, bool custom_resource, const Gates& gates);

}  // namespace holdfast::request
