// HTTP/1.1 on a connection: one request at a time, keep-alive; pipelined requests wait in the buffer.
//
// Strict where leniency enables request smuggling: exactly one body framing, no folded headers, no spaces around header
// names.
#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/strings.h"
#include "net/connection.h"
#include "net/http1_body.h"
#include "net/websocket.h"

namespace holdfast::net::detail {

namespace {

// Limits the pipelined bytes buffered during a request, and the body bytes buffered for a handler that does not read.
constexpr size_t kBufferedBytes = 256 << 10;
// An unread body up to this size is discarded to keep the connection; above it, closing is cheaper.
constexpr size_t kSwallowBytes = 256 << 10;

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

class Http1Stream final : public Stream {
 public:
  using Stream::reset_for_reuse;
  using Stream::Stream;
};

class Http1Session final : public Session, public StreamOwner {
 public:
  explicit Http1Session(Connection& connection)
      : connection_(connection),
        stream_(connection.home.loop, *this, connection.shared.options),
        idle_since_(connection.now()) {}

  void receive(std::string_view bytes) override {
    if (refused_) return;
    if (upgraded_) return receive_frames(bytes);
    // The header timeout starts at the first byte.
    if (phase_ == Phase::Head && buffer_.empty()) idle_since_ = connection_.now();
    buffer_.append(bytes);
    advance();
  }

  void produce() override;
  void produced() override { stream_.wake_writer(); }

  void lost() override {
    lost_ = true;
    stream_.lost();
  }

  void drain() override {
    draining_ = true;
    if (phase_ == Phase::Head && buffer_.empty()) {
      closing_ = true;
    } else {
      stream_.drain();
    }
  }

  void tick(TimePoint now) override;
  bool quiet() const override { return !stream_.handler_active(); }
  bool finished() const override { return closing_ && head_.empty() && !stream_.handler_active(); }
  bool input_pending() const override { return refused_ || upgraded_ || phase_ == Phase::Body; }

  void head_ready(Stream& stream) override;
  void output_ready(Stream&) override { connection_.flush_soon(); }
  void input_taken(Stream&, size_t) override { resume_input(); }
  void input_wanted(Stream&) override;
  void abort(Stream&) override {
    // Without the last chunk or the full content-length, the peer sees that the response is truncated.
    if (!lost_) connection_.close();
  }
  void close_after(Stream&) override { keep_alive_ = false; }
  void trust(Stream&) override { connection_.trust(); }
  void handler_ended(Stream&) override;

 private:
  enum class Phase : uint8_t { Head, Body, Serving };

  void advance();
  void parse_head();
  bool parse_lines(std::string_view head);
  void begin_request();
  void parse_body();
  void body_ended();
  void maybe_next();
  void resume_input();
  void refuse(int status);
  void put_headers();  // Appends the response headers to head_.
  void upgrade();
  void begin_tunnel();
  void receive_frames(std::string_view bytes);

