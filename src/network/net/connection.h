// One accepted socket: optional TLS, buffered output, and the session that implements HTTP/1.1 or HTTP/2 on it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

namespace holdfast::net::detail {

// The HTTP/1.1 or HTTP/2 implementation of a connection.
class Session {
 public:
  virtual ~Session() = default;
  virtual void receive(std::string_view bytes) = 0;     // Consumes all of it.
  virtual void produce() = 0;                           // put()s output while the connection has room().
  virtual void produced() = 0;                          // Output was sent: writers may continue.
  virtual void lost() = 0;                              // The connection was lost.
  virtual void drain() = 0;                             // No new requests; finish when the last one is answered.
  virtual void tick(TimePoint now) = 0;                 // About once a second.
  virtual bool quiet() const = 0;                       // No handler is running: the session may be destroyed.
  virtual bool finished() const = 0;                    // No more output will follow: close once everything is sent.
  virtual bool input_pending() const { return false; }  // The peer may still be sending: linger before closing.
};

struct Counters {
  std::atomic<uint64_t> accepted{0}, open{0}, refused{0}, handshake_failures{0}, requests{0}, active{0}, exceptions{0},
      protocol_errors{0}, received{0}, sent{0};
};

// Counts connections that have not carried an authenticated request yet, in total and by remote address. Thread-safe.
class UnauthenticatedConnections {
 public:
  // Returns false if the total or per-host limit is reached.
  bool enter(const std::string& host, const ServerOptions& options);
  void leave(const std::string& host);

 private:
  std::mutex mutex_;
  size_t count_ = 0;
  std::unordered_map<std::string, uint32_t, KeyHash, std::equal_to<>> by_host_;
};

// State shared by the connections of one server.
struct ServerShared {
  ServerOptions options;
  Handler handler;
  Counters counters;
  UnauthenticatedConnections strangers;
  // Headers of the open streams of HTTP/2 connections that have more of them than most: see
  // Http2Session::keep_headers().
  std::atomic<size_t> many_header_bytes{0};
  std::atomic<bool> draining{false};
  std::atomic<uint64_t> next_connection{1};
  std::mutex mutex;  // Guards context.
  ContextPtr context;
  void report_exception(const Request& request, std::exception_ptr failure);
};

class Connection;

// The connections of one server on one loop. Used only on that loop's thread.
struct LoopConnections {
  EventLoop& loop;
  ServerShared& shared;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections;
  std::function<void()> on_empty;  // Set while stopping.
  uint64_t tick_timer = 0;         // Runs while there are connections.
  void tick();
  // A snapshot, so that connections may end during iteration.
  std::vector<Connection*> all_connections() const;
};

class Connection final : public EventSource, public Flushable {
 public:
  // `counted_host`: the host counted in ServerShared::strangers; empty if the connection is not counted.
  Connection(LoopConnections& home, int fd, std::string address, std::string counted_host, const ContextPtr& context);
  ~Connection() override;

  void on_events(uint32_t events) override;
  void flush() override;
  void tick(TimePoint now);
  void drain();
  void close();  // Immediately. Handlers are notified; the object is destroyed when the last one has ended.
  void handler_ended();

  // --- For sessions.
  size_t room() const;
  void put(std::string_view bytes);
  void flush_soon() { home.loop.state().flush_soon(this); }
  void set_reading(bool on);
  void trust();           // An authenticated client uses this connection.
  void protocol_error();  // Counts the error and closes once queued output has been sent.
  bool is_closed() const { return state_ == State::Closed; }
  TimePoint now() const { return home.loop.state().now(); }

  LoopConnections& home;
  ServerShared& shared;
  Peer peer;

 private:
  enum class State : uint8_t { Handshaking, Sniffing, Open, Lingering, Closed };

  void receive(std::string_view bytes);
  void receive_plain(std::string_view bytes);
  void open_session(bool http2);
  void seal();
  bool send_pending();  // True if everything was sent.
  void finish();        // Sends the closing alert, then closes or lingers.
  void want_output(bool on);
  void update_events();
  void destroy_if_idle();

  int fd_;
  std::string counted_host_;
  State state_;
  std::optional<TlsEngine> tls_;
  bool tls_used_ = false;  // Since the last tick.
  std::unique_ptr<Session> session_;
  std::string sniffed_;
  std::string out_;  // Bytes for the socket, unsent from out_sent_ on.
  size_t out_sent_ = 0;
  TimePoint state_since_;
  TimePoint out_progress_;
  bool reading_ = true;
  bool waiting_output_ = false;
  uint32_t lingered_bytes_ = 0;
};

std::unique_ptr<Session> make_http1_session(Connection& connection);
std::unique_ptr<Session> make_http2_session(Connection& connection);

}  // namespace holdfast::net::detail
