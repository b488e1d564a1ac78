// HTTP/2 on a connection, using nghttp2. Frames are produced only when the connection has room, so a slow peer is
// limited by flow control and does not fill our memory.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <charconv>

#include "net/connection.h"

namespace holdfast::net::detail {

namespace {

constexpr size_t kSwallowBytes = 8 << 20;

// A few bytes can stand for kilobytes of headers that were sent before. What all streams of one connection may keep
// freely, and what those that keep more may keep together; streams beyond are refused, so that clients try again.
constexpr size_t kFreeHeaderBytes = 64 << 10;
constexpr size_t kManyHeaderBytes = size_t{256} << 20;

class Http2Stream final : public Stream {
 public:
  Http2Stream(EventLoop& loop, StreamOwner& owner, const ServerOptions& options, int32_t stream_id)
      : Stream(loop, owner, options) {
    wire.id = stream_id;
  }

  size_t slot = 0;  // Index into the session's streams_.
  size_t header_bytes = 0;
  bool refused = false;     // There is no room for its headers.
  bool dispatched = false;  // The handler has been started.
  bool bad_target = false;
  size_t swallowed = 0;  // Body bytes received after the response.
  uint32_t close_code = 0;
};

class Http2Session final : public Session, public StreamOwner {
 public:
  explicit Http2Session(Connection& connection);
  ~Http2Session() override;

  void receive(std::string_view bytes) override;
  void produce() override;
  void produced() override;
  void lost() override;
  void drain() override;
  void tick(TimePoint now) override;
  bool quiet() const override { return active_handlers_ == 0; }
  bool finished() const override {
    return failed_ || (!nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_));
  }

  void head_ready(Stream& stream) override;
  void output_ready(Stream& stream) override;
  void input_taken(Stream& stream, size_t bytes) override;
  void input_wanted(Stream&) override {}
  void abort(Stream& stream) override;
  void close_after(Stream&) override { go_away(NGHTTP2_NO_ERROR); }
  void trust(Stream&) override { connection_.trust(); }
  void handler_ended(Stream& stream) override;

 private:
  static Http2Session& self(void* user) { return *static_cast<Http2Session*>(user); }
  static Http2Stream* stream_of(nghttp2_session* session, int32_t id) {
    return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }
  static const nghttp2_session_callbacks* callbacks();

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_bytes,
                       const uint8_t* value, size_t value_bytes, uint8_t flags, void* user);
  static int on_frame_recv(nghttp2_session*, const nghttp2_frame* frame, void* user);
  static int on_data(nghttp2_session*, uint8_t flags, int32_t id, const uint8_t* data, size_t bytes, void* user);
  static int on_stream_close(nghttp2_session*, int32_t id, uint32_t code, void* user);
  static ssize_t read_body(nghttp2_session*, int32_t id, uint8_t* buffer, size_t bytes, uint32_t* flags,
                           nghttp2_data_source* source, void* user);
  static int send_data(nghttp2_session*, nghttp2_frame* frame, const uint8_t* head, size_t bytes,
                       nghttp2_data_source* source, void* user);

  void dispatch(Http2Stream& stream);
  void go_away(uint32_t code);
  void after_callbacks();
  void release_if_over(Http2Stream& stream);
  bool too_many_resets();
  // Counts headers of a stream; false if there is no room for them.
  bool keep_headers(Http2Stream& stream, size_t bytes);
  void forget_headers(size_t bytes);
  bool resume_next();  // False if no stream is ready.

  Connection& connection_;
  const ServerOptions& options_;
  nghttp2_session* session_ = nullptr;
  std::vector<std::unique_ptr<Http2Stream>> streams_;
  std::vector<Http2Stream*> closed_;    // Closed during an nghttp2 callback; processed after it.
  std::vector<Http2Stream*> writable_;  // Streams whose output was taken.
  std::vector<Http2Stream*> ready_;     // Streams with new output, to be resumed in nghttp2, from next_ready_ on.
  size_t next_ready_ = 0;
  size_t active_handlers_ = 0;
  size_t header_bytes_ = 0;       // Of all streams.
  size_t many_header_bytes_ = 0;  // What of it is counted in ServerShared::many_header_bytes.
  bool failed_ = false;
  bool gone_away_ = false;
  bool lost_ = false;
  bool draining_ = false;
  double reset_tokens_;
  TimePoint reset_refilled_;
  TimePoint idle_since_;  // When the last stream ended. As in Go, PING and SETTINGS do not count.
};

