#include "codec/protobuf_metadata.h"

#include "codec/protobuf_wire.h"

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

// Calls visit(number, bytes) for each length-delimited field and visit_number(number, value) for each varint. False:
// malformed, or of another wire type, or the visitor said so.
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

void append_bytes(uint64_t number, std::string_view bytes, std::string& out) {
  char head[2 * wire::kMaxVarint];
  char* at = wire::write_varint(number << 3 | wire::kBytes, head);
  at = wire::write_varint(bytes.size(), at);
  out.append(head, at);
  out += bytes;
}

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

void append_managed_fields(const ManagedFieldsMessage& entry, std::string& out) {
  thread_local std::string message, inner;
  message.clear();
  append_bytes(kManager, entry.manager, message);
  append_bytes(kOperation, entry.operation, message);
  append_bytes(kApiVersion, entry.api_version, message);
  if (entry.seconds) {
    char time[2 + wire::kMaxVarint + 2] = {1 << 3 | wire::kVarint};
    char* at = wire::write_varint(static_cast<uint64_t>(*entry.seconds), time + 1);
    *at++ = 2 << 3 | wire::kVarint;  // nanos: always written, always zero.
    *at++ = 0;
    append_bytes(kTime, {time, static_cast<size_t>(at - time)}, message);
  }
  append_bytes(kFieldsType, entry.fields_type, message);
  if (entry.fields_v1) {
    inner.clear();
    append_bytes(1, *entry.fields_v1, inner);
    append_bytes(kFieldsV1, inner, message);
  }
  append_bytes(kSubresource, entry.subresource, message);
  if (entry.fields_v2) append_bytes(kFieldsV2, *entry.fields_v2, message);
  append_bytes(kManagedFields, message, out);
}

}  // namespace holdfast::codec
