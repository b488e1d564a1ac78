#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "auth/auth.h"
#include "base/api_error.h"
#include "base/base64.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/strings.h"

namespace holdfast::auth {

namespace {

constexpr std::string_view kCredentialId = "authentication.kubernetes.io/credential-id";

Error unauthorized(std::string why) { return {Reason::Unauthorized, std::move(why)}; }

// Splits a CSV line like Go's encoding/csv: quoted fields may contain commas and doubled quotes.
std::optional<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> fields;
  size_t at = 0;
  while (true) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
    std::string field;
    if (at < line.size() && line[at] == '"') {
      ++at;
      while (true) {
        if (at >= line.size()) return std::nullopt;
        if (line[at] == '"') {
          if (at + 1 < line.size() && line[at + 1] == '"') {
            field.push_back('"');
            at += 2;
            continue;
          }
          ++at;
          break;
        }
        field.push_back(line[at++]);
      }
      if (at < line.size() && line[at] != ',') return std::nullopt;
    } else {
      const size_t end = std::min(line.find(',', at), line.size());
      field = line.substr(at, end - at);
      if (field.find('"') != std::string::npos) return std::nullopt;
      at = end;
    }
    fields.push_back(std::move(field));
    if (at >= line.size()) return fields;
    ++at;
  }
}

// A user cached with its connection, so that only the first request pays for building it.
struct Remembered {
  uint64_t authenticator;
  UserRef user;
};

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

UserRef with_authenticated(UserInfo user) {
  if (user.name != kAnonymous && !user.in_group(kAuthenticatedGroup) && !user.in_group(kUnauthenticatedGroup)) {
    user.groups.emplace_back(kAuthenticatedGroup);
  }
  return std::make_shared<const UserInfo>(std::move(user));
}

}  // namespace

bool UserInfo::in_group(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::optional<std::string_view> node_of(const UserInfo& user) {
  constexpr std::string_view kPrefix = "system:node:";
  if (!user.name.starts_with(kPrefix) || !user.in_group(kNodesGroup)) return std::nullopt;
  return std::string_view(user.name).substr(kPrefix.size());
}

Result<TokenTable> TokenTable::from_csv(std::string_view csv, std::string_view source) {
  TokenTable table;
  size_t number = 0;
  while (!csv.empty()) {
    const size_t end = std::min(csv.find('\n'), csv.size());
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string where = std::string(source) + " line " + std::to_string(number);
    std::optional<std::vector<std::string>> fields = csv_fields(line);
    if (!fields) return bad_request(where + ": mismatched quote");
    if (fields->size() < 3) {
      return bad_request(where + ": at least 3 columns (token, user name, user uid) are needed, found " +
                         std::to_string(fields->size()));
    }
    std::vector<std::string>& f = *fields;
    if (f[0].empty()) continue;  // As in kube-apiserver: a line without a token is skipped.
    UserInfo user{.name = f[1], .uid = f[2], .groups = {}, .extra = {}};
    if (f.size() >= 4) {
      std::string_view groups = f[3];
      while (!groups.empty()) {
        const size_t comma = std::min(groups.find(','), groups.size());
        user.groups.emplace_back(groups.substr(0, comma));
        groups.remove_prefix(std::min(comma + 1, groups.size()));
      }
    }
    table.users_.insert_or_assign(f[0], with_authenticated(std::move(user)));
  }
  return table;
}

UserRef TokenTable::find(std::string_view token) const {
  const auto found = users_.find(std::string(token));
  return found == users_.end() ? nullptr : found->second;
}

TokenCheck static_tokens(TokenTable table, std::vector<std::string> meant_for) {
  return [table = std::make_shared<const TokenTable>(std::move(table)), meant_for = std::move(meant_for)](
             std::string_view token, const std::vector<std::string>& audiences) -> Result<TokenUser> {
    TokenUser known;
    for (const std::string& audience : audiences) {
      if (std::find(meant_for.begin(), meant_for.end(), audience) != meant_for.end()) {
        known.audiences.push_back(audience);
      }
    }
    if (!audiences.empty() && known.audiences.empty()) return TokenUser{};
    known.user = table->find(token);
    return known;
  };
}

Authenticator::Authenticator(AuthenticatorOptions options)
    : options_(std::move(options)),
      anonymous_(std::make_shared<const UserInfo>(UserInfo{
          .name = std::string(kAnonymous), .uid = {}, .groups = {std::string(kUnauthenticatedGroup)}, .extra = {}})),
      id_(next_id()) {}

Result<UserRef> Authenticator::authenticate(const net::Request& request) const {
  // The first method that recognises the user decides; an error counts only if none does.
  std::optional<Error> failure;
  for (auto method : {&Authenticator::by_request_header, &Authenticator::by_certificate, &Authenticator::by_token}) {
    Result<UserRef> user = (this->*method)(request);
    if (!user) {
      if (!failure) failure = user.take_error();
    } else if (*user) {
      return user;
    }
  }
  if (failure) return std::move(*failure);
  if (options_.anonymous) return anonymous_;
  return unauthorized("no credentials were given");
}

Result<UserRef> Authenticator::by_request_header(const net::Request& request) const {
  if (!options_.request_header_ca || !request.peer->certificate) return UserRef();
  std::string_view name;
  for (const std::string& header : options_.username_headers) {
    name = request.headers.get(header);
    if (!name.empty()) break;
  }
  if (name.empty()) return UserRef();
  const net::PeerCertificate& certificate = *request.peer->certificate;
  if (Result<Unit> verified = options_.request_header_ca->verify_client(certificate); !verified) {
    return verified.take_error();
  }
  const auto& allowed = options_.request_header_allowed_names;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), certificate.common_name()) == allowed.end()) {
    return unauthorized("x509: subject with cn=" + std::string(certificate.common_name()) +
                        " is not in the allowed list");
  }
  UserInfo user{.name = std::string(name), .uid = {}, .groups = {}, .extra = {}};
  for (const std::string& header : options_.uid_headers) {
    if (user.uid.empty()) user.uid = request.headers.get(header);
  }
  for (const std::string& header : options_.group_headers) {
    for (std::string_view group : request.headers.all(header)) user.groups.emplace_back(group);
  }
  std::unordered_map<std::string, size_t, KeyHash> extra_keys;
  for (const std::string& prefix : options_.extra_header_prefixes) {
    for (const net::Header& header : request.headers.items()) {
      if (header.name.size() <= prefix.size() || !equals_ignoring_case(header.name.substr(0, prefix.size()), prefix)) {
        continue;
      }
      const std::string_view raw = header.name.substr(prefix.size());
      std::string key = net::percent_decode(raw).value_or(std::string(raw));
      const auto [known, fresh] = extra_keys.try_emplace(key, user.extra.size());
      if (fresh) user.extra.emplace_back(std::move(key), std::vector<std::string>{});
      user.extra[known->second].second.emplace_back(header.value);
    }
  }
  return with_authenticated(std::move(user));
}

