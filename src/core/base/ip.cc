#include "base/ip.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace holdfast {

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  IpAddress address;
  if (text.find(':') != std::string_view::npos) {
    if (text.size() > 45) return std::nullopt;
    const std::string copy(text);
    if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) != 1) return std::nullopt;
    static constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) {
      std::copy(address.bytes.begin() + 12, address.bytes.end(), address.bytes.begin());
      std::fill(address.bytes.begin() + 4, address.bytes.end(), 0);
      return address;
    }
    address.v6 = true;
    return address;
  }
  size_t part = 0;
  while (true) {
    const size_t dot = text.find('.');
    const std::string_view digits = text.substr(0, dot);
    if (digits.empty() || part == 4) return std::nullopt;
    int number = 0;
    for (const char c : digits) {
      if (!is_digit(c)) return std::nullopt;
      number = number * 10 + (c - '0');
      if (number > 255) return std::nullopt;
    }
    address.bytes[part++] = static_cast<uint8_t>(number);
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  if (part != 4) return std::nullopt;
  return address;
}

std::string IpAddress::text() const {
  std::string out;
  if (!v6) {
    for (size_t i = 0; i < 4; ++i) {
      if (i > 0) out += '.';
      out += std::to_string(bytes[i]);
    }
    return out;
  }
  constexpr size_t kGroups = 8;
  const auto group = [&](size_t i) { return static_cast<unsigned>(bytes[2 * i] << 8 | bytes[2 * i + 1]); };
  // The longest run of at least two zero groups becomes "::", the first of several.
  size_t zeros = kGroups, zeros_end = kGroups;
  for (size_t i = 0; i < kGroups; ++i) {
    size_t end = i;
    while (end < kGroups && group(end) == 0) ++end;
    if (end - i >= 2 && end - i > zeros_end - zeros) {
      zeros = i;
      zeros_end = end;
    }
    if (end > i) i = end - 1;
  }
  char digits[4];
  for (size_t i = 0; i < kGroups; ++i) {
    if (i == zeros) {
      out += "::";
      i = zeros_end - 1;
      continue;
    }
    if (i > 0 && i != zeros_end) out += ':';
    out.append(digits, std::to_chars(digits, digits + sizeof digits, group(i), 16).ptr);
  }
  return out;
}

bool IpAddress::is_unspecified() const {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}
bool IpAddress::is_loopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 && std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t byte) { return byte == 0; });
}
bool IpAddress::is_link_local_unicast() const {
  return v6 ? bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 : bytes[0] == 169 && bytes[1] == 254;
}
bool IpAddress::is_link_local_multicast() const {
  return v6 ? bytes[0] == 0xff && (bytes[1] & 0x0f) == 2 : bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0;
}

std::optional<IpNetwork> IpNetwork::parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<IpAddress> address = IpAddress::parse(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  if (!address || digits.empty() || digits.size() > 3) return std::nullopt;
  int prefix = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return std::nullopt;
    prefix = prefix * 10 + (c - '0');
  }
  // An IPv4-mapped IPv6 address keeps the prefix of its text, which counts from the start of the IPv6 address.
  const bool has_v6_text = text.find(':') != std::string_view::npos;
  if (prefix > (has_v6_text ? 128 : 32)) return std::nullopt;
  return IpNetwork{*address, prefix};
}

IpAddress IpNetwork::first() const {
  IpAddress masked = address;
  for (size_t i = 0; i < masked.bytes.size(); ++i) {
    const int kept = std::clamp(prefix - static_cast<int>(i) * 8, 0, 8);
    masked.bytes[i] = static_cast<uint8_t>(masked.bytes[i] & (0xff00 >> kept));
  }
  return masked;
}

IpAddress IpNetwork::last() const {
  IpAddress filled = first();
  for (size_t i = 0; i < (address.v6 ? 16u : 4u); ++i) {
    const int kept = std::clamp(prefix - static_cast<int>(i) * 8, 0, 8);
    filled.bytes[i] = static_cast<uint8_t>(filled.bytes[i] | (0xff >> kept));
  }
  return filled;
}

bool IpNetwork::contains(const IpAddress& other) const {
  if (other.v6 != address.v6) return false;
  for (int bit = 0; bit < prefix; ++bit) {
    const auto byte = static_cast<size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if ((other.bytes[byte] & mask) != (address.bytes[byte] & mask)) return false;
  }
  return true;
}

std::string IpNetwork::text() const { return address.text() + "/" + std::to_string(prefix); }

}  // namespace holdfast
