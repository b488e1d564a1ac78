// One request and its response, independent of the protocol: handlers use one side, the session the other.
#pragma once

#include <vector>

#include "net/loop.h"
#include "net/net.h"

namespace holdfast::net::detail {

// Implemented by the session a stream belongs to.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual void head_ready(Stream& stream) = 0;    // The response's status and headers are final.
  virtual void output_ready(Stream& stream) = 0;  // More body is available, or its end.
  virtual void input_taken(Stream& stream, size_t bytes) = 0;
  virtual void input_wanted(Stream& stream) = 0;  // The handler is waiting for the body.
  virtual void abort(Stream& stream) = 0;         // Aborts the response.
  virtual void close_after(Stream& stream) = 0;
  virtual void trust(Stream& stream) = 0;          // An authenticated client uses the connection.
  virtual void handler_ended(Stream& stream) = 0;  // The stream may be destroyed from now on.
};

// Queue of unsent body parts. The first is stored inline: a watch rarely has more than one.
class OutputQueue {
 public:
  bool empty() const { return first_.view.empty(); }
  std::string_view first() const { return first_.view; }  // Empty if the queue is.
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

  Bytes first_;  // Without the part already sent.
  std::vector<Bytes> rest_;
  size_t next_ = 0;  // Index into rest_.
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
  void receive(std::string_view bytes);  // Body bytes; the session does the flow control.
  void receive_end();
  void lost();  // The peer disconnected: resumes the handler with an error.
  void drain();
  void wake_writer();  // Called after output was taken.
  void check_deadline(TimePoint now);
  void begin_tunnel();  // Reopens the request's body, now without an end.
  bool handler_active() const { return handler_active_; }
  void credit_input();  // Reports the input received so far as consumed, so that the peer may send more.

  // The next bytes to send; empty if there are none yet.
  std::string_view next_output() const { return queue.first(); }
  void output_taken(size_t bytes);
  bool output_finished() const { return ended && queued_bytes == 0; }

  // --- Called by handlers, through Request and Response.
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

  // The response. The fields used by every write are adjacent in memory: an event may be written to thousands of
  // watches, and cache misses dominate that work.
  int status = 0;
  bool head_sent = false;  // head_ready() was called.
  bool ended = false;      // end() or send() was called.
  bool bodiless = false;   // HEAD, 204, 304: a body is counted but not sent.
  bool closed = false;
  bool cut_off = false;  // The deadline has responded; the handler no longer can.
  bool dead() const { return closed || cut_off; }

 private:
  bool undecided_ = false;    // Writes are held back until it is known whether to compress.
  bool compressing_ = false;  // gzip_ is set.

 public:
  // State of the session's protocol.
  struct {
    int32_t id = 0;
    bool closed = false;    // The protocol has closed the stream.
    bool deferred = false;  // The protocol does not ask for output until notified.
    bool ready = false;     // The notification is pending.
  } wire;
  size_t queued_bytes = 0;
  uint64_t body_bytes = 0;
  TimePoint progress;  // When the peer last sent or accepted data.
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

  // The request's body.
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
  void reset_for_reuse();  // Prepares for the next request on a kept-alive connection.

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
  size_t uncredited_ = 0;  // Input received but not yet reported to the session as consumed.
  std::vector<Bytes> held_;
  size_t held_bytes_ = 0;
};

// Sets target, path and query from the raw target; false if it is malformed.
bool parse_target(Stream& stream, std::string_view target);
// No control characters or spaces, which could end the target or inject a line.
bool is_clean_target(std::string_view target);
// A valid header value: no control characters except tabs.
bool is_header_value(std::string_view text);
// A token as defined by RFC 9110: header names and methods.
bool is_token(std::string_view text);

}  // namespace holdfast::net::detail
