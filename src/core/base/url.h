// URLs of HTTP servers: their parts, the proxy to reach them, and which of them Kubernetes accepts for webhooks.
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
  uint16_t port = 443;    // 443 or 80 if the URL does not specify a port.
  std::string path;       // As written: empty, or begins with a slash.
  std::string query;      // Empty, or begins with a question mark. Fragments are dropped.
};
// Accepts http:// and https:// URLs. The BadRequest does not repeat the URL, which may contain a password.
Result<HttpUrl> parse_http_url(std::string_view url);

// "[::1]" as "::1"; other hosts unchanged.
std::string_view without_brackets(std::string_view host);

// "::1" as "[::1]"; other hosts unchanged.
std::string with_brackets(std::string_view host);
// Like Go's net.JoinHostPort: "10.0.0.1:443", "[::1]:443".
std::string host_port(std::string_view host, int64_t port);

// Appends the byte as in a URL: "%2F".
void append_percent_encoded(std::string& out, char byte);

// The proxy configured in the environment for a server, with the rules of Go programs; empty if none. Never used for
// the local machine, nor for entries of NO_PROXY: names (including subdomains), addresses, networks, each with or
// without a port, or "*".
std::string environment_proxy(const HttpUrl& server);

struct UrlProblem {
  bool unparsable = false;  // Not a URL at all: Kubernetes then reports a required value.
  std::string part;         // The invalid part: scheme, host, user, fragment or query.
  std::string why;          // With Kubernetes' message.
};

// Empty if the URL is allowed for a webhook: https only, with a host, without user, query or fragment.
std::vector<UrlProblem> webhook_url_problems(std::string_view url);

}  // namespace holdfast
