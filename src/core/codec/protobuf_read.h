// Walks a Protobuf message and calls a writer with the contents of its JSON form. The tree, JSON and CBOR are three
// writers, so they cannot disagree. Private to the module.
//
// Protobuf has fields in the order of their numbers, JSON in declaration order, and embedded structs are nested
// messages in Protobuf but flattened in JSON. So each message is visited twice: once to index its fields (one slot
// each), and once to write them in declaration order.
//
// A writer has
//   key(name), map_key(text)              before a member's value; names need no escaping
//   item()                                before a list's item
//   null(), boolean(b), integer(i), number(d)
//   set_null()                            null for a pointer to a zero value, as opposed to a missing one
//   string(view of the message), text(temporary characters), base64(bytes), raw(valid JSON)
//   Mark begin_map(), end_map(Mark), begin_list(), end_list(Mark)
// and may have
//   bool recall(type, message, Recalled&) writes a message that is cached; otherwise
//   remember(type, message, Recalled)     after it was written
//   rendered(bytes in the output format)  for add_managed_fields()
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "codec/json_parse.h"
#include "codec/protobuf.h"
#include "codec/protobuf_wire.h"
#include "codec/quantity.h"
#include "codec/sink.h"

namespace holdfast::codec {

// Seconds of Go's zero time, 0001-01-01T00:00:00Z.
inline constexpr int64_t kZeroTimeSeconds = -62135596800;

// More fields than any type has, which types_test verifies for the catalog.
inline constexpr size_t kMaxFields = 64;

class ProtobufReaderBase {
 public:
  // `arena` is for messages assembled from pieces; it must outlive the writer's output.
  ProtobufReaderBase(Arena& arena, std::string_view source, const Gates* gates, const FieldPaths* drop)
      : arena_(arena), source_(source), gates_(gates), drop_(drop) {}

  // Describes the position: the field path and the byte.
  Error error() const;

 protected:
  using Type = types::Type;
  using Field = types::Field;
  using Kind = types::Shape;

  // The position of a field in its message.
  struct Slot {
    union {
      const char* data;  // A single value's bytes, or the first tag of a repeated field.
      uint64_t bits;     // A single varint or fixed64.
    };
    uint32_t size;   // Of the single value; for a repeated field, up to the end of the message.
    uint32_t count;  // Number of occurrences of a repeated field.
  };
  // The slots of one message. Only those whose bit is set in `seen` are initialized.
  struct Slots {
    uint64_t seen;
    uint64_t shown;  // Fields to write in JSON.
    Slot at[kMaxFields];

    bool has(size_t position) const { return (seen >> position & 1) != 0; }
  };

  static wire::Type wire_of(const Type& type) {
    switch (type.shape) {
      case Kind::Bool:
      case Kind::Int32:
      case Kind::Int64:
        return wire::kVarint;
      case Kind::Double:
        return wire::kFixed64;
      default:
        return wire::kBytes;
    }
  }

  bool index(const Type& type, std::string_view message, Slots& slots);
  bool merge(Slot& slot, std::string_view more);
  bool read_time(const Type& type, std::string_view message, UnixTime& time, bool& zero);

  // Quantity, IntOrString, Timestamp, RawExtension: at most three fields, at most one of them bytes.
  struct SmallMessage {
    uint64_t varints[4] = {};  // By number.
    std::string_view bytes;
    bool has_bytes = false;
  };
  bool small_message(std::string_view message, SmallMessage& parts);
  // Bytes that are not UTF-8 are JSON to Go, which stores them. In a response they would make all of it unreadable, so
  // they are replaced.
  std::string_view as_utf8(std::string_view text);

  bool fail(const char* at, std::string_view what) {
    fail_at_ = at;
    what_ = what;
    return false;
  }
  bool truncated(const char* at) { return fail(at, "unexpected EOF"); }
  // Reports a field that is truncated or has the wrong wire type.
  bool wrong_field(const char* at, uint64_t tag, const Field& field, bool cut_off);
  bool is_there(const Field& field) const { return field.exists(gates_) && (!field.root_only || in_root_metadata_); }
  bool in_field(std::string_view name) {
    path_.emplace_back(name);
    return false;
  }

