// The addresses and ports that flags name, and those of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace holdfast::server {

// "[::1]:6443" -> "::1"
std::string host_of(std::string_view listen);
// Without TLS, tokens can be read in transit, so the connection must not leave the machine.
bool is_local_address(const std::string& listen);
bool is_any(const std::string& host);
// "30000-32767", "30000+2767" or "30000".
Result<std::pair<uint16_t, uint16_t>> parse_port_range(const std::string& text);
// An externally reachable address of this machine and family, "IPv4" or "IPv6": Endpoints must not contain a loopback
// or link-local address. Empty if there is none.
std::string host_address(std::string_view family);

}  // namespace holdfast::server
