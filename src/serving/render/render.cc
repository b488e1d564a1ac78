#include "render/render.h"

#include <algorithm>
#include <cassert>

#include "base/api_error.h"
#include "base/varint.h"
#include "render/cbor_answer.h"
#include "render/object_forms.h"
#include "render/table_view.h"
#include "resource/managed.h"
#include "resource/object_codec.h"
#include "resource/storage.h"

namespace holdfast::render {
namespace {

void append_cbor_answer(const types::Type* type, const Value& tree, std::string& out) {
  codec::Sink sink(out);
  sink.put(codec::kCborSelfDescribed);
  append_cbor(type, tree, sink);
}

// Fields that identify an object are never dropped.
bool identifies(std::string_view path) {
  for (const std::string_view kept : {"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace",
                                      "metadata.uid", "metadata.resourceVersion", "items"}) {
    if (path == kept) return true;
  }
  return false;
}

// The metadata of a custom object with its managedFields, all members sorted.
Value sorted_metadata(Arena& arena, const Value& metadata, const Value& managed) {
  ListBuilder entries(arena);
  for (const Value& entry : managed.items()) entries.add(with_sorted_members(arena, entry));
  return with_sorted_members(arena, with_member(arena, metadata, "managedFields", entries.build()));
}

Value without_paths(Arena& arena, const Value& value, const codec::FieldPaths& paths, codec::FieldPaths::Node node) {
  if (node == codec::FieldPaths::kNone) return value;
  if (value.is_list()) {
    ListBuilder list(arena);
    for (const Value& item : value.items()) list.add(without_paths(arena, item, paths, node));
    return list.build();
  }
  if (!value.is_map()) return value;
  MapBuilder map(arena);
  for (const Member& member : value.members()) {
    const codec::FieldPaths::Node child = paths.child(node, member.key);
    if (!paths.ends_at(child)) map.add(member.key, without_paths(arena, member.value, paths, child));
  }
  return map.build();
}

// Whether the canonical body is already in the requested version.
bool is_stored_version(const View& view) { return view.served->resource == view.served->stored; }

const types::Type& partial_metadata_type() {
  static const types::Type& type = *types::find_type("meta/v1.PartialObjectMetadata");
  return type;
}

std::string_view fields_type(const View& view) {
  return view.accepted.ownership == request::Ownership::V2 ? ownership::kFieldsV2 : ownership::kFieldsV1;
}
ownership::MemberOrder member_order(const View& view) {
  return view.served->custom ? ownership::MemberOrder::Bytewise : ownership::MemberOrder::Canonical;
}

// Whether JSON or CBOR can be transcoded directly from the stored Protobuf.
bool transcodes(const View& view) {
  const types::Resource& resource = *view.served->resource;
  if (!is_stored_version(view) || view.served->custom || view.accepted.form == request::Form::Table) return false;
  if (view.accepted.form == request::Form::Object) return true;
  // Removing annotations from metadata requires a tree.
  return view.accepted.meta_version == "v1" && kinds::conversion_annotations(resource).empty();
}

// Transcodes to CBOR, or else to compact JSON without a newline. managedFields are inserted as encoded by the caller,
// without parsing them again.
Result<Unit> transcode(const View& view, std::string_view body, bool as_item, const codec::RenderAdditions& additions,
                       std::string& out) {
  codec::Shape shape;
  if (!view.drop.empty()) shape.drop = &view.drop;
  shape.metadata_only = view.accepted.form != request::Form::Object;
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(body);
  if (!envelope) return envelope.take_error();
  const auto transcoder =
      view.accepted.format == request::Format::Cbor ? codec::protobuf_to_cbor : codec::protobuf_to_json;
  return transcoder(*view.served->stored->type, envelope->message, as_item ? codec::TypeMeta{} : envelope->type, shape,
                    out, {.gates = view.gates}, additions);
}

Result<Unit> transcode_with_owners(const View& view, const ObjectSource& source, bool as_item, std::string& out) {
  if (source.managed.empty()) return transcode(view, source.body, as_item, {}, out);
  // Dropped paths may be inside managedFields.
  if (!view.drop.empty()) {
    return transcode(view, resource::join_managed(source.body, source.managed), as_item, {}, out);
  }
  std::string managed;
  if (view.accepted.format == request::Format::Cbor) {
    resource::append_managed_cbor(source.managed, managed);
  } else {
    resource::append_managed_json(source.managed, managed);
  }
  return transcode(view, source.body, as_item, {.managed_fields = managed}, out);
}

// Appends the object as compact JSON without a newline, transcoded from Protobuf where possible.
Result<Unit> append_json(const View& view, const ObjectSource& source, bool as_item, std::string& out) {
  if (transcodes(view)) return transcode_with_owners(view, source, as_item, out);
  const request::Form form = view.accepted.form;
  Arena arena;
  Result<Value> tree = tree_of(arena, view, source);
  if (!tree) return tree.take_error();
  Value shown = *tree;
  if (form == request::Form::PartialMetadata || form == request::Form::PartialMetadataList) {
    shown = partial_metadata(arena, view, shown);
  } else if (as_item && !view.served->custom) {
    shown = without_member(arena, without_member(arena, shown, "kind"), "apiVersion");
  }
  codec::encode_json(shown, out);
  return Unit{};
}

}  // namespace

std::string View::form_key(bool first_table) const {
  std::string key(served->resource->version);
  key += '|';
  key += served->resource->group;
  key += '|';
  key += static_cast<char>('0' + static_cast<int>(accepted.format));
  key += static_cast<char>('0' + static_cast<int>(accepted.form));
  key += static_cast<char>('0' + static_cast<int>(accepted.ownership));
  key += static_cast<char>('0' + static_cast<int>(include));
  if (accepted.form != request::Form::Object) key += accepted.meta_version;
  if (accepted.form == request::Form::Table) {
    key += first_table ? 'h' : 'n';
    key += std::to_string(now.seconds);  // Cells show ages.
  }
  for (const std::string& path : accepted.drop_paths) key += '-' + path;
  return key;
}

View make_view(const resource::Served& served, const request::Accepted& accepted, IncludeObject include, UnixTime now,
               const Gates& gates) {
  View view{&served, accepted, include, now, &gates, {}};
  for (const std::string& path : accepted.drop_paths) {
    if (!identifies(path)) view.drop.add(path);
  }
  return view;
}

ObjectSource source_of(Arena& arena, const View& view, const cache::Entry& entry, std::string_view body) {
  if (view.omits_ownership()) return {body, {}};
  return {body, entry.ownership().entries(arena, fields_type(view), member_order(view))};
}

Result<Value> tree_of(Arena& arena, const View& view, const ObjectSource& source,
                      resource::MissingConversions* missing) {
  Result<Value> tree = view.served->storage->codec().tree(arena, source.body);
  if (!tree) return tree;
  Value object = *tree;
  const types::Resource& stored = view.served->object_rules->version_of(object, *view.served->stored);
  if (&stored != view.served->resource) {
    Result<Value> converted =
        view.served->object_rules->convert(arena, stored, *view.served->resource, object, missing);
    if (!converted) return converted;
    object = view.served->custom ? *converted : in_declared_order(arena, *view.served->resource->type, *converted);
  }
  if (!source.managed.empty()) {
    const Value* found = object.find("metadata");
    const Value metadata = found == nullptr ? Value::empty_map() : *found;
    const Value managed = resource::managed_fields_value(arena, source.managed);
    object = with_member(arena, object, "metadata",
                         view.served->custom ? sorted_metadata(arena, metadata, managed)
                                             : with_member(arena, metadata, "managedFields", managed));
  }
  if (!view.drop.empty()) object = without_paths(arena, object, view.drop, codec::FieldPaths::kRoot);
  return object;
}

Result<std::string> encode_response(const Value& tree, const types::Type* type, request::Format format, bool pretty) {
  std::string out;
  switch (format) {
    case request::Format::Json:
      if (pretty) {
        codec::encode_json_pretty(tree, out);
      } else {
        codec::encode_json(tree, out);
        out += '\n';
      }
      return out;
    case request::Format::Yaml: {
      Result<Unit> encoded = codec::encode_yaml(tree, out);
      if (!encoded) return untyped(encoded.error().message);
      return out;
    }
    case request::Format::Cbor:
      append_cbor_answer(type, tree, out);
      return out;
    case request::Format::Protobuf: {
      assert(type != nullptr);
      Result<Unit> encoded = codec::encode_enveloped(*type, tree, out);
      if (!encoded) return encoded.take_error();
      return out;
    }
  }
  return out;
}

Value without_converted_annotations(Arena& arena, const types::Resource& resource, const Value& metadata) {
  const std::span<const std::string_view> made = kinds::conversion_annotations(resource);
  const Value* annotations = made.empty() ? nullptr : metadata.find("annotations");
  if (annotations == nullptr) return metadata;
  Value left = *annotations;
  for (const std::string_view annotation : made) left = without_member(arena, left, annotation);
  if (left.count() == 0) return without_member(arena, metadata, "annotations");
  return with_member(arena, metadata, "annotations", left);
}

std::string go_struct(const types::Type& type, std::string_view suffix) {
  const size_t slash = type.name.find('/'), dot = type.name.rfind('.');
  if (slash == std::string_view::npos || dot == std::string_view::npos) {
    return "*unstructured.Unstructured" + std::string(suffix);
  }
  const std::string_view package = type.name.substr(0, slash);
  // Upstream uses one internal struct for the Events of both groups.
  return "*" + std::string(package == "events" ? "core" : package) + std::string(type.name.substr(dot)) +
         std::string(suffix);
}

Result<std::string> render_tree(const View& view, Arena& arena, const Value& tree, const types::Type& type) {
  if (view.refusal) return *view.refusal;
  Value shown = tree;
  const types::Type* shown_type = &type;
  switch (view.accepted.form) {
    case request::Form::Object:
      break;
    case request::Form::PartialMetadata:
      shown = partial_metadata(arena, view, tree);
      shown_type = &partial_metadata_type();
      break;
    case request::Form::PartialMetadataList:
      // In Kubernetes, a custom object has the interface of a list, and then no items.
      if (view.served->custom) return Error{Reason::Unknown, "content is not a list"};
      return Error{
          Reason::NotAcceptable,
          "you requested PartialObjectMetadataList, but the requested object is not a list (" + go_struct(type) + ")"};
    case request::Form::Table:
      shown = table_of(arena, view, tree);
      break;
  }
  // Tables and custom objects have no byte fields.
  const bool plain = view.accepted.form == request::Form::Table || view.served->custom;
  if (view.accepted.format == request::Format::Cbor && plain) shown_type = nullptr;
  return encode_response(shown, shown_type, view.accepted.format, view.accepted.pretty);
}

Result<std::string> render_object(const View& view, const ObjectSource& source) {
  const request::Accepted& accepted = view.accepted;
  if (accepted.form == request::Form::Object && accepted.format == request::Format::Protobuf &&
      is_stored_version(view) && view.drop.empty()) {
    return source.managed.empty() ? std::string(source.body) : resource::join_managed(source.body, source.managed);
  }
  const bool single = accepted.form == request::Form::Object || accepted.form == request::Form::PartialMetadata;
  if (single && accepted.format == request::Format::Cbor && transcodes(view)) {
    std::string out(codec::kCborSelfDescribed);
    Result<Unit> appended = transcode_with_owners(view, source, false, out);
    if (!appended) return appended.take_error();
    return out;
  }
  if (single && accepted.format == request::Format::Json && !accepted.pretty) {
    std::string out;
    Result<Unit> appended = append_json(view, source, false, out);
    if (!appended) return appended.take_error();
    out += '\n';
    return out;
  }
  Arena arena;
  Result<Value> tree = tree_of(arena, view, source);
  if (!tree) return tree.take_error();
  return render_tree(view, arena, *tree, *view.served->resource->type);
}

Result<std::string> render_list(const View& view, Arena& arena, std::span<const Value> items) {
  if (view.refusal) return *view.refusal;
  const types::Resource& resource = *view.served->resource;
  if (view.accepted.form == request::Form::PartialMetadata) {
    return Error{Reason::NotAcceptable, "you requested PartialObjectMetadata, but the requested object is a list (" +
                                            go_struct(*resource.type, "List") + ")"};
  }
  const bool objects = view.accepted.form == request::Form::Object, table = view.accepted.form == request::Form::Table;
  ListBuilder shown(arena);
  for (const Value& item : items) {
    if (table) {
      shown.add(table_row(arena, view, item));
    } else if (objects) {
      shown.add(without_member(arena, without_member(arena, item, "kind"), "apiVersion"));
    } else {
      shown.add(partial_metadata(arena, view, item));
    }
  }
  const std::string kind = table     ? "Table"
                           : objects ? std::string(resource.kind) + "List"
                                     : "PartialObjectMetadataList";
  MapBuilder list(arena);
  list.add("kind", Value::string(arena, kind));
  list.add("apiVersion", Value::string(arena, objects ? resource::api_version_of(resource)
                                                      : "meta.k8s.io/" + view.accepted.meta_version));
  list.add("metadata", Value::empty_map());
  if (table) list.add("columnDefinitions", table_columns(arena, view));
  list.add(table ? "rows" : "items", shown.build());
  static const types::Type& partial_list = *types::find_type("meta/v1.PartialObjectMetadataList");
  const types::Type* type = table     ? nullptr
                            : objects ? types::find_type(std::string(resource.type->name) + "List")
                                      : &partial_list;
  return encode_response(list.build(), type, view.accepted.format, view.accepted.pretty);
}

// --- Lists ---

ListRenderer::ListRenderer(const View& view, ListHead head, uint64_t count)
    : view_(view), head_(std::move(head)), count_(count), owners_(fields_type(view), member_order(view)) {
  if (view.accepted.format == request::Format::Protobuf && view.accepted.form == request::Form::Object &&
      is_stored_version(view) && view.drop.empty()) {
    std::string envelope;
    codec::write_envelope_head({resource::api_version_of(*view.served->stored), view.served->stored->kind}, 0,
                               envelope);
    envelope_bytes_ = envelope.size() - 1 + codec::kEnvelopeTail.size();
  }
}

bool ListRenderer::items_are_null() const {
  if (count_ > 0) return false;
  if (view_.accepted.form != request::Form::Table) return view_.accepted.form == request::Form::PartialMetadataList;
  const std::span<const types::Column> columns = view_.served->resource->columns;
  return !view_.served->custom && columns.size() == 2 && columns.back().name == "Created At";
}

Value ListRenderer::metadata(Arena& arena) const {
  MapBuilder metadata(arena);
  if (view_.served->custom && view_.accepted.form == request::Form::Object) {
    // Custom lists are maps: keys are sorted, and "continue" is present even when empty.
    metadata.add("continue", Value::string(arena, head_.continue_token));
    if (head_.remaining > 0) metadata.add("remainingItemCount", Value::integer(head_.remaining));
    metadata.add("resourceVersion", Value::string(arena, head_.resource_version));
    return metadata.build();
  }
  if (!head_.resource_version.empty()) metadata.add("resourceVersion", Value::string(arena, head_.resource_version));
  if (!head_.continue_token.empty()) metadata.add("continue", Value::string(arena, head_.continue_token));
  if (head_.remaining > 0) metadata.add("remainingItemCount", Value::integer(head_.remaining));
  return metadata.build();
}

namespace {

struct ListKind {
  std::string kind, api_version;
};
ListKind list_kind(const View& view) {
  if (view.accepted.form == request::Form::Object) {
    const types::Resource& resource = *view.served->resource;
    // A CRD may specify its list kind; for built-in kinds it is always KindList.
    const std::string kind =
        resource.list_kind.empty() ? std::string(resource.kind) + "List" : std::string(resource.list_kind);
    return {kind, resource::api_version_of(resource)};
  }
  return {"PartialObjectMetadataList", "meta.k8s.io/" + view.accepted.meta_version};
}

constexpr char kItems = '\x12';  // Field 2 of every list.

}  // namespace

// Size of the item's message if known without decoding the entry; nullopt if it has to be rendered.
std::optional<size_t> ListRenderer::message_bytes(const cache::Entry& entry) const {
  if (envelope_bytes_ == 0 || entry.joined_bytes() == 0 || view_.accepted.ownership == request::Ownership::V2) {
    return std::nullopt;
  }
  if (!view_.omits_ownership()) return entry.joined_bytes();
  // The envelope holds a length prefix and a message: solve for the length of the message.
  const size_t held = entry.body_bytes() - envelope_bytes_;
  size_t message = held - 1;
  while (message + varint_size(message) > held) --message;
  return message;
}

Result<Unit> ListRenderer::splice(const cache::Entry& entry, size_t bytes, std::string& out) {
  const std::string_view managed = view_.omits_ownership() ? std::string_view() : owners_.protobuf(entry.ownership());
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(bodies_.read(entry));
  if (!envelope) return envelope.take_error();
  out += kItems;
  put_varint(out, bytes);
  const size_t begin = out.size();
  if (managed.empty()) {
    out += envelope->message;
  } else {
    Result<Unit> written = codec::change_metadata(envelope->message, {.managed_fields = managed}, out);
    if (!written) return written;
  }
  if (out.size() - begin == bytes) return Unit{};
  return internal_error("stored object " + std::string(entry.key()) + " is not as long as was promised");
}

Result<std::string> ListRenderer::protobuf_item(const ObjectSource& source) const {
  std::string enveloped;
  if (view_.accepted.form == request::Form::Object && is_stored_version(view_) && view_.drop.empty()) {
    enveloped = source.managed.empty() ? std::string(source.body) : resource::join_managed(source.body, source.managed);
  } else {
    Arena arena;
    Result<Value> tree = tree_of(arena, view_, source);
    if (!tree) return tree.take_error();
    const bool partial = view_.accepted.form != request::Form::Object;
    const Value shown = partial ? partial_metadata(arena, view_, *tree) : *tree;
    Result<Unit> encoded =
        codec::encode_enveloped(partial ? partial_metadata_type() : *view_.served->resource->type, shown, enveloped);
    if (!encoded) return encoded.take_error();
  }
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(enveloped);
  if (!envelope) return envelope.take_error();
  std::string item(1, kItems);
  put_varint(item, envelope->message.size());
  item += envelope->message;
  return item;
}

Result<Unit> ListRenderer::measure(const cache::Entry& entry) {
  if (const std::optional<size_t> known = message_bytes(entry)) {
    items_bytes_ += 1 + varint_size(*known) + *known;
    return Unit{};
  }
  Arena arena;
  Result<std::string> item = protobuf_item(source_of(arena, view_, entry, bodies_.read(entry)));
  if (!item) return item.take_error();
  items_bytes_ += item->size();
  return Unit{};
}

void ListRenderer::begin(std::string& out) {
  Arena arena;
  const ListKind kind = list_kind(view_);
  switch (view_.accepted.format) {
    case request::Format::Json: {
      // Typed lists: kind, apiVersion, metadata, items. Custom ones are maps with sorted keys.
      const bool sorted = view_.served->custom && view_.accepted.form == request::Form::Object;
      if (view_.accepted.form == request::Form::Table) {
        out += "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/" + view_.accepted.meta_version + "\",\"metadata\":";
        codec::encode_json(metadata(arena), out);
        out += ",\"columnDefinitions\":";
        codec::encode_json(table_columns(arena, view_), out);
        out += items_are_null() ? ",\"rows\":null" : ",\"rows\":[";
      } else if (sorted) {
        out += "{\"apiVersion\":" + codec::encode_json_string(kind.api_version) + ",\"items\":[";
      } else {
        out += "{\"kind\":" + codec::encode_json_string(kind.kind) +
               ",\"apiVersion\":" + codec::encode_json_string(kind.api_version) + ",\"metadata\":";
        codec::encode_json(metadata(arena), out);
        out += items_are_null() ? ",\"items\":null" : ",\"items\":[";
      }
      break;
    }
    case request::Format::Yaml:
      out += "apiVersion: " + kind.api_version + "\nitems:" +
             (items_are_null() ? " null\n"
              : count_ == 0    ? " []\n"
                               : "\n");
      break;
    case request::Format::Cbor: {
      codec::Sink sink(out);
      sink.put(codec::kCborSelfDescribed);
      codec::write_cbor_head(codec::CborMajor::Map, 4, sink);
      codec::write_cbor_text("kind", sink);
      codec::write_cbor_text(kind.kind, sink);
      codec::write_cbor_text("apiVersion", sink);
      codec::write_cbor_text(kind.api_version, sink);
      codec::write_cbor_text("metadata", sink);
      codec::write_json_as_cbor(codec::encode_json(metadata(arena)), sink);
      codec::write_cbor_text("items", sink);
      if (items_are_null()) {
        codec::write_cbor_null(sink);
      } else {
        codec::write_cbor_head(codec::CborMajor::List, count_, sink);
      }
      break;
    }
    case request::Format::Protobuf: {
      std::string meta_message;
      static const types::Type& list_meta = *types::find_type("meta/v1.ListMeta");
      Result<Unit> encoded = codec::encode_protobuf(list_meta, metadata(arena), meta_message);
      assert(encoded.ok());
      std::string head = "\x0a";
      put_varint(head, meta_message.size());
      head += meta_message;
      codec::write_envelope_head({kind.api_version, kind.kind}, head.size() + items_bytes_, out);
      out += head;
      break;
    }
  }
}

Result<Unit> ListRenderer::transcoded_item(const cache::Entry& entry, std::string& out) {
  const bool as_item = view_.accepted.form == request::Form::Object;
  if (!view_.omits_ownership() && !view_.drop.empty()) {
    Arena arena;
    return transcode_with_owners(view_, source_of(arena, view_, entry, bodies_.read(entry)), as_item, out);
  }
  std::string_view managed;
  if (!view_.omits_ownership()) {
    managed = view_.accepted.format == request::Format::Cbor ? owners_.cbor(entry.ownership(), memo_)
                                                             : owners_.json(entry.ownership());
  }
  return transcode(view_, bodies_.read(entry), as_item, {.managed_fields = managed, .memo = &memo_}, out);
}

Result<Unit> ListRenderer::json_item(const cache::Entry& entry, std::string& out) {
  if (transcodes(view_)) return transcoded_item(entry, out);
  Arena arena;
  return append_json(view_, source_of(arena, view_, entry, bodies_.read(entry)),
                     view_.accepted.form == request::Form::Object, out);
}

Result<Unit> ListRenderer::item(const cache::Entry& entry, std::string& out) {
  switch (view_.accepted.format) {
    case request::Format::Json: {
      if (!first_) out += ',';
      first_ = false;
      if (view_.accepted.form == request::Form::Table) {
        Arena arena;
        Result<Value> tree = tree_of(arena, view_, source_of(arena, view_, entry, bodies_.read(entry)));
        if (!tree) return tree.take_error();
        codec::encode_json(table_row(arena, view_, *tree), out);
        return Unit{};
      }
      return json_item(entry, out);
    }
    case request::Format::Protobuf: {
      if (const std::optional<size_t> known = message_bytes(entry)) return splice(entry, *known, out);
      Arena arena;
      Result<std::string> item = protobuf_item(source_of(arena, view_, entry, bodies_.read(entry)));
      if (!item) return item.take_error();
      out += *item;
      return Unit{};
    }
    case request::Format::Yaml:
    case request::Format::Cbor: {
      const bool cbor = view_.accepted.format == request::Format::Cbor;
      if (cbor && transcodes(view_)) return transcoded_item(entry, out);
      std::string json;
      Result<Unit> appended = json_item(entry, json);
      if (!appended) return appended;
      const types::Type& type = *view_.served->resource->type;
      const bool bytes =
          cbor && view_.accepted.form == request::Form::Object && !view_.served->custom && holds_bytes(type);
      if (cbor && !bytes) {
        codec::Sink sink(out);
        codec::write_json_as_cbor(json, sink);
        return Unit{};
      }
      Arena arena;
      Result<Value> tree = codec::decode_json(arena, json);
      if (!tree) return tree.take_error();
      if (bytes) {
        codec::Sink sink(out);
        append_cbor(&type, *tree, sink);
        return Unit{};
      }
      return codec::encode_yaml_item(Value::list(std::span(&*tree, 1)), out);
    }
  }
  return Unit{};
}

void ListRenderer::end(std::string& out) {
  Arena arena;
  const ListKind kind = list_kind(view_);
  switch (view_.accepted.format) {
    case request::Format::Json:
      if (!items_are_null()) out += ']';
      if (view_.served->custom && view_.accepted.form == request::Form::Object) {
        out += ",\"kind\":" + codec::encode_json_string(kind.kind) + ",\"metadata\":";
        codec::encode_json(metadata(arena), out);
      }
      out += "}\n";
      break;
    case request::Format::Yaml: {
      out += "kind: " + kind.kind + "\n";
      MapBuilder map(arena);
      map.add("metadata", metadata(arena));
      Result<Unit> encoded = codec::encode_yaml(map.build(), out);
      assert(encoded.ok());
      break;
    }
    case request::Format::Cbor:
      break;
    case request::Format::Protobuf:
      out += codec::kEnvelopeTail;
      break;
  }
}

}  // namespace holdfast::render
