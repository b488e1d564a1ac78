// URLs of HTTP servers: their parts, the proxy in front of them, and which ones Kubernetes accepts for webhooks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast {

struct HttpUrl {
  bool tls = true;
  std::string user;       // "user:password" as written; empty if the URL has none.
  std::string authority;  // "host:port" as written, without the user.
  std::string host;       // Without the brackets of an IPv6 address.
  uint16_t port = 443;    // 443 or 80 if the URL names none.
  std::string path;       // As written: empty, or begins with a slash.
  std::string query;      // Empty, or begins with a question mark. A fragment is left out.
};
// Accepts http:// and https:// URLs. The BadRequest does not repeat the URL, which may contain a password.
Result<HttpUrl> parse_http_url(std::string_view url);

// The proxy that the environment names for a server, as Go programs read it; empty: none. Never for the local machine,
// and not for what NO_PROXY lists: names (with all below them), addresses, networks, each with or without a
// port, or "*".
std::string environment_proxy(const HttpUrl& server);

struct UrlProblem {
  bool unparsable = false;  // It is not a URL at all: Kubernetes then reports a required value.
  std::string part;         // What is wrong: scheme, host, user, fragment or query.
  std::string why;          // In Kubernetes' words.
};

// Empty: a webhook may have this URL. https only, a host, no user, no query, no fragment.
std::vector<UrlProblem> webhook_url_problems(std::string_view url);

}  // namespace holdfast
