// Arbitrary bytes over HTTP/1 or HTTP/2, split arbitrarily: the server must not crash, every handler must end, and
// later clients must be served.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/net.h"

using namespace holdfast;       // NOLINT
using namespace holdfast::net;  // NOLINT

namespace {

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::atomic<int> started{0}, ended{0};

Task<void> echo(Request& request, Response& response) {
  ++started;
  struct Leave {
    ~Leave() { ++ended; }
  } leave;
  // No control characters may reach a handler, which could forward them.
  for (const char c : request.target) assert(static_cast<unsigned char>(c) > ' ' && c != 0x7f);
  for (const Header& header : request.headers.items()) {
    for (const char c : header.value) assert(static_cast<unsigned char>(c) >= ' ' || c == '\t');
  }
  Result<std::string> body = co_await request.read_body(1 << 16);
  if (!body) co_return (void) response.send(400);
  (void)response.send(200, Body(std::move(*body)));
}

struct Served {
  Served() : server(loops, options(), echo) { assert(server.start().ok()); }
  static ServerOptions options() {
    ServerOptions options;
    options.max_unauthenticated_connections = options.max_unauthenticated_connections_per_address = UINT32_MAX;
    return options;
  }
  Loops loops{1};
  Server server;
};

Served& served() {
  static Served* const one = new Served();
  return *one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool http2 = (data[0] & 1) != 0;
  const size_t piece_bytes = 1 + static_cast<size_t>(data[1]) * 16;
  std::string_view rest(reinterpret_cast<const char*>(data + 2), size - 2);

  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(served().server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  if (http2) (void)send(fd, kHttp2Preface.data(), kHttp2Preface.size(), MSG_NOSIGNAL);
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, piece_bytes);
    if (send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) <= 0) break;
    rest.remove_prefix(piece.size());
  }
  shutdown(fd, SHUT_WR);
  char answer[4096];
  while (recv(fd, answer, sizeof answer, 0) > 0) {
  }
  close(fd);
  // The peer has disconnected, so every started handler must end.
  for (int i = 0; started != ended; ++i) {
    assert(i < 100'000);
    usleep(100);
  }
  return 0;
}
