#include "server/service_accounts.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/api_error.h"
#include "base/base64.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::server {
namespace {

Error refused(std::string why) { return {Reason::Unauthorized, std::move(why)}; }

// Whether an object deleted this long ago counts as gone, even if finalizers still hold it.
bool is_gone(const api::ObjectIdentity& object, UnixTime now) {
  return object.deleted && *object.deleted + tokens::kLeewaySeconds < now.seconds;
}

// The current state of the object a token is bound to. Strings are those of a TokenReview.
Result<Unit> check_bound(const api::Api& api, std::string_view kind, std::string_view plural, std::string_view ns,
                         const tokens::NamedUid& bound, UnixTime now) {
  const std::optional<api::ObjectIdentity> live = api.identity_of("", plural, ns, bound.name);
  if (!live) return refused("service account token has been invalidated");
  if (live->uid != bound.uid) {
    return refused(std::string(kind) + " UID (" + live->uid + ") does not match service account " + std::string(kind) +
                   " ref claim (" + bound.uid + ")");
  }
  if (is_gone(*live, now)) return refused("service account token has been invalidated");
  return Unit{};
}

// Set by kube-controller-manager on Secrets whose tokens have not been used for a long time.
constexpr std::string_view kInvalidSince = "kubernetes.io/legacy-token-invalid-since";

// The Secret of a token, if it still contains it. Messages as in pkg/serviceaccount/legacy.go.
Result<cache::EntryRef> find_secret(api::Api& api, const tokens::Claims& claims, std::string_view token, UnixTime now) {
  const Error invalidated = refused("Token has been invalidated");
  cache::Cache* secrets = api.cache_of("", "secrets");
  Result<cache::Snapshot> snapshot = secrets == nullptr ? Result<cache::Snapshot>(invalidated) : secrets->snapshot();
  if (!snapshot) return invalidated;
  const cache::EntryRef entry = snapshot->find(claims.ns + "/" + claims.secret->name);
  if (!entry) return invalidated;
  const std::optional<api::ObjectIdentity> live = api.identity_of("", "secrets", claims.ns, claims.secret->name);
  if (!live || is_gone(*live, now)) return invalidated;
  Arena arena;
  const store::Blob body = entry->body();
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(*body);
  if (!envelope) return invalidated;
  Result<Value> secret = codec::decode_protobuf(arena, *types::find_kind("", "v1", "Secret")->type, envelope->message);
  if (!secret || secret->text_at("data", "token") != base64_encode(token)) {
    return refused("Token does not match server's copy");
  }
  return entry;
}

// For an otherwise valid token: records the use of its Secret, and checks whether it has been invalidated.
Result<Unit> check_use(const tokens::Claims& claims, const cache::Entry& secret,
                       const std::function<void(TokenUse)>& note_use, UnixTime now) {
  constexpr int64_t kDay = 24 * 60 * 60;
  constexpr size_t kDateLength = 10;
  const auto date = [](UnixTime at) { return format_rfc3339(at).substr(0, kDateLength); };
  const auto noted = secret.label(kLastUsed);
  // The clock of another server may be ahead.
  if (const std::string today = date(now); noted != today && noted != date({now.seconds + kDay, 0})) {
    note_use({claims.ns, claims.secret->name, std::string(secret.uid()), today});
  }
  if (secret.label(kInvalidSince)) {
    const std::string account = claims.ns + "/" + claims.service_account.name;
    return refused("the token in secret " + claims.ns + "/" + claims.secret->name + " for service account " + account +
                   " has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based "
                   "tokens, or remove the '" +
                   std::string(kInvalidSince) + "' label from the secret to temporarily allow use of this token");
  }
  return Unit{};
}

Result<Unit> check_claims(api::Api& api, const tokens::Claims& claims, std::string_view token,
                          const std::function<void(TokenUse)>& note_use, UnixTime now) {
  const tokens::NamedUid& account = claims.service_account;
  cache::EntryRef secret;
  if (claims.is_legacy_token()) {
    Result<cache::EntryRef> found = find_secret(api, claims, token, now);
    if (!found) return found.take_error();
    secret = std::move(*found);
  }
  const std::optional<api::ObjectIdentity> live = api.identity_of("", "serviceaccounts", claims.ns, account.name);
  if (!live) return not_found({"", "serviceaccounts"}, account.name);
  if (live->uid != account.uid) {
    return refused("service account UID (" + live->uid + ") does not match claim (" + account.uid + ")");
  }
  if (is_gone(*live, now)) {
    return refused("service account " + claims.ns + "/" + account.name + " has been deleted");
  }
  if (secret) return check_use(claims, *secret, note_use, now);
  if (claims.secret) {
    if (Result<Unit> ok = check_bound(api, "secret", "secrets", claims.ns, *claims.secret, now); !ok) return ok;
  }
  if (claims.pod) return check_bound(api, "pod", "pods", claims.ns, *claims.pod, now);
  // A pod's token names its node without being bound to it.
  if (claims.node) return check_bound(api, "node", "nodes", "", *claims.node, now);
  return Unit{};
}

auth::UserRef user_of(const tokens::Claims& claims) {
  auth::UserInfo user{.name = claims.subject(),
                      .uid = claims.service_account.uid,
                      .groups = {"system:serviceaccounts", "system:serviceaccounts:" + claims.ns,
                                 std::string(auth::kAuthenticatedGroup)},
                      .extra = {}};
  auto add = [&](std::string_view key, const std::string& value) {
    if (value.empty()) return;
    user.extra.emplace_back("authentication.kubernetes.io/" + std::string(key), std::vector<std::string>{value});
  };
  if (!claims.id.empty()) add("credential-id", "JTI=" + claims.id);
  if (claims.node) {
    add("node-name", claims.node->name);
    add("node-uid", claims.node->uid);
  }
  if (claims.pod) {
    add("pod-name", claims.pod->name);
    add("pod-uid", claims.pod->uid);
  }
  return std::make_shared<const auth::UserInfo>(std::move(user));
}

using VerifierRef = std::shared_ptr<const tokens::Verifier>;

// Cache of tokens with a verified signature. Clients send the same token with every request, and verifying the
// signature is what is expensive; everything else is checked each time. Cleared when the keys change.
class KnownTokens {
 public:
  std::shared_ptr<const tokens::Claims> find(std::string_view token, const VerifierRef& verifier) const {
    const std::lock_guard lock(mutex_);
    if (verified_by_ != verifier) return nullptr;
    const auto found = claims_.find(token);
    return found == claims_.end() ? nullptr : found->second;
  }
  void add(std::string_view token, const VerifierRef& verifier, std::shared_ptr<const tokens::Claims> claims) {
    const std::lock_guard lock(mutex_);
    // Rare; all tokens are then verified once more.
    if (verified_by_ != verifier || claims_.size() >= kMost) claims_.clear();
    verified_by_ = verifier;
    claims_.emplace(std::string(token), std::move(claims));
  }

