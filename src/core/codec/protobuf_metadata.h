// The parts of an object's ObjectMeta that the server itself needs, read from the Protobuf bytes without building a
// tree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace holdfast::codec {

// One metav1.ManagedFieldsEntry. Views point into the message.
struct ManagedFieldsMessage {
  std::string_view manager, operation, api_version, fields_type, subresource;
  std::optional<int64_t> seconds;             // time, in whole seconds.
  std::optional<std::string_view> fields_v1;  // The JSON inside.
  std::optional<std::string_view> fields_v2;
};

struct ObjectMetaMessage {
  std::string_view uid;
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  std::vector<ManagedFieldsMessage> managed_fields;
};

// Reads an object's message (without envelope). An error for forms that generated marshallers do not write (a zero
// time, metadata in pieces): decode the whole object then.
Result<ObjectMetaMessage> read_object_meta(std::string_view message);

// The size of an object's message after adding that many bytes of managed fields to its metadata. 0 if it does not
// begin with metadata.
size_t joined_bytes(std::string_view message, size_t managed_bytes);

// Field 17 of ObjectMeta including its tag, as generated code writes it.
void append_managed_fields(const ManagedFieldsMessage& entry, std::string& out);
// The number of bytes that it appends for fields of that size, regardless of the entry's own fields.
size_t managed_fields_bytes(const ManagedFieldsMessage& entry, size_t fields_bytes);

}  // namespace holdfast::codec
