#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>

#include "base/call_limits.h"
#include "net/local.h"
#include "net/testing.h"

namespace holdfast::net {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ServerOptions tls_options() {
  ServerOptions options;
  options.identity = TestPki::get().server;
  options.client_ca_pem = TestPki::get().authority.certificate_pem;
  return options;
}

ClientOptions to(const TestServer& s, bool http2 = false) {
  ClientOptions options;
  options.http2 = http2;
  options.host = "127.0.0.1";
  options.port = s.port();
  options.ca_pem = TestPki::get().authority.certificate_pem;
  return options;
}

ClientRequest get(std::string target) {
  ClientRequest request;
  request.target = std::move(target);
  return request;
}

// Accepts one connection, which `serve` handles on its own thread.
class Listener {
 public:
  explicit Listener(std::function<void(int peer)> serve) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof any;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), bytes), 0);
    EXPECT_EQ(listen(fd_, 4), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &bytes);
    port_ = ntohs(any.sin_port);
    thread_ = std::thread([this, serve = std::move(serve)] {
      const int peer = accept(fd_, nullptr, nullptr);
      if (peer < 0) return;
      serve(peer);
      close(peer);
    });
  }
  ~Listener() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  uint16_t port() const { return port_; }

 private:
  int fd_;
  uint16_t port_ = 0;
  std::thread thread_;
};

std::string read_head(int peer) {
  std::string head;
  char c = 0;
  while (!head.ends_with("\r\n\r\n") && recv(peer, &c, 1, 0) == 1) head += c;
  return head;
}

// Tests that run over HTTP/1.1 and over HTTP/2.
class EitherClient : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Protocols, EitherClient, ::testing::Bool());

TEST_P(EitherClient, ReusesTlsConnection) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  for (int i = 0; i < 5; ++i) {
    CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(get("/x"), 1000));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->header("Content-Type"), "text/plain");
    EXPECT_EQ(answer->body, "hello /x?");
  }
  EXPECT_EQ(s.server->stats().connections_accepted, 1u);
}

TEST_P(EitherClient, EchoesLargeBody) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  ClientRequest request = get("/echo");
  request.method = "POST";
  request.body = std::string(1'000'000, 'z');
  CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(request, 2'000'000));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body == request.body);
}

TEST(Client, TunnelIsBidirectional) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, false));
  ClientRequest request = get("/tunnel");
  request.upgrade = "shout";
  CallResult<ClientStream> stream = run(s.loops.at(0), client.open(std::move(request)));
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_EQ(stream->head().status, 101);
  EXPECT_EQ(stream->head().header("upgrade"), "shout");
  ASSERT_TRUE(run(s.loops.at(0), stream->write("hello")));
  CallResult<std::string> said = run(s.loops.at(0), stream->read_some());
  ASSERT_TRUE(said);
  EXPECT_EQ(*said, "HELLO");
  ASSERT_TRUE(run(s.loops.at(0), stream->write("bye")));
  EXPECT_EQ(*run(s.loops.at(0), stream->read_some()), "BYE");
  EXPECT_EQ(*run(s.loops.at(0), stream->read_some()), "");
}

