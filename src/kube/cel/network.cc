// Kubernetes' libraries for IP addresses, networks and URLs, with the error messages of Go's netip and net/url.
#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "base/url.h"
#include "cel/functions.h"

namespace holdfast::cel {
namespace {

using Args = std::span<const Val>;

// --- Addresses ---

struct Parsed {
  IpOpaque ip{};
  bool zone = false;
  std::string problem;  // Empty if parsed.
};

std::string address_problem(std::string_view in, std::string_view message, std::string_view at = {}) {
  std::string out = "ParseAddr(" + go_quote(in) + "): " + std::string(message);
  if (!at.empty()) out += " (at " + go_quote(at) + ")";
  return out;
}

std::string parse_v4(std::string_view in, std::string_view s, uint8_t* out) {
  int value = 0, position = 0, digits = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (is_digit(s[i])) {
      if (digits == 1 && value == 0) return address_problem(in, "IPv4 field has octet with leading zero");
      value = value * 10 + (s[i] - '0');
      ++digits;
      if (value > 255) return address_problem(in, "IPv4 field has value >255");
    } else if (s[i] == '.') {
      if (i == 0 || i == s.size() - 1 || s[i - 1] == '.')
        return address_problem(in, "IPv4 field must have at least one digit", s.substr(i));
      if (position == 3) return address_problem(in, "IPv4 address too long");
      out[position++] = static_cast<uint8_t>(value);
      value = digits = 0;
    } else {
      return address_problem(in, "unexpected character", s.substr(i));
    }
  }
  if (position < 3) return address_problem(in, "IPv4 address too short");
  out[3] = static_cast<uint8_t>(value);
  return {};
}

Parsed parse_v6(std::string_view in) {
  Parsed result;
  result.ip.v6 = true;
  std::string_view s = in;
  const auto fail = [&](std::string_view message, std::string_view at = {}) {
    result.problem = address_problem(in, message, at);
    return result;
  };
  if (const size_t percent = s.find('%'); percent != std::string_view::npos) {
    if (percent + 1 == s.size()) return fail("zone must be a non-empty string");
    result.zone = true;
    s = s.substr(0, percent);
  }
  int ellipsis = -1, i = 0;
  std::array<uint8_t, 16>& bytes = result.ip.bytes;
  if (s.starts_with("::")) {
    ellipsis = 0;
    s.remove_prefix(2);
    if (s.empty()) return result;
  }
  while (i < 16) {
    size_t length = 0;
    uint32_t value = 0;
    for (; length < s.size(); ++length) {
      const int digit = hex_value(s[length]);
      if (digit < 0) break;
      value = value << 4 | static_cast<uint32_t>(digit);
      if (length > 3) return fail("each group must have 4 or less digits", s);
    }
    if (length == 0) return fail("each colon-separated field must have at least one digit", s);
    if (length < s.size() && s[length] == '.') {
      if (ellipsis < 0 && i != 12)
        return fail("embedded IPv4 address must replace the final 2 fields of the address", s);
      if (i + 4 > 16) return fail("too many hex fields to fit an embedded IPv4 at the end of the address", s);
      if (std::string problem = parse_v4(in, s, &bytes[static_cast<size_t>(i)]); !problem.empty()) {
        result.problem = std::move(problem);
        return result;
      }
      s = {};
      i += 4;
      break;
    }
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(value >> 8);
    bytes[static_cast<size_t>(i) + 1] = static_cast<uint8_t>(value);
    i += 2;
    s.remove_prefix(length);
    if (s.empty()) break;
    if (s[0] != ':') return fail("unexpected character, want colon", s);
    if (s.size() == 1) return fail("colon must be followed by more characters", s);
    s.remove_prefix(1);
    if (s[0] == ':') {
      if (ellipsis >= 0) return fail("multiple :: in address", s);
      ellipsis = i;
      s.remove_prefix(1);
      if (s.empty()) break;
    }
  }
  if (!s.empty()) return fail("trailing garbage after address", s);
  if (i < 16) {
    if (ellipsis < 0) return fail("address string too short");
    const int shift = 16 - i;
    std::copy_backward(bytes.begin() + ellipsis, bytes.begin() + i, bytes.end());
    for (int j = ellipsis; j < ellipsis + shift; ++j) bytes[static_cast<size_t>(j)] = 0;
  } else if (ellipsis >= 0) {
    return fail("the :: must expand to at least one field of zeros");
  }
  return result;
}

Parsed parse_address(std::string_view in) {
  Parsed result;
  for (const char c : in) {
    if (c == '.') {
      result.problem = parse_v4(in, in, result.ip.bytes.data());
      return result;
    }
    if (c == ':') return parse_v6(in);
    if (c == '%') {
      result.problem = address_problem(in, "missing IPv6 address");
      return result;
    }
  }
  result.problem = address_problem(in, "unable to parse IP");
  return result;
}

bool is_v4_in_v6(const IpOpaque& ip) {
  if (!ip.v6) return false;
  for (size_t i = 0; i < 10; ++i) {
    if (ip.bytes[i] != 0) return false;
  }
  return ip.bytes[10] == 0xff && ip.bytes[11] == 0xff;
}

std::string parse_ip(std::string_view text, IpOpaque& out) {
  Parsed parsed = parse_address(text);
  if (!parsed.problem.empty())
    return "IP Address " + go_quote(text) + " parse error during conversion from string: " + parsed.problem;
  if (parsed.zone) return "IP address " + go_quote(text) + " with zone value is not allowed";
  if (is_v4_in_v6(parsed.ip)) return "IPv4-mapped IPv6 address " + go_quote(text) + " is not allowed";
  out = parsed.ip;
  out.kind = OpaqueKind::Ip;
  return {};
}

std::string parse_cidr(std::string_view text, IpOpaque& out) {
  const auto fail = [&](const std::string& message) {
    return "network address parse error during conversion from string: netip.ParsePrefix(" + go_quote(text) +
           "): " + message;
  };
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return fail("no '/'");
  const Parsed parsed = parse_address(text.substr(0, slash));
  if (!parsed.problem.empty()) return fail(parsed.problem);
  if (parsed.zone) return fail("IPv6 zones cannot be present in a prefix");
  const std::string_view bits = text.substr(slash + 1);
  const std::optional<int> prefix = parse_number<int>(bits);
  if (!prefix || (bits.size() > 1 && (bits[0] < '1' || bits[0] > '9'))) {
    return fail("bad bits after slash: " + go_quote(bits));
  }
  if (*prefix < 0 || *prefix > (parsed.ip.v6 ? 128 : 32)) return fail("prefix length out of range");
  if (is_v4_in_v6(parsed.ip)) return "IPv4-mapped IPv6 address " + go_quote(text) + " is not allowed";
  out = parsed.ip;
  out.kind = OpaqueKind::Cidr;
  out.prefix = *prefix;
  return {};
}

Val ip(Context& c, Args a) {
  auto* out = c.arena.make<IpOpaque>();
  const std::string problem = parse_ip(a[0].text(), *out);
  return problem.empty() ? Rep::opaque(out) : error(c.arena, problem);
}
Val is_ip(Context&, Args a) {
  IpOpaque out;
  return Val::boolean(parse_ip(a[0].text(), out).empty());
}
Val is_canonical(Context& c, Args a) {
  IpOpaque out;
  const std::string problem = parse_ip(a[0].text(), out);
  return problem.empty() ? Val::boolean(ip_text(out) == a[0].text()) : error(c.arena, problem);
}
Val cidr(Context& c, Args a) {
  auto* out = c.arena.make<IpOpaque>();
  const std::string problem = parse_cidr(a[0].text(), *out);
  return problem.empty() ? Rep::opaque(out)
                         : error(c.arena, "network address parse error during conversion from string: " + problem);
}
Val is_cidr(Context&, Args a) {
  IpOpaque out;
  return Val::boolean(parse_cidr(a[0].text(), out).empty());
}
Val opaque_to_string(Context& c, Args a) { return Val::string(c.arena.copy(opaque_text(Rep::opaque(a[0])))); }

const IpOpaque& address(const Val& v) { return Rep::as<IpOpaque>(v); }
bool all_zero(const IpOpaque& ip) {
  return std::all_of(ip.bytes.begin(), ip.bytes.begin() + (ip.v6 ? 16 : 4), [](uint8_t b) { return b == 0; });
}
bool loopback(const IpOpaque& ip) {
  if (!ip.v6) return ip.bytes[0] == 127;
  return std::all_of(ip.bytes.begin(), ip.bytes.begin() + 15, [](uint8_t b) { return b == 0; }) && ip.bytes[15] == 1;
}
bool link_local_unicast(const IpOpaque& ip) {
  return ip.v6 ? ip.bytes[0] == 0xfe && (ip.bytes[1] & 0xc0) == 0x80 : ip.bytes[0] == 169 && ip.bytes[1] == 254;
}
bool multicast(const IpOpaque& ip) { return ip.v6 ? ip.bytes[0] == 0xff : (ip.bytes[0] & 0xf0) == 0xe0; }

Val family(Context&, Args a) { return Val::integer(address(a[0]).v6 ? 6 : 4); }
Val is_unspecified(Context&, Args a) { return Val::boolean(all_zero(address(a[0]))); }
Val is_loopback(Context&, Args a) { return Val::boolean(loopback(address(a[0]))); }
Val is_link_local_multicast(Context&, Args a) {
  const IpOpaque& ip = address(a[0]);
  return Val::boolean(ip.v6 ? ip.bytes[0] == 0xff && (ip.bytes[1] & 0x0f) == 0x02
                            : ip.bytes[0] == 224 && ip.bytes[1] == 0 && ip.bytes[2] == 0);
}
Val is_link_local_unicast(Context&, Args a) { return Val::boolean(link_local_unicast(address(a[0]))); }
Val is_global_unicast(Context&, Args a) {
  const IpOpaque& ip = address(a[0]);
  const bool broadcast = !ip.v6 && ip.bytes[0] == 255 && ip.bytes[1] == 255 && ip.bytes[2] == 255 && ip.bytes[3] == 255;
  return Val::boolean(!all_zero(ip) && !broadcast && !loopback(ip) && !multicast(ip) && !link_local_unicast(ip));
}

bool same_prefix(const IpOpaque& a, const IpOpaque& b, int bits) {
  if (a.v6 != b.v6) return false;
  const size_t whole = static_cast<size_t>(bits) / 8;
  if (!std::equal(a.bytes.begin(), a.bytes.begin() + static_cast<long>(whole), b.bytes.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || (a.bytes[whole] ^ b.bytes[whole]) >> (8 - rest) == 0;
}
Val contains_ip(Context&, Args a) {
  return Val::boolean(same_prefix(address(a[0]), address(a[1]), address(a[0]).prefix));
}
Val contains_ip_text(Context& c, Args a) {
  IpOpaque other;
  // For any parse error, upstream reports that the network does not accept such an argument.
  if (const std::string problem = parse_ip(a[1].text(), other); !problem.empty()) return no_such_overload();
  (void)c;
  return Val::boolean(same_prefix(address(a[0]), other, address(a[0]).prefix));
}
bool network_contains(const IpOpaque& a, const IpOpaque& b) {
  return same_prefix(a, b, std::min(a.prefix, b.prefix)) && a.prefix <= b.prefix;
}
Val contains_cidr(Context&, Args a) { return Val::boolean(network_contains(address(a[0]), address(a[1]))); }
Val contains_cidr_text(Context& c, Args a) {
  IpOpaque other;
  if (const std::string problem = parse_cidr(a[1].text(), other); !problem.empty())
    return error(c.arena, "network address parse error during conversion from string: " + problem);
  return Val::boolean(network_contains(address(a[0]), other));
}
Val cidr_ip(Context& c, Args a) {
  auto* out = c.arena.make<IpOpaque>(address(a[0]));
  out->kind = OpaqueKind::Ip;
  out->prefix = 0;
  return Rep::opaque(out);
}
Val prefix_length(Context&, Args a) { return Val::integer(address(a[0]).prefix); }
Val masked(Context& c, Args a) {
  auto* out = c.arena.make<IpOpaque>(address(a[0]));
  for (size_t i = 0; i < 16; ++i) {
    const int kept = std::clamp(out->prefix - static_cast<int>(i) * 8, 0, 8);
    out->bytes[i] = static_cast<uint8_t>(out->bytes[i] & (0xff00 >> kept));
  }
  return Rep::opaque(out);
}

// --- URLs ---

enum class Escaping : uint8_t { Path, Host, Zone, User, Query, Fragment };

bool is_unreserved(char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~'; }
bool should_escape(char c, Escaping mode) {
  if (is_unreserved(c)) return false;
  if (mode == Escaping::Host || mode == Escaping::Zone) {
    if (std::string_view("!$&'()*+,;=:[]<>\"").find(c) != std::string_view::npos) return false;
  }
  if (std::string_view("$&+,/:;=?@").find(c) != std::string_view::npos) {
    switch (mode) {
      case Escaping::Path:
        return c == '?';
      case Escaping::User:
        return c == '@' || c == '/' || c == '?' || c == ':';
      case Escaping::Query:
        return true;
      case Escaping::Fragment:
        return false;
      default:
        break;
    }
  }
  if (mode == Escaping::Fragment && std::string_view("!()*").find(c) != std::string_view::npos) return false;
  return true;
}
std::string escaped(std::string_view text, Escaping mode) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' && mode == Escaping::Query) {
      out += '+';
    } else if (should_escape(c, mode)) {
      append_percent_encoded(out, c);
    } else {
      out += c;
    }
  }
  return out;
}
std::optional<std::string> unescaped(std::string_view text, Escaping mode, std::string& problem) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size() || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) {
        problem = "invalid URL escape " + go_quote(text.substr(i, std::min<size_t>(3, text.size() - i)));
        return std::nullopt;
      }
      const char code = static_cast<char>(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
      if (mode == Escaping::Host && static_cast<unsigned char>(code) < 0x80 && text.substr(i, 3) != "%25") {
        problem = "invalid URL escape " + go_quote(text.substr(i, 3));
        return std::nullopt;
      }
      if (mode == Escaping::Zone && text.substr(i, 3) != "%25" && code != ' ' && should_escape(code, Escaping::Host)) {
        problem = "invalid URL escape " + go_quote(text.substr(i, 3));
        return std::nullopt;
      }
      out += code;
      i += 2;
    } else if (c == '+' && mode == Escaping::Query) {
      out += ' ';
    } else {
      if ((mode == Escaping::Host || mode == Escaping::Zone) && static_cast<unsigned char>(c) < 0x80 &&
          should_escape(c, mode)) {
        problem = "invalid character " + go_quote(text.substr(i, 1)) + " in host name";
        return std::nullopt;
      }
      out += c;
    }
  }
  return out;
}

