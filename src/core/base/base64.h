// Base64, accepting and rejecting the same input as Go's encoding/base64.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

constexpr size_t base64_size(size_t bytes) { return (bytes + 2) / 3 * 4; }
// Writes base64_size(bytes.size()) characters and returns the end.
char* base64_encode(std::string_view bytes, char* to);
std::string base64_encode(std::string_view bytes);

// Maximum number of bytes that a text of this size decodes to.
constexpr size_t base64_decoded_size(size_t characters) { return characters / 4 * 3 + 3; }
// Writes the bytes and returns the end. Skips line breaks. On failure returns nullopt and sets *error_at, if given, to
// the position that Go reports ("illegal base64 data at input byte N").
std::optional<char*> base64_decode(std::string_view text, char* to, size_t* error_at = nullptr);
std::optional<std::string> base64_decode(std::string_view text, size_t* error_at = nullptr);

// With the URL alphabet and without padding (Go's RawURLEncoding).
std::string base64url_encode(std::string_view bytes);
std::optional<std::string> base64url_decode(std::string_view text, size_t* error_at = nullptr);

}  // namespace holdfast
