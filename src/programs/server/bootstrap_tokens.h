// Authentication by bootstrap tokens (ID.SECRET), with which new nodes join a cluster: each is a Secret of type
// bootstrap.kubernetes.io/token in kube-system. The user is system:bootstrap:ID in the group system:bootstrappers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/api.h"
#include "auth/auth.h"
#include "base/clock.h"

namespace holdfast::server {

// `api` is called for each token; before the API exists, no token is known. The tokens are valid for `own_audiences`.
auth::TokenCheck bootstrap_tokens(std::function<api::Api*()> api, std::vector<std::string> own_audiences,
                                  const Clock& clock);

}  // namespace holdfast::server
