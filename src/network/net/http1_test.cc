#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "net/testing.h"

namespace holdfast::net {
namespace {

using namespace testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Http1, RespondsAndCloses) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: "));
  EXPECT_THAT(answer, EndsWith("Content-Length: 14\r\nConnection: close\r\n\r\nhello /a b?x=1"));
}

TEST(Http1, PipelinedRequestsAreAnsweredInOrder) {
  TestServer s;
  Socket peer(s.port());
  std::string many;
  for (int i = 0; i < 100; ++i) many += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  peer.send(many + "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.read_all();
  size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = answer.find("hello /" + std::to_string(i) + "?", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_THAT(answer, EndsWith("hello /last?"));
}

TEST(Http1, BodyIsCompleteForAnyFramingAndSplit) {
  TestServer s;
  const std::string requests[] = {
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nConnection: close\r\n\r\nhello world",
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n",
  };
  for (const std::string& request : requests) {
    Socket peer(s.port());
    for (const char c : request) peer.send({&c, 1});
    EXPECT_THAT(peer.read_all(), EndsWith("\r\n\r\nhello world"));
  }
}

TEST(Http1, ConnectionIsReusedAfterLargeBody) {
  TestServer s;
  Socket peer(s.port());
  const std::string body(900'000, 'b');
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + body);
  EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("200 OK"));
  std::string echoed;
  while (echoed.size() < body.size()) echoed += peer.read_some();
  EXPECT_TRUE(echoed == body);
  peer.send("GET /again HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.read_all(), EndsWith("hello /again?"));
}

TEST(Http1, ContinueIsSentWhenHandlerReads) {
  TestServer s;
  Socket peer(s.port());
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("ok");
  EXPECT_THAT(peer.read_all(), EndsWith("\r\n\r\nok"));
}

TEST(Http1, UnreadBodyDoesNotLoseResponse) {
  TestServer s;
  Socket peer(s.port());
  peer.send("POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  std::thread sender([&] { peer.send(std::string(5'000'000, 'x')); });
  EXPECT_THAT(peer.read_all(), ::testing::AllOf(StartsWith("HTTP/1.1 403 Forbidden"), EndsWith("no")));
  sender.join();
}

TEST(Http1, BodyAboveLimitIsRejected) {
  TestServer s;
  Socket peer(s.port());
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\nxx");
  EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("413 Request Entity Too Large"));
}

struct BadCase {
  const char* name;
  std::string request;
  const char* status;
};

TEST(Http1, MalformedRequestsAreRejected) {
  const BadCase cases[] = {
      {"no spaces", "GARBAGE\r\n\r\n", "400"},
      {"an unknown version", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", "505"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
      {"a space before the colon", "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", "400"},
      {"a folded header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "400"},
      {"a header without a colon", "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", "400"},
      {"content-length and chunked",
       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
      {"two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
      {"a negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
      {"an unknown transfer encoding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
      {"a bad escape in the path", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"a target that is not a path", "GET pods HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"headers above the limit", "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(1'200'000, 'a'), "431"},
      {"a line feed in the target", "GET /a\nX-Remote-User: admin HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"a carriage return in the target", "GET /a\rb HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"a tab in the target", "GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"DEL in the target", "GET /a\x7f HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"a control character in a header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n", "400"},
      {"a NUL in a header", std::string("GET / HTTP/1.1\r\nHost: x\r\nA: b") + '\0' + "c\r\n\r\n", "400"},
  };
  TestServer s;
  for (const BadCase& c : cases) {
    Socket peer(s.port());
    std::thread sender([&] { peer.send(c.request); });
    EXPECT_THAT(peer.read_all(), StartsWith(std::string("HTTP/1.1 ") + c.status)) << c.name;
    sender.join();
  }
}

TEST(Http1, MalformedChunkClosesConnection) {
  TestServer s;
  Socket peer(s.port());
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_EQ(peer.read_all(), "");
}

TEST(Http1, HeadResponseHasLengthWithoutBody) {
  TestServer s;
  Socket peer(s.port());
  peer.send("HEAD /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.read_all(), EndsWith("Content-Length: 9\r\nConnection: close\r\n\r\n"));
}

TEST(Http1, Http10ClientGetsStreamUntilClose) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /stream?3 HTTP/1.0\r\n\r\n");
  const std::string answer = peer.read_all();
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("chunked")));
  EXPECT_THAT(answer, EndsWith(std::string(1000, 'a') + std::string(1000, 'b') + std::string(1000, 'c')));
}

TEST(Http1, ExceptionFailsOnlyItsRequest) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 Internal Server Error"));
  EXPECT_THAT(answer, EndsWith("hello /next?"));
  EXPECT_EQ(s.server->stats().handler_exceptions, 1u);
}

TEST(Http1, ExceptionAfterHeadTruncatesResponse) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /throw-late HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = peer.read_all();
  EXPECT_THAT(answer, ::testing::Not(EndsWith("0\r\n\r\n")));
  EXPECT_EQ(s.server->stats().handler_exceptions, 1u);
}

TEST(Http1, HandlerWithoutResponseIsServerError) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /silent HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.read_all(), StartsWith("HTTP/1.1 500"));
}

TEST(Http1, HandlerIsNotifiedOfDisconnect) {
  TestServer s;
  const int before = seen.peer_gone;
  Socket peer(s.port());
  peer.send("GET /forever HTTP/1.1\r\nHost: x\r\n\r\n");
  peer.read_until("hello\n");
  peer.close();
  EXPECT_TRUE(eventually([&] { return seen.peer_gone == before + 1 && seen.started == seen.ended; }));
}

TEST(Http1, PeerThatDoesNotReadIsBoundedAndDisconnected) {
  ServerOptions options;
  options.stalled_write_timeout = 300ms;
  TestServer s(options);
  seen.written = 0;
  Socket peer(s.port(), 4096);
  peer.send("GET /stream?100000 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return seen.written > 0; }));
  EXPECT_TRUE(eventually([&] { return s.server->stats().connections_open == 0; }));
  EXPECT_LT(seen.written, 20'000'000u);  // Of 100 MB: only socket buffers and one queue were filled.
  EXPECT_EQ(s.server->stats().protocol_errors, 1u);
}

TEST(Http1, IncompleteHeadTimesOut) {
  ServerOptions options;
  options.header_timeout = 100ms;
  TestServer s(options);
  Socket peer(s.port());
  peer.send("GET / HTTP/1.1\r\nHost:");
  EXPECT_EQ(peer.read_all(), "");
}

TEST(Http1, IdleConnectionIsClosed) {
  ServerOptions options;
  options.idle_timeout = 100ms;
  TestServer s(options);
  Socket peer(s.port());
  peer.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(peer.read_all(), EndsWith("hello /x?"));
}

TEST(Http1, IncompleteBodyTimesOut) {
  ServerOptions options;
  options.stalled_read_timeout = 100ms;
  TestServer s(options);
  Socket peer(s.port());
  peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12");
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_TRUE(eventually([&] { return seen.started == seen.ended; }));
}

TEST(Http1, DrainingFinishesRequestsAndEndsWatches) {
  TestServer s;
  Socket watching(s.port());
  watching.send("GET /forever HTTP/1.1\r\nHost: x\r\n\r\n");
  watching.read_until("hello\n");
  Socket waiting(s.port());
  waiting.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  Socket idle(s.port());
  idle.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.read_until("hello /x?");
  EXPECT_TRUE(eventually([&] { return s.server->stats().requests_active == 2; }));
  const auto begin = std::chrono::steady_clock::now();
  s.server->stop(5s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_THAT(watching.read_all(), HasSubstr("bye\n"));
  EXPECT_THAT(waiting.read_all(), ::testing::AllOf(HasSubstr("Connection: close"), EndsWith("done")));
  EXPECT_EQ(idle.read_all(), "");
}

TEST(Http1, DeadlineRespondsForSlowHandler) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /late?50 HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 504 Gateway Timeout"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nslowHTTP/1.1 200 OK"));
  EXPECT_THAT(answer, EndsWith("hello /next?"));
}

TEST(Http1, AcceptsAbsoluteTargets) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET http://example.com/p?q HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.read_all(), EndsWith("hello /p?q"));
}

