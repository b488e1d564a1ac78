#include "net/stream.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/strings.h"

namespace holdfast::net {

namespace detail {

namespace {

// kube-apiserver compresses bodies above this (apiserver/pkg/endpoints/handlers/responsewriters).
constexpr size_t kGzipThresholdBytes = 128 << 10;
constexpr size_t kArenaBytes = 2048;

Error gone() { return {Reason::ServiceUnavailable, "the client disconnected"}; }

}  // namespace

bool is_token(std::string_view text) {
  constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [&](char c) { return is_alnum(c) || kOther.find(c) != std::string_view::npos; });
}

bool is_clean_target(std::string_view target) {
  return std::all_of(target.begin(), target.end(), [](char c) {
    const unsigned char byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f;
  });
}

bool is_header_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const unsigned char byte = static_cast<unsigned char>(c);
    return (byte >= ' ' && byte != 0x7f) || c == '\t';
  });
}

bool parse_target(Stream& stream, std::string_view target) {
  if (!is_clean_target(target)) return false;
  Request& request = stream.request;
  request.target = target;
  // Absolute form, as sent by proxies: http://host/path.
  if (const size_t scheme = target.find("://"); !target.starts_with('/') && scheme != std::string_view::npos) {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target == "*") {
    request.path = target;
    return true;
  }
  if (!target.starts_with('/')) return false;
  const size_t question = target.find('?');
  request.path = target.substr(0, question);
  request.query = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  if (request.path.find('%') != std::string_view::npos) {
    std::optional<std::string> decoded = percent_decode(request.path);
    if (!decoded) return false;
    request.path = stream.arena.copy(*decoded);
  }
  return true;
}

Stream::Stream(EventLoop& event_loop, StreamOwner& session, const ServerOptions& server_options)
    : loop(event_loop), owner(session), options(server_options), arena(kArenaBytes) {
  constexpr size_t kUsualHeaders = 8;
  headers.reserve(kUsualHeaders);
  request.stream = this;
  response.stream = this;
  progress = loop.state().now();
}

void Stream::reset_for_reuse() {
  assert(!handler_active_);
  arena = Arena(kArenaBytes);
  request = Request();
  request.stream = this;
  headers.clear();
  status = 0;
  head_sent = ended = bodiless = false;
  known_length.reset();
  queued_bytes = 0;
  queue.clear();
  body_bytes = 0;
  input.clear();
  input_ended = false;
  input_limit = SIZE_MAX;
  whole_body = false;
  content_length.reset();
  uncredited_ = 0;
  gzip_allowed = undecided_ = false;
  held_.clear();
  held_bytes_ = 0;
  gzip_.reset();
  compressing_ = false;
  cut_off = false;
  deadline = TimePoint::max();
  progress = loop.state().now();
}

void Stream::start_handler(const Handler& handler, std::function<void(std::exception_ptr)> on_exception) {
  handler_active_ = true;
  on_exception_ = std::move(on_exception);
  spawn(run_handler(handler), [this](std::exception_ptr failure) { handler_done(failure); });
}

Task<void> Stream::run_handler(const Handler& handler) {
  struct FromTop {
    LoopState& state;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) { state.resume_soon(h); }
    void await_resume() const noexcept {}
  };
  co_await FromTop{loop.state()};
  co_await handler(request, response);
}

void Stream::handler_done(std::exception_ptr failure) {
  on_interrupt = nullptr;
  handler_active_ = false;
  loop.cancel(std::exchange(deadline_timer, 0));
  if (failure) on_exception_(failure);
  if (!closed && !ended) {
    if (status == 0) {
      // It threw or ended without a response; the peer gets one either way.
      headers.clear();
      gzip_allowed = false;
      add_header("content-type", "text/plain; charset=utf-8");
      add_header("x-content-type-options", "nosniff");
      (void)send(500, Body(Bytes::lasting("The server failed while serving this request; see the server log.\n")));
    } else {
      owner.abort(*this);
    }
  }
  owner.handler_ended(*this);
}

void Stream::receive(std::string_view bytes) {
  progress = loop.state().now();
  if (closed) return;
  uncredited_ += bytes.size();
  // Above the limit, input is dropped: the reader gets an error.
  if (input.size() <= input_limit) input.append(bytes);
  if (whole_body) credit_input();
  if (reader && (!whole_body || input.size() > input_limit)) loop.state().resume_soon(std::exchange(reader, {}));
}

void Stream::credit_input() {
  if (const size_t bytes = std::exchange(uncredited_, 0); bytes > 0) owner.input_taken(*this, bytes);
}

void Stream::receive_end() {
  progress = loop.state().now();
  input_ended = true;
  if (reader) loop.state().resume_soon(std::exchange(reader, {}));
}

void Stream::lost() {
  if (closed) return;
  closed = true;
  queue.clear();
  queued_bytes = 0;
  held_.clear();
  wake_all();
}

