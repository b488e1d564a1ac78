#include "codec/protobuf_metadata.h"

#include "base/varint.h"
#include "codec/protobuf_wire.h"
#include "codec/sink.h"

namespace holdfast::codec {
namespace {

// Field numbers. They never change.
constexpr uint64_t kMetadata = 1, kUid = 5, kLabels = 11, kManagedFields = 17;
enum Entry : uint64_t {
  kManager = 1,
  kOperation = 2,
  kApiVersion = 3,
  kTime = 4,
  kFieldsType = 6,
  kFieldsV1 = 7,
  kSubresource = 8,
  kFieldsV2 = 9,
};

// Calls visit(number, bytes) for each length-delimited field and visit_number(number, value) for each varint. False if
// the message is malformed or has another wire type, or if a visitor returned false.
template <class Visit, class VisitNumber>
bool each_field(std::string_view message, Visit&& visit, VisitNumber&& visit_number) {
  const char* p = message.data();
  const char* const end = p + message.size();
  while (p != end) {
    uint64_t tag = 0;
    p = wire::read_varint(p, end, tag);
    if (p == nullptr) return false;
    switch (tag & 7) {
      case wire::kBytes: {
        std::string_view bytes;
        p = wire::read_bytes(p, end, bytes);
        if (p == nullptr || !visit(tag >> 3, bytes)) return false;
        break;
      }
      case wire::kVarint: {
        uint64_t value = 0;
        p = wire::read_varint(p, end, value);
        if (p == nullptr || !visit_number(tag >> 3, value)) return false;
        break;
      }
      default:
        return false;
    }
  }
  return true;
}
bool any_number(uint64_t, uint64_t) { return true; }

bool read_time(std::string_view message, std::optional<int64_t>& seconds) {
  const bool read = each_field(
      message, [](uint64_t, std::string_view) { return false; },
      [&](uint64_t number, uint64_t value) {
        if (number == 1) seconds = static_cast<int64_t>(value);
        return number == 1 || value == 0;
      });
  return read && seconds.has_value();
}

bool read_entry(std::string_view message, ManagedFieldsMessage& entry) {
  return each_field(
      message,
      [&](uint64_t number, std::string_view bytes) {
        switch (number) {
          case kManager:
            entry.manager = bytes;
            return true;
          case kOperation:
            entry.operation = bytes;
            return true;
          case kApiVersion:
            entry.api_version = bytes;
            return true;
          case kTime:
            return read_time(bytes, entry.seconds);
          case kFieldsType:
            entry.fields_type = bytes;
            return true;
          case kFieldsV1:
            entry.fields_v1 = std::string_view{};
            return each_field(
                bytes,
                [&](uint64_t inner, std::string_view json) {
                  entry.fields_v1 = json;
                  return inner == 1;
                },
                any_number);
          case kSubresource:
            entry.subresource = bytes;
            return true;
          case kFieldsV2:
            entry.fields_v2 = bytes;
            return true;
          default:
            return false;
        }
      },
      [](uint64_t, uint64_t) { return false; });
}

bool read_label(std::string_view message, std::pair<std::string_view, std::string_view>& label) {
  return each_field(
      message,
      [&](uint64_t number, std::string_view bytes) {
        (number == 1 ? label.first : label.second) = bytes;
        return number == 1 || number == 2;
      },
      [](uint64_t, uint64_t) { return false; });
}

// Size of a field's tag, length and bytes; all numbers here are small.
size_t field_bytes(size_t bytes) { return 1 + varint_size(bytes) + bytes; }
void write_head(uint64_t number, size_t bytes, Sink& out) {
  constexpr size_t kMost = 2 + kMaxVarint;
  char* const to = write_varint(number << 3 | wire::kBytes, out.room(kMost));
  out.wrote(write_varint(bytes, to));
}
void write_bytes(uint64_t number, std::string_view bytes, Sink& out) {
  write_head(number, bytes.size(), out);
  out.put(bytes);
}

size_t time_bytes(int64_t seconds) { return 1 + varint_size(static_cast<uint64_t>(seconds)) + 2; }

// Without its tag and length.
size_t entry_bytes(const ManagedFieldsMessage& entry, size_t v1_bytes, size_t v2_bytes) {
  size_t bytes = field_bytes(entry.manager.size()) + field_bytes(entry.operation.size()) +
                 field_bytes(entry.api_version.size()) + field_bytes(entry.fields_type.size()) +
                 field_bytes(entry.subresource.size());
  if (entry.seconds) bytes += field_bytes(time_bytes(*entry.seconds));
  if (entry.fields_v1) bytes += field_bytes(field_bytes(v1_bytes));
  if (entry.fields_v2) bytes += field_bytes(v2_bytes);
  return bytes;
}
// managedFields is field 17: its tag takes two bytes.
size_t whole_bytes(size_t entry_bytes) { return 1 + field_bytes(entry_bytes); }

}  // namespace

Result<ObjectMetaMessage> read_object_meta(std::string_view message) {
  ObjectMetaMessage meta;
  const Error odd = bad_request("metadata that generated code would not write");
  const char* p = message.data();
  const char* const end = p + message.size();
  uint64_t tag = 0;
  std::string_view metadata;
  p = wire::read_varint(p, end, tag);
  if (p == nullptr || tag != (kMetadata << 3 | wire::kBytes)) return odd;
  p = wire::read_bytes(p, end, metadata);
  if (p == nullptr || (p != end && *p == static_cast<char>(kMetadata << 3 | wire::kBytes))) return odd;
  const bool read = each_field(
      metadata,
      [&](uint64_t number, std::string_view bytes) {
        switch (number) {
          case kUid:
            meta.uid = bytes;
            return true;
          case kLabels:
            return read_label(bytes, meta.labels.emplace_back());
          case kManagedFields:
            return read_entry(bytes, meta.managed_fields.emplace_back());
          default:
            return true;
        }
      },
      any_number);
  if (!read) return odd;
  return meta;
}

size_t joined_bytes(std::string_view message, size_t managed_bytes) {
  if (message.empty() || message[0] != (kMetadata << 3 | wire::kBytes)) return 0;
  std::string_view metadata;
  if (wire::read_bytes(message.data() + 1, message.data() + message.size(), metadata) == nullptr) return 0;
  return message.size() - field_bytes(metadata.size()) + field_bytes(metadata.size() + managed_bytes);
}

size_t managed_fields_bytes(const ManagedFieldsMessage& entry, size_t fields_bytes) {
  return whole_bytes(entry_bytes(entry, fields_bytes, fields_bytes));
}

void append_managed_fields(const ManagedFieldsMessage& entry, std::string& out) {
  const size_t bytes = entry_bytes(entry, entry.fields_v1.value_or("").size(), entry.fields_v2.value_or("").size());
  Sink sink(out);
  sink.room(whole_bytes(bytes));
  write_head(kManagedFields, bytes, sink);
  write_bytes(kManager, entry.manager, sink);
  write_bytes(kOperation, entry.operation, sink);
  write_bytes(kApiVersion, entry.api_version, sink);
  if (entry.seconds) {
    write_head(kTime, time_bytes(*entry.seconds), sink);
    char* at = sink.room(1 + kMaxVarint + 2);
    *at++ = 1 << 3 | wire::kVarint;
    at = write_varint(static_cast<uint64_t>(*entry.seconds), at);
    *at++ = 2 << 3 | wire::kVarint;  // nanos: always written, always zero.
    *at++ = 0;
    sink.wrote(at);
  }
  write_bytes(kFieldsType, entry.fields_type, sink);
  if (entry.fields_v1) {
    write_head(kFieldsV1, field_bytes(entry.fields_v1->size()), sink);
    write_bytes(1, *entry.fields_v1, sink);
  }
  write_bytes(kSubresource, entry.subresource, sink);
  if (entry.fields_v2) write_bytes(kFieldsV2, *entry.fields_v2, sink);
}

}  // namespace holdfast::codec
