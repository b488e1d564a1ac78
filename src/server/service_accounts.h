// Bearer tokens of service accounts: signed by this server's key, for accounts that still exist, bound to objects that
// still exist.
#pragma once

#include <functional>
#include <memory>

#include "api/api.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "tokens/tokens.h"

namespace holdfast::server {

// `api` is called for each token: before the API exists, no account is known. Tokens in Secrets are for
// `own_audiences`.
auth::TokenCheck service_account_tokens(std::shared_ptr<const tokens::Verifier> verifier,
                                        std::function<api::Api*()> api, std::vector<std::string> own_audiences,
                                        const Clock& clock);

}  // namespace holdfast::server
