#include "net/http2_calls.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "base/url.h"
#include "net/stream.h"

namespace holdfast::net::detail {

namespace {

// How far a stream may be ahead of its reader: enough to hide a round trip while receiving a large list.
constexpr int32_t kStreamWindowBytes = 4 << 20;
constexpr int32_t kConnectionWindowBytes = 64 << 20;

// Silence before a ping is sent, and then before the connection is considered lost. Nothing else detects a broken path:
// a watch may be silent for minutes.
constexpr Millis kSilence{15'000};

}  // namespace

Http2Call::~Http2Call() {
  if (!connection) return;
  connection->loop_.cancel(timer);
  const bool was_open = connection->calls_.erase(id) > 0;
  if (connection->over_) return;
  if (connection->going_away_ && connection->calls_.empty()) {
    connection->close("http: the client was closed");
    return;
  }
  nghttp2_session_consume_connection(connection->session_, body.size());
  if (was_open) nghttp2_submit_rst_stream(connection->session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  connection->send_soon();
}

void Http2Call::wake() {
  if (waiter) connection->loop_.state().resume_soon(std::exchange(waiter, {}));
}

void Http2Call::set_deadline(Millis timeout) {
  connection->loop_.cancel(timer);
  timer = timeout.count() > 0 ? connection->loop_.run_after(timeout, [this] { cancel(std::string(kDeadline)); }) : 0;
}

void Http2Call::refuse() {
  failure = "http2: server refused the stream";
  refused = true;
}

void Http2Call::cancel(std::string why) {
  if (failure.empty()) failure = std::move(why);
  wake();
}

std::string Http2Call::take_body() {
  if (!connection->over_ && !body.empty()) {
    if (ended) {
      nghttp2_session_consume_connection(connection->session_, body.size());
    } else {
      nghttp2_session_consume(connection->session_, id, body.size());
    }
    if (nghttp2_session_want_write(connection->session_)) connection->send_soon();
  }
  return std::exchange(body, {});
}

std::string authority_of(const ClientOptions& options) {
  const bool usual = options.port == (options.tls ? 443 : 80);
  return usual ? with_brackets(options.host) : host_port(options.host, options.port);
}

const nghttp2_session_callbacks* Http2ClientConnection::callbacks() {
  static const nghttp2_session_callbacks* const kCallbacks = [] {
    nghttp2_session_callbacks* c = nullptr;
    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    return c;
  }();
  return kCallbacks;
}

Http2ClientConnection::Http2ClientConnection(std::unique_ptr<Wire> wire, const ClientOptions& options)
    : loop_(wire->loop), wire_(std::move(wire)), options_(options), authority_(authority_of(options)) {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_session_client_new2(&session_, callbacks(), this, option);
  nghttp2_option_del(option);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindowBytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options_.max_header_bytes},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 256 << 10},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindowBytes);
}

Http2ClientConnection::~Http2ClientConnection() {
  loop_.cancel(alive_timer_);
  nghttp2_session_del(session_);
}

Task<void> Http2ClientConnection::run(std::shared_ptr<Http2ClientConnection> self) {
  Http2ClientConnection& me = *self;
  me.check_liveness();
  me.send();
  while (me.wire_->failure.empty()) {
    if (!me.wire_->in.empty()) {
      me.received_since_check_ = true;
      const ssize_t taken = nghttp2_session_mem_recv(me.session_, reinterpret_cast<const uint8_t*>(me.wire_->in.data()),
                                                     me.wire_->in.size());
      me.wire_->in.clear();
      me.wire_->took();
      if (taken < 0) {
        me.wire_->fail("http2: " + std::string(nghttp2_strerror(static_cast<int>(taken))));
        break;
      }
    }
    me.send();
    if (!nghttp2_session_want_read(me.session_) && !nghttp2_session_want_write(me.session_)) break;
    if (me.wire_->ended) break;
    if (me.wire_->in.empty()) co_await me.wire_->changed();
  }
  me.close(me.wire_->failure.empty() ? "unexpected EOF" : me.wire_->failure);
}

void Http2ClientConnection::close(std::string why) {
  if (std::exchange(over_, true)) return;
  loop_.cancel(std::exchange(alive_timer_, 0));
  wire_->fail(why);
  for (const auto& [id, call] : calls_) call->cancel(why);
}

void Http2ClientConnection::close_when_idle() {
  going_away_ = true;
  if (calls_.empty()) close("http: the client was closed");
}

bool Http2ClientConnection::usable() const {
  return !over_ && !going_away_ && wire_->failure.empty() && !wire_->ended &&
         calls_.size() < nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) &&
         nghttp2_session_check_request_allowed(session_) != 0;
}

void Http2ClientConnection::check_liveness() {
  if (over_) return;
  if (!received_since_check_ && pinged_) return close("http2: client connection lost");
  if (!received_since_check_ && !calls_.empty()) {
    nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
    pinged_ = true;
    send();
  } else {
    pinged_ = false;
  }
  received_since_check_ = false;
  alive_timer_ = loop_.run_after(kSilence, [this] { check_liveness(); });
}