struct Url {
  std::string scheme, opaque, user, password, host, path, raw_path, query, fragment, raw_fragment;
  bool has_user = false, has_password = false, force_query = false, omit_host = false;
};

bool valid_port(std::string_view port) {
  if (port.empty()) return true;
  if (port[0] != ':') return false;
  return std::all_of(port.begin() + 1, port.end(), is_digit);
}

bool parse_authority(std::string_view authority, Url& url, std::string& problem) {
  const size_t at = authority.rfind('@');
  std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  if (host.starts_with('[')) {
    const size_t close = host.rfind(']');
    if (close == std::string_view::npos) {
      problem = "missing ']' in host";
      return false;
    }
    if (!valid_port(host.substr(close + 1))) {
      problem = "invalid port " + go_quote(host.substr(close + 1)) + " after host";
      return false;
    }
    if (const size_t zone = host.substr(0, close).find("%25"); zone != std::string_view::npos) {
      const auto before = unescaped(host.substr(0, zone), Escaping::Host, problem);
      const auto middle = before ? unescaped(host.substr(zone, close - zone), Escaping::Zone, problem) : std::nullopt;
      const auto after = middle ? unescaped(host.substr(close), Escaping::Host, problem) : std::nullopt;
      if (!after) return false;
      url.host = *before + *middle + *after;
      host = {};
    }
  } else if (const size_t colon = host.rfind(':'); colon != std::string_view::npos && !valid_port(host.substr(colon))) {
    problem = "invalid port " + go_quote(host.substr(colon)) + " after host";
    return false;
  }
  if (url.host.empty()) {
    const auto plain = unescaped(host, Escaping::Host, problem);
    if (!plain) return false;
    url.host = *plain;
  }
  if (at == std::string_view::npos) return true;
  const std::string_view user = authority.substr(0, at);
  for (const char c : user) {
    if (!is_unreserved(c) && std::string_view("-._:~!$&'()*+,;=%@").find(c) == std::string_view::npos) {
      problem = "net/url: invalid userinfo";
      return false;
    }
  }
  url.has_user = true;
  const size_t colon = user.find(':');
  const auto name = unescaped(user.substr(0, colon), Escaping::User, problem);
  if (!name) return false;
  url.user = *name;
  if (colon != std::string_view::npos) {
    const auto password = unescaped(user.substr(colon + 1), Escaping::User, problem);
    if (!password) return false;
    url.has_password = true;
    url.password = *password;
  }
  return true;
}

