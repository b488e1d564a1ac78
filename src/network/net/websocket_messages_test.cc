#include "net/websocket_messages.h"

#include <gtest/gtest.h>

namespace holdfast::net {
namespace {

// A client's frame, masked.
std::string frame(int first, std::string_view payload) {
  std::string bytes(1, static_cast<char>(first));
  if (payload.size() < 126) {
    bytes += static_cast<char>(0x80 | payload.size());
  } else {
    bytes += static_cast<char>(0xfe);
    bytes += static_cast<char>(payload.size() >> 8);
    bytes += static_cast<char>(payload.size() & 0xff);
  }
  constexpr std::string_view kMask = "\x01\x02\x03\x04";
  bytes += kMask;
  for (size_t i = 0; i < payload.size(); ++i) bytes += static_cast<char>(payload[i] ^ kMask[i % 4]);
  return bytes;
}

constexpr int kText = 0x81, kBinary = 0x82, kFirst = 0x02, kMore = 0x00, kLast = 0x80, kClose = 0x88, kPing = 0x89;

std::string all(WebSocketMessages& messages) {
  std::string found;
  while (std::optional<WebSocketMessages::Message> message = messages.next()) {
    found += (message->text ? "text " : "") + message->payload + "; ";
  }
  return found;
}

TEST(WebSocketMessages, ReturnsWholeMessagesHoweverTheyAreCut) {
  const std::string sent = frame(kBinary, "a") + frame(kFirst, "b") + frame(kPing, "p") + frame(kMore, "c") +
                           frame(kLast, "d") + frame(kText, std::string(300, 'x')) + frame(kClose, "\x03\xe8");
  const std::string want = "a; bcd; text " + std::string(300, 'x') + "; ";
  WebSocketMessages whole(1000);
  whole.receive(sent);
  EXPECT_EQ(all(whole), want);
  EXPECT_TRUE(whole.ended());
  EXPECT_EQ(whole.take_replies(), std::string("\x8a\x01p\x88\x02\x03\xe8", 7));

  WebSocketMessages cut(1000);
  std::string found;
  for (const char byte : sent) {
    cut.receive({&byte, 1});
    found += all(cut);
  }
  EXPECT_EQ(found, want);
}

TEST(WebSocketMessages, EndsWithAClientThatViolatesTheProtocol) {
  const std::pair<const char*, std::string> cases[] = {
      {"a frame that is not masked", std::string("\x82\x01x", 3)},
      {"a message that is too long", frame(kBinary, std::string(1001, 'x'))},
      {"fragments that are too long together",
       frame(kFirst, std::string(600, 'x')) + frame(kLast, std::string(600, 'x'))},
      {"a message inside another", frame(kFirst, "a") + frame(kBinary, "b")},
      {"the rest of no message", frame(kLast, "a")},
      {"an unknown frame", frame(0x83, "a")},
      {"an extension nobody asked for", frame(0xc2, "a")},
      {"a ping in fragments", frame(0x09, "a")},
  };
  for (const auto& [name, bytes] : cases) {
    WebSocketMessages messages(1000);
    messages.receive(bytes);
    EXPECT_EQ(all(messages), "") << name;
    EXPECT_TRUE(messages.ended()) << name;
    EXPECT_EQ(messages.take_replies().substr(0, 2), "\x88\x02") << name;
  }
}

TEST(WebSocketMessages, LimitsTheRepliesOfAClientThatOnlyPings) {
  WebSocketMessages messages(1000);
  for (int i = 0; i < 1000; ++i) messages.receive(frame(kPing, std::string(100, 'p')));
  EXPECT_EQ(all(messages), "");
  EXPECT_FALSE(messages.ended());
  EXPECT_LT(messages.take_replies().size(), 5000u);
}

}  // namespace
}  // namespace holdfast::net
