// WATCH: selects the starting point, then sends events in the client's format until the timeout or a disconnect.
#include <array>
#include <map>
#include <random>

#include "base/api_error.h"
#include "base/reservation.h"
#include "base/strings.h"
#include "call/opt_out.h"
#include "custom/conversions.h"
#include "resource/managed.h"
#include "verbs/each.h"
#include "verbs/reads.h"

namespace holdfast::verbs {
namespace {

using std::chrono::seconds;

seconds watch_duration(const call::Call& call, const request::ListOptions& options) {
  if (options.timeout_seconds && *options.timeout_seconds > 0) return seconds(*options.timeout_seconds);
  static thread_local std::minstd_rand random{std::random_device{}()};
  const int64_t least = call.settings.min_watch_timeout.count();
  return seconds(least + std::uniform_int_distribution<int64_t>(0, least)(random));
}

render::EventName name_of(cache::EventType type) {
  switch (type) {
    case cache::EventType::Added:
      return render::EventName::Added;
    case cache::EventType::Modified:
      return render::EventName::Modified;
    case cache::EventType::Deleted:
      return render::EventName::Deleted;
    case cache::EventType::Bookmark:
      break;
  }
  return render::EventName::Bookmark;
}

Result<store::Blob> render_delivery(const render::View& view, const cache::Delivery& delivery, const std::string& form,
                                    bool first_table) {
  if (delivery.type == cache::EventType::Bookmark) {
    return store::make_blob(
        render_bookmark(view, std::to_string(delivery.revision.value), delivery.initial_events_end, first_table));
  }
  // Captured by a single reference so that the callback does not allocate: most deliveries are already rendered.
  struct {
    const render::View& view;
    bool first_table;
    std::optional<Error> failed;
  } context{view, first_table, std::nullopt};
  store::Blob bytes = delivery.render(form, [&context](const cache::Delivery& shown) -> std::string {
    Arena arena;
    const cache::Entry& object = *shown.object();
    const store::Blob body = object.body();
    Result<std::string> frame = render_event(context.view, name_of(shown.type),
                                             source_of(arena, context.view, object, *body), context.first_table);
    if (!frame) {
      context.failed = frame.take_error();
      return {};
    }
    return std::move(*frame);
  });
  if (context.failed) return std::move(*context.failed);
  return bytes;
}

Task<Result<cache::WatchRequest>> watch_request(call::Call& call, const request::ListOptions& options,
                                                cache::Selector selector) {
  cache::WatchRequest request;
  request.scope = call.storage().scope(call.ns());
  request.selector = std::move(selector);
  request.bookmarks = options.allow_watch_bookmarks;
  Result<std::optional<Revision>> revision = parse_revision(options.resource_version);
  if (!revision) co_return revision.take_error();
  const bool unset = !revision->has_value();
  const bool zero = !unset && (*revision)->value == 0;
  // Starts from the state of the store, not of the cache.
  const bool newest = unset || (zero && bypasses_watch_cache(call));
  // The legacy paths do not support sendInitialEvents: they start with the cache's state, without a closing bookmark.
  const bool old_path = call.info.legacy_watch && !call.query.has("watch");
  std::optional<bool> initial = options.send_initial_events;
  if (!initial && (unset || zero)) initial = true;

  if (initial && *initial) {
    request.start = cache::WatchRequest::Start::Initial;
    request.initial_events_bookmark = options.allow_watch_bookmarks && !old_path;
    if (newest) {
      Result<Revision> current = co_await call.storage().cache().store_revision(call.executor());
      if (!current) co_return current.take_error();
      request.revision = *current;
    } else {
      request.revision = **revision;
    }
  } else if (newest) {
    Result<Revision> current = co_await call.storage().cache().store_revision(call.executor());
    if (!current) co_return current.take_error();
    request.start = cache::WatchRequest::Start::After;
    request.revision = *current;
  } else if (zero) {
    request.start = cache::WatchRequest::Start::Now;
  } else {
    request.start = cache::WatchRequest::Start::After;
    request.revision = **revision;
  }
  co_return request;
}

// --- Watch over WebSocket, for browsers ------------------------------------------------------------------------------

// The subprotocols offered by the client, except for its token, which authentication has read.
std::vector<std::string_view> subprotocols(const call::Call& call) {
  std::vector<std::string_view> all;
  for (const std::string_view header : call.request.headers.all("sec-websocket-protocol")) {
    for (const std::string_view one : split(header, ',')) {
      const std::string_view protocol = trim(one);
      if (!protocol.empty() && !protocol.starts_with(auth::kWebSocketToken)) all.push_back(protocol);
    }
  }
  return all;
}

// Responds to handshakes that Go's server rejects; like there, Origin is not checked.
bool refuses_websocket(call::Call& call) {
  const net::Headers& headers = call.request.headers;
  const auto refuse = [&call](int code, std::string_view why) {
    respond(call, code, net::Body(std::string(why)), "text/plain; charset=utf-8");
    return true;
  };
  if (headers.get("sec-websocket-key").empty()) return refuse(400, "mismatch challenge/response");
  if (headers.get("sec-websocket-version") != "13") {
    call.response.set_header("sec-websocket-version", "13");
    return refuse(400, "missing or bad WebSocket Version");
  }
  if (headers.get("origin").empty()) return refuse(403, "");
  return subprotocols(call).size() > 1 && refuse(400, "");
}

// One message. The length prefix of Protobuf events is dropped, because WebSocket frames have a length.
std::string websocket_message(std::string_view event, request::Format format) {
  if (format == request::Format::Protobuf) event.remove_prefix(4);
  return net::websocket_message(event, format == request::Format::Json);
}

void start_stream(call::Call& call) {
  count_opt_out(call, 0);  // Sender counts the bytes.
  if (net::is_websocket_request(call.request)) {
    for (const std::string_view protocol : subprotocols(call)) {
      call.response.set_header("sec-websocket-protocol", protocol);
    }
    (void)call.response.start(101);
    if (call.recording != nullptr && call.recording->on_stream) call.recording->on_stream(101);
    return;
  }
  for (const std::string& warning : call.warnings.headers()) call.response.add_header("warning", warning);
  call.response.set_header("content-type", render::watch_content_type(call.view.accepted.format));
  call.response.set_header("cache-control", "no-cache, private");
  (void)call.response.start(200);
  if (call.recording != nullptr && call.recording->on_stream) call.recording->on_stream(200);
}

// Awaiting net::Response::write(), but returning only whether the watch is still open.
using Write = decltype(std::declval<net::Response&>().write({}));
struct Sent : Write {
  net::Response& response;
  bool await_resume() const { return !response.closed(); }
};

std::array<std::string_view, 3> labels_of(const call::Call& call) {
  const types::Resource& resource = *call.served->resource;
  return {resource.group, resource.version, resource.plural};
}

// Per-watch state for sending events.
struct Sender {
  explicit Sender(call::Call& call)
      : response(call.response),
        view(call.view),
        form(call.view.form_key(false)),
        columns_due(call.view.accepted.form == request::Form::Table),
        over_websocket(net::is_websocket_request(call.request)),
        events(call.watch_events.with(labels_of(call))),
        saved(opt_out_bytes(call)),
        sizes(call.watch_event_sizes.with(labels_of(call))) {}