// Every pending await of the handler returns an error.
void Stream::wake_all() {
  if (reader) loop.state().resume_soon(std::exchange(reader, {}));
  if (writer) loop.state().resume_soon(std::exchange(writer, {}));
  if (sleeper) {
    loop.cancel(sleep_timer);
    loop.state().resume_soon(std::exchange(sleeper, {}));
  }
  if (on_interrupt) on_interrupt(Interrupt::PeerGone);
}

void Stream::set_deadline(Millis from_now) {
  constexpr Millis kExactBelow{5000};
  deadline = loop.state().now() + from_now;
  loop.cancel(std::exchange(deadline_timer, 0));
  if (from_now < kExactBelow) {
    deadline_timer = loop.run_after(from_now, [this] {
      deadline_timer = 0;
      check_deadline(TimePoint::max());
    });
  }
}

void Stream::check_deadline(TimePoint now) {
  if (now < deadline || deadline == TimePoint::max()) return;
  deadline = TimePoint::max();
  if (!handler_active_ || dead()) return;
  if (ended && !writer) return;  // Nothing waits for the rest of it; see drained.h.
  if (status != 0) {
    owner.abort(*this);
    if (closed) return;  // The handler has already been notified.
  } else {
    headers.clear();
    gzip_allowed = false;
    if (options.on_deadline) options.on_deadline(request, response);
    if (status == 0) (void)send(504, {});
  }
  cut_off = true;
  wake_all();
}

void Stream::drain() {
  if (draining) return;
  draining = true;
  if (on_interrupt) on_interrupt(Interrupt::Draining);
}

void Stream::wake_writer() {
  if (writer && queued_bytes < options.write_queue_bytes / 2) loop.state().resume_soon(std::exchange(writer, {}));
}

void Stream::output_taken(size_t bytes) {
  assert(bytes <= queued_bytes);
  progress = loop.state().now();
  queued_bytes -= bytes;
  queue.take(bytes);
}

void Stream::add_header(std::string_view name, std::string_view value) {
  headers.push_back({arena.copy(name), arena.copy(value)});
}

void Stream::set_header(std::string_view name, std::string_view value) {
  std::erase_if(headers, [&](const Header& header) { return header.name == name; });
  add_header(name, value);
}

void Stream::ready_head() {
  head_sent = true;
  bodiless = request.method == "HEAD" || status == 204 || status == 304;
  progress = loop.state().now();
  owner.head_ready(*this);
}

