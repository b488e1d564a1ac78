// The inputs of policy expressions and match conditions besides the object: `request` and `authorizer`. Private to the
// module.
#pragma once

#include "auth/auth.h"
#include "call/call.h"
#include "cel/cel.h"
#include "write/admission_request.h"

namespace holdfast::write {

// Authorizes the request's user, or a service account named by an expression. Both arguments must outlive it.
class RequestAuthorizer final : public cel::Authorizer {
 public:
  RequestAuthorizer(const auth::Authorizer& authorizer, const auth::UserInfo& user)
      : authorizer_(authorizer), user_(user) {}

  Decision decide(const Check& check) override;

 private:
  const auth::Authorizer& authorizer_;
  const auth::UserInfo& user_;
};

// An AdmissionRequest without object and oldObject, for an object shown in the version of `kind`.
Value request_value(call::Call& call, const AdmissionRequest& request, const types::Resource& kind,
                    const types::Resource& resource);
// The resource for authorizer.requestResource.
cel::Val::RequestResource request_resource(const call::Call& call, const AdmissionRequest& request);

}  // namespace holdfast::write
