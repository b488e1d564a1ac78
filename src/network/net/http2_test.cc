#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>

#include <functional>
#include <map>
#include <thread>

#include "net/testing.h"

namespace holdfast::net {
namespace {

using namespace testing;
using ::testing::StartsWith;

// An HTTP/2 client on a blocking socket, using nghttp2. Cleartext with prior knowledge.
class Peer {
 public:
  struct Answer {
    std::string status;
    std::map<std::string, std::string> headers;
    std::string body;
    bool closed = false;
    uint32_t error = 0;
  };

  explicit Peer(uint16_t port, uint32_t window = 0) : socket_(port) {
    nghttp2_session_callbacks* c = nullptr;
    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_header_callback(
        c, [](nghttp2_session*, const nghttp2_frame* f, const uint8_t* n, size_t nl, const uint8_t* v, size_t vl,
              uint8_t, void* user) {
          Answer& a = static_cast<Peer*>(user)->answers[f->hd.stream_id];
          const std::string name(reinterpret_cast<const char*>(n), nl);
          const std::string value(reinterpret_cast<const char*>(v), vl);
          if (name == ":status") a.status = value;
          a.headers[name] = value;
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        c, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* d, size_t n, void* user) {
          static_cast<Peer*>(user)->answers[id].body.append(reinterpret_cast<const char*>(d), n);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(c,
                                                           [](nghttp2_session*, int32_t id, uint32_t code, void* user) {
                                                             Answer& a = static_cast<Peer*>(user)->answers[id];
                                                             a.closed = true;
                                                             a.error = code;
                                                             return 0;
                                                           });
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, [](nghttp2_session*, const nghttp2_frame* f, void* user) {
      auto* peer = static_cast<Peer*>(user);
      if (f->hd.type == NGHTTP2_GOAWAY) {
        peer->goaway = f->goaway.error_code;
        peer->order += "G";
      }
      if (f->hd.type == NGHTTP2_HEADERS) peer->order += "H";
      return 0;
    });
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    if (window != 0) nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&session, c, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(c);
    if (window != 0) {
      const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
      nghttp2_submit_settings(session, 0, &entry, 1);
    } else {
      nghttp2_submit_settings(session, 0, nullptr, 0);
    }
    flush();
  }
  ~Peer() { nghttp2_session_del(session); }

  int32_t request(const std::string& method, const std::string& path, std::string body = {}, bool end = true) {
    auto nv = [](const std::string& n, const std::string& v) {
      return nghttp2_nv{reinterpret_cast<uint8_t*>(const_cast<char*>(n.data())),
                        reinterpret_cast<uint8_t*>(const_cast<char*>(v.data())), n.size(), v.size(), 0};
    };
    static const std::string kMethod = ":method", kPath = ":path", kScheme = ":scheme", kHttp = "http",
                             kAuthority = ":authority", kHost = "x";
    const nghttp2_nv fields[] = {nv(kMethod, method), nv(kPath, path), nv(kScheme, kHttp), nv(kAuthority, kHost)};
    struct Source {
      std::string body;
      size_t at = 0;
      bool end;
    };
    nghttp2_data_provider provider{};
    sources_.push_back(std::make_shared<Source>(Source{std::move(body), 0, end}));
    auto* source = static_cast<Source*>(sources_.back().get());
    provider.source.ptr = source;
    provider.read_callback = [](nghttp2_session*, int32_t, uint8_t* to, size_t n, uint32_t* flags,
                                nghttp2_data_source* s, void*) -> ssize_t {
      auto* from = static_cast<Source*>(s->ptr);
      const size_t take = std::min(n, from->body.size() - from->at);
      if (take == 0 && !from->end) return NGHTTP2_ERR_DEFERRED;
      memcpy(to, from->body.data() + from->at, take);
      from->at += take;
      if (from->at == from->body.size() && from->end) *flags |= NGHTTP2_DATA_FLAG_EOF;
      return static_cast<ssize_t>(take);
    };
    const bool has_body = !source->body.empty() || !end;
    return nghttp2_submit_request(session, nullptr, fields, 4, has_body ? &provider : nullptr, nullptr);
  }

  void flush() {
    const uint8_t* data = nullptr;
    for (ssize_t n; (n = nghttp2_session_mem_send(session, &data)) > 0;) {
      socket_.send({reinterpret_cast<const char*>(data), static_cast<size_t>(n)});
    }
  }

  // Reads and writes until the condition holds. False if the server closes first, or after five seconds.
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (true) {
      flush();
      if (condition()) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      pollfd p{socket_.fd(), POLLIN, 0};
      if (poll(&p, 1, 20) <= 0) continue;
      const std::string bytes = socket_.read_some();
      if (bytes.empty()) {
        hung_up = true;
        return condition();
      }
      nghttp2_session_mem_recv(session, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
  }

  bool answered(int32_t id) {
    return until([&] { return answers[id].closed; });
  }

  nghttp2_session* session = nullptr;
  std::map<int32_t, Answer> answers;
  std::optional<uint32_t> goaway;
  std::string order;  // Frames in order of arrival: H(EADERS), G(OAWAY).
  bool hung_up = false;

 private:
  Socket socket_;
  std::vector<std::shared_ptr<void>> sources_;
};

TEST(Http2, ManyStreamsShareOneConnection) {
  TestServer s;
  Peer peer(s.port());
  std::vector<int32_t> ids;
  for (int i = 0; i < 90; ++i) ids.push_back(peer.request("GET", "/" + std::to_string(i)));
  ASSERT_TRUE(peer.until(
      [&] { return std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return peer.answers[id].closed; }); }));
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(peer.answers[ids[i]].status, "200");
    EXPECT_EQ(peer.answers[ids[i]].body, "hello /" + std::to_string(i) + "?");
  }
}

TEST(Http2, BodyLargerThanWindowArrives) {
  TestServer s;
  Peer peer(s.port());
  const std::string body(1'000'000, 'w');
  const int32_t id = peer.request("POST", "/echo", body);
  ASSERT_TRUE(peer.answered(id));
  EXPECT_TRUE(peer.answers[id].body == body);
  EXPECT_EQ(peer.answers[id].headers["content-length"], "1000000");
}

TEST(Http2, BodyAboveLimitIsRejectedWithResponse) {
  TestServer s;
  Peer peer(s.port());
  const int32_t id = peer.request("POST", "/echo", std::string(3'000'000, 'w'));
  ASSERT_TRUE(peer.answered(id));
  EXPECT_EQ(peer.answers[id].status, "413");
}

TEST(Http2, StreamedResponseArrivesCompletely) {
  TestServer s;
  Peer peer(s.port());
  const int32_t id = peer.request("GET", "/stream?5000");
  ASSERT_TRUE(peer.answered(id));
  EXPECT_EQ(peer.answers[id].body.size(), 5'000'000u);
  EXPECT_EQ(peer.answers[id].error, 0u);
}

TEST(Http2, ExceptionIsServerErrorOrReset) {
  TestServer s;
  Peer peer(s.port());
  const int32_t early = peer.request("GET", "/throw");
  const int32_t late = peer.request("GET", "/throw-late");
  const int32_t other = peer.request("GET", "/other");
  ASSERT_TRUE(peer.answered(early) && peer.answered(late) && peer.answered(other));
  EXPECT_EQ(peer.answers[early].status, "500");
  EXPECT_EQ(peer.answers[late].error, static_cast<uint32_t>(NGHTTP2_INTERNAL_ERROR));
  EXPECT_EQ(peer.answers[other].status, "200");
  EXPECT_EQ(s.server->stats().handler_exceptions, 2u);
}

TEST(Http2, ResetNotifiesHandler) {
  TestServer s;
  const int before = seen.peer_gone;
  Peer peer(s.port());
  const int32_t id = peer.request("GET", "/forever");
  ASSERT_TRUE(peer.until([&] { return !peer.answers[id].body.empty(); }));
  nghttp2_submit_rst_stream(peer.session, 0, id, NGHTTP2_CANCEL);
  peer.flush();
  EXPECT_TRUE(eventually([&] { return seen.peer_gone == before + 1 && seen.started == seen.ended; }));
  const int32_t next = peer.request("GET", "/next");
  ASSERT_TRUE(peer.answered(next));
  EXPECT_EQ(peer.answers[next].status, "200");
}

TEST(Http2, GoAwayPrecedesLastResponse) {
  TestServer s;
  Peer peer(s.port());
  const int32_t id = peer.request("GET", "/goaway");
  ASSERT_TRUE(peer.until([&] { return peer.hung_up; }) || peer.hung_up);
  EXPECT_EQ(peer.answers[id].body, "last");
  EXPECT_EQ(peer.order, "GH");
  EXPECT_EQ(peer.goaway, static_cast<uint32_t>(NGHTTP2_NO_ERROR));
}

TEST(Http2, RapidResetsCloseOnlyThatConnection) {
  ServerOptions options;
  options.reset_burst = 200;
  TestServer s(options);
  Peer bystander(s.port());
  Peer peer(s.port());
  for (int i = 0; i < 2000 && !peer.hung_up; ++i) {
    const int32_t id = peer.request("GET", "/wait");
    if (id < 0) break;
    peer.flush();
    nghttp2_submit_rst_stream(peer.session, 0, id, NGHTTP2_CANCEL);
    peer.flush();
  }
  peer.until([&] { return peer.hung_up; });
  EXPECT_TRUE(peer.hung_up);
  EXPECT_EQ(peer.goaway, static_cast<uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
  const int32_t id = bystander.request("GET", "/fine");
  ASSERT_TRUE(bystander.answered(id));
  EXPECT_EQ(bystander.answers[id].status, "200");
  EXPECT_TRUE(eventually([&] { return seen.started == seen.ended; }));
}

TEST(Http2, FullWindowBlocksOnlyItsOwnStream) {
  ServerOptions options;
  options.stalled_write_timeout = 500ms;
  TestServer s(options);
  seen.written = 0;
  Peer peer(s.port(), 1000);
  const int32_t stuck = peer.request("GET", "/stream?100000");
  ASSERT_TRUE(peer.until([&] { return peer.answers[stuck].body.size() == 1000; }));
  const int32_t other = peer.request("GET", "/small");
  ASSERT_TRUE(peer.answered(other));
  EXPECT_EQ(peer.answers[other].status, "200");
  EXPECT_LT(seen.written, 1'000'000u);
  // The blocked stream is reset eventually.
  ASSERT_TRUE(peer.answered(stuck));
  EXPECT_EQ(peer.answers[stuck].error, static_cast<uint32_t>(NGHTTP2_CANCEL));
  EXPECT_TRUE(eventually([&] { return seen.started == seen.ended; }));
}

TEST(Http2, DeadlineRespondsForSlowHandler) {
  TestServer s;
  Peer peer(s.port());
  const int32_t id = peer.request("GET", "/late?50");
  ASSERT_TRUE(peer.answered(id));
  EXPECT_EQ(peer.answers[id].status, "504");
  EXPECT_EQ(peer.answers[id].body, "slow");
  EXPECT_TRUE(eventually([&] { return seen.started == seen.ended; }));
}

TEST(Http2, IdleConnectionGetsGoAway) {
  ServerOptions options;
  options.idle_timeout = 100ms;
  TestServer s(options);
  Peer peer(s.port());
  ASSERT_TRUE(peer.answered(peer.request("GET", "/x")));
  peer.until([&] { return peer.hung_up; });
  EXPECT_TRUE(peer.hung_up);
  EXPECT_EQ(peer.goaway, static_cast<uint32_t>(NGHTTP2_NO_ERROR));
}

TEST(Http2, PingsDoNotKeepIdleConnectionOpen) {
  ServerOptions options;
  options.idle_timeout = 300ms;
  TestServer s(options);
  Peer peer(s.port());
  ASSERT_TRUE(peer.answered(peer.request("GET", "/x")));
  peer.until([&] {
    nghttp2_submit_ping(peer.session, 0, nullptr);
    return peer.hung_up;
  });
  EXPECT_TRUE(peer.hung_up);
}

TEST(Http2, ControlCharactersInTargetAreRejected) {
  TestServer s;
  Peer peer(s.port());
  const int32_t id = peer.request("GET", "/a\x7f");
  ASSERT_TRUE(peer.until([&] { return peer.answers[id].closed || peer.hung_up; }));
  EXPECT_NE(peer.answers[id].status, "200");
}

TEST(Http2, DrainingSendsGoAwayAndFinishes) {
  TestServer s;
  Peer peer(s.port());
  const int32_t watch = peer.request("GET", "/forever");
  const int32_t wait = peer.request("GET", "/wait");
  ASSERT_TRUE(peer.until([&] { return !peer.answers[watch].body.empty(); }));
  std::thread stopper([&] { s.server->stop(5s); });
  peer.until([&] { return peer.hung_up; });
  stopper.join();
  EXPECT_EQ(peer.answers[watch].body, "hello\nbye\n");
  EXPECT_EQ(peer.answers[wait].body, "done");
  EXPECT_EQ(peer.goaway, static_cast<uint32_t>(NGHTTP2_NO_ERROR));
}

TEST(Http2, HeadersAboveLimitResetStream) {
  ServerOptions options;
  options.max_header_bytes = 8192;
  TestServer s(options);
  Peer peer(s.port());
  const int32_t big = peer.request("GET", "/" + std::string(20'000, 'p'));
  const int32_t small = peer.request("GET", "/ok");
  ASSERT_TRUE(peer.answered(big) && peer.answered(small));
  EXPECT_NE(peer.answers[big].error, 0u);
  EXPECT_EQ(peer.answers[small].status, "200");
}

TEST(Http2, StopAbortsStreamsAfterGracePeriod) {
  TestServer s;
  Peer peer(s.port());
  const int32_t id = peer.request("POST", "/echo", "part", false);  // The body never ends.
  peer.flush();
  EXPECT_TRUE(eventually([&] { return s.server->stats().requests_active == 1; }));
  s.server->stop(50ms);
  EXPECT_EQ(s.server->stats().requests_active, 0u);
  EXPECT_FALSE(peer.answered(id));
}

}  // namespace
}  // namespace holdfast::net
