// IP addresses and networks, parsed and written like Go does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

struct IpAddress {
  bool v6 = false;
  std::array<uint8_t, 16> bytes = {};  // IPv4 uses the first four.

  // Like Go's net.ParseIP before it became strict: leading zeros are decimal. IPv4-mapped IPv6 is IPv4.
  static std::optional<IpAddress> parse(std::string_view text);
  // Canonical: RFC 5952 for IPv6, always in hexadecimal.
  std::string text() const;
  std::string_view family() const { return v6 ? "IPv6" : "IPv4"; }
  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_link_local_unicast() const;
  bool is_link_local_multicast() const;
  bool operator==(const IpAddress&) const = default;
};

struct IpNetwork {
  IpAddress address;
  int prefix = 0;

  // The bits after the prefix may be set.
  static std::optional<IpNetwork> parse(std::string_view text);
  std::string text() const;  // Canonical.
  IpAddress first() const;   // The address with all bits after the prefix cleared.
  IpAddress last() const;    // The address with all bits after the prefix set.
  int host_bits() const { return (address.v6 ? 128 : 32) - prefix; }
  bool contains(const IpAddress& other) const;
  // Whether every address of the other one is in this one.
  bool contains(const IpNetwork& other) const { return other.prefix >= prefix && contains(other.address); }
};

}  // namespace holdfast
