#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace holdfast {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 0xff;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values;
  values.fill(kNone);
  for (uint8_t i = 0; i < 64; ++i) values[static_cast<uint8_t>(kAlphabet[i])] = i;
  return values;
}();

uint8_t value_of(char c) { return kValues[static_cast<uint8_t>(c)]; }
bool is_break(char c) { return c == '\n' || c == '\r'; }

}  // namespace

char* base64_encode(std::string_view bytes, char* to) {
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 3; left -= 3, from += 3) {
    const uint32_t bits = uint32_t{from[0]} << 16 | uint32_t{from[1]} << 8 | from[2];
    *to++ = kAlphabet[bits >> 18];
    *to++ = kAlphabet[bits >> 12 & 63];
    *to++ = kAlphabet[bits >> 6 & 63];
    *to++ = kAlphabet[bits & 63];
  }
  if (left == 0) return to;
  const uint32_t bits = uint32_t{from[0]} << 16 | (left == 2 ? uint32_t{from[1]} << 8 : 0);
  *to++ = kAlphabet[bits >> 18];
  *to++ = kAlphabet[bits >> 12 & 63];
  *to++ = left == 2 ? kAlphabet[bits >> 6 & 63] : '=';
  *to++ = '=';
  return to;
}

std::string base64_encode(std::string_view bytes) {
  std::string text(base64_size(bytes.size()), '\0');
  base64_encode(bytes, text.data());
  return text;
}

std::optional<char*> base64_decode(std::string_view text, char* to, size_t* error_at) {
  const auto refuse = [&](size_t position) -> std::optional<char*> {
    if (error_at != nullptr) *error_at = position;
    return std::nullopt;
  };
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 4) {
      const uint8_t a = value_of(text[at]), b = value_of(text[at + 1]);
      const uint8_t c = value_of(text[at + 2]), d = value_of(text[at + 3]);
      if ((a | b | c | d) < 64) {
        const uint32_t bits = uint32_t{a} << 18 | uint32_t{b} << 12 | uint32_t{c} << 6 | d;
        *to++ = static_cast<char>(bits >> 16);
        *to++ = static_cast<char>(bits >> 8);
        *to++ = static_cast<char>(bits);
        at += 4;
        continue;
      }
    }
    // A group that contains line breaks, padding or an invalid character.
    uint32_t bits = 0;
    int count = 0;
    bool padded = false;
    while (count < 4 && !padded) {
      if (at == text.size()) {
        if (count == 0) return to;
        return refuse(at - static_cast<size_t>(count));
      }
      const char c = text[at++];
      if (const uint8_t value = value_of(c); value != kNone) {
        bits = bits << 6 | value;
        ++count;
      } else if (c == '=' && count >= 2) {
        padded = true;
      } else if (!is_break(c)) {
        return refuse(at - 1);
      }
    }
    if (!padded) {
      *to++ = static_cast<char>(bits >> 16);
      *to++ = static_cast<char>(bits >> 8);
      *to++ = static_cast<char>(bits);
      continue;
    }
    if (count == 2) {  // A second '=' must follow.
      while (at < text.size() && is_break(text[at])) ++at;
      if (at == text.size()) return refuse(at);
      if (text[at] != '=') return refuse(at - 1);
      ++at;
      *to++ = static_cast<char>(bits >> 4);
    } else {
      *to++ = static_cast<char>(bits >> 10);
      *to++ = static_cast<char>(bits >> 2);
    }
    while (at < text.size() && is_break(text[at])) ++at;
    if (at < text.size()) return refuse(at);
  }
  return to;
}

std::optional<std::string> base64_decode(std::string_view text, size_t* error_at) {
  std::string bytes(base64_decoded_size(text.size()), '\0');
  const std::optional<char*> end = base64_decode(text, bytes.data(), error_at);
  if (!end) return std::nullopt;
  bytes.resize(static_cast<size_t>(*end - bytes.data()));
  return bytes;
}

std::string base64url_encode(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  text.erase(text.find_last_not_of('=') + 1);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::optional<std::string> base64url_decode(std::string_view text, size_t* error_at) {
  // Characters of the standard alphabet and padding are errors at their position.
  if (const size_t wrong = text.find_first_of("+/="); wrong != std::string_view::npos) {
    if (error_at != nullptr) *error_at = wrong;
    return std::nullopt;
  }
  std::string padded(text);
  std::replace(padded.begin(), padded.end(), '-', '+');
  std::replace(padded.begin(), padded.end(), '_', '/');
  padded.append((4 - padded.size() % 4) % 4, '=');
  std::optional<std::string> bytes = base64_decode(padded, error_at);
  if (!bytes && error_at != nullptr && *error_at >= text.size())
    *error_at = text.size() - 1;  // One character too many.
  return bytes;
}

}  // namespace holdfast