  Arena& arena_;
  std::string_view source_;
  const Gates* gates_;
  const FieldPaths* drop_;
  int depth_ = 0;
  int pieces_ = 0;                 // Messages assembled from pieces.
  bool root_ = false;              // A whole object is being read.
  bool in_root_metadata_ = false;  // Its metadata comes next.

 private:
  const char* fail_at_ = nullptr;
  std::string what_;
  std::vector<std::string> path_;  // Innermost first.
};

// For writers whose output for a message is independent of its position: repeated messages are copied.
class MemoizingOut {
 public:
  MemoizingOut(Sink& sink, MessageMemo* memo) : sink_(sink), memo_(memo) {}

  struct Recalled {
    MessageMemo::Place place;
    size_t from = 0;  // Start of its rendering.
  };
  bool recall(const types::Type& type, std::string_view message, Recalled& recalled) {
    if (memo_ == nullptr || message.size() < MessageMemo::kLeastBytes) return false;
    const std::string_view known = memo_->find(&type, message, recalled.place);
    if (known.empty()) {
      recalled.from = sink_.size();
      return false;
    }
    sink_.put(known);
    return true;
  }
  void remember(const types::Type& type, std::string_view message, const Recalled& recalled) {
    if (!recalled.place.keep) return;
    memo_->keep(recalled.place, &type, message, {sink_.at(recalled.from), sink_.size() - recalled.from});
  }
  // Bytes already in the output format.
  void rendered(std::string_view bytes) { sink_.put(bytes); }

 protected:
  Sink& sink_;

 private:
  MessageMemo* const memo_;
};

template <class Out>
class ProtobufReader : ProtobufReaderBase {
 public:
  ProtobufReader(Out& out, Arena& arena, std::string_view source, const Gates* gates, const FieldPaths* drop)
      : ProtobufReaderBase(arena, source, gates, drop), out_(out) {}
  using ProtobufReaderBase::error;

  // A rendered list to write as the last member of the object's metadata, which must have no managedFields of its own.
  void add_managed_fields(std::string_view rendered) { managed_fields_ = rendered; }

  bool object(const Type& type, const TypeMeta& meta) {
    root_ = true;
    return structure(type, source_, FieldPaths::kRoot, &meta);
  }

  // An object or a list of objects as PartialObjectMetadata(List).
  bool metadata_only(const Type& type);

 private:
  using Node = FieldPaths::Node;
  static constexpr std::string_view kMetaVersion = "meta.k8s.io/v1";

  Node step(Node node, std::string_view name) const {
    return drop_ == nullptr ? FieldPaths::kNone : drop_->child(node, name);
  }

  void null(bool pointer) {
    if (pointer) {
      out_.set_null();
    } else {
      out_.null();
    }
  }

  // `meta`: the kind and apiVersion to write; null inside an object.
  bool structure(const Type& type, std::string_view message, Node node, const TypeMeta* meta = nullptr) {
    if constexpr (requires(typename Out::Recalled recalled) { out_.recall(type, message, recalled); }) {
      // Structs directly below an object's root are never the same in two objects.
      if (depth_ > 1 && node == FieldPaths::kNone && (meta == nullptr || meta->kind.empty())) {
        typename Out::Recalled recalled;
        if (out_.recall(type, message, recalled)) return true;
        if (!write_structure(type, message, node, meta)) return false;
        out_.remember(type, message, recalled);
        return true;
      }
    }
    return write_structure(type, message, node, meta);
  }
  bool write_structure(const Type& type, std::string_view message, Node node, const TypeMeta* meta,
                       std::string_view managed_fields = {}) {
    if (depth_ == kMaxProtobufDepth) return fail(message.data(), "messages are nested too deeply");
    ++depth_;
    const auto mark = out_.begin_map();
    const bool ok = members(type, message, node, meta);
    if constexpr (requires { out_.rendered(managed_fields); }) {
      if (!managed_fields.empty()) {
        out_.key("managedFields");
        out_.rendered(managed_fields);
      }
    }
    out_.end_map(mark);
    --depth_;
    return ok;
  }

  void type_meta(const TypeMeta& meta) {
    if (!meta.kind.empty()) {
      out_.key("kind");
      out_.string(meta.kind);
    }
    if (!meta.api_version.empty()) {
      out_.key("apiVersion");
      out_.string(meta.api_version);
    }
  }