// A server of HTTP/2 that answers every request with "hi" and trailers, and tells the scheme and authority it was asked
// by.
void answer_with_trailers(int peer) {
  struct State {
    int peer;
    std::string asked;
  } state{peer, ""};
  const auto field = [](std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view s) { return reinterpret_cast<uint8_t*>(const_cast<char*>(s.data())); };
    return nghttp2_nv{bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  };
  nghttp2_session_callbacks* c = nullptr;
  nghttp2_session_callbacks_new(&c);
  nghttp2_session_callbacks_set_send_callback(
      c, [](nghttp2_session*, const uint8_t* data, size_t bytes, int, void* user) -> ssize_t {
        return send(static_cast<State*>(user)->peer, data, bytes, MSG_NOSIGNAL);
      });
  nghttp2_session_callbacks_set_on_header_callback(
      c, [](nghttp2_session*, const nghttp2_frame*, const uint8_t* name, size_t name_bytes, const uint8_t* value,
            size_t value_bytes, uint8_t, void* user) {
        const std::string_view key(reinterpret_cast<const char*>(name), name_bytes);
        if (key == ":scheme" || key == ":authority") {
          static_cast<State*>(user)->asked += std::string(reinterpret_cast<const char*>(value), value_bytes) + ",";
        }
        return 0;
      });
  nghttp2_session* session = nullptr;
  nghttp2_session_server_new(&session, c, &state);
  nghttp2_session_callbacks_del(c);
  nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
  char buffer[4096];
  for (ssize_t got; (got = recv(peer, buffer, sizeof buffer, 0)) > 0;) {
    nghttp2_session_mem_recv(session, reinterpret_cast<const uint8_t*>(buffer), static_cast<size_t>(got));
    if (!state.asked.empty()) {
      const nghttp2_nv head[] = {field(":status", "200"), field("asked", state.asked)};
      nghttp2_data_provider body{};
      body.read_callback = [](nghttp2_session*, int32_t, uint8_t* to, size_t, uint32_t* flags, nghttp2_data_source*,
                              void*) -> ssize_t {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        to[0] = 'h';
        to[1] = 'i';
        return 2;
      };
      nghttp2_submit_response(session, 1, head, std::size(head), &body);
      nghttp2_session_send(session);
      const nghttp2_nv trailers[] = {field("grpc-status", "0"), field("more", "x")};
      nghttp2_submit_trailer(session, 1, trailers, std::size(trailers));
      state.asked.clear();
    }
    nghttp2_session_send(session);
  }
  nghttp2_session_del(session);
}

TEST(Client, ReadsTrailersOverHttp2WithPriorKnowledge) {
  Listener listener(answer_with_trailers);
  Loops loops(1);
  {
    ClientOptions options;
    options.tls = false;
    options.http2_prior_knowledge = true;
    options.host = "127.0.0.1";
    options.port = listener.port();
    Client client(loops.at(0), options);
    CallResult<ClientResponse> answer = run(loops.at(0), client.fetch(get("/"), 1000));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "hi");
    EXPECT_EQ(answer->header("asked"), "http,127.0.0.1:" + std::to_string(listener.port()) + ",");
    const std::vector<std::pair<std::string, std::string>> want = {{"grpc-status", "0"}, {"more", "x"}};
    EXPECT_EQ(answer->trailers, want);
    EXPECT_EQ(answer->header("grpc-status"), "");
  }
}

TEST(Client, ReachesAUnixSocket) {
  const std::string path = "/tmp/holdfast-net-test-" + std::to_string(getpid()) + ".sock";
  ServerOptions listening;
  listening.listen = "unix:" + path;
  TestServer s(listening);
  for (const bool http2 : {false, true}) {
    ClientOptions options;
    options.tls = false;
    options.http2_prior_knowledge = http2;
    options.unix_socket = path;
    options.host = "localhost";
    Client client(s.loops.at(0), options);
    CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(get("/x"), 1000));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "hello /x?");
  }
  for (const auto& [missing, why] :
       {std::pair("/no/such.sock", "no such file or directory"), std::pair("@no-such-socket", "connection refused"),
        std::pair("/tmp", "connection refused")}) {
    ClientOptions options;
    options.tls = false;
    options.unix_socket = missing;
    Client client(s.loops.at(0), options);
    CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(get("/"), 1000));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "dial unix " + std::string(missing) + ": connect: " + why);
    EXPECT_EQ(answer.error().progress, CallError::Progress::NotConnected);
  }
}