  // co_await sender.send(delivery): sends it, and waits while too much data is queued for this client.
  Sent send(const cache::Delivery& delivery) {
    const bool first_table = std::exchange(columns_due, false);
    Result<store::Blob> bytes = first_table ? render_delivery(view, delivery, view.form_key(true), true)
                                            : render_delivery(view, delivery, form, false);
    if (!bytes) {
      response.abort();
      return {response.write({}), response};
    }
    const std::string_view text = **bytes;
    count(text.size(), delivery.object().get());
    if (over_websocket) return {response.write(net::Bytes(websocket_message(text, view.accepted.format))), response};
    return {response.write(net::Bytes(text, std::move(*bytes))), response};
  }

  // Sends Deleted for an object that no longer matches, in the state that was last sent.
  Sent send_deleted(const cache::Entry& last, Revision revision) {
    Arena arena;
    const store::Blob body = last.body();
    const std::string gone = view.served->storage->codec().with_revision(*body, revision);
    Result<std::string> event = render_event(view, render::EventName::Deleted, source_of(arena, view, last, gone),
                                             std::exchange(columns_due, false));
    if (!event) {
      response.abort();
      return {response.write({}), response};
    }
    count(event->size(), &last);
    return {response.write(
                net::Bytes(over_websocket ? websocket_message(*event, view.accepted.format) : std::move(*event))),
            response};
  }

  void count(size_t bytes, const cache::Entry* object) const {
    events.add();
    if (saved != nullptr && object != nullptr) saved->add(call::field_set_bytes(object->ownership()));
    sizes.observe(static_cast<double>(bytes));
  }