bool parse_url(std::string_view text, bool request, Url& url, std::string& problem) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      problem = "net/url: invalid control character in URL";
      return false;
    }
  }
  if (text.empty() && request) {
    problem = "empty url";
    return false;
  }
  if (text == "*") {
    url.path = "*";
    return true;
  }
  std::string_view rest = text;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_letter(c)) continue;
    if (is_digit(c) || c == '+' || c == '-' || c == '.') {
      if (i == 0) break;
      continue;
    }
    if (c == ':') {
      if (i == 0) {
        problem = "missing protocol scheme";
        return false;
      }
      url.scheme += to_lower(text.substr(0, i));
      rest = text.substr(i + 1);
    }
    break;
  }
  if (rest.ends_with('?') && std::count(rest.begin(), rest.end(), '?') == 1) {
    url.force_query = true;
    rest.remove_suffix(1);
  } else if (const size_t mark = rest.find('?'); mark != std::string_view::npos) {
    url.query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  if (!rest.starts_with('/')) {
    if (!url.scheme.empty()) {
      url.opaque = rest;
      return true;
    }
    if (request) {
      problem = "invalid URI for request";
      return false;
    }
    if (rest.substr(0, rest.find('/')).find(':') != std::string_view::npos) {
      problem = "first path segment in URL cannot contain colon";
      return false;
    }
  }
  if ((!url.scheme.empty() || (!request && !rest.starts_with("///"))) && rest.starts_with("//")) {
    std::string_view authority = rest.substr(2);
    rest = {};
    if (const size_t slash = authority.find('/'); slash != std::string_view::npos) {
      rest = authority.substr(slash);
      authority = authority.substr(0, slash);
    }
    if (!parse_authority(authority, url, problem)) return false;
  } else if (!url.scheme.empty() && rest.starts_with('/')) {
    url.omit_host = true;
  }
  const auto path = unescaped(rest, Escaping::Path, problem);
  if (!path) return false;
  url.path = *path;
  if (escaped(url.path, Escaping::Path) != rest) url.raw_path = rest;
  return true;
}