// When the peer shuts down its side without reading, a blocked write returns and the state it uses is still alive.
TEST(Client, TunnelClosedByPeerReleasesBlockedWriter) {
  std::promise<void> done;
  Listener listener([&](int peer) {
    read_head(peer);
    const std::string_view head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: flood\r\nConnection: Upgrade\r\n\r\n";
    send(peer, head.data(), head.size(), MSG_NOSIGNAL);
    char c = 0;
    recv(peer, &c, 1, MSG_PEEK);  // Writing has begun, and the socket buffers cannot hold all of it.
    shutdown(peer, SHUT_WR);
    done.get_future().wait();
  });
  Loops loops(1);
  EventLoop& loop = loops.at(0);
  ClientOptions options;
  options.tls = false;
  options.host = "127.0.0.1";
  options.port = listener.port();
  Client client(loop, options);
  ClientRequest request = get("/");
  request.upgrade = "flood";
  CallResult<ClientStream> stream = run(loop, client.open(std::move(request)));
  ASSERT_TRUE(stream) << stream.error().message;
  const std::string flood(64 << 20, 'x');
  auto write = [&]() -> Task<void> { (void)co_await stream->write(flood); };
  auto read = [&]() -> Task<void> {
    CallResult<std::string> piece = co_await stream->read_some();
    EXPECT_TRUE(piece && piece->empty());
  };
  auto both = [&]() -> Task<Unit> {
    std::vector<Task<void>> tasks;
    tasks.push_back(read());
    tasks.push_back(write());
    co_await when_all(loop, std::move(tasks));
    const ClientStream ended = std::move(*stream);  // Destroyed on its loop.
    co_return Unit{};
  };
  run(loop, both());
  done.set_value();
}

// Chunk lengths and line ends are split; the loop must not spin while waiting for the rest.
TEST(Client, DecodesChunksSplitAcrossReads) {
  std::promise<void> sent;
  Listener listener([&](int peer) {
    read_head(peer);
    for (const std::string_view piece : {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5", "\r", "\nhel",
                                         "lo", "\r", "\n1", "\r\n!\r", "\n0\r", "\n", "\r", "\n"}) {
      send(peer, piece.data(), piece.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(3ms);  // Makes most of them arrive separately.
    }
    sent.get_future().wait();
  });
  Loops loops(1);
  ClientOptions options;
  options.host = "127.0.0.1";
  options.port = listener.port();
  options.tls = false;
  Client client(loops.at(0), options);
  CallResult<ClientResponse> answer = run(loops.at(0), client.fetch(get("/"), 1000));
  sent.set_value();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "hello!");
}

TEST_P(EitherClient, DecompressesGzip) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  ClientRequest request = get("/gzip?500");
  request.headers.emplace_back("Accept-Encoding", "gzip, deflate");
  CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(request, 2'000'000));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->header("content-encoding"), "gzip");
  EXPECT_EQ(answer->header("vary"), "Accept-Encoding");
  EXPECT_EQ(answer->body.size(), 500'000u);
  EXPECT_THAT(answer->body, StartsWith(std::string(1000, 'a') + "b"));
}

struct GzipCase {
  const char* name;
  const char* target;
  const char* accept;
  bool compressed;
};

TEST(Gzip, MatchesKubeApiserver) {
  const GzipCase cases[] = {
      {"above 128 KiB", "/gzip?132", "gzip", true},
      {"not above 128 KiB", "/gzip?131", "gzip", false},
      {"not requested", "/gzip?500", "", false},
      {"q-values are not supported", "/gzip?500", "gzip;q=1.0", false},
      {"wildcards are not supported", "/gzip?500", "*", false},
      {"one of several", "/gzip?500", "deflate, gzip", true},
      {"not allowed", "/stream?500", "gzip", false},
  };
  TestServer s;
  ClientOptions options = to(s);
  options.tls = false;
  Client client(s.loops.at(0), options);
  for (const GzipCase& c : cases) {
    ClientRequest request = get(c.target);
    if (*c.accept != 0) request.headers.emplace_back("Accept-Encoding", c.accept);
    CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(request, 2'000'000));
    ASSERT_TRUE(answer) << c.name << answer.error().message;
    EXPECT_EQ(answer->header("content-encoding") == "gzip", c.compressed) << c.name;
  }
}

