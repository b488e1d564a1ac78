// Small operations on ASCII text that many modules need.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// ASCII letters in lower case; every other byte as it is.
std::string to_lower(std::string_view text);
// Whether two texts are equal, ignoring the case of ASCII letters.
bool equals_ignoring_case(std::string_view a, std::string_view b);

// The parts between separators, as Go splits: "" has one, "a,,b" has three.
std::vector<std::string_view> split(std::string_view text, char separator);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);

// Without ASCII white space at both ends.
std::string_view trim(std::string_view text);

// Whether the text is an IPv4 or IPv6 address, as inet_pton reads them.
bool is_ip_address(std::string_view text);

// A version 4 UUID. Unique, not secret: from a per-thread generator that is seeded once by the system.
std::string random_uuid();

}  // namespace holdfast
