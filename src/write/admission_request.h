// A write as policies and webhooks see it, on its way to the store.
#pragma once

#include <cstdint>
#include <string_view>

#include "auth/auth.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::write {

enum class AdmissionOperation : uint8_t { Create, Update, Delete, Connect };

// Views live as long as the request.
struct AdmissionRequest {
  AdmissionOperation operation = AdmissionOperation::Create;
  const types::Resource* resource = nullptr;  // As requested.
  std::string_view subresource, ns;
  std::string_view name;  // Empty for a create under generateName, until the name is made.
  const auth::UserInfo* user = nullptr;
  bool dry_run = false;
  // CreateOptions, UpdateOptions or DeleteOptions, with the effective field manager.
  Value options;
  Value object;  // Null for a delete. managedFields are in it, as FieldsV1.
  Value old;     // Null for a create.
};

}  // namespace holdfast::write