TEST_P(EitherClient, SendsClientCertificate) {
  TestServer s(tls_options());
  ClientOptions options = to(s, GetParam());
  options.identity = TestPki::get().client;
  Client client(s.loops.at(0), options);
  CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(get("/who"), 1000));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "alice");
}

TEST_P(EitherClient, RejectsUntrustedServer) {
  TestServer s(tls_options());
  ClientOptions options = to(s, GetParam());
  options.ca_pem = TestPki::make("other-ca", "", nullptr).certificate_pem;
  Client stranger(s.loops.at(0), options);
  CallResult<ClientResponse> answer = run(s.loops.at(0), stranger.fetch(get("/"), 1000));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "tls: failed to verify certificate: x509: certificate signed by unknown authority");
  options = to(s, GetParam());
  options.server_name = "elsewhere.example.com";
  Client elsewhere(s.loops.at(0), options);
  answer = run(s.loops.at(0), elsewhere.fetch(get("/"), 1000));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("not valid for elsewhere.example.com"));
}

TEST(Client, ReportsWhyConnectingFailed) {
  Loops loops(1);
  ClientOptions options;
  options.host = "127.0.0.1";
  options.port = 1;
  Client nobody(loops.at(0), options);
  const CallError refused = run(loops.at(0), nobody.fetch(get("/"), 1000)).take_error();
  EXPECT_EQ(refused.message, "dial tcp 127.0.0.1:1: connect: connection refused");
  EXPECT_EQ(refused.progress, CallError::Progress::NotConnected);
  options.host = "no-such-host.invalid";
  Client nowhere(loops.at(0), options);
  EXPECT_EQ(run(loops.at(0), nowhere.fetch(get("/"), 1000)).error().message,
            "dial tcp: lookup no-such-host.invalid: no such host");
}

TEST_P(EitherClient, RejectsRequestsThatWouldInjectLines) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  const auto fails = [&](ClientRequest request) { return !run(s.loops.at(0), client.fetch(request, 1000)); };
  EXPECT_TRUE(fails(get("/a\r\nX-Remote-User: admin")));
  EXPECT_TRUE(fails(get("/a b")));
  ClientRequest header = get("/");
  header.headers.emplace_back("X-A", "b\r\nX-Remote-User: admin");
  EXPECT_TRUE(fails(header));
  ClientRequest name = get("/");
  name.headers.emplace_back("X-A: b\r\nX-Remote-User", "admin");
  EXPECT_TRUE(fails(name));
  ClientRequest method = get("/");
  method.method = "GET / HTTP/1.1\r\nX-Remote-User: admin\r\n\r\nGET";
  EXPECT_TRUE(fails(method));
}

TEST_P(EitherClient, CancellationEndsCall) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  ClientRequest request = get("/forever");
  request.cancellation = std::make_shared<Cancellation>();
  s.loops.at(0).post(
      [&] { s.loops.at(0).run_after(20ms, [cancellation = request.cancellation] { cancellation->cancel(); }); });
  EXPECT_EQ(run(s.loops.at(0), client.fetch(request, 1000)).error().message, "context canceled");
  // A call that is cancelled beforehand is not sent.
  EXPECT_EQ(run(s.loops.at(0), client.fetch(request, 1000)).error().message, "context canceled");
}

TEST_P(EitherClient, TimesOut) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  ClientRequest request = get("/wait");
  request.timeout = 50ms;
  EXPECT_EQ(run(s.loops.at(0), client.fetch(request, 1000)).error().message, "context deadline exceeded");
}