std::unique_ptr<Http2Call> Http2ClientConnection::start(const ClientRequest& request) {
  auto call = std::make_unique<Http2Call>();
  call->connection = shared_from_this();
  call->request_body = request.body;
  std::vector<nghttp2_nv> fields;
  fields.reserve(request.headers.size() + 5);
  std::vector<std::string> lowered;
  lowered.reserve(request.headers.size());  // nghttp2 copies the strings; the views must stay valid until then.
  auto add = [&](std::string_view name, std::string_view value, uint8_t flags = NGHTTP2_NV_FLAG_NONE) {
    auto bytes = [](std::string_view s) { return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(s.data())); };
    fields.push_back({bytes(name), bytes(value), name.size(), value.size(), flags});
  };
  add(":method", request.method);
  add(":scheme", options_.tls ? "https" : "http");
  add(":authority", authority_);
  add(":path", request.target);
  for (const auto& [name, value] : request.headers) {
    const std::string& lower = lowered.emplace_back(to_lower(name));
    // Credentials stay out of the compression table, where they could be guessed.
    add(lower, value, lower == "authorization" ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
  }
  std::string length = std::to_string(request.body.size());
  if (!request.body.empty()) add("content-length", length);
  nghttp2_data_provider body{};
  body.read_callback = read_body;
  const int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                            request.body.empty() ? nullptr : &body, nullptr);
  if (id < 0) {
    call->refuse();
    return call;
  }
  call->id = id;
  calls_[id] = call.get();
  send_soon();
  return call;
}

int Http2ClientConnection::on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name_data,
                                     size_t name_bytes, const uint8_t* value_data, size_t value_bytes, uint8_t,
                                     void* user) {
  Http2Call* call = self(user).find(frame->hd.stream_id);
  if (call == nullptr) return 0;
  call->header_bytes += name_bytes + value_bytes + 32;
  if (call->header_bytes > self(user).options_.max_header_bytes) {
    call->cancel("net/http: response headers too large");
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  const std::string_view name(reinterpret_cast<const char*>(name_data), name_bytes);
  const std::string_view value(reinterpret_cast<const char*>(value_data), value_bytes);
  if (call->head_done) {
    call->trailers.emplace_back(name, value);
  } else if (name == ":status") {
    std::from_chars(value.data(), value.data() + value.size(), call->head.status);
  } else {
    call->head.headers.emplace_back(name, value);
  }
  return 0;
}

int Http2ClientConnection::on_frame_recv(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  if (frame->hd.type == NGHTTP2_GOAWAY) self(user).going_away_ = true;
  if (frame->hd.type != NGHTTP2_HEADERS) return 0;
  Http2Call* call = self(user).find(frame->hd.stream_id);
  if (call == nullptr || call->head_done) return 0;
  if (call->head.status < 200) {  // Skip interim responses.
    call->head = {};
    return 0;
  }
  call->head_done = true;
  call->wake();
  return 0;
}

int Http2ClientConnection::on_data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t bytes,
                                   void* user) {
  Http2Call* call = self(user).find(id);
  if (call == nullptr) {
    nghttp2_session_consume(session, id, bytes);
    return 0;
  }
  call->body.append(reinterpret_cast<const char*>(data), bytes);
  call->wake();
  return 0;
}

int Http2ClientConnection::on_stream_close(nghttp2_session*, int32_t id, uint32_t code, void* user) {
  Http2Call* call = self(user).find(id);
  if (call == nullptr) return 0;
  self(user).calls_.erase(id);
  call->ended = true;
  if (code == NGHTTP2_REFUSED_STREAM) {
    call->refuse();
  } else if (code != NGHTTP2_NO_ERROR && call->failure.empty()) {
    call->failure = "stream error: stream ID " + std::to_string(id) + "; " + nghttp2_http2_strerror(code);
  }
  call->wake();
  return 0;
}

ssize_t Http2ClientConnection::read_body(nghttp2_session*, int32_t id, uint8_t* buffer, size_t bytes, uint32_t* flags,
                                         nghttp2_data_source*, void* user) {
  Http2Call* call = self(user).find(id);
  if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // The caller has abandoned it.
  const size_t take = std::min(bytes, call->request_body.size() - call->request_sent);
  std::copy_n(call->request_body.data() + call->request_sent, take, buffer);
  call->request_sent += take;
  if (call->request_sent == call->request_body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(take);
}

// Calls started in the same round are sent with one write.
void Http2ClientConnection::send_soon() {
  if (std::exchange(send_scheduled_, true)) return;
  loop_.post([self = shared_from_this()] {
    self->send_scheduled_ = false;
    self->send();
  });
}

void Http2ClientConnection::send() {
  if (over_ && !wire_->failure.empty()) return;
  std::string out;
  while (true) {
    const uint8_t* data = nullptr;
    const ssize_t bytes = nghttp2_session_mem_send(session_, &data);
    if (bytes <= 0) break;
    out.append(reinterpret_cast<const char*>(data), static_cast<size_t>(bytes));
  }
  if (!out.empty()) wire_->send(out);
}

}  // namespace holdfast::net::detail