  net::Response& response;
  const render::View& view;
  const std::string form;
  bool columns_due;  // The first event of a Table includes the columns.
  const bool over_websocket;
  Counter& events;
  Counter* const saved;  // Bytes of managedFields; null if they are sent.
  Histogram& sizes;
};

// One event may resume thousands of these, each with cold memory, so the frame holds only what is needed.
Task<void> send_events(call::Call& call, cache::Watcher& watcher) {
  Sender sender(call);
  Executor& executor = call.executor();
  std::vector<cache::Delivery> deliveries;
  while (true) {
    co_await watcher.next(executor, deliveries);
    if (deliveries.empty()) break;
    for (const cache::Delivery& delivery : deliveries) {
      if (!co_await sender.send(delivery)) co_return;
    }
  }
}

// Like in Kubernetes, a watch in a list form cannot be sent any event: the stream ends with the first.
Task<void> wait_for_event(call::Call& call, cache::Watcher& watcher) {
  std::vector<cache::Delivery> deliveries;
  co_await watcher.next(call.executor(), deliveries);
}

// The objects sent by a watch that match its selector, if that depends on fields of converted objects: they determine
// the type of later events.
using Matching = std::map<std::string, cache::EntryRef, std::less<>>;  // By key.

// The objects that matched when the watch began, since only later changes are sent.
Task<Result<Matching>> matching_before(call::Call& call, cache::WatchRequest& request,
                                       const std::vector<ConvertedField>& fields) {
  Matching matching;
  if (fields.empty() || request.start == cache::WatchRequest::Start::Initial) co_return matching;
  cache::Cache& cache = call.storage().cache();
  const bool now = request.start == cache::WatchRequest::Start::Now;
  Result<cache::Snapshot> snapshot = now ? cache.snapshot() : co_await cache.exactly(request.revision, call.executor());
  if (!snapshot) co_return snapshot.take_error();
  if (now) {
    request.start = cache::WatchRequest::Start::After;
    request.revision = snapshot->revision();
  }
  cache::ListPage page = snapshot->list({.scope = request.scope, .selector = request.selector});
  Result<std::vector<cache::EntryRef>> entries = co_await with_fields(call, std::move(page.entries), fields);
  if (!entries) co_return entries.take_error();
  for (cache::EntryRef& entry : *entries) {
    std::string key(entry->key());
    matching.emplace(std::move(key), std::move(entry));
  }
  co_return matching;
}

// Objects converted by a webhook must be converted before they can be sent, or matched by fields of the requested
// version.
Task<void> send_converted_events(call::Call& call, cache::Watcher& watcher, const std::vector<ConvertedField>& fields,
                                 Matching matching) {
  Sender sender(call);
  std::vector<cache::Delivery> deliveries;
  while (true) {
    call.held.clear();  // Conversions of previous events.
    co_await watcher.next(call.executor(), deliveries);
    if (deliveries.empty()) break;
    std::vector<cache::EntryRef> objects;
    for (const cache::Delivery& delivery : deliveries) {
      if (!delivery.object()) continue;
      objects.push_back(delivery.object());
      if (const auto known = matching.find(delivery.object()->key()); known != matching.end())
        objects.push_back(known->second);
    }
    Result<Unit> prepared = co_await custom::convert_for_view(call, objects);
    if (!prepared) co_return call.response.abort();
    for (cache::Delivery& delivery : deliveries) {
      if (fields.empty() || !delivery.object()) {
        if (!co_await sender.send(delivery)) co_return;
        continue;
      }
      const auto known = matching.find(delivery.object()->key());
      const bool was = known != matching.end();
      const bool is = delivery.type != cache::EventType::Deleted && has_fields(call, *delivery.object(), fields);
      if (is) {
        delivery.type = was ? cache::EventType::Modified : cache::EventType::Added;
        matching.insert_or_assign(std::string(delivery.object()->key()), delivery.object());
        if (!co_await sender.send(delivery)) co_return;
      } else if (was) {
        const cache::EntryRef last = std::move(known->second);
        matching.erase(known);
        if (!co_await sender.send_deleted(*last, delivery.revision)) co_return;
      }
    }
  }
}

// Roughly the memory that the parsed selectors take.
size_t bytes_of(const request::ListQuery& query) {
  // For each requirement and value, half of what an index of them takes (cache/selector_index.h).
  constexpr size_t kIndexedKey = 70, kIndexedValue = 8;
  size_t bytes = query.labels.capacity() * (sizeof(query.labels[0]) + kIndexedKey) +
                 query.fields.capacity() * (sizeof(query.fields[0]) + kIndexedValue);
  const auto on_heap = [](const std::string& text) { return text.capacity() > 15 ? text.capacity() : 0; };
  for (const cache::LabelRequirement& requirement : query.labels) {
    bytes += on_heap(requirement.key) + requirement.values.capacity() * (sizeof(std::string) + kIndexedValue);
    for (const std::string& value : requirement.values) bytes += on_heap(value);
  }
  for (const request::FieldTerm& term : query.fields) bytes += on_heap(term.value);
  return bytes;
}

}  // namespace

Task<void> serve_watch(call::Call& call) {
  Result<Unit> negotiated = negotiate_response(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  // Kept twice for as long as the watch lasts: by the request and by the watcher.
  Reservation selector_memory(watch_selectors());
  if (const Result<request::ListQuery>& query = call.request_info.list(); query) {
    const size_t bytes = 2 * (bytes_of(*query) + call.request.query.size());
    if (bytes > limits::kSmallSelectorBytes) selector_memory.grow(bytes);
  }
  Result<Selection> selection = resolve_selector(call);
  if (!selection) co_return respond_error(call, selection.error());
  const request::ListOptions& options = call.request_info.list()->options;
  Result<cache::WatchRequest> request = co_await watch_request(call, options, std::move(selection->stored));
  if (!request) co_return respond_error(call, request.error());
  const seconds duration = watch_duration(call, options);
  request->deadline = call.clock.monotonic() + duration;

  if (call.served->object_rules->converts_by_webhook()) {
    // Fail early if the existing objects cannot be converted.
    Result<cache::Snapshot> now = co_await call.storage().cache().consistent(call.executor());
    if (!now) co_return respond_error(call, now.error());
    Result<Unit> prepared = co_await custom::convert_for_view(call, now->list({.scope = request->scope}).entries);
    if (!prepared) co_return respond_error(call, custom::not_convertible());
  }
  if (request->start == cache::WatchRequest::Start::Initial) {
    // Same error as for a list of these objects.
    if (Result<cache::Snapshot> now = call.storage().cache().snapshot(); now && now->has_unreadable()) {
      const cache::ListPage page = now->list({.scope = request->scope, .selector = request->selector});
      if (!page.unreadable.empty()) co_return respond_error(call, unreadable_items(call, page.unreadable));
    }
  }
  Result<Matching> matching = co_await matching_before(call, *request, selection->converted);
  Result<cache::Watcher> watcher = matching
                                       ? co_await call.storage().cache().watch(std::move(*request), call.executor())
                                       : Result<cache::Watcher>(matching.take_error());
  if (watcher) {
    Result<Unit> carried = check_streams(call.view.accepted, call.settings.gates);
    if (!carried) co_return respond_error(call, carried.error());
    if (call.view.refusal) co_return respond_error(call, *call.view.refusal);
  } else {
    const Error& error = watcher.error();
    if (error.reason != Reason::Expired && error.reason != Reason::Timeout) co_return respond_error(call, error);
    // In Kubernetes, the stream has already begun at this point: these errors are sent as an event.
    if (net::is_websocket_request(call.request) && refuses_websocket(call)) co_return;
    start_stream(call);
    std::string event = render_error_event(call.view, error);
    if (net::is_websocket_request(call.request)) event = websocket_message(event, call.view.accepted.format);
    Result<Unit> written = co_await call.response.write(net::Bytes(std::move(event)));
    if (written) call.response.end();
    co_return;
  }
  if (net::is_websocket_request(call.request) && refuses_websocket(call)) co_return;
  start_stream(call);
  cache::Watcher following = std::move(*watcher);
  if (call.served->object_rules->converts_by_webhook()) {
    call.response.on_interrupt([&following, outgoing = call.outgoing()](net::Interrupt) {
      following.cancel();
      outgoing->cancel();
    });
  } else {
    call.response.on_interrupt([&following](net::Interrupt) { following.cancel(); });
  }
  const Timer timer(call.request.loop(), duration, [&following] { following.cancel(); });
  if (call.view.accepted.form == request::Form::PartialMetadataList) {
    co_await wait_for_event(call, following);
  } else if (call.served->object_rules->converts_by_webhook()) {
    co_await send_converted_events(call, following, selection->converted, std::move(*matching));
  } else {
    co_await send_events(call, following);
  }
  call.response.end();
}

}  // namespace holdfast::verbs
