// Content negotiation: which encoding and which form of an object a client gets, and whether it wants managedFields
// with it (docs/opting-out.md).
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
// The formats that are served, in that order: all of them, or without CBOR (gate CBORServingAndStorage).
std::span<const Format> served_formats(const Gates& gates);
// "application/json, application/yaml": those formats as Kubernetes' errors list them.
std::string media_types(std::span<const Format> formats);

// The shape of the response, independent of its encoding.
enum class Form : uint8_t { Object, Table, PartialMetadata, PartialMetadataList };

// How managedFields appear in an answer.
enum class Ownership : uint8_t {
  AsIs,  // Each entry as FieldsV1; the default.
  Omitted,
  V1,
  V2,
};

struct Accepted {
  Format format = Format::Json;
  bool pretty = false;
  Form form = Form::Object;
  std::string meta_version = "v1";  // Of Table and PartialObjectMetadata: v1 or v1beta1.
  Ownership ownership = Ownership::AsIs;
  // Which spelling requested it first, for the metric; empty: none.
  std::string_view opt_out_kind;
  // Dotted paths to leave out beside managedFields (gate DropAnyField).
  std::vector<std::string> drop_paths;
};

// What an endpoint can produce.
struct Offer {
  bool protobuf_objects = true;  // False for custom resources: there Protobuf carries metadata and Status only.
  bool table = true;             // There are columns.
  bool transforms = true;        // False: no `as` at all (errors, discovery).
  bool reads = true;             // The verb is get, list or watch: DropAnyField applies.
};

struct AcceptClause {
  std::string_view type, subtype;
  // By the grammar of media types: names that we know in lower case however they were sent, values without their
  // quotes. Of a repeated parameter the last one.
  std::vector<std::pair<std::string_view, std::string_view>> parameters;
  double q = 1.0;
  std::vector<std::unique_ptr<const std::string>> unescaped;  // Values that had a backslash in their quotes.
  bool has(std::string_view name) const;
  std::string_view parameter(std::string_view name) const;  // Empty when there is none.
};
// Sorted as Kubernetes tries them. Kubernetes itself compares names by case, and knows neither quotes nor tabs.
std::vector<AcceptClause> parse_accept(std::string_view header);

struct NegotiationInput {
  std::string_view accept;
  std::string_view user_agent;
  std::string_view pretty;               // The query parameter.
  std::string_view show_managed_fields;  // The query parameter; empty when absent.
  bool has_show_managed_fields = false;
};

// 406 naming the types.
Result<Accepted> negotiate(const NegotiationInput& input, const Offer& offer, const Gates& gates);
// What won must be able to carry a watch; upstream asks that late, and does not look for another. 406.
Result<Unit> check_streams(const Accepted& accepted, const Gates& gates);
// For error bodies: no transforms; indented JSON when nothing matches.
Accepted negotiate_error(const NegotiationInput& input, const Gates& gates);

// The router's own check, for built-in resources: the header must hold */* or a produced type literally.
Result<Unit> check_accept_route(std::string_view accept, bool list_route, const Gates& gates);

// The same for a route that produces only these types. 406 in the router's words.
Result<Unit> check_accept_route(std::string_view accept, std::span<const std::string_view> produced);

// How a debugging page is shown: as text, or as the object `kind` of config.k8s.io in one of its versions.
struct PageForm {
  bool text = true;
  Format format = Format::Json;  // Of the object, as what follows.
  bool pretty = false;
  std::string_view version;  // v1alpha1 or v1beta1.
};
// 406 naming the types that such pages have.
Result<PageForm> negotiate_page(const NegotiationInput& input, std::string_view kind, const Gates& gates);

// Encoding of a request body. 415.
Result<Format> body_format(std::string_view content_type, const Gates& gates);

enum class PatchType : uint8_t { Json, Merge, Strategic, ApplyYaml, ApplyCbor };
// 415 in the router's words for built-in kinds, with the list of types for custom ones (which take no strategic).
Result<PatchType> patch_type(std::string_view content_type, bool custom_resource, const Gates& gates);

}  // namespace holdfast::request
