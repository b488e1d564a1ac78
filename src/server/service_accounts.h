// Bearer tokens of service accounts: signed by this server's key, of accounts that are still there, bound to things
// that are still there.
#pragma once

#include <functional>
#include <memory>

#include "api/api.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "tokens/tokens.h"

namespace holdfast::server {

// `api` is asked for when a token comes: the server authenticates before it exists, and then knows no account.
auth::TokenCheck service_account_tokens(std::shared_ptr<const tokens::Verifier> verifier,
                                        std::function<const api::Api*()> api, const Clock& clock);

}  // namespace holdfast::server
