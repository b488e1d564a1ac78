#include "client/credentials.h"

#include "base/base64.h"
#include "base/strings.h"
#include "client/core.h"
#include "client/files.h"

namespace holdfast::client {

Result<Credentials> read_credentials(const Config& config) {
  const auto soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Credentials read;
  if (!config.certificate_pem.empty()) read.identity = net::Identity{config.certificate_pem, config.key_pem};
  if (!config.certificate_file.empty() && !config.key_file.empty()) {
    // Rotation replaces both files; a mismatched pair is rejected and read again.
    Result<std::string> certificate = read_file(config.certificate_file), key = read_file(config.key_file);
    if (!certificate) return certificate.take_error();
    if (!key) return key.take_error();
    read.identity = net::Identity{std::move(*certificate), std::move(*key)};
    read.stale_at = soon;
  }
  if (!config.token_file.empty()) {
    Result<std::string> token = read_file(config.token_file);
    // Like client-go, fall back to the inline token while the file cannot be read.
    if (!token && config.token.empty()) return token.take_error();
    read.authorization = "Bearer " + (token ? std::string(trim(*token)) : config.token);
    read.stale_at = soon;
  } else if (!config.token.empty()) {
    read.authorization = "Bearer " + config.token;
  } else if (!config.username.empty()) {
    read.authorization = "Basic " + base64_encode(config.username + ":" + config.password);
  }
  return read;
}

void add_credentials(const Credentials& credentials, const Impersonation& impersonate,
                     std::vector<std::pair<std::string, std::string>>& headers) {
  if (!credentials.authorization.empty()) headers.emplace_back("authorization", credentials.authorization);
  if (!impersonate.user.empty()) headers.emplace_back("impersonate-user", impersonate.user);
  if (!impersonate.uid.empty()) headers.emplace_back("impersonate-uid", impersonate.uid);
  for (const std::string& group : impersonate.groups) headers.emplace_back("impersonate-group", group);
  for (const auto& [key, value] : impersonate.extra)
    headers.emplace_back("impersonate-extra-" + query_text(key), value);
}

}  // namespace holdfast::client
