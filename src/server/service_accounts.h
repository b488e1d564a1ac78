// Bearer tokens of service accounts: signed by this server's key, for accounts that still exist, bound to objects that
// still exist.
#pragma once

#include <functional>
#include <memory>

#include "api/api.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "server/token_uses.h"
#include "tokens/tokens.h"

namespace holdfast::server {

// `api` is called for each token: before the API exists, no account is known. Tokens in Secrets are for
// `own_audiences`; `note_use` is called when one is used on a day that the label of its Secret does not say.
auth::TokenCheck service_account_tokens(std::shared_ptr<const tokens::Verifier> verifier,
                                        std::function<api::Api*()> api, std::vector<std::string> own_audiences,
                                        std::function<void(TokenUse)> note_use, const Clock& clock);

}  // namespace holdfast::server