TEST_P(EitherClient, RetriesWhenIdleConnectionWasClosed) {
  ServerOptions server_options = tls_options();
  server_options.idle_timeout = 60ms;
  TestServer s(server_options);
  Client client(s.loops.at(0), to(s, GetParam()));
  for (int i = 0; i < 4; ++i) {
    CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(get("/x"), 1000));
    ASSERT_TRUE(answer) << answer.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * i));
  }
}

TEST_P(EitherClient, StreamCanBeReadAndCancelled) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  const int before = seen.peer_gone;
  {
    CallResult<ClientStream> stream = run(s.loops.at(0), client.open(get("/forever")));
    ASSERT_TRUE(stream) << stream.error().message;
    EXPECT_EQ(stream->head().status, 200);
    EXPECT_EQ(*run(s.loops.at(0), stream->read_some()), "hello\n");
    auto holder = std::make_shared<ClientStream>(std::move(*stream));
    s.loops.at(0).post([holder] { holder->cancel(); });
    EXPECT_EQ(run(s.loops.at(0), holder->read_some()).error().message, "context canceled");
    s.loops.at(0).post([h = std::move(holder)]() mutable { h.reset(); });
  }
  EXPECT_TRUE(eventually([&] { return seen.peer_gone == before + 1; }));
}

TEST_P(EitherClient, BodyAboveLimitIsAnError) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, GetParam()));
  EXPECT_EQ(run(s.loops.at(0), client.fetch(get("/stream?100"), 5000)).error().reason, Reason::RequestEntityTooLarge);
}

Task<CallResult<ClientResponse>> fetch_together(Client& client, int count) {
  auto one = [](Client& c, int& left, std::coroutine_handle<>& all, std::optional<CallError>& error) -> Task<void> {
    CallResult<ClientResponse> answer = co_await c.fetch(get("/wait"), 1000);
    if (!answer) error = answer.error();
    if (--left == 0 && all) all.resume();
  };
  int left = count;
  std::coroutine_handle<> all;
  std::optional<CallError> error;
  for (int i = 0; i < count; ++i) spawn(one(client, left, all, error), [](std::exception_ptr) {});
  struct All {
    int& left;
    std::coroutine_handle<>& all;
    bool await_ready() const noexcept { return left == 0; }
    void await_suspend(std::coroutine_handle<> h) { all = h; }
    void await_resume() const noexcept {}
  };
  co_await All{left, all};
  if (error) co_return *error;
  co_return ClientResponse{};
}

TEST(Http2Client, ConcurrentCallsShareOneConnection) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, true));
  CallResult<ClientResponse> all = run(s.loops.at(0), fetch_together(client, 50));
  EXPECT_TRUE(all) << all.error().message;
  EXPECT_EQ(s.server->stats().connections_accepted, 1u);
}

// The server accepts connections but never answers: a call waiting for another call's handshake still honors its own
// timeout.
TEST(Http2Client, WaitingForAnotherCallsConnectionHonorsOwnTimeout) {
  std::promise<void> connected, over;
  Listener listener([&](int) {
    connected.set_value();
    over.get_future().wait();
  });
  Loops loops(1);
  ClientOptions options;
  options.http2 = true;
  options.host = "127.0.0.1";
  options.port = listener.port();
  Client client(loops.at(0), options);
  ClientRequest dialling = get("/");
  dialling.cancellation = std::make_shared<Cancellation>();
  std::future<CallResult<ClientResponse>> first =
      std::async(std::launch::async, [&] { return run(loops.at(0), client.fetch(dialling, 1000)); });
  connected.get_future().wait();
  ClientRequest impatient = get("/");
  impatient.timeout = 20ms;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(loops.at(0), client.fetch(impatient, 1000)).error().message, "context deadline exceeded");
  }
  ClientRequest leaving = get("/");
  leaving.cancellation = std::make_shared<Cancellation>();
  std::future<CallResult<ClientResponse>> last =
      std::async(std::launch::async, [&] { return run(loops.at(0), client.fetch(leaving, 1000)); });
  loops.at(0).post([&] { leaving.cancellation->cancel(); });
  EXPECT_EQ(last.get().error().message, "context canceled");
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout) << "which still dials";
  loops.at(0).post([&] { dialling.cancellation->cancel(); });
  EXPECT_EQ(first.get().error().message, "context canceled");
  over.set_value();
}

