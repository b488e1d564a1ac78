// What the server itself needs of an object's ObjectMeta, found in the Protobuf bytes without building a tree.
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
  std::optional<int64_t> seconds;             // time, whole seconds.
  std::optional<std::string_view> fields_v1;  // The JSON inside.
  std::optional<std::string_view> fields_v2;
};

struct ObjectMetaMessage {
  std::string_view uid;
  std::vector<std::pair<std::string_view, std::string_view>> labels;
  std::vector<ManagedFieldsMessage> managed_fields;
};

// Of an object's message without envelope. An error for what generated marshallers do not write (a zero time, metadata
// in pieces): decode it as a whole then.
Result<ObjectMetaMessage> read_object_meta(std::string_view message);

// The size of an object's message once that many bytes of managed fields are in its metadata. 0: it does not begin with
// metadata.
size_t joined_bytes(std::string_view message, size_t managed_bytes);

// Field 17 of ObjectMeta, tag included, as generated code writes it.
void append_managed_fields(const ManagedFieldsMessage& entry, std::string& out);
// The bytes that it appends for fields of that size, whatever the entry's own are.
size_t managed_fields_bytes(const ManagedFieldsMessage& entry, size_t fields_bytes);

}  // namespace holdfast::codec
