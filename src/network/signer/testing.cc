#include "signer/testing.h"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

#include "base/varint.h"
#include "signer/rpc.h"

namespace holdfast::signer::testing {
namespace {

int listen_on(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), bytes), 0) << std::strerror(errno);
  EXPECT_EQ(listen(listener, 16), 0);
  return listener;
}

void send_all(int peer, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view s) { return reinterpret_cast<uint8_t*>(const_cast<char*>(s.data())); };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

struct FakeSigner::Session {
  struct Stream {
    std::string path, body;
    std::string reply;
    size_t sent = 0;
    std::string status, explanation;
  };
  FakeSigner& signer;
  nghttp2_session* session = nullptr;
  std::map<int32_t, Stream> streams;

  static Session& self(void* user) { return *static_cast<Session*>(user); }

  void respond(int32_t id, const std::string& method, const std::string& message) {
    Reply reply = signer.reply_to(method, message);
    if (reply.never) return;
    Stream& stream = streams[id];
    stream.status = std::to_string(reply.status);
    stream.explanation = reply.explanation;
    if (reply.status == 0) stream.reply = framed(reply.message);
    const nghttp2_nv head[] = {field(":status", "200"), field("content-type", "application/grpc")};
    nghttp2_data_provider data{};
    data.read_callback = [](nghttp2_session* s, int32_t stream_id, uint8_t* to, size_t n, uint32_t* flags,
                            nghttp2_data_source*, void* user) -> ssize_t {
      Stream& sending = self(user).streams[stream_id];
      const size_t take = std::min(n, sending.reply.size() - sending.sent);
      std::copy_n(sending.reply.data() + sending.sent, take, to);
      sending.sent += take;
      if (sending.sent == sending.reply.size()) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const nghttp2_nv trailers[] = {field("grpc-status", sending.status),
                                       field("grpc-message", sending.explanation)};
        nghttp2_submit_trailer(s, stream_id, trailers, std::size(trailers));
      }
      return static_cast<ssize_t>(take);
    };
    nghttp2_submit_response(session, id, head, std::size(head), &data);
  }

  void run(int peer) {
    nghttp2_session_callbacks* c = nullptr;
    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_header_callback(
        c, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_bytes,
              const uint8_t* value, size_t value_bytes, uint8_t, void* user) {
          if (std::string_view(reinterpret_cast<const char*>(name), name_bytes) == ":path") {
            self(user).streams[frame->hd.stream_id].path.assign(reinterpret_cast<const char*>(value), value_bytes);
          }
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        c, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t bytes, void* user) {
          self(user).streams[id].body.append(reinterpret_cast<const char*>(data), bytes);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, [](nghttp2_session*, const nghttp2_frame* f, void* user) {
      if (f->hd.stream_id == 0 || (f->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
      const Stream& asked = self(user).streams[f->hd.stream_id];
      constexpr size_t kFrameHead = 5;
      self(user).respond(f->hd.stream_id, asked.path.substr(asked.path.rfind('/') + 1), asked.body.substr(kFrameHead));
      return 0;
    });
    nghttp2_session_server_new(&session, c, this);
    nghttp2_session_callbacks_del(c);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
    char buffer[16384];
    while (true) {
      const uint8_t* out = nullptr;
      for (ssize_t n; (n = nghttp2_session_mem_send(session, &out)) > 0;) {
        send_all(peer, {reinterpret_cast<const char*>(out), static_cast<size_t>(n)});
      }
      const ssize_t got = recv(peer, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      const auto* bytes = reinterpret_cast<const uint8_t*>(buffer);
      if (nghttp2_session_mem_recv(session, bytes, static_cast<size_t>(got)) < 0) break;
    }
    nghttp2_session_del(session);
  }
};

FakeSigner::FakeSigner(const std::string& path, Answer answer)
    : answer_(std::move(answer)), listener_(listen_on(path)), accepting_([this] {
        while (true) {
          const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
          if (peer < 0) return;
          const std::lock_guard lock(mutex_);
          peers_.push_back(peer);
          if (ending_) shutdown(peer, SHUT_RDWR);
          threads_.emplace_back([this, peer] { serve(peer); });
        }
      }) {}

FakeSigner::~FakeSigner() {
  shutdown(listener_, SHUT_RDWR);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const int peer : peers_) shutdown(peer, SHUT_RDWR);
  }
  accepting_.join();
  for (std::thread& thread : threads_) thread.join();
  for (const int peer : peers_) close(peer);
  close(listener_);
}

void FakeSigner::serve(int peer) {
  Session session{*this};
  session.run(peer);
}

Reply FakeSigner::reply_to(const std::string& method, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(method);
  }
  return answer_(method, message);
}

int FakeSigner::count(std::string_view method) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count(calls_.begin(), calls_.end(), method));
}

Babbler::Babbler(const std::string& path, std::string bytes)
    : listener_(listen_on(path)), accepting_([this, bytes = std::move(bytes)] {
        while (true) {
          const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
          if (peer < 0) return;
          char first = 0;
          (void)recv(peer, &first, 1, 0);
          send_all(peer, bytes);
          close(peer);
        }
      }) {}

Babbler::~Babbler() {
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  close(listener_);
}

std::string text_field(uint64_t number, std::string_view text) {
  std::string bytes;
  put_varint(bytes, number << 3 | 2);
  put_varint(bytes, text.size());
  return bytes + std::string(text);
}

std::string number_field(uint64_t number, uint64_t value) {
  std::string bytes;
  put_varint(bytes, number << 3);
  put_varint(bytes, value);
  return bytes;
}

}  // namespace holdfast::signer::testing