  bool members(const Type& type, std::string_view message, Node node, const TypeMeta* meta) {
    Slots slots;
    if (!index(type, message, slots)) return false;
    for (uint64_t left = slots.shown; left != 0; left &= left - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(left));
      if (!field(type, type.fields[i], slots.has(i) ? &slots.at[i] : nullptr, node, meta)) return false;
    }
    return true;
  }

  // `slot` is null if the field is absent.
  bool field(const Type& owner, const Field& field, const Slot* slot, Node node, const TypeMeta* meta);
  bool single(const Type& type, std::string_view bytes, Node node, bool pointer = false);
  void scalar(const Type& type, uint64_t bits);
  bool list(const Field& field, const Slot& slot, Node node);
  bool map(const Field& field, const Slot& slot, Node node);
  bool wrapped_items(std::string_view message);
  bool time(const Type& type, std::string_view message, bool pointer);
  bool quantity(std::string_view message);
  bool int_or_string(std::string_view message);
  bool raw(std::string_view message, bool pointer);
  bool schema_union(const Type& type, std::string_view message);
  bool partial(const Type& type, std::string_view message, Node node);

  struct Entry {
    std::string_view key, bytes;
    uint64_t bits;
  };

  Out& out_;
  std::string_view managed_fields_;
  std::vector<Entry> entries_;  // A stack: nested maps use the rest.
};

template <class Out>
bool ProtobufReader<Out>::field(const Type& owner, const Field& field, const Slot* slot, Node node,
                                const TypeMeta* meta) {
  const Type& type = *field.type;
  if (field.inlined) {
    if (field.number == 0) {  // TypeMeta, which does not exist in Protobuf.
      if (meta != nullptr) type_meta(*meta);
      return true;
    }
    if (depth_ == kMaxProtobufDepth) return fail(source_.data(), "messages are nested too deeply");
    ++depth_;
    const std::string_view bytes = slot != nullptr ? std::string_view(slot->data, slot->size) : std::string_view();
    const bool ok = members(type, bytes, node, nullptr);
    --depth_;
    return ok;
  }
  const Node below = node < 0 ? FieldPaths::kNone : step(node, field.name);
  if (below >= 0 && drop_->ends_at(below)) return true;
  if (field.omit_zero && slot != nullptr && !field.pointer) {
    UnixTime when;
    bool zero = true;
    if (!read_time(type, {slot->data, slot->size}, when, zero)) return in_field(field.name);
    if (zero) return true;
  }
  out_.key(field.name);
  const bool root_metadata = depth_ == 1 && root_ && field.name == "metadata";
  if (root_metadata && !managed_fields_.empty()) {
    in_root_metadata_ = true;
    const std::string_view bytes = slot != nullptr ? std::string_view(slot->data, slot->size) : std::string_view();
    return write_structure(type, bytes, below, nullptr, managed_fields_) || in_field(field.name);
  }
  if (slot == nullptr) {
    // Not omitted, so it is written as Go's zero value.
    if (field.pointer || type.shape == Kind::Bytes || type.shape == Kind::Map || type.shape == Kind::List ||
        type.shape == Kind::Any) {
      // The items of list kinds are never null: their encoder ensures that.
      if (field.name == "items" && owner.name.ends_with("List")) {
        out_.end_list(out_.begin_list());
      } else {
        out_.null();
      }
      return true;
    }
    switch (type.shape) {
      case Kind::Bool:
      case Kind::Int32:
      case Kind::Int64:
      case Kind::Double:
        scalar(type, 0);
        return true;
      default:
        return single(type, {}, below) || in_field(field.name);
    }
  }
  switch (type.shape) {
    case Kind::String:
      out_.string({slot->data, slot->size});
      return true;
    case Kind::Bool:
    case Kind::Int32:
    case Kind::Int64:
    case Kind::Double:
      scalar(type, slot->bits);
      return true;
    case Kind::List:
      if (type.wrapped) break;
      return list(field, *slot, below) || in_field(field.name);
    case Kind::Map:
      return map(field, *slot, below) || in_field(field.name);
    default:
      break;
  }
  in_root_metadata_ = root_metadata;
  return single(type, {slot->data, slot->size}, below, field.pointer) || in_field(field.name);
}

template <class Out>
void ProtobufReader<Out>::scalar(const Type& type, uint64_t bits) {
  switch (type.shape) {
    case Kind::Bool:
      return out_.boolean(bits != 0);
    case Kind::Int32:
      return out_.integer(static_cast<int32_t>(bits));
    case Kind::Double:
      return out_.number(std::bit_cast<double>(bits));
    default:
      return out_.integer(static_cast<int64_t>(bits));
  }
}

