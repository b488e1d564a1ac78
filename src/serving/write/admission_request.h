// A write as seen by policies and webhooks, before it is stored.
#pragma once

#include <string_view>

#include "admission/operation.h"
#include "auth/auth.h"
#include "types/types.h"
#include "value/value.h"
#include "webhook/webhook.h"

namespace holdfast::write {

using AdmissionOperation = admission::Operation;

// Views must stay valid as long as the request.
struct AdmissionRequest {
  AdmissionOperation operation = AdmissionOperation::Create;
  const types::Resource* resource = nullptr;  // As requested.
  std::string_view subresource, ns;
  std::string_view name;  // Empty for a create with generateName until the name is generated.
  const auth::UserInfo* user = nullptr;
  bool dry_run = false;
  // CreateOptions, UpdateOptions or DeleteOptions, with the effective field manager.
  Value options;
  Value object;  // Null for a delete. Includes managedFields, as FieldsV1.
  Value old;     // Null for a create.
};

}  // namespace holdfast::write