const nghttp2_session_callbacks* Http2Session::callbacks() {
  static const nghttp2_session_callbacks* const kCallbacks = [] {
    nghttp2_session_callbacks* c = nullptr;
    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(c, send_data);
    return c;
  }();
  return kCallbacks;
}

Http2Session::Http2Session(Connection& connection)
    : connection_(connection),
      options_(connection.shared.options),
      reset_tokens_(options_.reset_burst),
      reset_refilled_(connection.now()),
      idle_since_(connection.now()) {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);  // They are kept only for priorities, which are unused.
  nghttp2_session_server_new2(&session_, callbacks(), this, option);
  nghttp2_option_del(option);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, options_.max_frame_bytes},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_concurrent_streams},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options_.max_header_bytes + 320},  // Go adds the same allowance.
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window_bytes},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  // Large enough for all streams to fill their windows.
  nghttp2_session_set_local_window_size(
      session_, NGHTTP2_FLAG_NONE, 0,
      static_cast<int32_t>(options_.stream_window_bytes * options_.max_concurrent_streams));
}

Http2Session::~Http2Session() {
  assert(active_handlers_ == 0);
  forget_headers(header_bytes_);
  nghttp2_session_del(session_);
}

void Http2Session::receive(std::string_view bytes) {
  if (failed_) return;
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0) {
    connection_.protocol_error();
    // The GOAWAY that nghttp2 queued is still sent.
    if (nghttp2_is_fatal(static_cast<int>(taken))) nghttp2_session_terminate_session(session_, NGHTTP2_PROTOCOL_ERROR);
  }
  after_callbacks();
  if (nghttp2_session_want_write(session_) || finished()) connection_.flush_soon();
}

int Http2Session::on_begin_headers(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  Http2Session& me = self(user);
  // Reset streams with running handlers count as well, so that resets cannot be used to get more work done.
  if (me.streams_.size() >= 2 * me.options_.max_concurrent_streams) {
    me.connection_.protocol_error();
    me.go_away(NGHTTP2_ENHANCE_YOUR_CALM);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  auto stream = std::make_unique<Http2Stream>(me.connection_.home.loop, me, me.options_, frame->hd.stream_id);
  stream->slot = me.streams_.size();
  stream->request.protocol = Protocol::Http2;
  stream->request.peer = &me.connection_.peer;
  stream->draining = me.draining_;
  nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream.get());
  me.streams_.push_back(std::move(stream));
  return 0;
}

int Http2Session::on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name_data,
                            size_t name_bytes, const uint8_t* value_data, size_t value_bytes, uint8_t, void* user) {
  Http2Stream* stream = stream_of(session, frame->hd.stream_id);
  if (stream == nullptr || stream->dispatched || stream->refused) return 0;  // Trailers are ignored.
  Http2Session& me = self(user);
  if (!me.keep_headers(*stream, name_bytes + value_bytes + 32)) {
    stream->refused = true;
    me.connection_.protocol_error();
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    return 0;
  }
  if (stream->header_bytes > me.options_.max_header_bytes + 320) {
    me.connection_.protocol_error();
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  const std::string_view name(reinterpret_cast<const char*>(name_data), name_bytes);
  const std::string_view value = stream->arena.copy({reinterpret_cast<const char*>(value_data), value_bytes});
  Request& request = stream->request;
  if (name.starts_with(':')) {
    if (name == ":method") {
      request.method = value;
    } else if (name == ":path") {
      stream->bad_target = !parse_target(*stream, value);
    } else if (name == ":authority") {
      request.authority = value;
    }
    return 0;
  }
  if (name == "host" && request.authority.empty()) request.authority = value;
  if (name == "content-length") {
    uint64_t length = 0;
    std::from_chars(value.data(), value.data() + value.size(), length);  // Validated by nghttp2.
    stream->content_length = length;
  }
  request.headers.add({stream->arena.copy(name), value});
  return 0;
}

int Http2Session::on_frame_recv(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
  Http2Session& me = self(user);
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      Http2Stream* stream = stream_of(session, frame->hd.stream_id);
      if (stream == nullptr) return 0;
      if (stream->refused) return 0;
      if (frame->hd.type == NGHTTP2_HEADERS && !stream->dispatched) me.dispatch(*stream);
      if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) stream->receive_end();
      return 0;
    }
    case NGHTTP2_RST_STREAM:
      if (me.too_many_resets()) {
        me.connection_.protocol_error();
        me.go_away(NGHTTP2_ENHANCE_YOUR_CALM);
        me.failed_ = true;
      }
      return 0;
    default:
      return 0;
  }
}

