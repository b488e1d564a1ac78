// The admission room's plugins as the API's hook: other objects come from the watch caches.
//
//   BuiltinAdmission admission(disabled);
//   Api api({..., .admission = &admission}, options);
//   admission.serve(api.registry(), authorizer);      // Before the first request.
#pragma once

#include <string>
#include <vector>

#include "admission/admission.h"
#include "api/admission_hook.h"
#include "api/registry.h"
#include "auth/auth.h"

namespace holdfast::api {

class BuiltinAdmission : public AdmissionHook {
 public:
  // Names of plugins that are off. Those of other rooms are passed over.
  explicit BuiltinAdmission(const std::vector<std::string>& disabled = {});

  // Both must outlive this.
  void serve(const Registry& registry, const auth::Authorizer& authorizer);

  bool handles(const AdmissionRequest& request) const override;
  Task<Result<Value>> mutate(Arena& arena, const AdmissionRequest& request, Warnings& warnings,
                             Executor& executor) override;
  Task<Result<Unit>> validate(Arena& arena, const AdmissionRequest& request, Warnings& warnings,
                              Executor& executor) override;

 private:
  admission::Chain chain_;
  const Registry* registry_ = nullptr;
  const auth::Authorizer* authorizer_ = nullptr;
};

}  // namespace holdfast::api
