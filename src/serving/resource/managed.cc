#include "resource/managed.h"

#include <cassert>
#include <utility>

#include "base/base64.h"
#include "codec/codec.h"
#include "ownership/ownership.h"

namespace holdfast::resource {
namespace {

using ownership::ManagedEntry;

constexpr std::string_view kTimeMember = "time", kFieldsV1Member = "fieldsV1", kFieldsV2Member = "fieldsV2";

// Visits the members of an entry in the order used by JSON, CBOR and trees: text(name, text) for all except the fields,
// and fields(name, bytes).
template <class Text, class Fields>
void visit_members(const ManagedEntry& entry, Text text, Fields fields) {
  const auto shown = [&text](std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  };
  shown("manager", entry.manager);
  shown("operation", entry.operation);
  shown("apiVersion", entry.api_version);
  if (entry.time) {
    char time[kMaxRfc3339];
    text(kTimeMember, std::string_view(time, static_cast<size_t>(write_rfc3339(*entry.time, time) - time)));
  }
  shown("fieldsType", entry.fields_type);
  if (entry.fields)
    fields(entry.fields_type == ownership::kFieldsV2 ? kFieldsV2Member : kFieldsV1Member, *entry.fields);
  shown("subresource", entry.subresource);
}

// Appends one entry as JSON, after a bracket or a comma.
void append_entry_json(const ManagedEntry& entry, char before, codec::Sink& out) {
  out.put(before);
  before = '{';
  const auto key = [&](std::string_view name) {
    out.put(std::exchange(before, ','));
    out.put('"');
    out.put(name);
    out.put("\":");
  };
  const auto text = [&](std::string_view name, std::string_view value) {
    key(name);
    codec::encode_json_string(value, out);
  };
  visit_members(entry, text, [&](std::string_view name, std::string_view fields) {
    key(name);
    if (name == kFieldsV2Member) {
      out.put('"');
      out.put(base64_encode(fields));
      out.put('"');
    } else {
      codec::compact_json(fields.empty() ? "null" : fields, out);
    }
  });
  out.put(before == '{' ? "{}" : "}");
}

// Appends a field set as CBOR. Many objects share few sets, so a memo avoids parsing their JSON each time.
void append_fields_cbor(std::string_view fields, codec::MessageMemo* memo, codec::Sink& out) {
  if (fields.empty()) return codec::write_cbor_null(out);
  static constexpr char kFieldSet = 0;  // Its address distinguishes field sets from messages in the memo.
  codec::MessageMemo::Place place;
  if (memo != nullptr) {
    if (const std::string_view known = memo->find(&kFieldSet, fields, place); !known.empty()) return out.put(known);
  }
  const size_t from = out.size();
  codec::write_json_as_cbor(fields, out);
  if (place.keep) memo->keep(place, &kFieldSet, fields, {out.at(from), out.size() - from});
}

void append_entry_cbor(const ManagedEntry& entry, codec::MessageMemo* memo, codec::Sink& out) {
  codec::CborContainer map(out);
  const auto key = [&](std::string_view name) {
    map.add();
    codec::write_cbor_text(name, out);
  };
  const auto text = [&](std::string_view name, std::string_view value) {
    key(name);
    codec::write_cbor_text(value, out);
  };
  visit_members(entry, text, [&](std::string_view name, std::string_view fields) {
    key(name);
    if (name == kFieldsV2Member) {
      codec::write_cbor_bytes(fields, out);
    } else {
      append_fields_cbor(fields, memo, out);
    }
  });
  map.finish(codec::CborMajor::Map, out);
}

}  // namespace

Value managed_fields_value(Arena& arena, std::span<const ManagedEntry> entries) {
  if (entries.empty()) return Value::null();
  ListBuilder list(arena);
  for (const ManagedEntry& entry : entries) {
    MapBuilder item(arena);
    visit_members(
        entry,
        // Strings are views into the entry, except for the time, which is formatted here.
        [&](std::string_view name, std::string_view text) {
          item.add(name, name == kTimeMember ? Value::string(arena, text) : Value::string(text));
        },
        [&](std::string_view name, std::string_view fields) {
          item.add(name, name == kFieldsV2Member ? Value::string(arena, base64_encode(fields)) : Value::raw(fields));
        });
    list.add(item.build());
  }
  return list.build();
}

Value stored_form(Arena& arena, const Value& object, std::span<const ManagedEntry> entries) {
  Draft draft(arena, object);
  Draft::Node metadata = draft.root().child("metadata");
  metadata.remove("resourceVersion");
  if (!entries.empty()) metadata.set("managedFields", managed_fields_value(arena, entries));
  return draft.value();
}

std::vector<ManagedEntry> managed_entries(Arena& arena, const Value* list) {
  std::vector<ManagedEntry> entries;
  if (list == nullptr || !list->is_list()) return entries;
  entries.reserve(list->count());
  for (const Value& item : list->items()) {
    if (!item.is_map()) continue;
    ManagedEntry entry;
    entry.manager = item.text_at("manager");
    entry.operation = item.text_at("operation");
    entry.api_version = item.text_at("apiVersion");
    entry.subresource = item.text_at("subresource");
    entry.fields_type = item.text_at("fieldsType");
    entry.time = parse_rfc3339(item.text_at("time"));
    if (entry.time) entry.time->nanos = 0;
    if (const Value* v2 = item.find("fieldsV2"); v2 != nullptr && v2->is_string()) {
      if (std::optional<std::string> bytes = base64_decode(v2->as_string())) entry.fields = arena.copy(*bytes);
    } else if (const Value* v1 = item.find("fieldsV1"); v1 != nullptr && !v1->is_null()) {
      entry.fields = v1->is_raw() ? v1->raw_json() : arena.copy(codec::encode_json(*v1));
    }
    entries.push_back(entry);
  }
  return entries;
}

std::vector<ManagedEntry> as_fields_v2(Arena& arena, std::span<const ManagedEntry> entries) {
  std::vector<ManagedEntry> out(entries.begin(), entries.end());
  for (ManagedEntry& entry : out) {
    if (!entry.fields || entry.fields_type != ownership::kFieldsV1) continue;
    Result<ownership::FieldSet> set = ownership::parse_fields_v1(arena, *entry.fields);
    if (!set) continue;
    const std::string bytes = ownership::to_fields_v2(*set);
    if (base64_size(bytes.size()) >= entry.fields->size()) continue;
    entry.fields_type = ownership::kFieldsV2;
    entry.fields = arena.copy(std::string_view(bytes));
  }
  return out;
}

void append_managed_json(std::span<const ManagedEntry> entries, std::string& out) {
  codec::Sink sink(out);
  char before = '[';
  for (const ManagedEntry& entry : entries) append_entry_json(entry, std::exchange(before, ','), sink);
  sink.put(entries.empty() ? "[]" : "]");
}

void append_managed_cbor(std::span<const ManagedEntry> entries, std::string& out) {
  codec::Sink sink(out);
  codec::write_cbor_head(codec::CborMajor::List, entries.size(), sink);
  for (const ManagedEntry& entry : entries) append_entry_cbor(entry, nullptr, sink);
}

void append_managed_protobuf(std::span<const ManagedEntry> entries, std::string& out) {
  for (const ManagedEntry& entry : entries) codec::append_managed_fields(ownership::to_message(entry), out);
}

ManagedEntry OwnersRenderer::shown_entry(const ownership::Owners& owners, size_t i) {
  const ManagedEntry entry = owners.entry(i, fields_, fields_type_, order_);
  if (entry.fields_type != ownership::kFieldsV2) return entry;
  // Base64 of the binary form may be longer than the JSON.
  if (base64_size(entry.fields->size()) < owners.fields_v1_bytes(i)) return entry;
  return owners.entry(i, fields_, ownership::kFieldsV1, order_);
}

std::string_view OwnersRenderer::json(const ownership::Owners& owners) {
  text_.clear();
  if (owners.empty()) return {};
  codec::Sink sink(text_);
  char before = '[';
  for (size_t i = 0; i < owners.count(); ++i) {
    append_entry_json(shown_entry(owners, i), std::exchange(before, ','), sink);
  }
  sink.put(']');
  sink.finish();
  return text_;
}

std::string_view OwnersRenderer::cbor(const ownership::Owners& owners, codec::MessageMemo& memo) {
  text_.clear();
  if (owners.empty()) return {};
  codec::Sink sink(text_);
  codec::write_cbor_head(codec::CborMajor::List, owners.count(), sink);
  for (size_t i = 0; i < owners.count(); ++i) append_entry_cbor(shown_entry(owners, i), &memo, sink);
  sink.finish();
  return text_;
}

std::string_view OwnersRenderer::protobuf(const ownership::Owners& owners) {
  text_.clear();
  for (size_t i = 0; i < owners.count(); ++i) {
    codec::append_managed_fields(ownership::to_message(owners.entry(i, fields_, fields_type_, order_)), text_);
  }
  return text_;
}

std::string join_managed(std::string_view enveloped, std::span<const ManagedEntry> entries,
                         std::optional<std::string_view> revision) {
  thread_local std::string managed;
  managed.clear();
  append_managed_protobuf(entries, managed);
  std::string out;
  out.reserve(enveloped.size() + managed.size() + 16);
  Result<Unit> joined =
      codec::change_enveloped_metadata(enveloped, {.managed_fields = managed, .resource_version = revision}, out);
  assert(joined.ok());
  return out;
}

}  // namespace holdfast::resource
