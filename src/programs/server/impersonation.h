// Impersonation: the headers Impersonate-User, -Group, -Uid and -Extra-*, and permission to use them.
//
// As in kube-apiserver v1.36: the constrained modes are tried first (each needs `impersonate:<mode>` on the identity
// and `impersonate-on:<mode>:<verb>` on the requested resource), then the legacy permission to impersonate everywhere.
#pragma once

#include <optional>
#include <string>

#include "auth/auth.h"
#include "net/net.h"

namespace holdfast::server {

struct Impersonated {
  auth::UserRef user;
  std::string constraint;  // "impersonate:user-info"; empty for the legacy permission. Recorded in the audit log.
};

// nullopt if the request does not impersonate. `attributes` are those of the request, with the caller as user. 400 for
// headers without a user, 403 with the message of the first mode that could have applied.
Result<std::optional<Impersonated>> impersonate(const net::Headers& headers, const auth::Attributes& attributes,
                                                const auth::Authorizer& authorizer);

}  // namespace holdfast::server
