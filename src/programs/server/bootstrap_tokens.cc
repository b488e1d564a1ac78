#include "server/bootstrap_tokens.h"

#include <algorithm>
#include <set>

#include "base/base64.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kNamespace = "kube-system";
constexpr size_t kIdLength = 6, kSecretLength = 16;

bool is_token_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

// ID.SECRET, both of fixed length.
bool has_token_form(std::string_view token) {
  return token.size() == kIdLength + 1 + kSecretLength && token[kIdLength] == '.' &&
         is_token_text(token.substr(0, kIdLength)) && is_token_text(token.substr(kIdLength + 1));
}

// In a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

// The pattern of BootstrapGroupPattern upstream: system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9].
bool is_bootstrap_group(std::string_view group) {
  constexpr std::string_view kPrefix = "system:bootstrappers:";
  if (!group.starts_with(kPrefix)) return false;
  const std::string_view rest = group.substr(kPrefix.size());
  if (rest.empty() || rest.size() > 256) return false;
  const bool valid = std::all_of(rest.begin(), rest.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':' || c == '-';
  });
  return valid && rest.back() != ':' && rest.back() != '-';
}

// The user of a token, or why its Secret does not make it valid.
Result<auth::UserRef> user_of(const Value& secret, std::string_view token, UnixTime now) {
  const auto data = [&](std::string_view key) { return base64_decode(secret.text_at("data", key)).value_or(""); };
  const auto wrong = [](std::string_view key) { return bad_request("has invalid value for key " + std::string(key)); };
  if (!secret.text_at("metadata", "deletionTimestamp").empty()) {
    return bad_request("is deleted and awaiting removal");
  }
  if (secret.text_at("type") != "bootstrap.kubernetes.io/token" || secret.find("data") == nullptr) {
    return bad_request("has invalid type, expected bootstrap.kubernetes.io/token");
  }
  if (!same_secret(data("token-secret"), token.substr(kIdLength + 1))) return wrong("token-secret");
  const std::string id = data("token-id");
  if (id != token.substr(0, kIdLength)) return wrong("token-id");
  if (const std::string expiration = data("expiration"); !expiration.empty()) {
    const std::optional<UnixTime> end = parse_rfc3339(expiration);
    if (!end) return wrong("expiration");
    if (*end <= now) return bad_request("has expired");
  }
  if (data("usage-bootstrap-authentication") != "true") {
    return bad_request("is not marked usage-bootstrap-authentication=true");
  }
  std::set<std::string, std::less<>> named = {"system:bootstrappers"};
  if (const std::string extra = data("auth-extra-groups"); !extra.empty()) {
    for (const std::string_view group : split(extra, ',')) {
      if (!is_bootstrap_group(group)) return wrong("auth-extra-groups");
      named.emplace(group);
    }
  }
  std::vector<std::string> groups(named.begin(), named.end());
  groups.emplace_back(auth::kAuthenticatedGroup);
  return auth::UserRef(std::make_shared<const auth::UserInfo>(
      auth::UserInfo{.name = "system:bootstrap:" + id, .uid = {}, .groups = std::move(groups), .extra = {}}));
}

// Null if no Secret makes the token valid.
auth::UserRef find_user(api::Api& api, std::string_view token, UnixTime now) {
  cache::Cache* secrets = api.cache_of("", "secrets");
  if (secrets == nullptr) return nullptr;
  Result<cache::Snapshot> snapshot = secrets->snapshot();
  if (!snapshot) return nullptr;
  const std::string name = "bootstrap-token-" + std::string(token.substr(0, kIdLength));
  const cache::EntryRef entry = snapshot->find(std::string(kNamespace) + "/" + name);
  if (!entry) return nullptr;
  Arena arena;
  const store::Blob body = entry->body();
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(*body);
  if (!envelope) return nullptr;
  Result<Value> secret = codec::decode_protobuf(arena, *types::find_kind("", "v1", "Secret")->type, envelope->message);
  if (!secret) return nullptr;
  Result<auth::UserRef> user = user_of(*secret, token, now);
  if (user) return *user;
  if (log::verbose(3)) log::info("a bootstrap token was refused", {{"secret", name}, {"why", user.error().message}});
  return nullptr;
}

}  // namespace

auth::TokenCheck bootstrap_tokens(std::function<api::Api*()> api, std::vector<std::string> own_audiences,
                                  const Clock& clock) {
  return [api = std::move(api), own_audiences = std::move(own_audiences), &clock](
             std::string_view token, const std::vector<std::string>& audiences) -> Result<auth::TokenUser> {
    auth::TokenUser known;
    api::Api* served = api();
    if (served == nullptr || !has_token_form(token)) return known;
    for (const std::string& audience : audiences) {
      if (std::find(own_audiences.begin(), own_audiences.end(), audience) != own_audiences.end()) {
        known.audiences.push_back(audience);
      }
    }
    if (!audiences.empty() && known.audiences.empty()) return auth::TokenUser{};
    known.user = find_user(*served, token, clock.now());
    return known;
  };
}

}  // namespace holdfast::server