  Connection& connection_;
  Http1Stream stream_;
  std::string buffer_;
  size_t consumed_ = 0;  // Prefix of buffer_, erased at the end of advance().
  size_t scanned_ = 0;   // Prefix already searched for the end of the head.
  Phase phase_ = Phase::Head;
  BodyDecoder body_;
  uint64_t swallowed_ = 0;
  bool keep_alive_ = true;
  bool chunked_output_ = false;
  bool expects_continue_ = false;
  bool answered_ = false;  // The whole response has been put().
  bool draining_ = false;
  bool closing_ = false;
  bool refused_ = false;
  bool lost_ = false;
  bool advancing_ = false;
  // After a 101 response:
  bool tunnel_ = false;                // Raw bytes in both directions.
  bool upgraded_ = false;              // A WebSocket handled by this session.
  bool close_frame_received_ = false;  // The client sent a close frame.
  WebSocketInput frames_;
  std::string control_;    // Replies to control frames, not yet put().
  bool mid_part_ = false;  // An output part is only partly put(): nothing may be interleaved.
  std::string head_;       // Response head, not yet put().
  TimePoint idle_since_;
};

void Http1Session::advance() {
  if (advancing_ || lost_ || refused_) return;
  advancing_ = true;
  for (bool again = true; again && !lost_ && !refused_;) {
    const Phase before = phase_;
    const size_t at = consumed_;
    if (phase_ == Phase::Head) parse_head();
    if (phase_ == Phase::Body) parse_body();
    again = phase_ != before || consumed_ != at;
    if (phase_ == Phase::Serving) again = false;
  }
  advancing_ = false;
  buffer_.erase(0, consumed_);
  consumed_ = 0;
  if (buffer_.empty() && buffer_.capacity() > 4096) buffer_ = std::string();
  // Backpressure: stop reading while the peer sends faster than the handler reads.
  if (!lost_) connection_.set_reading(phase_ == Phase::Head || buffer_.size() < kBufferedBytes);
}

void Http1Session::parse_head() {
  std::string_view rest = std::string_view(buffer_).substr(consumed_);
  // RFC 9112 asks servers to ignore empty lines before a request.
  while (rest.starts_with("\r\n") && scanned_ == 0) {
    consumed_ += 2;
    rest.remove_prefix(2);
  }
  if (rest.empty()) return;
  const size_t end = rest.find("\r\n\r\n", scanned_ < 3 ? 0 : scanned_ - 3);
  if (end == std::string_view::npos ? rest.size() > connection_.shared.options.max_header_bytes
                                    : end > connection_.shared.options.max_header_bytes) {
    return refuse(431);
  }
  if (end == std::string_view::npos) {
    scanned_ = rest.size();
    return;
  }
  scanned_ = 0;
  consumed_ += end + 4;
  stream_.reset_for_reuse();
  if (!parse_lines(stream_.arena.copy(rest.substr(0, end)))) return;
  begin_request();
}

// `head` must be in the stream's arena: the request keeps views of it. False after refuse().
bool Http1Session::parse_lines(std::string_view head) {
  Request& request = stream_.request;
  request.peer = &connection_.peer;
  size_t line_end = std::min(head.find("\r\n"), head.size());
  std::string_view line = head.substr(0, line_end);
  const size_t space = line.find(' ');
  const size_t last_space = line.rfind(' ');
  if (space == std::string_view::npos || last_space == space) return refuse(400), false;
  request.method = line.substr(0, space);
  const std::string_view target = line.substr(space + 1, last_space - space - 1);
  const std::string_view version = line.substr(last_space + 1);
  if (version == "HTTP/1.1") {
    request.protocol = Protocol::Http11;
  } else if (version == "HTTP/1.0") {
    request.protocol = Protocol::Http10;
  } else {
    return refuse(version.starts_with("HTTP/") ? 505 : 400), false;
  }
  if (!is_token(request.method) || !parse_target(stream_, target)) {
    return refuse(400), false;
  }

  keep_alive_ = request.protocol == Protocol::Http11;
  expects_continue_ = false;
  bool chunked = false;
  bool has_length = false;
  int hosts = 0;
  while (line_end < head.size()) {
    const size_t from = line_end + 2;
    line_end = std::min(head.find("\r\n", from), head.size());
    line = head.substr(from, line_end - from);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return refuse(400), false;
    // Lower-cased in place: this is the arena's copy.
    char* name_text = const_cast<char*>(line.data());
    for (size_t i = 0; i < colon; ++i) {
      name_text[i] = to_lower(name_text[i]);
    }
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trim(line.substr(colon + 1), " \t");
    if (!is_header_value(value)) return refuse(400), false;
    request.headers.add({name, value});
    if (name == "host") {
      request.authority = value;
      ++hosts;
    } else if (name == "content-length") {
      const std::optional<uint64_t> length = parse_number<uint64_t>(value);
      if (!length || (has_length && stream_.content_length != length)) return refuse(400), false;
      has_length = true;
      stream_.content_length = length;
    } else if (name == "transfer-encoding") {
      if (chunked || !equals_ignoring_case(value, "chunked")) return refuse(501), false;
      chunked = true;
    } else if (name == "connection") {
      if (equals_ignoring_case(value, "close")) keep_alive_ = false;
      if (equals_ignoring_case(value, "keep-alive")) keep_alive_ = true;
    } else if (name == "expect") {
      expects_continue_ = equals_ignoring_case(value, "100-continue");
    }
  }
  if (chunked && (has_length || request.protocol == Protocol::Http10)) return refuse(400), false;
  if (hosts > 1 || (hosts == 0 && request.protocol == Protocol::Http11)) return refuse(400), false;
  body_.start(chunked ? BodyDecoder::Framing::Chunked : BodyDecoder::Framing::Length,
              stream_.content_length.value_or(0));
  return true;
}

void Http1Session::begin_request() {
  phase_ = Phase::Body;
  answered_ = false;
  swallowed_ = 0;
  if (draining_) stream_.draining = true;
  connection_.shared.counters.requests.fetch_add(1, std::memory_order_relaxed);
  connection_.shared.counters.active.fetch_add(1, std::memory_order_relaxed);
  stream_.start_handler(connection_.shared.handler, [this](std::exception_ptr failure) {
    connection_.shared.report_exception(stream_.request, failure);
  });
}

void Http1Session::parse_body() {
  while (phase_ == Phase::Body && !refused_) {
    const bool wanted = !answered_ || stream_.handler_active();
    if (wanted && !stream_.whole_body && stream_.input.size() >= kBufferedBytes) return;
    size_t taken = 0;
    std::string_view payload;
    const BodyDecoder::Step step = body_.step(std::string_view(buffer_).substr(consumed_), taken, payload);
    consumed_ += taken;
    switch (step) {
      case BodyDecoder::Step::NeedMore:
        return;
      case BodyDecoder::Step::Bad:
        return refuse(400);
      case BodyDecoder::Step::End:
        return body_ended();
      case BodyDecoder::Step::Payload:
        if (wanted) {
          stream_.receive(payload);
          break;
        }
        swallowed_ += payload.size();
        if (swallowed_ > kSwallowBytes) {
          // Discarding more costs more than a new connection.
          closing_ = true;
          connection_.flush_soon();
          return;
        }
        break;
    }
  }
}

void Http1Session::body_ended() {
  phase_ = Phase::Serving;
  stream_.receive_end();
  maybe_next();
}

// Moves on to the next request once this one is complete in both directions.
void Http1Session::maybe_next() {
  if (lost_ || phase_ != Phase::Serving || !answered_ || stream_.handler_active()) return;
  if (!keep_alive_ || draining_) {
    closing_ = true;
    connection_.flush_soon();
    return;
  }
  phase_ = Phase::Head;
  idle_since_ = connection_.now();
  if (!buffer_.empty()) advance();
}

void Http1Session::resume_input() {
  // parse_body() continues its own loop.
  if (!advancing_) advance();
}

void Http1Session::input_wanted(Stream&) {
  if (expects_continue_ && phase_ == Phase::Body && !stream_.head_sent) {
    expects_continue_ = false;
    head_ += "HTTP/1.1 100 Continue\r\n\r\n";
    connection_.flush_soon();
  }
  resume_input();
}

void Http1Session::refuse(int status) {
  connection_.protocol_error();
  if (stream_.handler_active()) {
    // In the middle of a body: the reader gets an error.
    connection_.close();
    return;
  }
  refused_ = true;
  closing_ = true;
  const std::string text = std::to_string(status) + ' ' + std::string(reason_phrase(status));
  head_ = "HTTP/1.1 " + text + "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + text;
  connection_.flush_soon();
}

void Http1Session::upgrade() {
  upgraded_ = true;
  keep_alive_ = chunked_output_ = false;
  head_ += "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";
  head_ += websocket_accept(stream_.request.headers.get("sec-websocket-key"));
  for (const Header& header : stream_.headers) {
    if (header.name != "sec-websocket-protocol") continue;
    head_ += "\r\nSec-WebSocket-Protocol: ";
    head_ += header.value;
  }
  head_ += "\r\n\r\n";
  connection_.flush_soon();
  connection_.set_reading(true);
  receive_frames(std::exchange(buffer_, {}));
}

void Http1Session::begin_tunnel() {
  tunnel_ = true;
  keep_alive_ = chunked_output_ = false;
  head_ += "HTTP/1.1 101 Switching Protocols\r\n";
  put_headers();
  head_ += "Connection: Upgrade\r\n\r\n";
  connection_.flush_soon();
  body_.start(BodyDecoder::Framing::UntilClose);
  stream_.begin_tunnel();
  phase_ = Phase::Body;
  resume_input();
}

void Http1Session::receive_frames(std::string_view bytes) {
  if (close_frame_received_ || closing_) return;
  if (!frames_.receive(bytes, control_)) {
    close_frame_received_ = true;
    stream_.lost();
    if (!stream_.handler_active()) closing_ = true;
  }
  if (!control_.empty() || closing_) connection_.flush_soon();
}

void Http1Session::put_headers() {
  for (const Header& header : stream_.headers) {
    // Go's canonical capitalization: users grep for it.
    bool upper = true;
    for (const char c : header.name) {
      head_ += upper ? to_upper(c) : c;
      upper = c == '-';
    }
    head_ += ": ";
    for (const char c : header.value) head_ += c == '\r' || c == '\n' ? ' ' : c;
    head_ += "\r\n";
  }
}

void Http1Session::head_ready(Stream&) {
  if (stream_.status == 101) {
    const bool raw = std::any_of(stream_.headers.begin(), stream_.headers.end(),
                                 [](const Header& header) { return header.name == "upgrade"; });
    return raw ? begin_tunnel() : upgrade();
  }
  const Request& request = stream_.request;
  if (draining_) keep_alive_ = false;
  if (phase_ == Phase::Body &&
      (expects_continue_ || (body_.framing() == BodyDecoder::Framing::Length && body_.left() > kSwallowBytes))) {
    if (!stream_.whole_body || stream_.content_length.value_or(0) > stream_.input_limit) keep_alive_ = false;
  }
  chunked_output_ = !stream_.known_length && !stream_.bodiless && request.protocol == Protocol::Http11;
  if (!stream_.known_length && !stream_.bodiless && request.protocol == Protocol::Http10) keep_alive_ = false;

  head_.reserve(head_.size() + 512);
  head_ += "HTTP/1.1 ";
  head_ += std::to_string(stream_.status);
  head_ += ' ';
  head_ += reason_phrase(stream_.status);
  head_ += "\r\n";
  put_headers();
  head_ += "Date: ";
  head_ += connection_.home.loop.state().http_date();
  head_ += "\r\n";
  if (chunked_output_) {
    head_ += "Transfer-Encoding: chunked\r\n";
  } else if (stream_.known_length && stream_.status != 204 && stream_.status != 304) {
    head_ += "Content-Length: ";
    head_ += std::to_string(*stream_.known_length);
    head_ += "\r\n";
  }
  if (!keep_alive_) {
    head_ += "Connection: close\r\n";
  } else if (request.protocol == Protocol::Http10) {
    head_ += "Connection: keep-alive\r\n";
  }
  head_ += "\r\n";
  connection_.flush_soon();
}

void Http1Session::produce() {
  if (!head_.empty()) {
    connection_.put(head_);
    head_.clear();
  }
  if (!stream_.head_sent || answered_ || lost_) return;
  while (connection_.room() > 0) {
    if (!mid_part_ && !control_.empty()) {
      connection_.put(control_);
      control_.clear();
    }
    if (close_frame_received_) return;
    const std::string_view part = stream_.next_output();
    if (part.empty()) break;
    const size_t take = std::min(part.size(), connection_.room());
    if (chunked_output_) {
      char size_line[20];
      const auto [end, error] = std::to_chars(size_line, size_line + 16, take, 16);
      *end = '\r';
      *(end + 1) = '\n';
      connection_.put({size_line, static_cast<size_t>(end - size_line) + 2});
      connection_.put(part.substr(0, take));
      connection_.put("\r\n");
    } else {
      connection_.put(part.substr(0, take));
    }
    mid_part_ = take < part.size();
    stream_.output_taken(take);
  }
  if (stream_.output_finished()) {
    if (upgraded_) connection_.put(kWebSocketCloseFrame);
    if (chunked_output_) connection_.put("0\r\n\r\n");
    answered_ = true;
    if (!stream_.handler_active() && phase_ == Phase::Body && !keep_alive_) closing_ = true;
    maybe_next();
    if (phase_ == Phase::Body) resume_input();
  }
}

void Http1Session::handler_ended(Stream&) {
  connection_.shared.counters.active.fetch_sub(1, std::memory_order_relaxed);
  if (lost_) return connection_.handler_ended();
  if (close_frame_received_) {
    closing_ = true;
    connection_.flush_soon();
    return;
  }
  if (answered_ && phase_ == Phase::Body && !keep_alive_) {
    closing_ = true;
    connection_.flush_soon();
  }
  maybe_next();
  resume_input();
}

void Http1Session::tick(TimePoint now) {
  const ServerOptions& options = connection_.shared.options;
  if (closing_) return;
  stream_.check_deadline(now);
  if (phase_ == Phase::Head && now - idle_since_ > (buffer_.empty() ? options.idle_timeout : options.header_timeout)) {
    if (!buffer_.empty()) connection_.protocol_error();
    closing_ = true;
    connection_.flush_soon();
  } else if (phase_ == Phase::Body && !tunnel_ && now - stream_.progress > options.stalled_read_timeout) {
    if (stream_.reader || answered_) {
      connection_.protocol_error();
      connection_.close();
    }
  }
}

}  // namespace

std::unique_ptr<Session> make_http1_session(Connection& connection) {
  return std::make_unique<Http1Session>(connection);
}

}  // namespace holdfast::net::detail