void Http2Session::dispatch(Http2Stream& stream) {
  stream.dispatched = true;
  ++active_handlers_;
  connection_.shared.counters.requests.fetch_add(1, std::memory_order_relaxed);
  connection_.shared.counters.active.fetch_add(1, std::memory_order_relaxed);
  static const Handler kBadTarget = [](Request&, Response& response) -> Task<void> {
    response.add_header("content-type", "text/plain; charset=utf-8");
    (void)response.send(400, Body(Bytes::lasting("400 Bad Request")));
    co_return;
  };
  stream.start_handler(
      stream.bad_target ? kBadTarget : connection_.shared.handler,
      [this, &stream](std::exception_ptr failure) { connection_.shared.report_exception(stream.request, failure); });
}

bool Http2Session::too_many_resets() {
  const TimePoint now = connection_.now();
  const double seconds = std::chrono::duration<double>(now - reset_refilled_).count();
  reset_refilled_ = now;
  const double burst = options_.reset_burst;
  reset_tokens_ = std::min(burst, reset_tokens_ + seconds * burst / 10) - 1;
  return reset_tokens_ < 0;
}

bool Http2Session::keep_headers(Http2Stream& stream, size_t bytes) {
  if (header_bytes_ + bytes > kFreeHeaderBytes + many_header_bytes_) {
    // In steps, so that this is rare.
    std::atomic<size_t>& all = connection_.shared.many_header_bytes;
    const size_t step = std::max(bytes, kFreeHeaderBytes);
    if (all.fetch_add(step, std::memory_order_relaxed) + step > kManyHeaderBytes) {
      all.fetch_sub(step, std::memory_order_relaxed);
      return false;
    }
    many_header_bytes_ += step;
  }
  stream.header_bytes += bytes;
  header_bytes_ += bytes;
  return true;
}

void Http2Session::forget_headers(size_t bytes) {
  header_bytes_ -= bytes;
  if (header_bytes_ > kFreeHeaderBytes) return;
  connection_.shared.many_header_bytes.fetch_sub(std::exchange(many_header_bytes_, 0), std::memory_order_relaxed);
}

int Http2Session::on_data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t bytes, void*) {
  Http2Stream* stream = stream_of(session, id);
  if (stream == nullptr || stream->closed || stream->ended || stream->refused) {
    nghttp2_session_consume(session, id, bytes);
    // Many clients read an early response only after sending the whole body; reset the stream if that body is too
    // large.
    if (stream != nullptr) stream->swallowed += bytes;
    if (stream != nullptr && stream->swallowed > kSwallowBytes) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }
  stream->receive({reinterpret_cast<const char*>(data), bytes});
  return 0;
}

int Http2Session::on_stream_close(nghttp2_session* session, int32_t id, uint32_t code, void* user) {
  Http2Stream* stream = stream_of(session, id);
  if (stream == nullptr) return 0;
  stream->wire.closed = true;
  stream->close_code = code;
  self(user).closed_.push_back(stream);
  return 0;
}

