// What else stands between a decoded write and the store, beside the built-in plugins: policies and webhooks. Joined in
// by server.
#pragma once

#include <string_view>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/task.h"
#include "render/render.h"
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

class AdmissionHook {
 public:
  virtual ~AdmissionHook() = default;
  // Whether anything would look at this; false spares preparing the request.
  virtual bool handles(const AdmissionRequest& request) const = 0;
  // The object, changed or not; new parts lie in `arena`.
  virtual Task<Result<Value>> mutate(Arena& arena, const AdmissionRequest& request, render::Warnings& warnings,
                                     Executor& executor) = 0;
  virtual Task<Result<Unit>> validate(Arena& arena, const AdmissionRequest& request, render::Warnings& warnings,
                                      Executor& executor) = 0;
};

}  // namespace holdfast::write
