// How version 3 of FieldsV2 encodes names that are not in its table: three prefix codes for three sorts of names.
// Constants of the format: they never change (docs/formats/fieldsv2.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::ownership {

enum class TextCode : uint8_t {
  Words,     // camelCase, dotted and dashed names: field names, annotations, configuration keys.
  Hex,       // Digests and UUIDs.
  Alphabet,  // Letters and digits of equal frequency: generated names.
};
inline constexpr size_t kTextCodes = 3;
inline constexpr unsigned kMaxCodeBits = 12;

// Code length in bits of each character from ' ' to '~', as hexadecimal digits; 0 if it is not in the code. Codes are
// complete, and canonical: ascending by length, then by character.
inline constexpr std::string_view kCodeLengths[kTextCodes] = {
    "ccccccccccccc5569888888888ccccccc7a887a9a8ca89887b77799ababcccc7c4755376748755445a454678779cccc",
    "00000000000005004444444444000000000000000000000000000000000000000444445000000000000000000000000",
    "00000000000007776666666666000000066666666666666666666666666000070666666666666666666666666660000",
};
// Longer strings are written as plain text.
inline constexpr size_t kMaxCodedText = 255;

struct TextCodes {
  struct Letter {
    uint16_t code = 0;
    uint8_t bits = 0;  // 0 if the character is not in the code.
  };
  struct Decoded {
    char letter = 0;
    uint8_t bits = 0;
  };
  std::array<std::array<Letter, 256>, kTextCodes> letters{};
  std::array<std::array<Decoded, 1 << kMaxCodeBits>, kTextCodes> decoded{};
  // The code lengths of a character in all codes, packed side by side so that a text is measured in one pass. A sum of
  // at least kUnfit means that one of its characters is not in that code.
  static constexpr unsigned kLane = 21;
  static constexpr uint64_t kUnfit = 4096;
  std::array<uint64_t, 256> lanes{};

  constexpr TextCodes() {
    for (size_t code = 0; code < kTextCodes; ++code) {
      uint32_t next = 0;
      for (unsigned bits = 1; bits <= kMaxCodeBits; ++bits) {
        next <<= 1;
        for (size_t i = 0; i < kCodeLengths[code].size(); ++i) {
          const char digit = kCodeLengths[code][i];
          const unsigned length =
              digit >= 'a' ? static_cast<unsigned>(digit - 'a') + 10 : static_cast<unsigned>(digit - '0');
          if (length != bits) continue;
          const size_t character = i + ' ';
          letters[code][character] = {static_cast<uint16_t>(next), static_cast<uint8_t>(bits)};
          for (uint32_t tail = 0; tail < 1u << (kMaxCodeBits - bits); ++tail) {
            decoded[code][(next << (kMaxCodeBits - bits)) | tail] = {static_cast<char>(character),
                                                                     static_cast<uint8_t>(bits)};
          }
          ++next;
        }
      }
    }
    for (size_t character = 0; character < 256; ++character) {
      for (size_t code = 0; code < kTextCodes; ++code) {
        const uint64_t bits = letters[code][character].bits;
        lanes[character] |= (bits == 0 ? kUnfit : bits) << (code * kLane);
      }
    }
  }
};
const TextCodes& text_codes();

}  // namespace holdfast::ownership