ssize_t Http2Session::read_body(nghttp2_session*, int32_t, uint8_t*, size_t bytes, uint32_t* flags,
                                nghttp2_data_source* source, void*) {
  auto* stream = static_cast<Http2Stream*>(source->ptr);
  const size_t take = std::min(bytes, stream->queued_bytes);
  if (take == 0 && !stream->ended) {
    stream->wire.deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (stream->ended && take == stream->queued_bytes) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(take);
}

int Http2Session::send_data(nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t bytes,
                            nghttp2_data_source* source, void* user) {
  Http2Session& me = self(user);
  if (me.connection_.room() == 0) return NGHTTP2_ERR_WOULDBLOCK;
  auto* stream = static_cast<Http2Stream*>(source->ptr);
  constexpr size_t kFrameHeadBytes = 9;
  me.connection_.put({reinterpret_cast<const char*>(head), kFrameHeadBytes});
  while (bytes > 0) {
    const std::string_view part = stream->next_output().substr(0, bytes);
    me.connection_.put(part);
    bytes -= part.size();
    stream->output_taken(part.size());
  }
  if (stream->writer) me.writable_.push_back(stream);
  return 0;
}

void Http2Session::head_ready(Stream& base) {
  auto& stream = static_cast<Http2Stream&>(base);
  if (stream.wire.closed || failed_) return;
  auto text = [](std::string_view s) { return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(s.data())); };
  std::vector<nghttp2_nv> fields;
  fields.reserve(stream.headers.size() + 3);
  // All strings are in the stream's arena, which outlives the frame.
  constexpr uint8_t kKept = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
  auto add = [&](std::string_view name, std::string_view value, uint8_t flags) {
    fields.push_back({text(name), text(value), name.size(), value.size(), flags});
  };
  auto number = [&](uint64_t value) {
    char digits[20];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    return stream.arena.copy(std::string_view(digits, end - digits));
  };
  add(":status", number(stream.status), kKept);
  for (Header& header : stream.headers) {
    // A line break in a header value would break the stream, and is never intended.
    if (header.value.find_first_of("\r\n") != std::string_view::npos) {
      std::string cleaned(header.value);
      std::replace_if(cleaned.begin(), cleaned.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
      header.value = stream.arena.copy(cleaned);
    }
    // Audit IDs are unique: indexing them would only evict useful entries from the peer's table.
    add(header.name, header.value, header.name == "audit-id" ? kKept | NGHTTP2_NV_FLAG_NO_INDEX : kKept);
  }
  add("date", stream.arena.copy(connection_.home.loop.state().http_date()), kKept);
  if (stream.known_length && stream.status != 204 && stream.status != 304) {
    add("content-length", number(*stream.known_length), kKept);
  }
  const bool no_body = stream.bodiless || (stream.known_length && *stream.known_length == 0);
  nghttp2_data_provider body{};
  body.source.ptr = &stream;
  body.read_callback = read_body;
  if (nghttp2_submit_response(session_, stream.wire.id, fields.data(), fields.size(), no_body ? nullptr : &body) != 0) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.wire.id, NGHTTP2_INTERNAL_ERROR);
  }
  connection_.flush_soon();
}

void Http2Session::output_ready(Stream& base) {
  auto& stream = static_cast<Http2Stream&>(base);
  if (stream.wire.closed) return;
  if (stream.wire.deferred && !stream.wire.ready) {
    stream.wire.ready = true;
    ready_.push_back(&stream);
  }
  connection_.flush_soon();
}

void Http2Session::input_taken(Stream& base, size_t bytes) {
  auto& stream = static_cast<Http2Stream&>(base);
  if (lost_) return;
  if (stream.wire.closed) {
    nghttp2_session_consume_connection(session_, bytes);
  } else {
    nghttp2_session_consume(session_, stream.wire.id, bytes);
  }
  if (nghttp2_session_want_write(session_)) connection_.flush_soon();
}

void Http2Session::abort(Stream& base) {
  auto& stream = static_cast<Http2Stream&>(base);
  if (!stream.wire.closed && !lost_) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.wire.id, NGHTTP2_INTERNAL_ERROR);
    connection_.flush_soon();
  }
  stream.lost();
}

void Http2Session::produce() {
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(std::exchange(next_ready_, 0)));
  while (connection_.room() > 0) {
    const uint8_t* data = nullptr;
    const ssize_t bytes = nghttp2_session_mem_send(session_, &data);
    if (bytes < 0) {
      failed_ = true;
      break;
    }
    if (bytes == 0) {
      // One at a time: an event may wake all streams of a connection, and nghttp2 would sort them again and again.
      if (!resume_next()) break;
      continue;
    }
    connection_.put({reinterpret_cast<const char*>(data), static_cast<size_t>(bytes)});
  }
}

