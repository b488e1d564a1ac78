#include "signer/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::signer {
namespace {

// Fields of a message, by hand.
std::string bytes_field(char number, std::string_view bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + std::string(bytes);
}
std::string varint_field(char number, std::string_view varint) {
  return std::string(1, static_cast<char>(number << 3)) + std::string(varint);
}

TEST(Messages, TheClaimsAreTheOnlyFieldOfARequest) {
  EXPECT_EQ(encode_sign_request("e30"),
            "\x0a\x03"
            "e30");
  EXPECT_EQ(encode_sign_request(std::string(300, 'a')), "\x0a\xac\x02" + std::string(300, 'a'));
}

TEST(Messages, PartsOfATokenAreRead) {
  const Outcome<SignedParts> parts =
      decode_signed_parts(bytes_field(1, "head") + varint_field(9, "\x05") + bytes_field(2, "signature"));
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->header, "head");
  EXPECT_EQ(parts->signature, "signature");
  EXPECT_EQ(decode_signed_parts("")->header, "") << "Every field of a message may be left out.";
}

TEST(Messages, KeysAreRead) {
  const std::string key = bytes_field(1, "kid-1") + bytes_field(2, "der") + varint_field(3, "\x01");
  const std::string time = varint_field(1, "\x80\xa8\xd6\xb9\x07") + varint_field(2, "\x05");
  const Outcome<FetchedKeys> fetched = decode_fetched_keys(bytes_field(1, key) + bytes_field(1, bytes_field(1, "k2")) +
                                                           bytes_field(2, time) + varint_field(3, "\xac\x02"));
  ASSERT_TRUE(fetched);
  EXPECT_THAT(fetched->keys,
              testing::ElementsAre(tokens::PublicKey{"kid-1", "der", true}, tokens::PublicKey{.id = "k2", .der = ""}));
  EXPECT_EQ(fetched->data_timestamp, (UnixTime{2000000000, 5}));
  EXPECT_EQ(fetched->refresh_hint_seconds, 300);
}

TEST(Messages, TheMetadataIsANumberOfSeconds) {
  EXPECT_EQ(*decode_metadata(varint_field(1, "\xd8\x04")), 600);
  EXPECT_EQ(*decode_metadata(varint_field(1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), -1);
  EXPECT_EQ(*decode_metadata(""), 0);
}

struct BadCase {
  const char* name;
  std::string message;
};

const BadCase kBadCases[] = {
    {"a length beyond the end",
     "\x0a\x09"
     "abc"},
    {"a length without an end", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
    {"a tag that is cut off", "\x80"},
    {"a field with the number 0", std::string("\x02\x00", 2)},
    {"a group", "\x0b\x0c"},
    {"text that is not UTF-8", bytes_field(1, "\xff\xfe")},
    {"a text where a key belongs", bytes_field(1, "\xff")},
};

TEST(Messages, OtherBytesAreAFailureOfTheCall) {
  for (const BadCase& item : kBadCases) {
    SCOPED_TRACE(item.name);
    const Outcome<SignedParts> parts = decode_signed_parts(item.message);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code, "Internal");
    EXPECT_FALSE(decode_fetched_keys(item.message));
  }
  EXPECT_FALSE(
      decode_metadata("\x0a\x09"
                      "abc"));
}

struct KeysCase {
  const char* name;
  FetchedKeys keys;
  const char* want;
};

const tokens::PublicKey kKey{.id = "kid-1", .der = "der"};
const UnixTime kTime{2000000000, 5};

const KeysCase kKeysCases[] = {
    {"good ones", {{kKey}, kTime, 10}, "accepted"},
    {"no refresh hint", {{kKey}, kTime, 0}, "found invalid refresh hint (0s)"},
    {"a negative refresh hint", {{kKey}, kTime, -5}, "found invalid refresh hint (-5s)"},
    {"no keys", {{}, kTime, 10}, "found no keys"},
    {"no timestamp", {{kKey}, {}, 10}, "invalid data timestamp: proto: invalid nil Timestamp"},
    {"a timestamp before the first year",
     {{kKey}, UnixTime{-62135596801, 0}, 10},
     "invalid data timestamp: proto: timestamp (seconds:-62135596801 nanos:0) before 0001-01-01"},
    {"nanoseconds beyond a second",
     {{kKey}, UnixTime{1, 1000000000}, 10},
     "invalid data timestamp: proto: timestamp (seconds:1 nanos:1000000000) has out-of-range nanos"},
    {"a key without an id", {{kKey, {.id = "", .der = "der"}}, kTime, 10}, "found invalid public key id \"\""},
    {"a key without content", {{kKey, {.id = "k", .der = ""}}, kTime, 10}, "found empty public key"},
};

TEST(Keys, AreRefusedInTheWordsOfKubeApiserver) {
  for (const KeysCase& item : kKeysCases) {
    SCOPED_TRACE(item.name);
    const Outcome<Unit> checked = check_keys(item.keys);
    EXPECT_EQ(checked ? "accepted" : checked.error().message, item.want);
  }
  FetchedKeys keys{{kKey}, kTime, 10};
  keys.keys[0].id = std::string(1024, 'k');
  EXPECT_TRUE(check_keys(keys));
  keys.keys[0].id += 'k';
  EXPECT_FALSE(check_keys(keys));
}

}  // namespace
}  // namespace holdfast::signer