bool valid_encoded(std::string_view text, Escaping mode) {
  for (const char c : text) {
    if (std::string_view("!$&'()*+,;=:@").find(c) != std::string_view::npos) continue;
    if (c == '[' || c == ']' || c == '%') continue;
    if (should_escape(c, mode)) return false;
  }
  return true;
}

std::string escaped_path(const Url& url) {
  if (!url.raw_path.empty() && valid_encoded(url.raw_path, Escaping::Path)) return url.raw_path;
  if (url.path == "*") return "*";
  return escaped(url.path, Escaping::Path);
}

std::string url_text(const Url& url) {
  std::string out;
  if (!url.scheme.empty()) out += url.scheme + ":";
  if (!url.opaque.empty()) {
    out += url.opaque;
  } else {
    if (!url.scheme.empty() || !url.host.empty() || url.has_user) {
      if (!(url.omit_host && url.host.empty() && !url.has_user)) {
        if (!url.host.empty() || !url.path.empty() || url.has_user) out += "//";
        if (url.has_user) {
          out += escaped(url.user, Escaping::User);
          if (url.has_password) out += ":" + escaped(url.password, Escaping::User);
          out += "@";
        }
        out += escaped(url.host, Escaping::Host);
      }
    }
    const std::string path = escaped_path(url);
    if (!path.empty() && path[0] != '/' && !url.host.empty()) out += '/';
    if (out.empty()) {
      const std::string segment = path.substr(0, path.find('/'));
      if (segment.find(':') != std::string::npos) out += "./";
    }
    out += path;
  }
  if (url.force_query || !url.query.empty()) out += "?" + url.query;
  if (!url.fragment.empty()) {
    out += "#" + (!url.raw_fragment.empty() ? url.raw_fragment : escaped(url.fragment, Escaping::Fragment));
  }
  return out;
}