bool Http2Session::resume_next() {
  if (next_ready_ == ready_.size()) return false;
  Http2Stream& stream = *ready_[next_ready_++];
  stream.wire.ready = stream.wire.deferred = false;
  nghttp2_session_resume_data(session_, stream.wire.id);
  return true;
}

void Http2Session::produced() {
  for (Http2Stream* stream : writable_) stream->wake_writer();
  writable_.clear();
  after_callbacks();
}

void Http2Session::after_callbacks() {
  // Index, not iterator: notifying a handler may close more streams.
  for (size_t i = 0; i < closed_.size(); ++i) {
    Http2Stream* stream = closed_[i];
    stream->credit_input();
    if (stream->close_code != NGHTTP2_NO_ERROR || !stream->output_finished() || !stream->head_sent) stream->lost();
    std::erase(writable_, stream);
    if (std::exchange(stream->wire.ready, false)) {
      const auto at = std::find(ready_.begin() + static_cast<ptrdiff_t>(next_ready_), ready_.end(), stream);
      if (at != ready_.end()) ready_.erase(at);
    }
    release_if_over(*stream);
  }
  closed_.clear();
}

void Http2Session::release_if_over(Http2Stream& stream) {
  if (stream.handler_active() || !(stream.wire.closed || lost_)) return;
  forget_headers(stream.header_bytes);
  const size_t slot = stream.slot;
  if (slot + 1 != streams_.size()) {
    std::swap(streams_[slot], streams_.back());
    streams_[slot]->slot = slot;
  }
  streams_.pop_back();
  if (streams_.empty()) idle_since_ = connection_.now();
}

void Http2Session::handler_ended(Stream& base) {
  --active_handlers_;
  connection_.shared.counters.active.fetch_sub(1, std::memory_order_relaxed);
  auto& stream = static_cast<Http2Stream&>(base);
  if (!lost_) stream.credit_input();
  release_if_over(stream);
  if (lost_) connection_.handler_ended();
}

void Http2Session::lost() {
  lost_ = true;
  closed_.clear();
  writable_.clear();
  ready_.clear();
  next_ready_ = 0;
  // Notifying a handler may end it and remove its stream from the list.
  std::vector<Http2Stream*> all;
  all.reserve(streams_.size());
  for (auto& stream : streams_) all.push_back(stream.get());
  for (Http2Stream* stream : all) stream->lost();
}

void Http2Session::go_away(uint32_t code) {
  if (gone_away_) return;
  gone_away_ = true;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_), code, nullptr,
                        0);
  connection_.flush_soon();
}

void Http2Session::drain() {
  draining_ = true;
  go_away(NGHTTP2_NO_ERROR);
  std::vector<Http2Stream*> all;
  all.reserve(streams_.size());
  for (auto& stream : streams_) all.push_back(stream.get());
  for (Http2Stream* stream : all) stream->drain();
}

void Http2Session::tick(TimePoint now) {
  if (streams_.empty()) {
    if (now - idle_since_ > options_.idle_timeout) go_away(NGHTTP2_NO_ERROR);
    return;
  }
  for (auto& stream : streams_) {
    if (stream->wire.closed || stream->closed) continue;
    stream->check_deadline(now);
    const auto still = now - stream->progress;
    const bool stalled_output = stream->head_sent && stream->queued_bytes > 0 && still > options_.stalled_write_timeout;
    const bool stalled_input = !stream->input_ended &&
                               (stream->reader || !stream->dispatched || stream->output_finished()) &&
                               still > options_.stalled_read_timeout;
    if (stalled_output || stalled_input) {
      connection_.protocol_error();
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->wire.id, NGHTTP2_CANCEL);
      connection_.flush_soon();
    }
  }
}

}  // namespace

std::unique_ptr<Session> make_http2_session(Connection& connection) {
  return std::make_unique<Http2Session>(connection);
}

}  // namespace holdfast::net::detail