// A value with wire type bytes.
template <class Out>
bool ProtobufReader<Out>::single(const Type& type, std::string_view bytes, Node node, bool pointer) {
  switch (type.shape) {
    case Kind::Struct:
      return structure(type, bytes, node);
    case Kind::String:
      out_.string(bytes);
      return true;
    case Kind::Bytes:
      out_.base64(bytes);
      return true;
    case Kind::Time:
    case Kind::MicroTime:
      return time(type, bytes, pointer);
    case Kind::Quantity:
      return quantity(bytes);
    case Kind::IntOrString:
      return int_or_string(bytes);
    case Kind::FieldsV1:
    case Kind::Raw:
      return raw(bytes, pointer);
    case Kind::SchemaOrBool:
    case Kind::SchemaOrArray:
    case Kind::SchemaOrStringArray:
      return schema_union(type, bytes);
    case Kind::List:
      return wrapped_items(bytes);
    default:
      return fail(bytes.data(), "no Protobuf form for this type");
  }
}

template <class Out>
bool ProtobufReader<Out>::list(const Field& field, const Slot& slot, Node node) {
  const Type& element = *field.type->element;
  const wire::Type expected = wire_of(element);
  const uint64_t tag = uint64_t{field.number} << 3;
  const char* const end = slot.data + slot.size;
  const auto mark = out_.begin_list();
  const char* p = slot.data;
  size_t position = 0;
  for (uint32_t seen = 0; seen < slot.count;) {
    uint64_t found = 0;
    p = wire::read_varint(p, end, found);
    if ((found & ~uint64_t{7}) != tag) {  // Another field between the items.
      p = wire::skip_value(p, end, found);
      continue;
    }
    ++seen;
    if (expected == wire::kBytes) {
      std::string_view bytes;
      p = wire::read_bytes(p, end, bytes);
      out_.item();
      const TypeMeta meta{field.item_api_version, field.item_kind};
      const bool ok =
          element.shape == Kind::Struct ? structure(element, bytes, node, &meta) : single(element, bytes, node);
      if (!ok) return in_field("[" + std::to_string(position) + "]");
      ++position;
      continue;
    }
    std::string_view packed;
    if ((found & 7) == wire::kBytes) {
      p = wire::read_bytes(p, end, packed);
    } else {
      const char* const start = p;
      p = wire::skip_value(p, end, found);
      packed = {start, static_cast<size_t>(p - start)};
    }
    const char* at = packed.data();
    const char* const stop = at + packed.size();
    while (at != stop) {
      uint64_t bits = 0;
      if (expected == wire::kFixed64) {
        if (stop - at < 8) return truncated(at);
        bits = wire::load64(at);
        at += 8;
      } else {
        const char* const from = at;
        at = wire::read_varint(at, stop, bits);
        if (at == nullptr) return truncated(from);
      }
      out_.item();
      scalar(element, bits);
    }
  }
  out_.end_list(mark);
  return true;
}

