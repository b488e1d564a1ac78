// Authentication of service account tokens: signed by this server's key, for existing accounts, bound to existing
// objects.
#pragma once

#include <functional>
#include <memory>

#include "api/api.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "server/token_uses.h"
#include "tokens/tokens.h"

namespace holdfast::server {

// Returns the current verifier; called for each token. Thread-safe.
using CurrentVerifier = std::function<std::shared_ptr<const tokens::Verifier>()>;

// `api` is called for each token; before the API exists, no account is known. Tokens in Secrets are valid for
// `own_audiences`; `note_use` is called when one is used on a day not yet recorded in the label of its Secret.
auth::TokenCheck service_account_tokens(CurrentVerifier verifier, std::function<api::Api*()> api,
                                        std::vector<std::string> own_audiences, std::function<void(TokenUse)> note_use,
                                        const Clock& clock);

}  // namespace holdfast::server