Result<UserRef> Authenticator::by_certificate(const net::Request& request) const {
  if (!options_.client_ca || !request.peer->certificate) return UserRef();
  const net::PeerCertificate& certificate = *request.peer->certificate;
  if (Result<Unit> verified = options_.client_ca->verify_client(certificate); !verified) return verified.take_error();
  if (const auto* known = static_cast<const Remembered*>(request.peer->memo.get());
      known != nullptr && known->authenticator == id_) {
    return known->user;
  }
  if (certificate.common_name().empty()) return UserRef();
  UserInfo user{.name = std::string(certificate.common_name()),
                .uid = std::string(certificate.uid()),
                .groups = certificate.organizations(),
                .extra = {{std::string(kCredentialId), {"X509SHA256=" + std::string(certificate.sha256_hex())}}}};
  auto remembered = std::make_shared<const Remembered>(Remembered{id_, with_authenticated(std::move(user))});
  request.peer->memo = remembered;
  return remembered->user;
}

namespace {

// The token in Authorization: Bearer; empty if there is none.
std::string_view header_token(const net::Request& request) {
  const std::string_view header = request.headers.get("authorization");
  const size_t space = header.find(' ');
  if (space == std::string_view::npos || !equals_ignoring_case(header.substr(0, space), "bearer")) return {};
  const std::string_view token = header.substr(space + 1);
  return token.substr(0, token.find(' '));
}

// Browsers cannot set Authorization for a WebSocket: the token is one of the offered subprotocols, in base64url
// (ProtocolAuthenticator of authentication/request/websocket). Empty if there is none.
Result<std::string> websocket_token(const net::Request& request) {
  if (!net::is_websocket_request(request)) return std::string();
  std::optional<std::string> token;
  bool others = false;
  for (const std::string_view header : request.headers.all("sec-websocket-protocol")) {
    for (const std::string_view part : split(header, ',')) {
      const std::string_view protocol = trim(part);
      if (!protocol.starts_with(kWebSocketToken)) {
        others = true;
        continue;
      }
      if (token) return unauthorized("multiple base64.bearer.authorization tokens specified");
      token = base64url_decode(protocol.substr(kWebSocketToken.size()));
      if (!token) return unauthorized("invalid base64.bearer.authorization token encoding");
    }
  }
  if (token && !token->empty() && !others) return unauthorized("missing additional subprotocol");
  return token.value_or("");
}

}  // namespace

Result<UserRef> Authenticator::by_token(const net::Request& request) const {
  std::string_view token = header_token(request);
  std::string offered;
  if (token.empty()) {
    Result<std::string> found = websocket_token(request);
    if (!found) return found.take_error();
    offered = std::move(*found);
    token = offered;
  }
  if (token.empty()) return UserRef();
  Result<TokenUser> known = authenticate_token(token, {});
  if (!known) return known.take_error();
  return std::move(known->user);
}

bool Authenticator::needs_keys(const net::Request& request) const {
  if (!options_.remote_keys) return false;
  if (const std::string_view token = header_token(request); !token.empty()) return needs_keys(token);
  // What is not a token at all is refused by authenticate().
  const Result<std::string> offered = websocket_token(request);
  return offered && !offered->empty() && needs_keys(*offered);
}

bool Authenticator::needs_keys(std::string_view token) const {
  return options_.remote_keys && token.size() <= limits::kTokenBytes && options_.remote_keys->lacks_key_of(token);
}

Task<void> Authenticator::fetch_keys(net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation) const {
  return options_.remote_keys->fetch(loop, std::move(cancellation));
}

Result<TokenUser> Authenticator::authenticate_token(std::string_view token,
                                                    const std::vector<std::string>& audiences) const {
  if (token.size() > limits::kTokenBytes) return unauthorized("invalid bearer token");
  std::string failures;
  for (const TokenCheck& check : options_.tokens) {
    Result<TokenUser> known = check(token, audiences.empty() ? options_.audiences : audiences);
    if (!known) {
      failures += ", " + known.error().message;
    } else if (known->user) {
      return known;
    }
  }
  return unauthorized(failures.empty() ? "invalid bearer token" : "[invalid bearer token" + failures + "]");
}

Error unauthorized_error() { return unauthorized("Unauthorized"); }

}  // namespace holdfast::auth