TEST(UnauthenticatedConnections, UnauthenticatedConnectionsAreLimitedPerAddress) {
  ServerOptions options;
  options.max_unauthenticated_connections_per_address = 2;
  TestServer s(options);
  Socket known(s.port());
  known.send("GET /trusted HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(known.read_until("trusted"), HasSubstr("200 OK"));
  Socket first(s.port()), second(s.port());
  ASSERT_TRUE(eventually([&] { return s.server->stats().connections_open == 3; }));
  EXPECT_EQ(Socket(s.port()).read_all(), "");  // Closed at once: two others count, the trusted one does not.
  EXPECT_EQ(s.server->stats().connections_refused, 1u);
  first.close();
  ASSERT_TRUE(eventually([&] { return s.server->stats().connections_open == 2; }));
  Socket third(s.port());
  third.send("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(third.read_all(), HasSubstr("200 OK"));
}

TEST(UnauthenticatedConnections, UnauthenticatedConnectionsAreLimitedInTotal) {
  ServerOptions options;
  options.max_unauthenticated_connections = 1;
  TestServer s(options);
  Socket first(s.port());
  ASSERT_TRUE(eventually([&] { return s.server->stats().connections_open == 1; }));
  EXPECT_EQ(Socket(s.port()).read_all(), "");
}

TEST(Loop, ReportsLongestStall) {
  Loops loops(1);
  loops.at(0).post([] { std::this_thread::sleep_for(20ms); });
  EXPECT_TRUE(eventually([&] { return loops.at(0).take_longest_stall() >= 20ms; }));
}

// Each limit is tested here or in http2_test.cc with a shorter time or smaller number.
TEST(Limits, ServerDefaultsMatchTable) {
  const ServerOptions options;
  EXPECT_EQ(options.max_header_bytes, limits::kHeaderBytes);
  EXPECT_EQ(options.max_concurrent_streams, limits::kStreams);
  EXPECT_EQ(options.reset_burst, limits::kStreamResets);
  EXPECT_EQ(options.handshake_timeout, std::chrono::seconds(limits::kHandshakeSeconds));
  EXPECT_EQ(options.header_timeout, std::chrono::seconds(limits::kHeaderSeconds));
  EXPECT_EQ(options.idle_timeout, std::chrono::seconds(limits::kIdleSeconds));
  EXPECT_EQ(options.stalled_write_timeout, std::chrono::seconds(limits::kStalledSeconds));
  EXPECT_EQ(options.stalled_read_timeout, std::chrono::seconds(limits::kStalledSeconds));
}

constexpr std::string_view kUpgrade =
    " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// A frame as sent by a client.
std::string masked(int opcode, std::string_view payload) {
  constexpr std::string_view kMask = "\x01\x02\x03\x04";
  std::string frame{static_cast<char>(0x80 | opcode)};
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else {
    frame += static_cast<char>(0x80 | 126);
    frame += static_cast<char>(payload.size() >> 8);
    frame += static_cast<char>(payload.size() & 0xff);
  }
  frame += kMask;
  for (size_t i = 0; i < payload.size(); ++i) frame += static_cast<char>(payload[i] ^ kMask[i % 4]);
  return frame;
}

TEST(WebSocket, HandshakeMessageAndCloseFrame) {
  TestServer s;
  Socket peer(s.port());
  peer.send("GET /websocket?short" + std::string(kUpgrade));
  EXPECT_EQ(peer.read_all(),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x81\x05hello\x88\x02\x03\xe8");
}

TEST(WebSocket, AnswersPingsAndSkipsMessagesForAnySplit) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100'000}}) {
    TestServer s;
    Socket peer(s.port());
    peer.send("GET /websocket" + std::string(kUpgrade));
    EXPECT_THAT(peer.read_until("hello"), HasSubstr("101"));
    const std::string sent = masked(1, std::string(3000, 'x')) + masked(9, "one") + masked(2, "") +
                             masked(10, "a pong") + masked(9, "two") + masked(8, "\x03\xe8");
    for (size_t at = 0; at < sent.size(); at += piece) peer.send(sent.substr(at, piece));
    EXPECT_EQ(peer.read_all(), "\x8a\x03one\x8a\x03two\x88\x02\x03\xe8") << piece;
  }
}

TEST(WebSocket, ProtocolViolationDisconnects) {
  // Unmasked; a fragmented control frame; an oversized one.
  for (const std::string& bad :
       {std::string("\x89\x01x"), "\x09" + masked(9, "x").substr(1), std::string("\x89\xfe")}) {
    seen.peer_gone = 0;
    TestServer s;
    Socket peer(s.port());
    peer.send("GET /websocket" + std::string(kUpgrade));
    EXPECT_THAT(peer.read_until("hello"), HasSubstr("101"));
    peer.send(bad);
    EXPECT_EQ(peer.read_all(), "");
    EXPECT_EQ(seen.peer_gone, 1);
  }
}

// --- Tunnels ---

TEST(Tunnel, IsBidirectionalAndIncludesEarlyBytes) {
  TestServer s;
  Socket peer(s.port());
  peer.send(
      "POST /tunnel HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout\r\nContent-Length: 0\r\n\r\nearly");
  EXPECT_EQ(
      peer.read_until("EARLY"),
      "HTTP/1.1 101 Switching Protocols\r\nContent-Type: text/plain\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\n"
      "EARLY");
  const std::string much(300'000, 'x');
  std::thread sender([&] { peer.send(much + "."); });
  EXPECT_EQ(peer.read_until(".").size(), much.size() + 1);
  sender.join();
  peer.send("bye");
  EXPECT_EQ(peer.read_all(), "BYE");
}

TEST(Tunnel, IgnoresDeadlineAndReadTimeout) {
  ServerOptions options;
  options.stalled_read_timeout = 20ms;
  TestServer s(options);
  Socket peer(s.port());
  peer.send("GET /tunnel HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("101"));
  std::this_thread::sleep_for(100ms);  // Longer than both timeouts.
  peer.send("bye");
  EXPECT_EQ(peer.read_all(), "BYE");
}

TEST(Tunnel, EndsWhenClientDisconnects) {
  TestServer s;
  {
    Socket peer(s.port());
    peer.send("GET /tunnel HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("101"));
  }
  EXPECT_TRUE(eventually([] { return seen.started == seen.ended; }));
}

}  // namespace
}  // namespace holdfast::net
