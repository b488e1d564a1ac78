#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>

#include "base/strings.h"
#include "base/url.h"
#include "net/connection.h"
#include "net/wire.h"

namespace holdfast::net {

namespace detail {

void ServerShared::report_exception(const Request& request, std::exception_ptr failure) {
  counters.exceptions.fetch_add(1, std::memory_order_relaxed);
  std::string what;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "unknown exception";
  }
  if (options.on_exception) options.on_exception(request, what);
}

}  // namespace detail

namespace {

using detail::Connection;
using detail::ContextPtr;
using detail::LoopConnections;

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  bool is_unix = false;
};

Result<Address> parse_address(const std::string& text) {
  Address address;
  if (text.starts_with("unix:")) {
    auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
    const std::string path = text.substr(5);
    if (path.empty() || path.size() >= sizeof un->sun_path)
      return bad_request("cannot listen on " + text + ": the path is empty or too long");
    un->sun_family = AF_UNIX;
    std::memcpy(un->sun_path, path.c_str(), path.size() + 1);
    address.bytes = sizeof *un;
    address.is_unix = true;
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    return bad_request("cannot listen on \"" + text + "\": it must be ADDRESS:PORT or unix:PATH");
  const std::optional<uint16_t> port = parse_number<uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) return bad_request("cannot listen on \"" + text + "\": the port must be a number from 0 to 65535");
  std::string host(without_brackets(std::string_view(text).substr(0, colon)));
  if (host.empty()) host = "::";
  if (host == "localhost") host = "127.0.0.1";
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(*port);
    address.bytes = sizeof *v4;
  } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(*port);
    address.bytes = sizeof *v6;
  } else {
    return bad_request("cannot listen on \"" + text + "\": \"" + host + "\" is not an IP address");
  }
  return address;
}

// Without the port; empty for a unix socket.
std::string host_of(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN];
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text, sizeof text);
  } else if (storage.ss_family == AF_INET6) {
    // A host may use any address of its /64 network.
    in6_addr address = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    constexpr size_t kNetworkBytes = 8;
    if (!IN6_IS_ADDR_V4MAPPED(&address)) std::memset(address.s6_addr + kNetworkBytes, 0, 16 - kNetworkBytes);
    inet_ntop(AF_INET6, &address, text, sizeof text);
  } else {
    return {};
  }
  return text;
}

void tune(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // A peer that disappears without closing is detected after about a minute.
  const int idle_seconds = 30;
  const int interval_seconds = 10;
  const int probes = 3;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace

struct Server::State : detail::EventSource {
  State(Loops& server_loops, ServerOptions options, Handler handler) : loops(server_loops) {
    shared.options = std::move(options);
    shared.handler = std::move(handler);
    for (size_t i = 0; i < loops.count(); ++i) homes.push_back(std::make_unique<LoopConnections>(loops.at(i), shared));
  }

  void on_events(uint32_t) override { accept_all(); }
  void accept_all();
  // Stops polling the listener briefly: a connection that cannot be accepted stays queued and would be reported again
  // and again.
  void pause_accepting();
  // Runs `work` on every loop and waits until all have run it.
  void on_all_loops(const std::function<void(LoopConnections&)>& work);

  Loops& loops;
  detail::ServerShared shared;
  std::vector<std::unique_ptr<LoopConnections>> homes;
  int listen_fd = -1;
  std::string unix_path;
  uint16_t port = 0;
  size_t next_home = 0;
  uint64_t accept_timer = 0;  // Set while accepting is paused.
  bool stopped = false;
};

void Server::State::pause_accepting() {
  constexpr Millis kPause{100};
  EventLoop& loop = loops.at(0);
  loop.state().change(listen_fd, this, 0);
  accept_timer = loop.run_after(kPause, [this, &loop] {
    accept_timer = 0;
    loop.state().change(listen_fd, this, EPOLLIN);
  });
}

void Server::State::accept_all() {
  // In batches, so that a burst of new connections cannot starve open ones.
  for (int i = 0; i < 64; ++i) {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    const int fd = accept4(listen_fd, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      // Aborted connections are not worth logging; without descriptors or memory, the next attempt would fail too.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_accepting();
      return;
    }
    std::string host = host_of(from);
    if (shared.counters.open >= shared.options.max_connections || shared.draining ||
        (!host.empty() && !shared.strangers.enter(host, shared.options))) {
      shared.counters.refused.fetch_add(1, std::memory_order_relaxed);
      close(fd);
      continue;
    }
    if (from.ss_family != AF_UNIX) tune(fd);
    shared.counters.accepted.fetch_add(1, std::memory_order_relaxed);
    shared.counters.open.fetch_add(1, std::memory_order_relaxed);
    ContextPtr context;
    {
      std::lock_guard lock(shared.mutex);
      context = shared.context;
    }
    LoopConnections& home = *homes[next_home++ % homes.size()];
    auto adopt = [&home, fd, address = detail::address_text(from), host = std::move(host), context]() mutable {
      auto connection = std::make_unique<Connection>(home, fd, std::move(address), std::move(host), context);
      Connection* raw = connection.get();
      home.connections.emplace(raw, std::move(connection));
      if (home.tick_timer == 0)
        home.tick_timer = home.loop.run_after(home.shared.options.housekeeping_interval, [&home] { home.tick(); });
    };
    if (home.loop.in_thread()) {
      adopt();
    } else {
      home.loop.post(std::move(adopt));
    }
  }
}

void Server::State::on_all_loops(const std::function<void(LoopConnections&)>& work) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t left = homes.size();
  for (auto& home : homes) {
    assert(!home->loop.in_thread());
    home->loop.post([&, home = home.get()] {
      work(*home);
      std::lock_guard lock(mutex);
      if (--left == 0) changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
}

Server::Server(Loops& loops, ServerOptions options, Handler handler)
    : state_(std::make_shared<State>(loops, std::move(options), std::move(handler))) {}

Server::~Server() { stop(Millis(0)); }

Result<Unit> Server::bind() {
  State& s = *state_;
  const std::string& listen_text = s.shared.options.listen;
  if (s.shared.options.identity) {
    const ServerOptions& options = s.shared.options;
    Result<Unit> loaded = reload(*options.identity, options.named_identities, options.client_ca_pem);
    if (!loaded) return loaded;
  }
  Result<Address> address = parse_address(listen_text);
  if (!address) return address.take_error();
  const int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  auto fail = [&](std::string_view what) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return Error{Reason::InternalError, "cannot " + std::string(what) + " " + listen_text + ": " + why};
  };
  if (fd < 0) return fail("open a socket for");
  const int one = 1;
  const int zero = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (address->storage.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (address->is_unix) {
    s.unix_path = listen_text.substr(5);
    unlink(s.unix_path.c_str());
  }
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address->storage), address->bytes) != 0) return fail("listen on");
  if (address->is_unix) chmod(s.unix_path.c_str(), 0600);
  if (listen(fd, SOMAXCONN) != 0) return fail("listen on");
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes);
  if (bound.ss_family == AF_INET) s.port = ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port);
  if (bound.ss_family == AF_INET6) s.port = ntohs(reinterpret_cast<sockaddr_in6&>(bound).sin6_port);
  s.listen_fd = fd;
  return Unit{};
}

