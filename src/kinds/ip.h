// IP addresses and networks as texts of objects hold them. Private to the module.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/hooks.h"

namespace holdfast::kinds {

struct IpAddress {
  bool v6 = false;
  std::array<uint8_t, 16> bytes = {};  // IPv4 in the first four.

  // As Go's net.ParseIP did before it became strict: leading zeros are decimal. IPv4 inside IPv6 is IPv4.
  static std::optional<IpAddress> parse(std::string_view text);
  std::string text() const;
  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_link_local_unicast() const;
  bool is_link_local_multicast() const;
  bool operator==(const IpAddress&) const = default;
};

struct IpNetwork {
  IpAddress address;
  int prefix = 0;
  static std::optional<IpNetwork> parse(std::string_view text);
  IpAddress first() const;  // The address with the bits behind the prefix off.
  bool contains(const IpAddress& address) const;
};

// Texts that Kubernetes once took and takes no more (leading zeros, IPv4 inside IPv6) are rejected with their reason.
void validate_ip(std::string_view text, const Path& at, FieldErrors& errors);
void validate_cidr(std::string_view text, const Path& at, FieldErrors& errors);
// Several addresses or networks must be a pair of an IPv4 and an IPv6 one. `shown` is how the list looks in an error.
void validate_ip_families(std::span<const std::string_view> addresses, const Path& at, const Shown& shown,
                          FieldErrors& errors);
void validate_cidr_families(std::span<const std::string_view> networks, const Path& at, const Shown& shown,
                            FieldErrors& errors);
// An IPv6 text that is not in the form of RFC 5952 gets a warning.
void warn_about_ip(std::string_view text, const Path& at, std::vector<std::string>& texts);
void warn_about_cidr(std::string_view text, const Path& at, std::vector<std::string>& texts);
// Addresses of endpoints: not unspecified, loopback or link-local.
void validate_endpoint_ip(std::string_view text, const Path& at, FieldErrors& errors);

}  // namespace holdfast::kinds
