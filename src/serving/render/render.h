// Renders objects, lists and watch events as response bytes, in every format and form.
//
// The common cases convert the canonical body without building a tree: Protobuf without managedFields is the body
// itself, with them a splice; JSON is transcoded from Protobuf by tables. Everything else (other versions, Tables,
// YAML, indented JSON) goes through a tree.
//
// Threading: plain functions, on any thread; a ListRenderer belongs to one.
// Lifetime: a View refers to the resource it was made for, which the call's registry snapshot holds; trees live as long
//   as their arena and source.
// Errors: objects that cannot be decoded, or not converted to the requested version.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/clock.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "ownership/pool.h"
#include "render/json_indent.h"
#include "render/status.h"
#include "request/negotiate.h"
#include "resource/managed.h"
#include "resource/registry.h"
#include "value/value.h"

namespace holdfast::render {

enum class IncludeObject : uint8_t { Metadata, None, Object };  // For the rows of a Table.

// How objects of one resource are rendered for a client. Created once per request.
struct View {
  const resource::Served* served = nullptr;
  request::Accepted accepted;
  IncludeObject include = IncludeObject::Metadata;
  UnixTime now;
  const Gates* gates = nullptr;
  codec::FieldPaths drop;  // accepted.drop_paths without the fields that identify an object.
  // Sent instead of the response, once there is one: upstream validates includeObject only at that point.
  std::optional<Error> refusal = std::nullopt;

  bool omits_ownership() const { return accepted.ownership == request::Ownership::Omitted; }
  // Identifies everything besides the event itself that the rendered event depends on.
  std::string form_key(bool first_table) const;
};
View make_view(const resource::Served& served, const request::Accepted& accepted, IncludeObject include, UnixTime now,
               const Gates& gates);

// One object at one revision: its canonical body, and its managedFields in the form requested by the view.
struct ObjectSource {
  std::string_view body;
  std::span<const ownership::ManagedEntry> managed = {};
};
// For a cached entry; `body` and `arena` must outlive the result.
ObjectSource source_of(Arena& arena, const View& view, const cache::Entry& entry, std::string_view body);

// The object as a tree in the requested version, with managedFields as requested by the view. `missing` receives the
// conversions that a webhook has to do first (custom::convert_for_view).
Result<Value> tree_of(Arena& arena, const View& view, const ObjectSource& source,
                      resource::MissingConversions* missing = nullptr);

// The name of Kubernetes' Go struct for the type, such as "*apps.Deployment", as quoted in error messages.
std::string go_struct(const types::Type& type, std::string_view suffix = {});

// Metadata without the annotations that upstream's conversions create from fields: PartialObjectMetadata is taken
// before conversion.
Value without_converted_annotations(Arena& arena, const types::Resource& resource, const Value& metadata);

// Renders a response body with this one object.
Result<std::string> render_object(const View& view, const ObjectSource& source);
// Same, for an object that exists only as a tree of this type (Scale, reviews).
Result<std::string> render_tree(const View& view, Arena& arena, const Value& tree, const types::Type& type);

// Encodes a tree of any type: Status, discovery documents, small lists.
Result<std::string> encode_response(const Value& tree, const types::Type* type, request::Format format, bool pretty);

// Renders a list whose items exist only as trees, already in the requested version.
Result<std::string> render_list(const View& view, Arena& arena, std::span<const Value> items);

// --- Lists: begin(), item() for each entry in order, end() ---

struct ListHead {
  std::string resource_version;
  std::string continue_token;
  int64_t remaining = 0;  // 0 if unknown.
};

class ListRenderer {
 public:
  ListRenderer(const View& view, ListHead head, uint64_t count);
  // Protobuf is length-prefixed, so every item has to be measured first. Other formats skip that pass.
  bool needs_sizes() const { return view_.accepted.format == request::Format::Protobuf; }
  Result<Unit> measure(const cache::Entry& entry);
  void begin(std::string& out);
  Result<Unit> item(const cache::Entry& entry, std::string& out);
  void end(std::string& out);

 private:
  Value metadata(Arena& arena) const;
  // Whether "items" is Go's nil when the list is empty, as in Kubernetes: for PartialObjectMetadataList, and for rows
  // of kinds without columns of their own.
  bool items_are_null() const;
  // Transcodes an item from Protobuf to CBOR or JSON.
  Result<Unit> transcoded_item(const cache::Entry& entry, std::string& out);
  Result<Unit> json_item(const cache::Entry& entry, std::string& out);
  Result<std::string> protobuf_item(const ObjectSource& source) const;
  std::optional<size_t> message_bytes(const cache::Entry& entry) const;
  // Appends an item of `bytes` bytes by splicing the managedFields into its canonical body.
  Result<Unit> splice(const cache::Entry& entry, size_t bytes, std::string& out);

  const View& view_;
  const ListHead head_;
  const uint64_t count_;
  // Size of a body's envelope without the length prefix of its message; 0 if items cannot be copied from their bodies.
  size_t envelope_bytes_ = 0;
  uint64_t items_bytes_ = 0;
  bool first_ = true;

  // Reused for every item.
  cache::BodyReader bodies_;
  resource::OwnersRenderer owners_;
  codec::MessageMemo memo_;
};

// --- Watch events ---

enum class EventName : uint8_t { Added, Modified, Deleted, Bookmark, Error };
// A complete watch frame for an event with this object.
Result<std::string> render_event(const View& view, EventName name, const ObjectSource& source, bool first_table);
// A bookmark event: the zero object of the kind with a resourceVersion.
std::string render_bookmark(const View& view, std::string_view revision, bool initial_events_end, bool first_table);
std::string render_error_event(const View& view, const Error& error);

// Content-Type of a watch response.
std::string_view watch_content_type(request::Format format);

}  // namespace holdfast::render