TEST(Http2Client, OpensAnotherConnectionAtTheStreamLimit) {
  ServerOptions options = tls_options();
  options.max_concurrent_streams = 10;
  TestServer s(options);
  Client client(s.loops.at(0), to(s, true));
  ASSERT_TRUE(run(s.loops.at(0), client.fetch(get("/x"), 1000)));  // Now the limit is known.
  CallResult<ClientResponse> all = run(s.loops.at(0), fetch_together(client, 25));
  EXPECT_TRUE(all) << all.error().message;
  // The first ten share one connection, the next ten another; the rest may reuse either.
  EXPECT_GE(s.server->stats().connections_accepted, 2u);
  EXPECT_LE(s.server->stats().connections_accepted, 3u);
}

TEST(Http2Client, ReconnectsAfterGoAway) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, true));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(s.loops.at(0), client.fetch(get("/goaway"), 1000))->body, "last");
    EXPECT_EQ(run(s.loops.at(0), client.fetch(get("/x"), 1000))->body, "hello /x?");
  }
}

TEST(Http2Client, TruncatedResponseIsAnError) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, true));
  const CallError late = run(s.loops.at(0), client.fetch(get("/throw-late"), 1000)).take_error();
  EXPECT_THAT(late.message, HasSubstr("stream error"));
  EXPECT_EQ(late.progress, CallError::Progress::Unknown) << "the server may have served it";
  EXPECT_TRUE(run(s.loops.at(0), client.fetch(get("/x"), 1000)));
  EXPECT_EQ(s.server->stats().connections_accepted, 1u);
}

TEST(Http2Client, SlowReaderBlocksOnlyItsOwnStream) {
  TestServer s(tls_options());
  Client client(s.loops.at(0), to(s, true));
  const uint64_t before = seen.written;
  CallResult<ClientStream> stream = run(s.loops.at(0), client.open(get("/stream?20000")));
  ASSERT_TRUE(stream);
  EXPECT_TRUE(eventually([&] { return seen.written - before >= 4'000'000; }));
  EXPECT_TRUE(run(s.loops.at(0), client.fetch(get("/stream?3000"), 4'000'000)));
  EXPECT_LT(seen.written - before, 20'000'000u);
  size_t got = 0;
  while (true) {
    CallResult<std::string> piece = run(s.loops.at(0), stream->read_some());
    ASSERT_TRUE(piece) << piece.error().message;
    if (piece->empty()) break;
    got += piece->size();
  }
  EXPECT_EQ(got, 20'000'000u);
  auto holder = std::make_shared<ClientStream>(std::move(*stream));
  s.loops.at(0).post([h = std::move(holder)]() mutable { h.reset(); });
}

// A proxy for one connection: accepts CONNECT, then forwards bytes in both directions.
struct Proxy {
  void serve(int peer) {
    request = read_head(peer);
    const uint16_t to = static_cast<uint16_t>(std::atoi(request.c_str() + request.find(':') + 1));
    Socket server(to);
    send(peer, "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL);
    std::thread back([&] {
      for (std::string more; !(more = server.read_some()).empty();) send(peer, more.data(), more.size(), MSG_NOSIGNAL);
      shutdown(peer, SHUT_RDWR);
    });
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(peer, buffer, sizeof buffer, 0)) > 0;) server.send({buffer, static_cast<size_t>(n)});
    shutdown(server.fd(), SHUT_RDWR);
    back.join();
  }
  std::string request;
  Listener listener{[this](int peer) { serve(peer); }};
};

