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

// `api` is called for each token: before the API exists, no account is known.
auth::TokenCheck service_account_tokens(std::shared_ptr<const tokens::Verifier> verifier,
                                        std::function<const api::Api*()> api, const Clock& clock);

}  // namespace holdfast::server
