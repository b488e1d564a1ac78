#include "server/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <optional>

#include "base/api_error.h"
#include "base/strings.h"
#include "base/url.h"

namespace holdfast::server {

std::string host_of(std::string_view listen) {
  return std::string(without_brackets(listen.substr(0, listen.rfind(':'))));
}

bool is_local_address(const std::string& listen) {
  if (listen.starts_with("unix:")) return true;
  const std::string host = host_of(listen);
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == 127;
  return host == "::1";
}

bool is_any(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

Result<std::pair<uint16_t, uint16_t>> parse_port_range(const std::string& text) {
  const auto number = [](std::string_view digits) -> std::optional<uint32_t> {
    const std::optional<uint32_t> value = parse_number<uint32_t>(digits);
    return value && *value <= 65535 ? value : std::nullopt;
  };
  const size_t at = text.find_first_of("-+");
  const std::optional<uint32_t> first = number(std::string_view(text).substr(0, at));
  std::optional<uint32_t> last = first;
  if (at != std::string::npos) last = number(std::string_view(text).substr(at + 1));
  if (first && last && at != std::string::npos && text[at] == '+') last = std::min(*first + *last, 65535u);
  if (!first || !last || *first == 0 || *first > *last) {
    return bad_request("\"" + text + "\" is not a range of ports such as 30000-32767");
  }
  return std::pair(static_cast<uint16_t>(*first), static_cast<uint16_t>(*last));
}

std::string host_address(std::string_view family) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string found;
  for (ifaddrs* i = all; i != nullptr && found.empty(); i = i->ifa_next) {
    const unsigned wanted = IFF_UP | IFF_RUNNING;
    const bool v6 = family == "IPv6";
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != (v6 ? AF_INET6 : AF_INET) ||
        (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & wanted) != wanted) {
      continue;
    }
    char text[INET6_ADDRSTRLEN];
    if (!v6) {
      found = inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
      continue;
    }
    const in6_addr& address = reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&address)) found = inet_ntop(AF_INET6, &address, text, sizeof text);
  }
  freeifaddrs(all);
  return found;
}

}  // namespace holdfast::server
