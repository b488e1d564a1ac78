#include "codec/cbor.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "codec/codec.h"

namespace holdfast::codec {
namespace {

std::string from_hex(std::string_view hex) {
  std::string out;
  int nibbles = 0;
  int byte = 0;
  for (const char c : hex) {
    if (c == ' ') continue;
    byte = byte * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    if (++nibbles % 2 == 0) {
      out += static_cast<char>(byte);
      byte = 0;
    }
  }
  return out;
}

struct Case {
  std::string_view name;
  std::string_view hex;
  std::string_view want;  // JSON, or "error@offset: message".
};

constexpr Case kRead[] = {
    {"with the self-described tag", "d9d9f7 a1 41 61 01", R"({"a":1})"},
    {"without it", "a1 41 61 01", R"({"a":1})"},
    {"text keys", "a1 61 61 01", R"({"a":1})"},
    {"byte strings are texts, whatever their bytes", "42 61 ff", "\"a\\ufffd\""},
    {"text strings must be UTF-8", "81 62 61 ff", "error@1: cbor: invalid UTF-8 string"},
    {"integers of every width", "85 00 18ff 19ffff 3903e7 1b7fffffffffffffff",
     "[0,255,65535,-1000,9223372036854775807]"},
    {"an unsigned integer beyond int64", "81 1b8000000000000000",
     "error@1: cbor: cannot unmarshal positive integer into Go value of type int64 (9223372036854775808 overflows Go's "
     "int64)"},
    {"the smallest negative integer beyond int64", "3bffffffffffffffff",
     "error@0: cbor: cannot unmarshal negative integer into Go value of type int64 (-18446744073709551616 overflows "
     "Go's "
     "int64)"},
    {"half, single and double floats", "84 f93c00 f90001 fa5f000000 fb3fb999999999999a",
     "[1,5.960464477539063e-8,9223372036854776000,0.1]"},
    {"not a number", "81 f97e00",
     "error@4: cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"},
    {"infinity", "fa7f800000",
     "error@5: cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"},
    {"big numbers", "c2 41 01", "error@1: cbor: data item of cbor type tag is not accepted by protocol: bignum"},
    {"false, true, null", "83 f4 f5 f6", "[false,true,null]"},
    {"undefined", "f7",
     "error@0: cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"},
    {"indefinite lengths", "bf 5f 4161 4162 ff 9f 01 02 ff ff", R"({"ab":[1,2]})"},
    {"bytes that expect base64", "d6 43 010203", "\"AQID\""},
    {"bytes that expect base64url, through a list", "d5 81 42 fbff", "[\"-_8\"]"},
    {"bytes that expect hex", "d7 42 0aff", "\"0aff\""},
    {"unknown tags are skipped", "d9ffff 01", "1"},
    {"a tagged time", "c0 78 18 323032362d30312d30325430333a30343a30352e3530305a", "\"2026-01-02T03:04:05.5Z\""},
    {"seconds", "c1 1a 6957367d", "\"2026-01-02T03:07:41Z\""},
    {"seconds and a fraction", "c1 fb 41da55cd9f500000", "\"2026-01-02T03:07:41.25Z\""},
    {"a time tag on something else", "c0 01",
     "error@0: cbor: tag number 0 must be followed by text string, got positive integer"},
    {"a duplicate key", "a2 4161 01 6161 02", "error@1: cbor: found duplicate map key \"a\" at map element index 1"},
    {"a key that is not a text", "a1 01 02",
     "error@1: cbor: cannot unmarshal positive integer into Go value of type string"},
    {"trailing bytes", "01 02 03", "error@1: cbor: 2 bytes of extraneous data starting at index 1"},
    {"empty input", "", "error@0: EOF"},
    {"truncated", "a1 41", "error@2: unexpected EOF"},
    {"a list longer than the input", "9a7fffffff", "error@5: unexpected EOF"},
    {"a map larger than allowed", "ba00200001",
     "error@5: cbor: exceeded max number of key-value pairs 2097152 for CBOR map"},
    {"a stray break", "ff", "error@1: cbor: unexpected \"break\" code"},
    {"a break after a key", "bf 4161 ff", "error@4: cbor: unexpected \"break\" code"},
    {"a reserved length", "1c", "error@1: cbor: invalid additional information 28 for type positive integer"},
};

TEST(Cbor, DecodesLikeKubernetes) {
  for (const Case& c : kRead) {
    size_t offset = 0;
    const auto document = parse_cbor(from_hex(c.hex), {.error_offset = &offset});
    const std::string got =
        document ? encode_json(document->root()) : "error@" + std::to_string(offset) + ": " + document.error().message;
    EXPECT_EQ(got, c.want) << c.name;
  }
}

TEST(Cbor, RejectsNestingBeyondTheLimit) {
  const std::string deep = std::string(limits::kDecodedDepth - 1, '\x81') + '\x80';
  EXPECT_TRUE(parse_cbor(deep));
  const auto deeper = parse_cbor('\x81' + deep);
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().message, "cbor: exceeded max nested level " + std::to_string(limits::kDecodedDepth));
}

// The messages in kRead contain Kubernetes' limits.
TEST(Cbor, RejectsListsAndMapsBeyondTheLimit) {
  EXPECT_EQ(limits::kCborMembers, 2097152U);
  EXPECT_EQ(parse_cbor(from_hex("9b0000000080000000")).error().message,
            "cbor: exceeded max number of elements " + std::to_string(limits::kCborItems) + " for CBOR array");
}

constexpr Case kWrite[] = {
    {"keys and texts are byte strings", "a1 41 61 41 62", R"({"a":"b"})"},
    {"integers in their shortest form", "88 17 1818 18ff 190100 1a00010000 1b0000000100000000 20 3818",
     "[23,24,255,256,65536,4294967296,-1,-25]"},
    {"floats in the smallest exact width",
     "89 f93c00 fa5f000000 fb3fb999999999999a f98000 f90001 f97bff fa47800000 fa33000000 fb7fefffffffffffff",
     "[1.0,9223372036854775808,0.1,-0.0,5.960464477539063e-8,65504.0,65536.0,2.9802322387695312e-8,1."
     "7976931348623157e308]"},
    {"empty values and literals", "86 a0 80 40 f4 f5 f6", R"([{},[],"",false,true,null])"},
};

TEST(Cbor, EncodesLikeKubernetes) {
  for (const Case& c : kWrite) {
    const auto document = parse_json(std::string(c.want));
    ASSERT_TRUE(document) << c.name;
    EXPECT_EQ(to_hex(encode_cbor(document->root())), "d9d9f7" + to_hex(from_hex(c.hex))) << c.name;
    std::string transcoded;
    ASSERT_TRUE(json_to_cbor(c.want, {}, transcoded)) << c.name;
    EXPECT_EQ(to_hex(transcoded), "d9d9f7" + to_hex(from_hex(c.hex))) << c.name;
  }
}

TEST(Cbor, SortsByEncodedKeyForStorage) {
  const auto document = parse_json(R"({"bb":1,"a":2,"b":{"z":1,"y":2},"aa":3})");
  ASSERT_TRUE(document);
  EXPECT_EQ(to_hex(encode_cbor(document->root(), CborOrder::Sorted)),
            to_hex(from_hex("d9d9f7 a4 4161 02 4162 a2 4179 02 417a 01 426161 03 426262 01")));
}

TEST(Cbor, WritesRawLeavesAsTheirValues) {
  EXPECT_EQ(to_hex(encode_cbor(Value::raw(R"({ "a" : [1, 2.50] })"))), "d9d9f7a141618201f94100");
}

TEST(Cbor, SplitsASequence) {
  const std::string two = from_hex("d9d9f7a1416101 d9d9f702");
  EXPECT_EQ(*first_cbor_item(two), 7u);
  EXPECT_EQ(*first_cbor_item(std::string_view(two).substr(7)), 4u);
  EXPECT_EQ(*first_cbor_item(std::string_view(two).substr(0, 6)), 0u);
  EXPECT_EQ(*first_cbor_item(""), 0u);
  EXPECT_FALSE(first_cbor_item("\x1c"));
}

}  // namespace
}  // namespace holdfast::codec