Result<Unit> Server::start() {
  State& s = *state_;
  if (s.listen_fd < 0) {
    if (Result<Unit> bound = bind(); !bound) return bound;
  }
  s.loops.at(0).state().add(s.listen_fd, &s, EPOLLIN);
  return Unit{};
}

uint16_t Server::port() const { return state_->port; }

Result<Unit> Server::reload(const Identity& identity, std::span<const NamedIdentity> named,
                            std::string_view client_ca_pem) {
  Result<ContextPtr> context = detail::server_context(identity, named, state_->shared.options.tls, client_ca_pem);
  if (!context) return context.take_error();
  std::lock_guard lock(state_->shared.mutex);
  state_->shared.context = std::move(*context);
  return Unit{};
}

void Server::stop(Millis grace) {
  State& s = *state_;
  if (std::exchange(s.stopped, true)) return;
  s.shared.draining = true;
  std::mutex mutex;
  std::condition_variable changed;
  size_t busy = s.homes.size();
  s.on_all_loops([&](LoopConnections& home) {
    if (&home == s.homes.front().get() && s.listen_fd >= 0) {
      home.loop.cancel(s.accept_timer);
      home.loop.state().remove(s.listen_fd, &s);
      close(s.listen_fd);
      if (!s.unix_path.empty()) unlink(s.unix_path.c_str());
    }
  });
  // The listener is closed; connections handed over before that were posted before this.
  s.on_all_loops([&](LoopConnections& home) {
    auto emptied = [&] {
      std::lock_guard lock(mutex);
      if (--busy == 0) changed.notify_one();
    };
    if (home.connections.empty()) return emptied();
    home.on_empty = emptied;
    for (Connection* connection : home.all_connections()) connection->drain();
  });
  std::unique_lock lock(mutex);
  if (!changed.wait_for(lock, grace, [&] { return busy == 0; })) {
    lock.unlock();
    s.on_all_loops([](LoopConnections& home) {
      for (Connection* connection : home.all_connections()) connection->close();
    });
    lock.lock();
    changed.wait(lock, [&] { return busy == 0; });
  }
  lock.unlock();
  s.on_all_loops([](LoopConnections& home) {
    home.on_empty = nullptr;
    home.loop.cancel(home.tick_timer);
  });
  // The round that buried the last connection must end before the homes are destroyed. The work posted above may have
  // run in that round; work posted from here on runs in a later one.
  s.on_all_loops([](LoopConnections&) {});
}

ServerStats Server::stats() const {
  const detail::Counters& c = state_->shared.counters;
  return {.connections_accepted = c.accepted,
          .connections_open = c.open,
          .connections_refused = c.refused,
          .handshake_failures = c.handshake_failures,
          .requests = c.requests,
          .requests_active = c.active,
          .handler_exceptions = c.exceptions,
          .protocol_errors = c.protocol_errors,
          .bytes_received = c.received,
          .bytes_sent = c.sent};
}

}  // namespace holdfast::net