TEST_P(EitherClient, ConnectsThroughProxy) {
  TestServer s(tls_options());
  Proxy proxy;
  {
    ClientOptions options = to(s, GetParam());
    options.proxy_host = "127.0.0.1";
    options.proxy_port = proxy.listener.port();
    options.proxy_authorization = "Basic dXNlcjpwYXNz";
    Client client(s.loops.at(0), options);
    CallResult<ClientResponse> answer = run(s.loops.at(0), client.fetch(get("/x"), 1000));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "hello /x?");
  }
  EXPECT_THAT(proxy.request, StartsWith("CONNECT 127.0.0.1:" + std::to_string(s.port()) + " HTTP/1.1\r\n"));
  EXPECT_THAT(proxy.request, HasSubstr("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n"));
}

TEST(Tls, ClientCertificateIsVerifiedAndAuthorityReloaded) {
  struct Verdict {
    std::string common_name, organization;
    bool good = false, bad = false;
  };
  static Verdict verdict;
  static const CaPool good = *CaPool::from_pem(TestPki::get().authority.certificate_pem, "test");
  static const CaPool other = *CaPool::from_pem(TestPki::make("other", "", nullptr).certificate_pem, "test");
  Loops loops(1);
  ServerOptions server_options = tls_options();
  Server server(loops, server_options, [](Request& request, Response& response) -> Task<void> {
    const PeerCertificate& c = *request.peer->certificate;
    verdict = {std::string(c.common_name()), c.organizations().at(0), good.verify_client(c).ok(),
               other.verify_client(c).ok()};
    (void)response.send(200);
    co_return;
  });
  ASSERT_TRUE(server.start());
  ClientOptions options;
  options.host = "127.0.0.1";
  options.port = server.port();
  options.ca_pem = TestPki::get().authority.certificate_pem;
  options.identity = TestPki::get().client;
  Client client(loops.at(0), options);
  ASSERT_TRUE(run(loops.at(0), client.fetch(get("/"), 1000)));
  EXPECT_EQ(verdict.common_name, "alice");
  EXPECT_EQ(verdict.organization, "dev");
  EXPECT_TRUE(verdict.good);
  EXPECT_FALSE(verdict.bad);

  // The same certificate on another connection comes from the cache, with the same result.
  verdict = {};
  Client again(loops.at(0), options);
  ASSERT_TRUE(run(loops.at(0), again.fetch(get("/"), 1000)));
  EXPECT_TRUE(verdict.good);
  EXPECT_FALSE(verdict.bad);

  // After reloading a different authority, old connections continue and new ones are rejected.
  const Identity new_authority = TestPki::make("new-ca", "", nullptr);
  ASSERT_TRUE(server.reload(TestPki::make("server", "", &new_authority), {}, new_authority.certificate_pem));
  EXPECT_TRUE(run(loops.at(0), client.fetch(get("/"), 1000)));
  Client second(loops.at(0), options);
  EXPECT_FALSE(run(loops.at(0), second.fetch(get("/"), 1000)));
  EXPECT_FALSE(server.reload({"nonsense", "nonsense"}, {}, ""));
  server.stop(1s);
}

TEST(Tls, PlainHttpGetsHint) {
  TestServer s(tls_options());
  Socket peer(s.port());
  peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(peer.read_all(), "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
}

TEST(Tls, HandshakeTimesOut) {
  ServerOptions options = tls_options();
  options.handshake_timeout = 100ms;
  TestServer s(options);
  Socket peer(s.port());
  EXPECT_EQ(peer.read_all(), "");
}

TEST(Gzip, RoundTrips) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "{\"n\":" + std::to_string(i * 7919) + "}";
  const std::vector<Bytes> parts = {Bytes(text.substr(0, 1000)), Bytes(text.substr(1000))};
  const std::string packed = gzip(parts);
  EXPECT_LT(packed.size(), text.size() / 2);
  EXPECT_TRUE(*gunzip(packed, text.size()) == text);
  EXPECT_FALSE(gunzip(packed, 1000));
  EXPECT_FALSE(gunzip(packed.substr(0, packed.size() / 2), 1 << 30));
  EXPECT_FALSE(gunzip("nonsense that is no gzip", 1000));
}