std::string request_uri_problem(std::string_view text) {
  Url url;
  std::string problem;
  if (parse_url(text, true, url, problem)) return {};
  return "parse " + go_quote(text) + ": " + problem;
}

Val to_url(Context& c, Args a) {
  const std::string_view text = a[0].text();
  const std::string prefix = "URL parse error during conversion from string: ";
  if (const std::string problem = request_uri_problem(text); !problem.empty()) return error(c.arena, prefix + problem);
  Url url;
  std::string problem;
  const size_t hash = text.find('#');
  if (!parse_url(text.substr(0, hash), false, url, problem))
    return error(c.arena, prefix + "parse " + go_quote(text.substr(0, hash)) + ": " + problem);
  if (hash != std::string_view::npos && hash + 1 < text.size()) {
    const auto fragment = unescaped(text.substr(hash + 1), Escaping::Fragment, problem);
    if (!fragment) return error(c.arena, prefix + "parse " + go_quote(text) + ": " + problem);
    url.fragment = *fragment;
    if (escaped(url.fragment, Escaping::Fragment) != text.substr(hash + 1) &&
        valid_encoded(text.substr(hash + 1), Escaping::Fragment))
      url.raw_fragment = text.substr(hash + 1);
  }
  auto* out = c.arena.make<UrlOpaque>();
  out->kind = OpaqueKind::Url;
  out->scheme = c.arena.copy(url.scheme);
  out->host = c.arena.copy(url.host);
  out->path = c.arena.copy(escaped_path(url));
  out->query = c.arena.copy(url.query);
  out->text = c.arena.copy(url_text(url));
  return Rep::opaque(out);
}
Val is_url(Context&, Args a) { return Val::boolean(request_uri_problem(a[0].text()).empty()); }

