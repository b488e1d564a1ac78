// Objects as the bytes of answers: every format and form, lists and watch events included.
//
// The common cases go from the canonical body to the wire without a tree: Protobuf without managedFields is the body
// itself, with them a splice, JSON a table-driven transcoding. Everything else (other versions, Tables, YAML, indented
// JSON) goes through a tree.
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
#include "render/warnings.h"
#include "request/negotiate.h"
#include "resource/managed.h"
#include "resource/registry.h"
#include "value/value.h"

namespace holdfast::render {

enum class IncludeObject : uint8_t { Metadata, None, Object };  // In the rows of a Table.

// How objects of one resource are shown to a client. Created once per request.
struct View {
  const resource::Served* served = nullptr;
  request::Accepted accepted;
  IncludeObject include = IncludeObject::Metadata;
  UnixTime now;
  const Gates* gates = nullptr;
  codec::FieldPaths drop;  // accepted.drop_paths, less what identifies an object.
  // Told instead of the answer once there is one: upstream looks at includeObject only then.
  std::optional<Error> refusal = std::nullopt;

  bool omits_ownership() const { return accepted.ownership == request::Ownership::Omitted; }
  // Identifies everything that an event's bytes depend on besides the event.
  std::string form_key(bool first_table) const;
};
View make_view(const resource::Served& served, const request::Accepted& accepted, IncludeObject include, UnixTime now,
               const Gates& gates);

// One object at one revision: its canonical body and its owners in the form the view asks for.
struct ObjectSource {
  std::string_view body;
  std::span<const ownership::ManagedEntry> managed = {};
};
// Of a cached entry; `body` and `arena` must outlive it.
ObjectSource source_of(Arena& arena, const View& view, const cache::Entry& entry, std::string_view body);

// The tree of the object in the requested version, with its owners as the view wants them.
// `missing` gets what a webhook has to convert first (custom::prepare_to_show).
Result<Value> tree_of(Arena& arena, const View& view, const ObjectSource& source,
                      resource::MissingConversions* missing = nullptr);

// "*apps.Deployment": what Kubernetes calls the struct that holds such objects. Refusals quote it.
std::string go_struct(const types::Type& type, std::string_view suffix = {});

// metadata without the annotations that upstream's conversions make of fields: metadata alone is taken before them.
Value without_converted_annotations(Arena& arena, const types::Resource& resource, const Value& metadata);

// The body of an answer that is this one object.
Result<std::string> render_object(const View& view, const ObjectSource& source);
// The same for an object that exists only as a tree (Scale, reviews), of this type.
Result<std::string> render_tree(const View& view, Arena& arena, const Value& tree, const types::Type& type);

// A tree of any type in an encoding: Status, discovery documents, lists that are small.
Result<std::string> encode_answer(const Value& tree, const types::Type* type, request::Format format, bool pretty);

// A list whose items exist only as trees, in the requested version.
Result<std::string> render_list(const View& view, Arena& arena, std::span<const Value> items);

// --- Lists: head, items, tail, in order. ---

struct ListHead {
  std::string resource_version;
  std::string continue_token;
  int64_t remaining = 0;  // 0: not said.
};

class ListRenderer {
 public:
  ListRenderer(const View& view, ListHead head, uint64_t count);
  // Protobuf says its length first: the sizes of all items must be known. Others need no such pass.
  bool needs_sizes() const { return view_.accepted.format == request::Format::Protobuf; }
  Result<Unit> measure(const cache::Entry& entry);
  void begin(std::string& out);
  Result<Unit> item(const cache::Entry& entry, std::string& out);
  void end(std::string& out);

 private:
  Value metadata(Arena& arena) const;
  // Kubernetes leaves the items of an empty PartialObjectMetadataList nil.
  // Go's nil: lists of metadata, and rows of the kinds that have no columns of their own.
  bool items_are_null() const;
  // Straight from Protobuf, to CBOR or JSON.
  Result<Unit> transcoded_item(const cache::Entry& entry, std::string& out);
  Result<Unit> json_item(const cache::Entry& entry, std::string& out);
  Result<std::string> protobuf_item(const ObjectSource& source) const;
  std::optional<size_t> message_bytes(const cache::Entry& entry) const;
  // An item whose canonical body needs nothing but its owners; `bytes` long.
  Result<Unit> splice(const cache::Entry& entry, size_t bytes, std::string& out);

  const View& view_;
  const ListHead head_;
  const uint64_t count_;
  // Of a body's envelope, without the length of what it holds; 0: items are not their bodies.
  size_t envelope_bytes_ = 0;
  uint64_t items_bytes_ = 0;
  bool first_ = true;

  // Used again for each item.
  cache::BodyReader bodies_;
  resource::OwnersRenderer owners_;
  codec::MessageMemo memo_;
};

// --- Watch events ---

enum class EventName : uint8_t { Added, Modified, Deleted, Bookmark, Error };
// The whole frame of an event with this object.
Result<std::string> render_event(const View& view, EventName name, const ObjectSource& source, bool first_table);
// A bookmark: the zero object of the kind with a revision.
std::string render_bookmark(const View& view, std::string_view revision, bool initial_events_end, bool first_table);
std::string render_error_event(const View& view, const Error& error);

// Content-Type of a watch.
std::string_view watch_content_type(request::Format format);

}  // namespace holdfast::render
