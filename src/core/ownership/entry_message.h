// Converts between a manager's entry and a metav1.ManagedFieldsEntry in Protobuf.
#pragma once

#include "codec/protobuf_metadata.h"
#include "ownership/pool.h"

namespace holdfast::ownership {

// The result's views point to the same memory as those of the entry.
inline codec::ManagedFieldsMessage to_message(const ManagedEntry& entry) {
  codec::ManagedFieldsMessage message{.manager = entry.manager,
                                      .operation = entry.operation,
                                      .api_version = entry.api_version,
                                      .fields_type = entry.fields_type,
                                      .subresource = entry.subresource,
                                      .seconds = std::nullopt,
                                      .fields_v1 = std::nullopt,
                                      .fields_v2 = std::nullopt};
  if (entry.time) message.seconds = entry.time->seconds;
  (entry.fields_type == kFieldsV2 ? message.fields_v2 : message.fields_v1) = entry.fields;
  return message;
}

inline ManagedEntry to_entry(const codec::ManagedFieldsMessage& message) {
  return {.manager = message.manager,
          .operation = message.operation,
          .api_version = message.api_version,
          .subresource = message.subresource,
          .time = message.seconds ? std::optional(UnixTime{*message.seconds, 0}) : std::nullopt,
          .fields_type = message.fields_type,
          .fields = message.fields_v2 ? message.fields_v2 : message.fields_v1};
}

}  // namespace holdfast::ownership
