// Finds the proxy configured in the environment.
#include <arpa/inet.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "base/strings.h"
#include "base/url.h"

namespace holdfast {

namespace {

std::string environment(const char* upper, const char* lower) {
  for (const char* name : {upper, lower}) {
    if (const char* text = std::getenv(name); text != nullptr && *text != '\0') return text;
  }
  return {};
}

struct Address {
  std::array<uint8_t, 16> bytes{};
  int bits = 0;  // 32 or 128.
};

std::optional<Address> parse_address(const std::string& text) {
  Address address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  } else {
    return std::nullopt;
  }
  return address;
}

// "10.0.0.0/8", or one address.
bool network_has(std::string_view network, const Address& address) {
  const size_t slash = network.find('/');
  const std::optional<Address> base = parse_address(std::string(network.substr(0, slash)));
  if (!base || base->bits != address.bits) return false;
  int bits = base->bits;
  if (slash != std::string_view::npos) {
    const std::optional<int> prefix = parse_number<int>(network.substr(slash + 1));
    if (!prefix || *prefix < 0 || *prefix > base->bits) return false;
    bits = *prefix;
  }
  for (int bit = 0; bit < bits; ++bit) {
    const auto byte = static_cast<size_t>(bit / 8);
    if (((base->bytes[byte] ^ address.bytes[byte]) >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

// One entry of NO_PROXY.
bool no_proxy_matches(std::string_view entry, const HttpUrl& server) {
  entry = trim(entry);
  if (entry == "*") return true;
  if (const size_t colon = entry.rfind(':'); colon != std::string_view::npos && entry.find(':') == colon) {
    if (entry.substr(colon + 1) != std::to_string(server.port)) return false;
    entry = entry.substr(0, colon);
  }
  if (entry.empty()) return false;
  if (const std::optional<Address> address = parse_address(server.host)) return network_has(entry, *address);
  // A name matches itself and its subdomains; with a leading dot only the subdomains.
  const std::string host = to_lower(server.host), name = to_lower(entry);
  if (name.starts_with('.')) return host.ends_with(name);
  return host == name || host.ends_with("." + name);
}

}  // namespace

std::string environment_proxy(const HttpUrl& server) {
  if (server.host == "localhost" || server.host == "::1" || server.host.starts_with("127.")) return {};
  const std::string named =
      server.tls ? environment("HTTPS_PROXY", "https_proxy") : environment("HTTP_PROXY", "http_proxy");
  if (named.empty()) return {};
  const std::string exceptions = environment("NO_PROXY", "no_proxy");
  for (const std::string_view entry : split(exceptions, ',')) {
    if (no_proxy_matches(entry, server)) return {};
  }
  return named.find("://") == std::string::npos ? "http://" + named : named;
}

}  // namespace holdfast
