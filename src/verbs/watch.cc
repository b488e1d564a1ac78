// WATCH: where to start, then events in the client's form until its time is over or it leaves.
#include <map>
#include <random>

#include "base/api_error.h"
#include "base/strings.h"
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
  // One reference, so that the callback needs no memory of its own: most deliveries find the bytes made already.
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
  // From the store's state, not from what the cache happens to have.
  const bool newest = unset || (zero && reads_like_the_store(call));
  // The old paths never learned about initial events: they start with the cache's state and no closing bookmark.
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

// --- Over a WebSocket, as browsers watch -----------------------------------------------------------------------------

// The subprotocols that a client offers besides its token, which authentication has read.
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

// Answers a handshake that Go's server refuses; an Origin is not compared with anything there either.
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

// One message. Events of Protobuf have their length in front elsewhere; here the frame says it.
std::string websocket_message(std::string_view event, request::Format format) {
  if (format == request::Format::Protobuf) event.remove_prefix(4);
  return net::websocket_message(event, format == request::Format::Json);
}

void start_stream(call::Call& call) {
  if (net::asks_for_websocket(call.request)) {
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

// Of net::Response::write(), without the words: false when the watch is over.
using Write = decltype(std::declval<net::Response&>().write({}));
struct Sent : Write {
  net::Response& response;
  bool await_resume() const { return !response.closed(); }
};

// What a delivery needs besides its watch.
struct Sender {
  explicit Sender(call::Call& call)
      : response(call.response),
        view(call.view),
        form(call.view.form_key(false)),
        columns_due(call.view.accepted.form == request::Form::Table),
        over_websocket(net::asks_for_websocket(call.request)) {}

  // co_await sender.send(delivery): takes it, waits while too much is queued for this peer.
  Sent send(const cache::Delivery& delivery) {
    const bool first_table = std::exchange(columns_due, false);
    Result<store::Blob> bytes = first_table ? render_delivery(view, delivery, view.form_key(true), true)
                                            : render_delivery(view, delivery, form, false);
    if (!bytes) {
      response.abort();
      return {response.write({}), response};
    }
    const std::string_view text = **bytes;
    if (over_websocket) return {response.write(net::Bytes(websocket_message(text, view.accepted.format))), response};
    return {response.write(net::Bytes(text, std::move(*bytes))), response};
  }

  // The same for an object that is no longer selected, in the state that was shown last.
  Sent send_gone(const cache::Entry& last, Revision revision) {
    Arena arena;
    const store::Blob body = last.body();
    const std::string gone = view.served->storage->codec().with_revision(*body, revision);
    Result<std::string> event = render_event(view, render::EventName::Deleted, source_of(arena, view, last, gone),
                                             std::exchange(columns_due, false));
    if (!event) {
      response.abort();
      return {response.write({}), response};
    }
    return {response.write(
                net::Bytes(over_websocket ? websocket_message(*event, view.accepted.format) : std::move(*event))),
            response};
  }

  net::Response& response;
  const render::View& view;
  const std::string form;
  bool columns_due;  // A table's first event names them.
  const bool over_websocket;
};

// Thousands of these may go on for one event, each with memory that has gone cold: the frame holds what that needs and
// nothing else.
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

// Who asked for a list cannot be sent an event: the stream ends with the first, as that of Kubernetes does.
Task<void> wait_for_event(call::Call& call, cache::Watcher& watcher) {
  std::vector<cache::Delivery> deliveries;
  co_await watcher.next(call.executor(), deliveries);
}

// The objects that a watch has shown and that have what it selects by, where that is known only of converted objects:
// which events a change is depends on it.
using Matching = std::map<std::string, cache::EntryRef, std::less<>>;  // By key.

// Those that had it when the watch began: changes after that are shown.
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

// Where a webhook converts objects, that comes before they can be shown, or be selected by fields of the version that
// it makes.
Task<void> send_converted_events(call::Call& call, cache::Watcher& watcher, const std::vector<ConvertedField>& fields,
                                 Matching matching) {
  Sender sender(call);
  std::vector<cache::Delivery> deliveries;
  while (true) {
    call.held.clear();  // Of what was shown before.
    co_await watcher.next(call.executor(), deliveries);
    if (deliveries.empty()) break;
    std::vector<cache::EntryRef> objects;
    for (const cache::Delivery& delivery : deliveries) {
      if (!delivery.object()) continue;
      objects.push_back(delivery.object());
      if (const auto known = matching.find(delivery.object()->key()); known != matching.end())
        objects.push_back(known->second);
    }
    Result<Unit> prepared = co_await custom::prepare_to_show(call, objects);
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
        if (!co_await sender.send_gone(*last, delivery.revision)) co_return;
      }
    }
  }
}

}  // namespace

Task<void> serve_watch(call::Call& call) {
  Result<Unit> negotiated = negotiate_answer(call);
  if (!negotiated) co_return respond_error(call, negotiated.error());
  const Result<request::ListQuery>& query = call.request_info.list();
  if (!query) co_return respond_error(call, query.error());
  Result<Selection> selection = resolve_selector(call, *query);
  if (!selection) co_return respond_error(call, selection.error());
  Result<cache::WatchRequest> request = co_await watch_request(call, query->options, std::move(selection->stored));
  if (!request) co_return respond_error(call, request.error());
  const seconds duration = watch_duration(call, query->options);
  request->deadline = call.clock.monotonic() + duration;

  if (call.served->object_rules->asks_to_convert()) {
    // A watch that could not show what there is does not begin.
    Result<cache::Snapshot> now = co_await call.storage().cache().consistent(call.executor());
    if (!now) co_return respond_error(call, now.error());
    Result<Unit> prepared = co_await custom::prepare_to_show(call, now->list({.scope = request->scope}).entries);
    if (!prepared) co_return respond_error(call, custom::not_convertible());
  }
  if (request->start == cache::WatchRequest::Start::Initial) {
    // As a list of the same objects says.
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
    // The stream has begun as far as the client can tell: it learns about these as an event.
    if (net::asks_for_websocket(call.request) && refuses_websocket(call)) co_return;
    start_stream(call);
    std::string event = render_error_event(call.view, error);
    if (net::asks_for_websocket(call.request)) event = websocket_message(event, call.view.accepted.format);
    Result<Unit> written = co_await call.response.write(net::Bytes(std::move(event)));
    if (written) call.response.end();
    co_return;
  }
  if (net::asks_for_websocket(call.request) && refuses_websocket(call)) co_return;
  start_stream(call);
  cache::Watcher following = std::move(*watcher);
  if (call.served->object_rules->asks_to_convert()) {
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
  } else if (call.served->object_rules->asks_to_convert()) {
    co_await send_converted_events(call, following, selection->converted, std::move(*matching));
  } else {
    co_await send_events(call, following);
  }
  call.response.end();
}

}  // namespace holdfast::verbs