const UrlOpaque& url_of(const Val& v) { return Rep::as<UrlOpaque>(v); }
// Splits "host:port" like URL.Hostname() and Port().
std::pair<std::string_view, std::string_view> host_and_port(std::string_view host) {
  std::string_view port;
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && valid_port(host.substr(colon))) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {host, port};
}
Val get_scheme(Context&, Args a) { return Val::string(url_of(a[0]).scheme); }
Val get_host(Context&, Args a) { return Val::string(url_of(a[0]).host); }
Val get_hostname(Context&, Args a) { return Val::string(host_and_port(url_of(a[0]).host).first); }
Val get_port(Context&, Args a) { return Val::string(host_and_port(url_of(a[0]).host).second); }
Val get_escaped_path(Context&, Args a) { return Val::string(url_of(a[0]).path); }

Val get_query(Context& c, Args a) {
  std::vector<std::pair<std::string, std::vector<std::string>>> values;
  std::unordered_map<std::string, size_t, KeyHash> places;
  std::string_view rest = url_of(a[0]).query;
  while (!rest.empty()) {
    const size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const size_t equals = pair.find('=');
    std::string problem;
    const auto key = unescaped(pair.substr(0, equals), Escaping::Query, problem);
    const auto value = equals == std::string_view::npos ? std::optional<std::string>("")
                                                        : unescaped(pair.substr(equals + 1), Escaping::Query, problem);
    if (!key || !value) continue;
    const auto [place, is_new] = places.try_emplace(*key, values.size());
    if (is_new) values.push_back({*key, {}});
    values[place->second].second.push_back(*value);
  }
  std::vector<MapEntry> entries;
  entries.reserve(values.size());
  for (const auto& [key, texts] : values)
    entries.push_back({Val::string(c.arena.copy(key)), string_list(c.arena, texts)});
  return map_of(c.arena, entries);
}

}  // namespace

