// Shared by net's tests: a handler with one path per behaviour, and raw peers.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "net/net.h"

namespace holdfast::net::testing {

using namespace std::chrono_literals;

// Counters updated by the handlers, for tests to wait on.
struct Seen {
  std::atomic<int> started{0}, ended{0}, peer_gone{0}, draining{0};
  std::atomic<uint64_t> written{0};
};
extern Seen seen;

// /hello, /echo, /throw, /throw-late, /stream?N, /forever, /wait, /early, /trusted, /goaway, /silent, /tunnel
Task<void> handle(Request& request, Response& response);

// Waits up to five seconds.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// A blocking socket.
class Socket {
 public:
  explicit Socket(uint16_t port, int receive_buffer_bytes = 0);
  ~Socket();
  void send(std::string_view bytes);
  std::string read_until(std::string_view end);  // Including `end`; less if the peer closes first.
  std::string read_all();
  std::string read_some();
  void close();
  int fd() const { return fd_; }

 private:
  int fd_;
  std::string buffer_;
};

// A server and its loops. Housekeeping runs often; timeouts come from the options.
struct TestServer {
  explicit TestServer(ServerOptions options = {});
  ~TestServer();
  Loops loops{2};
  std::unique_ptr<Server> server;
  uint16_t port() const { return server->port(); }
};

// Runs a task on a loop and waits for its result.
template <class T>
T run(EventLoop& loop, Task<T> task) {
  return block_on(loop, std::move(task));
}

struct TestPki {
  Identity authority, server, client;
  static const TestPki& get();  // Created once.
  static Identity make(const std::string& name, const std::string& organization, const Identity* authority);
};

}  // namespace holdfast::net::testing
