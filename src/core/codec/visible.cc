#include "codec/visible.h"

#include <algorithm>

#include "base/text.h"

namespace holdfast::codec {

bool is_hidden(uint32_t rune) {
  return rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || rune == 0x61c || rune == 0x200e || rune == 0x200f ||
         (rune >= 0x2028 && rune <= 0x202e) || (rune >= 0x2060 && rune <= 0x206f) || rune == 0xfeff ||
         (rune >= 0xfff9 && rune <= 0xfffb) || (rune >= 0xe0000 && rune <= 0xe007f);
}

namespace {

void append_unit(std::string& out, uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 15];
}

}  // namespace

std::string visible_json(std::string json) {
  const auto shown = [](char c) { return static_cast<signed char>(c) > 0 && c != 0x7f; };
  if (std::all_of(json.begin(), json.end(), shown)) return json;
  std::string out;
  out.reserve(json.size() + 16);
  for (size_t at = 0; at < json.size();) {
    if (shown(json[at])) {  // Raw control characters are white space between tokens: strings have none.
      out += json[at++];
      continue;
    }
    const Rune rune = decode_rune(json, at);
    if (!rune.valid) {
      append_unit(out, 0xfffd);
    } else if (!is_hidden(rune.value)) {
      out.append(json, at, rune.length);
    } else if (rune.value < 0x10000) {
      append_unit(out, rune.value);
    } else {
      append_unit(out, 0xd800 + ((rune.value - 0x10000) >> 10));
      append_unit(out, 0xdc00 + ((rune.value - 0x10000) & 0x3ff));
    }
    at += rune.length;
  }
  return out;
}

}  // namespace holdfast::codec