std::string uri_problem(std::string_view text) { return request_uri_problem(text); }

void add_network_functions(LibraryBuilder& l) {
  l.global("ip", "string_to_ip", "string -> ip", ip);
  l.member("family", "ip_family", "ip -> int", family);
  l.global("ip.isCanonical", "ip_is_canonical", "string -> bool", is_canonical);
  l.member("isUnspecified", "ip_is_unspecified", "ip -> bool", is_unspecified);
  l.member("isLoopback", "ip_is_loopback", "ip -> bool", is_loopback);
  l.member("isLinkLocalMulticast", "ip_is_link_local_multicast", "ip -> bool", is_link_local_multicast);
  l.member("isLinkLocalUnicast", "ip_is_link_local_unicast", "ip -> bool", is_link_local_unicast);
  l.member("isGlobalUnicast", "ip_is_global_unicast", "ip -> bool", is_global_unicast);
  l.global("isIP", "is_ip", "string -> bool", is_ip);
  l.global("string", "ip_to_string", "ip -> string", opaque_to_string);
  l.global("cidr", "string_to_cidr", "string -> cidr", cidr);
  l.member("containsIP", "cidr_contains_ip_string", "cidr, string -> bool", contains_ip_text);
  l.member("containsIP", "cidr_contains_ip_ip", "cidr, ip -> bool", contains_ip);
  l.member("containsCIDR", "cidr_contains_cidr_string", "cidr, string -> bool", contains_cidr_text);
  l.member("containsCIDR", "cidr_contains_cidr", "cidr, cidr -> bool", contains_cidr);
  l.member("ip", "cidr_ip", "cidr -> ip", cidr_ip);
  l.member("prefixLength", "cidr_prefix_length", "cidr -> int", prefix_length);
  l.member("masked", "cidr_masked", "cidr -> cidr", masked);
  l.global("isCIDR", "is_cidr", "string -> bool", is_cidr);
  l.global("string", "cidr_to_string", "cidr -> string", opaque_to_string);
  l.global("url", "string_to_url", "string -> url", to_url);
  l.global("isURL", "is_url_string", "string -> bool", is_url);
  l.member("getScheme", "url_get_scheme", "url -> string", get_scheme);
  l.member("getHost", "url_get_host", "url -> string", get_host);
  l.member("getHostname", "url_get_hostname", "url -> string", get_hostname);
  l.member("getPort", "url_get_port", "url -> string", get_port);
  l.member("getEscapedPath", "url_get_escaped_path", "url -> string", get_escaped_path);
  l.member("getQuery", "url_get_query", "url -> map<string, list<string>>", get_query);
}

}  // namespace holdfast::cel
