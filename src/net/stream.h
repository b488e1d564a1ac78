// One request and its response, whatever the protocol: what a handler sees on one side, what a session moves on the
// other.
#pragma once

#include <vector>

#include "net/loop.h"
#include "net/net.h"

namespace holdfast::net::detail {

// What a stream needs from its session.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual void head_ready(Stream& stream) = 0;    // The response's status and headers are final.
  virtual void output_ready(Stream& stream) = 0;  // More body, or its end.
  virtual void input_taken(Stream& stream, size_t bytes) = 0;
  virtual void input_wanted(Stream& stream) = 0;  // The handler waits for the body.
  virtual void abort(Stream& stream) = 0;         // Break the response off.
  virtual void close_after(Stream& stream) = 0;
  virtual void trust(Stream& stream) = 0;          // An authenticated client uses the connection.
  virtual void handler_ended(Stream& stream) = 0;  // The stream may be destroyed from here on.
};

// Parts of a body that wait to be sent. The first is stored inline: for a watch it is the only
// one.
class OutputQueue {
 public:
  bool empty() const { return first_.view.empty(); }
  std::string_view first() const { return first_.view; }  // Empty when there is nothing.
  void push(Bytes part) {
    assert(!part.view.empty());
    if (empty()) {
      first_ = std::move(part);
    } else {
      rest_.push_back(std::move(part));
    }
  }
  void assign(std::vector<Bytes> parts) {
    clear();
    rest_ = std::move(parts);
    advance();
  }
  void take(size_t bytes) {
    while (bytes >= first_.view.size() && !empty()) {
      bytes -= first_.view.size();
      advance();
    }
    first_.view.remove_prefix(bytes);
  }
  void clear() {
    first_ = {};
    rest_.clear();
    next_ = 0;
  }

 private:
  void advance() {
    if (next_ < rest_.size()) {
      first_ = std::move(rest_[next_++]);
      return;
    }
    clear();
  }

  Bytes first_;  // From where it has not been sent yet.
  std::vector<Bytes> rest_;
  size_t next_ = 0;  // In rest_.
};

class Stream {
 public:
  Stream(EventLoop& event_loop, StreamOwner& session, const ServerOptions& server_options);
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // --- Called by sessions.
  // Starts the handler from the top of the loop.
  void start_handler(const Handler& handler, std::function<void(std::exception_ptr)> on_exception);
  void receive(std::string_view bytes);  // Body bytes; the session respects wants_input() or its own window.
  void receive_end();
  void lost();  // The peer is gone: wakes whatever the handler waits for.
  void drain();
  void wake_writer();  // After output was taken.
  void check_deadline(TimePoint now);
  void begin_tunnel();  // The request's body begins again, and never has to end.
  bool handler_active() const { return handler_active_; }
  void credit_input();  // Tells the session that what has arrived so far may be replaced by more.

  // The part of the queue to be sent next; empty when there is nothing now.
  std::string_view next_output() const { return queue.first(); }
  void output_taken(size_t bytes);
  bool output_finished() const { return ended && queued_bytes == 0; }

  // --- The handler's side; Request and Response forward to these.
  void set_deadline(Millis from_now);
  Result<Unit> send(int code, Body body);
  Result<Unit> start(int code);
  void write(Bytes chunk);
  void end();
  void add_header(std::string_view name, std::string_view value);
  void set_header(std::string_view name, std::string_view value);

  EventLoop& loop;
  StreamOwner& owner;
  const ServerOptions& options;

  // The response. What each write of it touches is adjacent in memory: an event may be written to thousands of watches,
  // and fetching them from memory is most of the work.
  int status = 0;
  bool head_sent = false;  // head_ready() was called.
  bool ended = false;      // end() or send().
  bool bodiless = false;   // HEAD, 204, 304: a body is counted but not sent.
  bool closed = false;
  bool cut_off = false;  // The deadline answered; the handler no longer can.
  bool dead() const { return closed || cut_off; }

 private:
  bool undecided_ = false;    // Writes are held until it is known whether to compress.
  bool compressing_ = false;  // gzip_ is there.

 public:
  // The session's own.
  struct {
    int32_t id = 0;
    bool closed = false;    // The protocol has forgotten the stream.
    bool deferred = false;  // The protocol asks for output no more until it is notified that there is some.
    bool ready = false;     // It is to be told.
  } wire;
  size_t queued_bytes = 0;
  uint64_t body_bytes = 0;
  TimePoint progress;  // When the peer last took or sent something.
  OutputQueue queue;
  std::coroutine_handle<> writer;

 private:
  std::optional<GzipWriter> gzip_;

 public:
  Arena arena;
  Request request;
  Response response;

  std::vector<Header> headers;  // Of the response.
  std::optional<size_t> known_length;

  // Body of the request.
  std::string input;
  bool input_ended = false;
  size_t input_limit = SIZE_MAX;
  bool whole_body = false;
  std::optional<uint64_t> content_length;
  std::coroutine_handle<> reader;

  TimePoint deadline = TimePoint::max();
  uint64_t deadline_timer = 0;
  bool draining = false;
  std::coroutine_handle<> sleeper;
  uint64_t sleep_timer = 0;
  std::function<void(Interrupt)> on_interrupt;

  bool gzip_allowed = false;

 protected:
  void reset_for_reuse();  // For the next request of a kept-alive connection.

 private:
  Task<void> run_handler(const Handler& handler);
  void handler_done(std::exception_ptr failure);
  void ready_head();
  void wake_all();
  void enqueue(Bytes chunk);
  void begin_gzip();
  bool client_takes_gzip() const;

  bool handler_active_ = false;
  std::function<void(std::exception_ptr)> on_exception_;
  size_t uncredited_ = 0;  // Input that arrived and was not reported as taken yet.
  std::vector<Bytes> held_;
  size_t held_bytes_ = 0;
};

// Fills in target, path and query from the raw target; false when it is not one a server accepts.
bool parse_target(Stream& stream, std::string_view target);
// Nothing in it that could end a line or the target, or that no text has: no control characters, no spaces.
bool is_clean_target(std::string_view target);
// As a header's value may be: no control characters but tabs.
bool is_header_value(std::string_view text);
// A token of RFC 9110, as header names and methods are.
bool is_token(std::string_view text);

}  // namespace holdfast::net::detail
