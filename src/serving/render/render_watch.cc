#include <cassert>

#include "base/varint.h"
#include "kinds/kinds.h"
#include "render/render.h"
#include "render/status.h"
#include "render/table_view.h"
#include "resource/managed.h"
#include "resource/object_codec.h"
#include "resource/storage.h"

namespace holdfast::render {
namespace {

std::string_view text_of(EventName name) {
  switch (name) {
    case EventName::Added:
      return "ADDED";
    case EventName::Modified:
      return "MODIFIED";
    case EventName::Deleted:
      return "DELETED";
    case EventName::Bookmark:
      return "BOOKMARK";
    case EventName::Error:
      break;
  }
  return "ERROR";
}

// Wraps an encoded object in the watch frame of its format.
std::string frame(request::Format format, EventName name, std::string_view object) {
  const std::string_view type = text_of(name);
  std::string out;
  switch (format) {
    case request::Format::Yaml:
    case request::Format::Json:
      if (object.ends_with('\n')) object.remove_suffix(1);
      out.reserve(object.size() + 32);
      out.append("{\"type\":\"").append(type).append("\",\"object\":").append(object).append("}\n");
      break;
    case request::Format::Protobuf: {
      // A four-byte length, then WatchEvent {1 type, 2 RawExtension {1 raw}} without its own envelope.
      const size_t raw_bytes = 1 + varint_size(object.size()) + object.size();
      const size_t event_bytes = 1 + varint_size(type.size()) + type.size() + 1 + varint_size(raw_bytes) + raw_bytes;
      out.reserve(event_bytes + 4);
      for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(event_bytes >> shift & 0xff);
      out += '\x0a';
      put_varint(out, type.size());
      out += type;
      out += '\x12';
      put_varint(out, raw_bytes);
      out += '\x0a';
      put_varint(out, object.size());
      out += object;
      break;
    }
    case request::Format::Cbor: {
      codec::Sink sink(out);
      sink.put(codec::kCborSelfDescribed);
      codec::write_cbor_head(codec::CborMajor::Map, 2, sink);
      codec::write_cbor_text("type", sink);
      codec::write_cbor_text(type, sink);
      codec::write_cbor_text("object", sink);
      sink.put(object);
      break;
    }
  }
  return out;
}

View without_pretty(const View& view) {
  View plain = view;
  plain.accepted.pretty = false;
  // A list form on a watch applies to its items.
  if (plain.accepted.form == request::Form::PartialMetadataList) plain.accepted.form = request::Form::PartialMetadata;
  return plain;
}

Result<std::string> encode_shown(const View& view, Arena& arena, const Value& tree, bool with_columns) {
  if (view.accepted.form == request::Form::Table) {
    return encode_response(table_of(arena, view, tree, with_columns), nullptr, view.accepted.format, false);
  }
  return render_tree(view, arena, tree, *view.served->resource->type);
}

}  // namespace

Result<std::string> render_event(const View& view, EventName name, const ObjectSource& source, bool first_table) {
  const View plain = without_pretty(view);
  if (plain.accepted.form == request::Form::Table) {
    Arena arena;
    Result<Value> tree = tree_of(arena, plain, source);
    if (!tree) return tree.take_error();
    Result<std::string> object = encode_shown(plain, arena, *tree, first_table);
    if (!object) return object;
    return frame(plain.accepted.format, name, *object);
  }
  Result<std::string> object = render_object(plain, source);
  if (!object) return object;
  return frame(plain.accepted.format, name, *object);
}

std::string render_bookmark(const View& view, std::string_view revision, bool initial_events_end, bool first_table) {
  const View plain = without_pretty(view);
  Arena arena;
  const types::Resource& resource = *view.served->resource;
  const bool custom = view.served->custom;
  const Value zero = custom ? Value::empty_map() : kinds::zero_object(arena, resource);
  MapBuilder named(arena);
  for (const Member& made : zero.members_at("metadata", "annotations")) named.add(made.key, made.value);
  if (initial_events_end) named.add("k8s.io/initial-events-end", Value::string("true"));
  const Value annotations = named.build();
  const Value kind = Value::string(resource.kind), version = Value::string(arena, resource::api_version_of(resource));
  // Members of custom objects are sorted; built-in ones follow the order of the Go struct.
  MapBuilder metadata(arena);
  if (custom && annotations.count() > 0) metadata.add("annotations", annotations);
  metadata.add("resourceVersion", Value::string(arena, revision));
  if (!custom && annotations.count() > 0) metadata.add("annotations", annotations);
  MapBuilder tree(arena);
  if (custom) tree.add("apiVersion", version);
  tree.add("kind", kind);
  if (!custom) tree.add("apiVersion", version);
  tree.add("metadata", metadata.build());
  for (const Member& member : zero.members()) {
    if (member.key != "metadata") tree.add(member.key, member.value);
  }
  Result<std::string> object = encode_shown(plain, arena, tree.build(), first_table);
  assert(object.ok());
  return frame(plain.accepted.format, EventName::Bookmark, *object);
}

std::string render_error_event(const View& view, const Error& error) {
  Arena arena;
  static const types::Type* status_type = types::find_type("meta/v1.Status");
  Result<std::string> object = encode_response(status_of(arena, error), status_type, view.accepted.format, false);
  assert(object.ok());
  return frame(view.accepted.format, EventName::Error, *object);
}

std::string_view watch_content_type(request::Format format) {
  switch (format) {
    case request::Format::Protobuf:
      return "application/vnd.kubernetes.protobuf;stream=watch";
    case request::Format::Cbor:
      return "application/cbor-seq";
    default:
      return "application/json";
  }
}

}  // namespace holdfast::render