 private:
  static constexpr size_t kMost = 4096;
  mutable std::mutex mutex_;
  VerifierRef verified_by_;                                                           // Guarded by mutex_.
  std::map<std::string, std::shared_ptr<const tokens::Claims>, std::less<>> claims_;  // Guarded by mutex_.
};

}  // namespace

auth::TokenCheck service_account_tokens(CurrentVerifier verifier, std::function<api::Api*()> api,
                                        std::vector<std::string> own_audiences, std::function<void(TokenUse)> note_use,
                                        const Clock& clock) {
  return [current = std::move(verifier), api = std::move(api), own_audiences = std::move(own_audiences),
          note_use = std::move(note_use), &clock, known_tokens = std::make_shared<KnownTokens>()](
             std::string_view token, const std::vector<std::string>& audiences) -> Result<auth::TokenUser> {
    api::Api* served = api();
    if (served == nullptr) return auth::TokenUser{};
    const UnixTime now = clock.now();
    const VerifierRef verifier = current();
    std::shared_ptr<const tokens::Claims> claims = known_tokens->find(token, verifier);
    if (claims != nullptr) {
      if (Result<Unit> good = tokens::Verifier::check(*claims, audiences, now); !good) return good.take_error();
    } else {
      if (verifier->lacks_key_of(token)) return refused("invalid signature, no keys found");
      if (!verifier->recognizes(token)) return auth::TokenUser{};
      Result<tokens::Claims> verified = verifier->verify(token, audiences, now);
      if (!verified) return verified.take_error();
      if (verified->is_legacy_token()) {
        verified->audiences = own_audiences;
        if (Result<Unit> good = tokens::Verifier::check(*verified, audiences, now); !good) return good.take_error();
      }
      claims = std::make_shared<const tokens::Claims>(std::move(*verified));
      known_tokens->add(token, verifier, claims);
    }
    if (Result<Unit> live = check_claims(*served, *claims, token, note_use, now); !live) return live.take_error();
    auth::TokenUser known;
    known.user = user_of(*claims);
    for (const std::string& audience : audiences) {
      const auto& own = claims->audiences;
      if (std::find(own.begin(), own.end(), audience) != own.end()) known.audiences.push_back(audience);
    }
    return known;
  };
}

}  // namespace holdfast::server
