// Watches: splits a byte stream into events.
#include <algorithm>

#include "base/varint.h"
#include "client/core.h"

namespace holdfast::client {

struct Watch::State {
  std::shared_ptr<Core> core;
  SharedDrops drops;
  Shape shape;
  net::ClientStream stream;
  Encoding encoding;
  std::string buffer;
  size_t from = 0;     // Bytes before this were already returned.
  size_t scanned = 0;  // Bytes before this contain no end of an event.
  bool canceled = false;
  uint64_t close_id = 0;

  State(std::shared_ptr<Core> the_core, SharedDrops the_drops, Shape the_shape, net::ClientStream the_stream,
        Encoding the_encoding)
      : core(std::move(the_core)),
        drops(std::move(the_drops)),
        shape(the_shape),
        stream(std::move(the_stream)),
        encoding(the_encoding) {}

  // The first complete frame in the buffer; empty if more bytes are needed.
  Result<std::string_view> frame();
};

namespace {

// Larger frame lengths are rejected before allocating memory.
constexpr size_t kMaxFrameBytes = 256 << 20;

// The strings in fields 1 and 2 of a message without other fields: WatchEvent and RawExtension.
void read_two_strings(std::string_view message, std::string_view& first, std::string_view& second) {
  ByteReader reader(message);
  while (!reader.rest().empty()) {
    const uint64_t tag = reader.varint();
    if ((tag & 7) != 2) return;
    const std::string_view bytes = reader.bytes(reader.varint());
    if (!reader.ok()) return;
    (tag >> 3 == 1 ? first : second) = bytes;
  }
}

std::optional<WatchEvent::Type> type_of(std::string_view name) {
  if (name == "ADDED") return WatchEvent::Type::Added;
  if (name == "MODIFIED") return WatchEvent::Type::Modified;
  if (name == "DELETED") return WatchEvent::Type::Deleted;
  if (name == "BOOKMARK") return WatchEvent::Type::Bookmark;
  return std::nullopt;
}

// The fast path for {"type":"ADDED","object":{...}}, the form all servers send.
bool plain_json_event(std::string_view line, std::string_view& type, std::string_view& object) {
  constexpr std::string_view kStart = R"({"type":")", kMiddle = R"(","object":)";
  if (!line.starts_with(kStart)) return false;
  const size_t end = line.find('"', kStart.size());
  if (end == std::string_view::npos || line.substr(end, kMiddle.size()) != kMiddle) return false;
  type = line.substr(kStart.size(), end - kStart.size());
  while (line.ends_with('\n') || line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  if (!line.ends_with('}')) return false;
  object = line.substr(end + kMiddle.size(), line.size() - end - kMiddle.size() - 1);
  return true;
}

// The text of a CBOR string (byte or text) of at most 23 bytes, the form used for keys and types.
std::string_view short_cbor_text(std::string_view item) {
  const auto head = static_cast<uint8_t>(item.empty() ? 0 : item[0]);
  const bool text = (head & 0xe0) == 0x40 || (head & 0xe0) == 0x60;
  return text && (head & 0x1f) + 1U == item.size() ? item.substr(1) : std::string_view();
}

// The same for CBOR: a map with two entries, of definite or indefinite length.
bool plain_cbor_event(std::string_view frame, std::string_view& type, std::string_view& object) {
  constexpr std::string_view kSelfDescribed = "\xd9\xd9\xf7";
  constexpr char kMapOfTwo = '\xa2', kOpenMap = '\xbf', kBreak = '\xff';
  if (frame.starts_with(kSelfDescribed)) frame.remove_prefix(kSelfDescribed.size());
  if (frame.empty() || (frame[0] != kMapOfTwo && frame[0] != kOpenMap)) return false;
  const bool open = frame[0] == kOpenMap;
  frame.remove_prefix(1);
  const auto take = [&frame]() -> std::string_view {
    const Result<size_t> bytes = codec::first_cbor_item(frame);
    const std::string_view item = frame.substr(0, bytes ? *bytes : 0);
    frame.remove_prefix(item.size());
    return item;
  };
  for (int i = 0; i < 2; ++i) {
    const std::string_view key = take(), value = take();
    if (value.empty()) return false;
    const std::string_view name = short_cbor_text(key);
    if (name == "type") type = short_cbor_text(value);
    if (name == "object") object = value;
  }
  if (open && !frame.starts_with(kBreak)) return false;
  return !type.empty() && !object.empty();
}

}  // namespace

Result<std::string_view> Watch::State::frame() {
  const std::string_view rest = std::string_view(buffer).substr(from);
  if (encoding == Encoding::Protobuf) {
    if (rest.size() < 4) return std::string_view();
    size_t bytes = 0;
    for (int i = 0; i < 4; ++i) bytes = bytes << 8 | static_cast<uint8_t>(rest[static_cast<size_t>(i)]);
    if (bytes > kMaxFrameBytes) return bad_request("watch frame too large: " + std::to_string(bytes) + " bytes");
    if (rest.size() - 4 < bytes) return std::string_view();
    from += 4 + bytes;
    return rest.substr(4, bytes);
  }
  if (encoding == Encoding::Cbor) {
    Result<size_t> bytes = codec::first_cbor_item(rest);
    if (!bytes) return bytes.take_error();
    from += *bytes;
    return rest.substr(0, *bytes);
  }
  const size_t end = rest.find('\n', scanned);
  if (end == std::string_view::npos) {
    scanned = rest.size();
    return std::string_view();
  }
  scanned = 0;
  from += end + 1;
  return rest.substr(0, end + 1);
}

Watch::Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}

Task<Result<std::optional<Watch::Raw>>> Watch::next_raw() {
  const std::shared_ptr<State> state = state_;
  State& me = *state;
  const Core::Use use(me.core);
  if (!me.core->loop.in_thread()) co_await resume_on(me.core->loop);
  while (true) {
    Result<std::string_view> frame = me.frame();
    if (!frame) co_return frame.take_error();
    if (frame->empty()) {
      if (me.canceled || me.core->closing) co_return Error{Reason::ServiceUnavailable, "context canceled"};
      me.buffer.erase(0, std::exchange(me.from, 0));
      net::CallResult<std::string> piece = co_await me.stream.read_some();
      if (!piece) co_return piece.take_error();
      if (piece->empty()) co_return std::optional<Raw>();
      if (me.buffer.empty()) {
        me.buffer = std::move(*piece);
      } else {
        me.buffer += *piece;
      }
      continue;
    }
    Raw raw;
    raw.encoding = me.encoding;
    std::string_view type;
    if (me.encoding == Encoding::Protobuf) {
      std::string_view extension, ignored;
      read_two_strings(*frame, type, extension);
      read_two_strings(extension, raw.object, ignored);
    } else if (me.encoding == Encoding::Cbor) {
      if (!plain_cbor_event(*frame, type, raw.object)) co_return bad_request("malformed watch event");
    } else {
      const std::string_view trimmed = frame->substr(0, frame->find_last_not_of(" \r\n") + 1);
      if (trimmed.empty()) continue;
      if (!plain_json_event(trimmed, type, raw.object)) co_return bad_request("malformed watch event");
    }
    if (type == "ERROR") {
      Result<Object> status = decode_answer(raw.encoding, std::string(raw.object));
      if (!status) co_return status.take_error();
      co_return error_of_status(status->root(), 0);
    }
    const std::optional<WatchEvent::Type> known = type_of(type);
    if (!known) continue;  // An event type newer than this client.
    raw.type = *known;
    co_return std::optional<Raw>(raw);
  }
}

namespace {

// The bookmark after the initial objects has an annotation; in a Table, on the object of its row.
bool ends_initial_events(const Value& root) {
  const auto has = [](const Value& object) {
    return object.text_at("metadata", "annotations", "k8s.io/initial-events-end") == "true";
  };
  if (has(root)) return true;
  const std::span<const Value> rows = root.items_at("rows");
  const Value* object = rows.empty() ? nullptr : rows[0].find("object");
  return object != nullptr && root.text_at("kind") == "Table" && has(*object);
}

Task<Result<std::optional<WatchEvent>>> next_event(Watch watch, SharedDrops drops, bool table) {
  Result<std::optional<Watch::Raw>> raw = co_await watch.next_raw();
  if (!raw) co_return raw.take_error();
  if (!*raw) co_return std::optional<WatchEvent>();
  WatchEvent event;
  event.type = (*raw)->type;
  Result<Object> object =
      decode_answer((*raw)->encoding, std::string((*raw)->object), *drops, table ? Answered::Table : Answered::Object);
  if (!object) co_return object.take_error();
  event.object = std::move(*object);
  event.initial_events_end = event.type == WatchEvent::Type::Bookmark && ends_initial_events(event.object.root());
  co_return std::optional<WatchEvent>(std::move(event));
}

}  // namespace

Call<Result<std::optional<WatchEvent>>> Watch::next() {
  const bool table = state_->shape == Shape::Table || state_->shape == Shape::TableOfObjects;
  return {state_->core->loop, next_event(*this, state_->drops, table)};
}

void Watch::cancel() {
  state_->core->loop.post([state = state_] {
    state->canceled = true;
    state->stream.cancel();
  });
}

Task<Result<Watch>> open_watch(std::shared_ptr<Core> core, Resource resource, std::string space, WatchOptions options,
                               SharedDrops drops, Encoding encoding) {
  const Core::Use use(core);
  PreparedRequest sent;
  sent.streaming = true;
  sent.target = core->path(resource, space);
  add_query(sent.target, "watch", "true");
  if (options.bookmarks) add_query(sent.target, "allowWatchBookmarks", "true");
  if (options.send_initial_events) {
    add_query(sent.target, "sendInitialEvents", "true");
    add_query(sent.target, "resourceVersionMatch", "NotOlderThan");
  }
  add_query(sent.target, "labelSelector", options.label_selector);
  add_query(sent.target, "fieldSelector", options.field_selector);
  add_query(sent.target, "resourceVersion", options.resource_version);
  if (options.timeout_seconds > 0) add_query(sent.target, "timeoutSeconds", std::to_string(options.timeout_seconds));
  add_shape(sent.target, options.shape);
  sent.accept = Core::accept(resource, *drops, encoding, options.shape, Core::Asked::Object);
  Result<Answer> answer = co_await Core::send(core, std::move(sent));
  if (!answer) co_return answer.take_error();
  const Encoding got = encoding_of(answer->response.header("content-type"));
  auto state = std::make_shared<Watch::State>(core, std::move(drops), options.shape, std::move(*answer->stream), got);
  state->close_id = core->on_close([weak = std::weak_ptr<Watch::State>(state)] {
    if (const std::shared_ptr<Watch::State> alive = weak.lock()) alive->stream.cancel();
  });
  // The stream must be destroyed on the loop, but its last user may be on any thread.
  std::shared_ptr<Watch::State> on_loop(state.get(), [state, core](Watch::State*) mutable {
    core->forget_close(state->close_id);
    core->loop.post([state = std::move(state)]() mutable { state.reset(); });
  });
  co_return Watch(std::move(on_loop));
}

}  // namespace holdfast::client