bool Stream::client_takes_gzip() const {
  // Only the exact token, without q-values or wildcards, like kube-apiserver.
  for (const Header& header : request.headers.items()) {
    if (header.name != "accept-encoding") continue;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      std::string_view token = rest.substr(0, comma);
      while (token.starts_with(' ')) token.remove_prefix(1);
      while (token.ends_with(' ')) token.remove_suffix(1);
      if (token == "gzip") return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

void Stream::begin_gzip() {
  undecided_ = false;
  gzip_.emplace();
  compressing_ = true;
  set_header("content-encoding", "gzip");
  add_header("vary", "Accept-Encoding");
  std::erase_if(headers, [](const Header& header) { return header.name == "content-length"; });
}

Result<Unit> Stream::send(int code, Body body) {
  if (cut_off) return gone();
  assert(status == 0);
  status = code;
  body_bytes = body.bytes();
  if (closed) return gone();
  if (gzip_allowed && body.bytes() > kGzipThresholdBytes && client_takes_gzip()) {
    begin_gzip();
    body = Body(gzip(body.parts()));
    gzip_.reset();
    compressing_ = false;
  }
  known_length = body.bytes();
  ended = true;
  ready_head();
  if (bodiless) return Unit{};
  queue.assign(std::move(body.parts()));
  queued_bytes = *known_length;
  owner.output_ready(*this);
  return Unit{};
}

void Stream::begin_tunnel() {
  input_ended = false;
  input_limit = SIZE_MAX;
  whole_body = false;
  content_length.reset();
  loop.cancel(std::exchange(deadline_timer, 0));
  deadline = TimePoint::max();
}

Result<Unit> Stream::start(int code) {
  if (cut_off) return gone();
  assert(status == 0);
  status = code;
  if (closed) return gone();
  undecided_ = gzip_allowed && client_takes_gzip();
  if (!undecided_) ready_head();
  return Unit{};
}

void Stream::enqueue(Bytes chunk) {
  if (chunk.view.empty() || bodiless) return;
  if (queued_bytes == 0) progress = loop.state().now();
  queued_bytes += chunk.view.size();
  queue.push(std::move(chunk));
}

void Stream::write(Bytes chunk) {
  if (cut_off) return;
  assert(status != 0 && !ended);
  body_bytes += chunk.view.size();
  if (closed) return;
  if (undecided_) {
    held_bytes_ += chunk.view.size();
    held_.push_back(std::move(chunk));
    if (held_bytes_ <= kGzipThresholdBytes) return;
    begin_gzip();
    ready_head();
    for (const Bytes& part : held_) enqueue(gzip_->add(part.view));
    held_.clear();
  } else if (compressing_) {
    enqueue(gzip_->add(chunk.view));
  } else {
    enqueue(std::move(chunk));
  }
  owner.output_ready(*this);
}

void Stream::end() {
  if (cut_off) return;
  assert(status != 0 && !ended);
  ended = true;
  if (closed) return;
  if (undecided_) {
    // Too small to compress, and the length is now known.
    undecided_ = false;
    known_length = held_bytes_;
    ready_head();
    for (Bytes& part : held_) enqueue(std::move(part));
    held_.clear();
  } else if (compressing_) {
    enqueue(gzip_->finish());
    gzip_.reset();
    compressing_ = false;
  }
  owner.output_ready(*this);
}

// ---------------------------------------------------------------------------------------------------- Awaiters

bool body_ready(Stream& stream, size_t limit_bytes) {
  stream.input_limit = limit_bytes;
  stream.whole_body = true;
  stream.credit_input();
  return stream.input_ended || stream.dead() || stream.input.size() > limit_bytes ||
         (stream.content_length && *stream.content_length > limit_bytes);
}

void body_wait(Stream& stream, std::coroutine_handle<> reader) {
  assert(!stream.reader);
  stream.reader = reader;
  stream.progress = stream.loop.state().now();
  stream.owner.input_wanted(stream);
}

Result<std::string> body_take(Stream& stream) {
  if (stream.dead()) return gone();
  if (stream.input.size() > stream.input_limit || stream.content_length.value_or(0) > stream.input_limit) {
    return Error{Reason::RequestEntityTooLarge,
                 "Request body is larger than the limit of " + std::to_string(stream.input_limit) + " bytes"};
  }
  assert(stream.input_ended);
  std::string body = std::move(stream.input);
  stream.input.clear();
  return body;
}

bool chunk_ready(Stream& stream) {
  stream.whole_body = false;
  return stream.input_ended || stream.dead() || !stream.input.empty();
}

Result<std::string> chunk_take(Stream& stream) {
  if (stream.dead()) return gone();
  std::string chunk = std::move(stream.input);
  stream.input.clear();
  stream.credit_input();
  return chunk;
}

void enqueue(Stream& stream, Bytes chunk) { stream.write(std::move(chunk)); }

bool write_ready(Stream& stream) { return stream.dead() || stream.queued_bytes < stream.options.write_queue_bytes; }

void write_wait(Stream& stream, std::coroutine_handle<> writer) {
  assert(!stream.writer);
  stream.writer = writer;
}

Result<Unit> stream_state(Stream& stream) {
  if (stream.dead()) return gone();
  return Unit{};
}

void sleep_wait(Stream& stream, Millis delay, std::coroutine_handle<> sleeper) {
  assert(!stream.sleeper);
  stream.sleeper = sleeper;
  stream.sleep_timer = stream.loop.run_after(delay, [&stream] { std::exchange(stream.sleeper, {}).resume(); });
}

}  // namespace detail

// ---------------------------------------------------------------------------------------------------- Public interface

Bytes::Bytes(std::string text) {
  auto kept = std::make_shared<const std::string>(std::move(text));
  view = *kept;
  owner = std::move(kept);
}

std::string_view Headers::get(std::string_view name) const {
  for (const Header& header : items_) {
    if (equals_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Header& header) { return equals_ignoring_case(header.name, name); });
}

std::vector<std::string_view> Headers::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& header : items_) {
    if (equals_ignoring_case(header.name, name)) values.push_back(header.value);
  }
  return values;
}

EventLoop& Request::loop() const { return stream->loop; }
void Request::stop_reading() { stream->receive_end(); }

void Response::add_header(std::string_view name, std::string_view value) { stream->add_header(name, value); }
void Response::set_header(std::string_view name, std::string_view value) { stream->set_header(name, value); }
std::string_view Response::header(std::string_view name) const {
  for (const Header& header : stream->headers) {
    if (header.name == name) return header.value;
  }
  return {};
}
void Response::set_deadline(Millis from_now) { stream->set_deadline(from_now); }
void Response::allow_gzip() { stream->gzip_allowed = true; }
Result<Unit> Response::send(int status, Body body) { return stream->send(status, std::move(body)); }
Result<Unit> Response::start(int status) { return stream->start(status); }
void Response::end() { stream->end(); }
void Response::abort() {
  if (stream->dead()) return;
  stream->owner.abort(*stream);
}
void Response::trust_connection() { stream->owner.trust(*stream); }
void Response::close_connection_after() { stream->owner.close_after(*stream); }
bool Response::started() const { return stream->status != 0; }
int Response::status() const { return stream->status; }
uint64_t Response::body_bytes() const { return stream->body_bytes; }
bool Response::closed() const { return stream->dead(); }
bool Response::draining() const { return stream->draining; }
void Response::on_interrupt(std::function<void(Interrupt)> callback) {
  stream->on_interrupt = std::move(callback);
  if (!stream->on_interrupt) return;
  if (stream->draining) stream->on_interrupt(Interrupt::Draining);
  if (stream->dead()) stream->on_interrupt(Interrupt::PeerGone);
}
EventLoop& Response::loop() const { return stream->loop; }

// ---------------------------------------------------------------------------------------------------- Helpers

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      decoded.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return decoded;
}

}  // namespace holdfast::net