template <class Out>
bool ProtobufReader<Out>::map(const Field& field, const Slot& slot, Node node) {
  const Type& element = *field.type->element;
  const wire::Type expected = wire_of(element);
  const uint64_t tag = uint64_t{field.number} << 3 | wire::kBytes;
  const char* const end = slot.data + slot.size;
  const size_t start = entries_.size();
  const char* p = slot.data;
  bool sorted = true;
  for (uint32_t seen = 0; seen < slot.count;) {
    uint64_t found = 0;
    p = wire::read_varint(p, end, found);
    if (found != tag) {
      p = wire::skip_value(p, end, found);
      continue;
    }
    ++seen;
    std::string_view bytes;
    p = wire::read_bytes(p, end, bytes);
    Entry entry{};
    const char* at = bytes.data();
    const char* const stop = at + bytes.size();
    while (at != stop) {
      const char* const from = at;
      uint64_t inner = 0;
      at = wire::read_varint(at, stop, inner);
      if (at == nullptr) return truncated(from);
      if (inner == (1 << 3 | wire::kBytes)) {
        at = wire::read_bytes(at, stop, entry.key);
      } else if (inner == (2 << 3 | uint64_t{expected})) {
        if (expected == wire::kBytes) {
          at = wire::read_bytes(at, stop, entry.bytes);
        } else if (expected == wire::kVarint) {
          at = wire::read_varint(at, stop, entry.bits);
        } else {
          if (stop - at < 8) return truncated(from);
          entry.bits = wire::load64(at);
          at += 8;
        }
      } else {
        at = wire::skip_value(at, stop, inner);
      }
      if (at == nullptr) return truncated(from);
    }
    if (entries_.size() > start && !(entries_.back().key < entry.key)) sorted = false;
    entries_.push_back(entry);
  }
  if (!sorted) {
    // Go writes maps sorted, and the last of several equal keys wins.
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(start);
    std::stable_sort(first, entries_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    size_t kept = start;
    for (size_t i = start; i < entries_.size(); ++i) {
      if (kept > start && entries_[kept - 1].key == entries_[i].key) --kept;
      entries_[kept++] = entries_[i];
    }
    entries_.resize(kept);
  }
  const size_t stop = entries_.size();
  const auto mark = out_.begin_map();
  for (size_t i = start; i < stop; ++i) {
    const Entry entry = entries_[i];  // A copy: nested maps may reallocate the stack.
    const Node below = step(node, entry.key);
    if (below >= 0 && drop_->ends_at(below)) continue;
    out_.map_key(entry.key);
    if (expected == wire::kBytes) {
      if (!single(element, entry.bytes, below)) return in_field(entry.key);
    } else {
      scalar(element, entry.bits);
    }
  }
  out_.end_map(mark);
  entries_.resize(start);
  return true;
}

// A named list that is a message of its own: {1: items}.
template <class Out>
bool ProtobufReader<Out>::wrapped_items(std::string_view message) {
  const auto mark = out_.begin_list();
  const char* const bad = wire::each_field(message, [&](uint64_t tag, const char* p, const char* end) {
    if (tag != (1 << 3 | wire::kBytes)) return wire::skip_value(p, end, tag);
    std::string_view item;
    p = wire::read_bytes(p, end, item);
    if (p == nullptr) return p;
    out_.item();
    out_.string(item);
    return p;
  });
  if (bad != nullptr) return truncated(bad);
  out_.end_list(mark);
  return true;
}

template <class Out>
bool ProtobufReader<Out>::time(const Type& type, std::string_view message, bool pointer) {
  UnixTime when;
  bool zero = true;
  if (!read_time(type, message, when, zero)) return false;
  if (zero) {
    null(pointer);
    return true;
  }
  char text[kMaxRfc3339];
  const char* end = nullptr;
  if (type.shape == Kind::MicroTime) {
    end = write_rfc3339_micro(when, text);
  } else {
    end = write_rfc3339(when, text);
  }
  out_.text({text, static_cast<size_t>(end - text)});
  return true;
}

template <class Out>
bool ProtobufReader<Out>::quantity(std::string_view message) {
  SmallMessage parts;
  if (!small_message(message, parts)) return false;
  if (!parts.has_bytes) {
    out_.text("0");
    return true;
  }
  if (Quantity::surely_canonical(parts.bytes)) {
    out_.string(parts.bytes);
    return true;
  }
  Result<Quantity> parsed = Quantity::parse(parts.bytes);
  if (!parsed) return fail(message.data(), parsed.error().message);
  out_.text(parsed->text());
  return true;
}

template <class Out>
bool ProtobufReader<Out>::int_or_string(std::string_view message) {
  SmallMessage parts;
  if (!small_message(message, parts)) return false;
  if (parts.varints[1] == 1) {
    out_.string(parts.bytes);
  } else if (parts.varints[1] == 0) {
    out_.integer(static_cast<int32_t>(parts.varints[2]));
  } else {
    return fail(message.data(), "impossible IntOrString.Type");
  }
  return true;
}

// RawExtension, apiextensions JSON, FieldsV1: {1: bytes of JSON}.
template <class Out>
bool ProtobufReader<Out>::raw(std::string_view message, bool pointer) {
  SmallMessage parts;
  if (!small_message(message, parts)) return false;
  if (parts.bytes.empty()) {
    null(pointer);
    return true;
  }
  JsonIgnore nobody;
  if (!JsonParser(parts.bytes, nobody).parse_document())
    return fail(parts.bytes.data(), "the embedded value is not JSON");
  out_.raw(as_utf8(parts.bytes));
  return true;
}

template <class Out>
bool ProtobufReader<Out>::schema_union(const Type& type, std::string_view message) {
  Slots slots;
  if (!index(type, message, slots)) return false;
  const bool or_bool = type.shape == Kind::SchemaOrBool;
  const size_t schema = or_bool ? 1 : 0, other = or_bool ? 0 : 1;
  if (!or_bool && slots.has(other)) return list(type.fields[other], slots.at[other], FieldPaths::kNone);
  if (slots.has(schema)) {
    const Slot& slot = slots.at[schema];
    return structure(*type.fields[schema].type, {slot.data, slot.size}, FieldPaths::kNone);
  }
  if (or_bool) {
    out_.boolean(slots.has(other) && slots.at[other].bits != 0);
  } else {
    out_.set_null();
  }
  return true;
}

template <class Out>
bool ProtobufReader<Out>::metadata_only(const Type& type) {
  root_ = true;
  const Field* items = types::find_member(type, "items");
  if (items == nullptr || items->type->shape != Kind::List || !type.name.ends_with("List")) {
    return partial(type, source_, FieldPaths::kRoot);
  }
  Slots slots;
  if (!index(type, source_, slots)) return false;
  ++depth_;
  const auto mark = out_.begin_map();
  type_meta({kMetaVersion, "PartialObjectMetadataList"});
  for (size_t i = 0; i < type.fields.size(); ++i) {
    const Field& field = type.fields[i];
    const Slot* slot = slots.has(i) ? &slots.at[i] : nullptr;
    if (field.name == "metadata" && !this->field(type, field, slot, FieldPaths::kRoot, nullptr)) return false;
    if (&field != items) continue;
    const Node below = step(FieldPaths::kRoot, "items");
    out_.key("items");
    const auto list = out_.begin_list();
    const char* p = slot == nullptr ? nullptr : slot->data;
    const char* const end = slot == nullptr ? nullptr : p + slot->size;
    const uint32_t count = slot == nullptr ? 0 : slot->count;
    for (uint32_t seen = 0; seen < count;) {
      uint64_t found = 0;
      p = wire::read_varint(p, end, found);
      if (found >> 3 != field.number) {
        p = wire::skip_value(p, end, found);
        continue;
      }
      std::string_view bytes;
      p = wire::read_bytes(p, end, bytes);
      out_.item();
      if (!partial(*field.type->element, bytes, below)) return in_field("items[" + std::to_string(seen) + "]");
      ++seen;
    }
    out_.end_list(list);
  }
  out_.end_map(mark);
  --depth_;
  return true;
}

template <class Out>
bool ProtobufReader<Out>::partial(const Type& type, std::string_view message, Node node) {
  Slots slots;
  if (!index(type, message, slots)) return false;
  ++depth_;
  const auto mark = out_.begin_map();
  type_meta({kMetaVersion, "PartialObjectMetadata"});
  bool ok = true;
  for (size_t i = 0; i < type.fields.size() && ok; ++i) {
    if (type.fields[i].name != "metadata") continue;
    ok = field(type, type.fields[i], slots.has(i) ? &slots.at[i] : nullptr, node, nullptr);
  }
  out_.end_map(mark);
  --depth_;
  return ok;
}

// Renders a whole object with a writer over a Sink; on error, `out` is unchanged.
template <class Out>
Result<Unit> render_protobuf(const types::Type& type, std::string_view message, const TypeMeta& meta,
                             const Shape& shape, std::string& out, const ProtobufOptions& options,
                             const RenderAdditions& additions) {
  if (message.size() > UINT32_MAX) return bad_request("the message is too large");
  Sink sink(out);
  const size_t before = sink.size();
  // JSON is about a quarter larger than Protobuf, and growing means copying.
  sink.room(message.size() + message.size() / 2 + additions.managed_fields.size());
  Out writer(sink, additions.memo);
  Arena arena;
  ProtobufReader<Out> reader(writer, arena, message, options.gates, shape.drop);
  reader.add_managed_fields(additions.managed_fields);
  const bool ok = shape.metadata_only ? reader.metadata_only(type) : reader.object(type, meta);
  if (ok) return Unit{};
  sink.truncate(before);
  return reader.error();
}

}  // namespace holdfast::codec
