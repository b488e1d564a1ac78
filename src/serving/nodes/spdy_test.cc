#include "nodes/spdy.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace holdfast::nodes {
namespace {

using Kind = SpdyClient::Event::Kind;

std::string frame(std::initializer_list<int> head, std::string_view rest = {}) {
  std::string bytes;
  for (const int byte : head) bytes += static_cast<char>(byte);
  return bytes.append(rest);
}

// Every event of what has been received, as text.
std::string events(SpdyClient& client, std::string& out) {
  std::string all;
  while (true) {
    Result<std::optional<SpdyClient::Event>> event = client.next(out);
    if (!event) return all + "error: " + event.error().message;
    if (!*event) return all;
    constexpr std::string_view kNames[] = {"reply", "data", "end", "reset", "close"};
    all.append(kNames[static_cast<size_t>((*event)->kind)]).append(" ");
    all += std::to_string((*event)->stream.id) + ((*event)->bytes.empty() ? "" : " " + (*event)->bytes) + "; ";
  }
}

TEST(SpdyClient, OpensStreamsWithOneZlibStreamOfHeaders) {
  SpdyClient client;
  std::string out;
  EXPECT_EQ(client.open("streamtype", "error", out).id, 1u);
  // 80 03 00 01: SYN_STREAM; 00: flags; length; stream 1, no other, priority 0; zlib's head; a stored block:
  // 1 header, "streamtype", "error"; an empty block.
  EXPECT_EQ(to_hex(out),
            "8003000100000031"
            "00000001"
            "00000000"
            "0000"
            "7801"
            "001b00e4ff"
            "00000001"
            "0000000a"
            "73747265616d74797065"
            "00000005"
            "6572726f72"
            "000000ffff");
  out.clear();
  EXPECT_EQ(client.open("streamtype", "stdin", out).id, 3u);
  EXPECT_EQ(to_hex(out).substr(0, 46),
            "800300010000002f"
            "00000003"
            "00000000"
            "0000"
            "001b00e4ff");
  out.clear();
  SpdyClient::write({3}, "hi", true, out);
  EXPECT_EQ(to_hex(out),
            "00000003"
            "01"
            "000002"
            "6869");
}

TEST(SpdyClient, ReportsWhatArrivesHoweverItIsCut) {
  const std::string received = frame({0x80, 3, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 9, 9}) +        // SYN_REPLY with headers
                               frame({0, 0, 0, 1, 0, 0, 0, 3}, "abc") +                      // DATA
                               frame({0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0}) +              // SETTINGS
                               frame({0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2}) +              // PING
                               frame({0, 0, 0, 1, 1, 0, 0, 0}) +                             // DATA, the end
                               frame({0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 5}) +  // RST_STREAM
                               frame({0x80, 3, 0, 7, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 0});   // GOAWAY
  SpdyClient whole;
  std::string replies;
  whole.receive(received);
  EXPECT_EQ(events(whole, replies), "reply 1; data 1 abc; end 1; reset 3; close 0; ");
  EXPECT_EQ(to_hex(replies), "800300060000000400000002");

  SpdyClient cut;
  std::string all;
  replies.clear();
  for (const char byte : received) {
    cut.receive({&byte, 1});
    all += events(cut, replies);
  }
  EXPECT_EQ(all, "reply 1; data 1 a; data 1 b; data 1 c; end 1; reset 3; close 0; ");
}

TEST(SpdyClient, RefusesWhatIsNotSpdy) {
  for (const std::string& bytes : {frame({0x80, 2, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1}),
                                   frame({0x80, 3, 0, 2, 0, 0xff, 0, 0}), frame({0x80, 3, 0, 3, 0, 0, 0, 1, 0})}) {
    SpdyClient client;
    std::string replies;
    client.receive(bytes);
    EXPECT_TRUE(events(client, replies).starts_with("error")) << to_hex(bytes);
  }
}

}  // namespace
}  // namespace holdfast::nodes