TEST(PercentDecoding, RequiresTwoHexDigits) {
  EXPECT_EQ(percent_decode("%2"), std::nullopt);
  EXPECT_EQ(percent_decode("a%2Fb+c"), "a/b+c");
}

TEST(LocalCall, CallsHandlerWithoutConnection) {
  Loops loops(1);
  ClientRequest request = get("/echo");
  request.method = "POST";
  request.body = "hello";
  Result<ClientResponse> answer = run(loops.at(0), call_handler(loops.at(0), handle, request));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(answer->header("content-type"), "text/plain");
  EXPECT_EQ(run(loops.at(0), call_handler(loops.at(0), handle, get("/stream?2000")))->body.size(), 2'000'000u);
}

// A watch, for example.
Task<void> stream_forever(Request&, Response& response) {
  if (!response.start(200)) co_return;
  while (co_await response.write(Bytes(std::string(1000, 'x')))) (void)co_await response.sleep_for(1ms);
}

TEST(LocalCall, EndsAtItsDeadline) {
  Loops loops(1);
  constexpr auto wait = [](Request&, Response& response) -> Task<void> { (void)co_await response.sleep_for(1h); };
  ClientRequest request = get("/");
  request.timeout = 20ms;
  for (const Handler& handler : {Handler(stream_forever), Handler(wait)}) {
    const Result<ClientResponse> answer = run(loops.at(0), call_handler(loops.at(0), handler, request));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, Reason::Timeout);
  }
}

TEST(LocalCall, EndsWhenTheResponseIsTooLarge) {
  Loops loops(1);
  constexpr auto large = [](Request&, Response& response) -> Task<void> {
    (void)response.send(200, Body(std::string(limits::kOwnAnswerBytes + 1, 'x')));
    co_return;
  };
  for (const auto& [handler, limit] :
       {std::pair(Handler(large), limits::kOwnAnswerBytes), std::pair(Handler(stream_forever), size_t{10'000})}) {
    const Result<ClientResponse> answer = run(loops.at(0), call_handler_within(loops.at(0), handler, get("/"), limit));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, Reason::RequestEntityTooLarge);
    EXPECT_THAT(answer.error().message, HasSubstr(std::to_string(limit) + " bytes"));
  }
}

TEST(LocalCall, EndsWhenItIsCancelled) {
  Loops loops(1);
  ClientRequest request = get("/");
  request.cancellation = std::make_shared<Cancellation>();
  const Handler cancel = [cancellation = request.cancellation](Request&, Response& response) -> Task<void> {
    cancellation->cancel();
    EXPECT_FALSE(co_await response.sleep_for(1h));
  };
  // While it runs, and before it begins.
  for (const Handler& handler : {cancel, Handler(stream_forever)}) {
    const Result<ClientResponse> answer = run(loops.at(0), call_handler(loops.at(0), handler, request));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().reason, Reason::ServiceUnavailable);
  }
}

TEST(Server, ReportsWhyItCannotListen) {
  Loops loops(1);
  TestServer other;
  ServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(other.port());
  EXPECT_THAT(Server(loops, options, handle).start().error().message,
              StartsWith("cannot listen on 127.0.0.1:" + std::to_string(other.port()) + ": Address already in use"));
  options.listen = "nonsense";
  EXPECT_THAT(Server(loops, options, handle).start().error().message, HasSubstr("it must be ADDRESS:PORT"));
  options.listen = "example.com:80";
  EXPECT_THAT(Server(loops, options, handle).start().error().message, HasSubstr("is not an IP address"));
}

}  // namespace
}  // namespace holdfast::net
