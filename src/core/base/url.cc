#include "base/url.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"

namespace holdfast {
namespace {

constexpr std::string_view kForm = "; desired format: https://host[/path]";

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::vector<UrlProblem> unparsable(std::string_view url, std::string_view why) {
  return {{.unparsable = true,
           .part = {},
           .why = "url must be a valid URL: parse " + go_quote(url) + ": " + std::string(why) + std::string(kForm)}};
}

// Where the scheme ends, by the rules of net/url; npos if there is none.
size_t end_of_scheme(std::string_view url) {
  for (size_t i = 0; i < url.size(); ++i) {
    const char c = url[i];
    if (is_letter(c)) continue;
    if (i > 0 && (is_digit(c) || c == '+' || c == '-' || c == '.')) continue;
    return c == ':' ? i : std::string_view::npos;
  }
  return std::string_view::npos;
}

}  // namespace

Result<HttpUrl> parse_http_url(std::string_view url) {
  HttpUrl parsed;
  if (std::any_of(url.begin(), url.end(), is_control)) return bad_request("invalid control character in URL");
  if (url.starts_with("http://")) {
    parsed.tls = false;
    parsed.port = 80;
  } else if (!url.starts_with("https://")) {
    return bad_request("the URL's scheme is neither http nor https");
  }
  url.remove_prefix(url.find("//") + 2);
  url = url.substr(0, url.find('#'));
  const size_t question = std::min(url.find('?'), url.size());
  parsed.query = url.substr(question);
  url = url.substr(0, question);
  const size_t slash = std::min(url.find('/'), url.size());
  parsed.path = url.substr(slash);
  std::string_view host = url.substr(0, slash);
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
    parsed.user = host.substr(0, at);
    host.remove_prefix(at + 1);
  }
  parsed.authority = host;
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    const std::optional<uint16_t> port = parse_number<uint16_t>(host.substr(colon + 1));
    if (!port) return bad_request("invalid port " + go_quote(host.substr(colon)) + " after host");
    parsed.port = *port;
    host = host.substr(0, colon);
  }
  host = without_brackets(host);
  if (host.empty()) return bad_request("the URL has no host");
  parsed.host = host;
  return parsed;
}

std::string_view without_brackets(std::string_view host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

std::string with_brackets(std::string_view host) {
  return host.find(':') == std::string_view::npos ? std::string(host) : "[" + std::string(host) + "]";
}

std::string host_port(std::string_view host, int64_t port) { return with_brackets(host) + ":" + std::to_string(port); }

void append_percent_encoded(std::string& out, char byte) { out += '%' + to_upper(to_hex({&byte, 1})); }

std::vector<UrlProblem> webhook_url_problems(std::string_view url) {
  if (std::any_of(url.begin(), url.end(), is_control)) {
    return unparsable(url, "net/url: invalid control character in URL");
  }
  const size_t hash = std::min(url.find('#'), url.size());
  const std::string_view fragment = url.substr(std::min(hash + 1, url.size()));
  std::string_view rest = url.substr(0, hash);
  const size_t question = std::min(rest.find('?'), rest.size());
  const std::string_view query = rest.substr(std::min(question + 1, rest.size()));
  rest = rest.substr(0, question);

  const size_t colon = end_of_scheme(rest);
  if (colon == 0) return unparsable(url, "missing protocol scheme");
  const std::string scheme = colon == std::string_view::npos ? std::string() : to_lower(rest.substr(0, colon));
  if (!scheme.empty()) rest.remove_prefix(colon + 1);
  if (scheme.empty() && !rest.starts_with('/') && rest.substr(0, rest.find('/')).find(':') != std::string_view::npos) {
    return unparsable(url, "first path segment in URL cannot contain colon");
  }
  std::string_view authority;
  if (rest.starts_with("//")) {
    authority = rest.substr(2, rest.find('/', 2) - 2);
    rest.remove_prefix(2 + authority.size());
  }
  const size_t at = authority.rfind('@');
  const std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  if (const size_t bad = host.find_first_of(" <>\"\\^`{|}"); bad != std::string_view::npos) {
    return unparsable(url, "invalid character " + go_quote(host.substr(bad, 1)) + " in host name");
  }
  if (host.starts_with('[') && host.find(']') == std::string_view::npos) return unparsable(url, "missing ']' in host");
  const size_t port_at = host.rfind(':');
  if (port_at != std::string_view::npos && host.find(']', port_at) == std::string_view::npos) {
    const std::string_view port = host.substr(port_at + 1);
    if (!std::all_of(port.begin(), port.end(), is_digit)) {
      return unparsable(url, "invalid port " + go_quote(host.substr(port_at)) + " after host");
    }
  }
  for (size_t i = rest.find('%'); i != std::string_view::npos; i = rest.find('%', i + 1)) {
    const std::string_view escape = rest.substr(i, 3);
    if (escape.size() < 3 || !is_hex(escape[1]) || !is_hex(escape[2])) {
      return unparsable(url, "invalid URL escape " + go_quote(escape));
    }
  }

  std::vector<UrlProblem> problems;
  const auto add = [&](std::string_view part, std::string why) {
    problems.push_back({.unparsable = false, .part = std::string(part), .why = std::move(why)});
  };
  if (scheme != "https") add(scheme, "'https' is the only allowed URL scheme" + std::string(kForm));
  if (host.empty()) add(host, "host must be specified" + std::string(kForm));
  if (at != std::string_view::npos) add(authority.substr(0, at), "user information is not permitted in the URL");
  if (!fragment.empty()) add(fragment, "fragments are not permitted in the URL");
  if (!query.empty()) add(query, "query parameters are not permitted in the URL");
  return problems;
}

}  // namespace holdfast
