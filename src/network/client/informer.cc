#include "client/informer.h"

#include <algorithm>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/log.h"
#include "base/packing.h"
#include "base/varint.h"
#include "client/core.h"
#include "client/pause.h"

namespace holdfast::client {

namespace {

using Clock = std::chrono::steady_clock;

// The number of objects a dictionary is trained on, and its size limit: enough to hold what objects of a kind share.
constexpr size_t kSampleObjects = 400;
constexpr size_t kDictionaryBytes = 64 << 10;

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

// Calls `visit` with the number and bytes of each length-delimited field; false if malformed.
template <class Visit>
bool for_each_bytes(std::string_view message, Visit visit) {
  ByteReader reader(message);
  while (reader.ok() && !reader.rest().empty()) {
    const uint64_t tag = reader.varint();
    switch (tag & 7) {
      case 0:
        reader.varint();
        break;
      case 1:
        reader.bytes(8);
        break;
      case 2: {
        const std::string_view bytes = reader.bytes(reader.varint());
        if (reader.ok()) visit(tag >> 3, bytes);
        break;
      }
      default:
        return false;
    }
  }
  return reader.ok();
}

// An object's identity, extracted from its bytes.
struct Names {
  std::string key, resource_version;
  bool has_managed_fields = false;
  bool initial_events_end = false;
};

bool names_in_protobuf(std::string_view message, Names& names) {
  std::string_view metadata;
  if (!for_each_bytes(message, [&](uint64_t number, std::string_view bytes) {
        if (number == 1) metadata = bytes;
      })) {
    return false;
  }
  std::string_view name, space;
  const bool good = for_each_bytes(metadata, [&](uint64_t number, std::string_view bytes) {
    if (number == 1) name = bytes;
    if (number == 3) space = bytes;
    if (number == 6) names.resource_version = bytes;
    if (number == 12 && bytes.find("k8s.io/initial-events-end") != std::string_view::npos) {
      names.initial_events_end = true;
    }
    if (number == 17) names.has_managed_fields = true;
  });
  names.key = space.empty() ? std::string(name) : std::string(space) + "/" + std::string(name);
  return good;
}

void names_in_tree(const Value& root, Names& names) {
  const std::string_view name = root.text_at("metadata", "name"), space = root.text_at("metadata", "namespace");
  names.key = space.empty() ? std::string(name) : std::string(space) + "/" + std::string(name);
  names.resource_version = root.text_at("metadata", "resourceVersion");
  names.initial_events_end = root.text_at("metadata", "annotations", "k8s.io/initial-events-end") == "true";
}

// Copies only the members at and below the paths.
Value only(Arena& arena, const Value& value, const codec::FieldPaths& paths, codec::FieldPaths::Node node) {
  if (value.is_list()) {
    ListBuilder list(arena);
    for (const Value& item : value.items()) list.add(only(arena, item, paths, node));
    return list.build();
  }
  if (!value.is_map()) return value;
  MapBuilder map(arena);
  for (const Member& member : value.members()) {
    const codec::FieldPaths::Node below = paths.child(node, member.key);
    if (below == codec::FieldPaths::kNone) continue;
    map.add(member.key, paths.ends_at(below) ? member.value : only(arena, member.value, paths, below));
  }
  return map.build();
}

// How an informer's objects are decoded.
struct Form {
  std::string api_version, kind;
  const types::Type* type = nullptr;  // For Protobuf messages.
  FieldList dropped;
};

}  // namespace

struct Stored::Data {
  std::string key, resource_version;
  std::string bytes;  // Compressed if there is a dictionary.
  std::shared_ptr<const Dictionary> dictionary;
  uint32_t plain_bytes = 0;
  Encoding encoding = Encoding::Json;
  std::shared_ptr<const Form> form;
};

const std::string& Stored::key() const { return data_->key; }
const std::string& Stored::resource_version() const { return data_->resource_version; }

Object Stored::get() const {
  const Data& data = *data_;
  std::string plain;
  if (data.dictionary) {
    plain.resize(data.plain_bytes);
    const bool whole = data.dictionary->unpack(data.bytes, plain.data(), plain.size());
    assert(whole);
  } else {
    plain = data.bytes;
  }
  codec::Document document(std::move(plain));
  Result<Value> root = Value();
  if (data.encoding == Encoding::Protobuf) {
    static const Gates kAll;
    root = codec::decode_protobuf(
        document.arena(), *data.form->type, document.source(),
        {document.arena().copy(data.form->api_version), document.arena().copy(data.form->kind)}, {.gates = &kAll});
  } else if (data.encoding == Encoding::Cbor) {
    root = codec::decode_cbor(document.arena(), document.source());
  } else {
    root = codec::decode_json(document.arena(), document.source());
  }
  // It was parsed once before it was stored; a Protobuf message may still not match its type.
  document.set_root(root ? *root : Value());
  return Object(std::move(document), data.form->dropped);
}

struct Informer::State : std::enable_shared_from_this<Informer::State> {
  State(std::shared_ptr<Core> the_core, Resource the_resource, InformerOptions the_options)
      : core(std::move(the_core)),
        resource(std::move(the_resource)),
        options(std::move(the_options)),
        chosen(core->drops_of(options.drop_fields)),
        drops(chosen ? *chosen : Drops::none()),
        encoding(options.encoding.value_or(core->options.encoding)),
        streaming(options.streaming_list),
        pause(core->loop),
        resync_pause(core->loop) {
    auto made = std::make_shared<Form>();
    made->api_version = resource.api_version();
    made->kind = resource.kind;
    made->type = types::find_type_of(resource.group, resource.version, resource.kind);
    if (!options.keep_fields.empty()) {
      made->dropped = std::make_shared<const std::vector<std::string>>(1, "*");
    } else if (!drops->empty()) {
      made->dropped = drops->fields;
    }
    form = std::move(made);
    for (const std::string& field : options.keep_fields) keep.add(field);
    if (!options.keep_fields.empty()) {
      for (const char* field :
           {"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}) {
        keep.add(field);
      }
    }
  }

  Shape shape() const { return options.metadata_only ? Shape::Metadata : Shape::Object; }

  // --- Constant after construction.
  const std::shared_ptr<Core> core;
  const Resource resource;
  const InformerOptions options;
  const Result<SharedDrops> chosen;
  const SharedDrops drops;
  const Encoding encoding;
  codec::FieldPaths keep;
  std::shared_ptr<const Form> form;

  // --- Used only on the loop.
  bool streaming;
  bool stopped = false;
  std::optional<Watch> watch;
  Pause pause, resync_pause;
  std::vector<std::coroutine_handle<>> waiting_for_sync;
  std::unordered_set<std::string> seen;  // While listing: the keys reported so far.
  bool listing = false;
  bool list_done = false;  // The most recent list was completed.
  std::vector<std::shared_ptr<Stored::Data>> samples;
  std::shared_ptr<const Dictionary> dictionary;
  std::string scratch;
  uint64_t next_handlers = 1;
  std::vector<std::pair<uint64_t, Handlers>> handlers;
  std::chrono::milliseconds delay{0};
  uint64_t close_id = 0;

  // --- Shared with readers.
  using Entry = std::shared_ptr<const Stored::Data>;
  mutable std::shared_mutex mutex;
  std::unordered_map<std::string_view, Entry> objects;  // Keys are views into the entries.
  struct Index {
    IndexValues values;
    std::unordered_map<std::string, std::unordered_map<std::string_view, Entry>> entries;
  };
  std::unordered_map<std::string, Index, StringHash, std::equal_to<>> indexes;
  InformerStatus now;
  Clock::time_point contact = Clock::now();

  // --- Implementation
  static Task<void> run(std::shared_ptr<State> self);
  static Task<void> resync(std::shared_ptr<State> self);
  Task<Result<Unit>> follow_watch(bool initial);
  Task<Result<Unit>> list_pages();
  Result<Unit> take(WatchEvent::Type type, Encoding from, std::string_view bytes, bool& end_of_initial);
  Result<std::shared_ptr<Stored::Data>> stored_form(Encoding from, std::string_view bytes, Names& names);
  void put(std::shared_ptr<Stored::Data> data);
  void erase(std::string_view key);
  void pack(Stored::Data& data);
  void end_of_list();
  void index(const Entry& before, const Entry& after);
  void heard(std::string_view resource_version);
  void failed(const Error& error);
  void give_up(const Error& error);
  void stop();
};

// ---------------------------------------------------------------------------------------------------- Objects

// Converts a received object to the bytes to store: without dropped fields, reduced if requested.
Result<std::shared_ptr<Stored::Data>> Informer::State::stored_form(Encoding from, std::string_view bytes,
                                                                   Names& names) {
  auto data = std::make_shared<Stored::Data>();
  data->form = form;
  data->encoding = from;
  if (from == Encoding::Protobuf) {
    Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(bytes);
    if (!envelope) return envelope.take_error();
    if (form->type == nullptr) return bad_request("received Protobuf for a kind without a Protobuf type");
    std::string_view message = envelope->message;
    if (!names_in_protobuf(message, names)) return bad_request("malformed object in a watch");
    const bool only_managed = drops->only_ownership();
    if (!drops->empty() && (!only_managed || names.has_managed_fields)) {
      scratch.clear();
      Result<Unit> changed = only_managed ? codec::change_metadata(message, {.drop_managed_fields = true}, scratch)
                                          : codec::drop_protobuf_fields(*form->type, message, drops->object, scratch);
      if (!changed) return changed.take_error();
      message = scratch;
    }
    if (options.keep_fields.empty()) {
      data->bytes = message;
    } else {
      Arena arena;
      static const Gates kAll;
      Result<Value> root =
          codec::decode_protobuf(arena, *form->type, message, {form->api_version, form->kind}, {.gates = &kAll});
      if (!root) return root.take_error();
      data->encoding = Encoding::Json;
      data->bytes = codec::encode_json(only(arena, *root, keep, codec::FieldPaths::kRoot));
    }
  } else {
    Arena arena;
    Result<Value> root = from == Encoding::Cbor ? codec::decode_cbor(arena, bytes)
                                                : codec::decode_json(arena, bytes, {.raw = &drops->object});
    if (!root) return root.take_error();
    names_in_tree(*root, names);
    const bool dropped = !drops->empty() && has_any(*root, drops->object);
    if (!options.keep_fields.empty()) {
      data->encoding = Encoding::Json;
      data->bytes = codec::encode_json(only(arena, *root, keep, codec::FieldPaths::kRoot));
    } else if (!dropped) {
      data->bytes = bytes;
    } else {
      const Value rest = without_fields(arena, *root, drops->object);
      data->bytes = from == Encoding::Cbor ? codec::encode_cbor(rest) : codec::encode_json(rest);
    }
  }
  data->key = names.key;
  data->resource_version = names.resource_version;
  data->plain_bytes = static_cast<uint32_t>(data->bytes.size());
  return data;
}

void Informer::State::pack(Stored::Data& data) {
  if (!dictionary || data.dictionary) return;
  const std::string_view packed = dictionary->pack(data.bytes);
  if (packed.empty()) return;
  data.bytes = std::string(packed);
  data.dictionary = dictionary;
}

void Informer::State::put(std::shared_ptr<Stored::Data> data) {
  if (dictionary) {
    pack(*data);
  } else if (options.packed && samples.size() < kSampleObjects) {
    samples.push_back(data);
    if (samples.size() == kSampleObjects) {
      std::vector<std::string_view> texts;
      texts.reserve(samples.size());
      for (const auto& sample : samples) texts.push_back(sample->bytes);
      dictionary = Dictionary::train(texts, kDictionaryBytes);
    }
  }
  data->bytes.shrink_to_fit();
  Entry after = data;
  Entry before;
  {
    std::unique_lock lock(mutex);
    const auto found = objects.find(data->key);
    if (found != objects.end()) {
      before = found->second;
      now.bytes -= before->bytes.size();
      objects.erase(found);
    }
    objects.emplace(after->key, after);
    now.bytes += after->bytes.size();
    now.objects = objects.size();
    index(before, after);
  }
  for (const auto& [id, handler] : handlers) {
    if (before) {
      if (handler.changed) handler.changed(Stored(before), Stored(after));
    } else if (handler.added) {
      handler.added(Stored(after));
    }
  }
  if (dictionary && !samples.empty()) {
    // Objects received before there was a dictionary are compressed into copies: readers may hold the originals.
    for (const auto& sample : std::exchange(samples, {})) {
      auto packed = std::make_shared<Stored::Data>(*sample);
      pack(*packed);
      std::unique_lock lock(mutex);
      const auto found = objects.find(sample->key);
      if (found == objects.end() || found->second != sample) continue;
      now.bytes += packed->bytes.size();
      now.bytes -= sample->bytes.size();
      index(sample, packed);
      objects.erase(found);
      objects.emplace(packed->key, packed);
    }
  }
}

void Informer::State::erase(std::string_view key) {
  Entry before;
  {
    std::unique_lock lock(mutex);
    const auto found = objects.find(key);
    if (found == objects.end()) return;
    before = found->second;
    objects.erase(found);
    now.bytes -= before->bytes.size();
    now.objects = objects.size();
    index(before, nullptr);
  }
  for (const auto& [id, handler] : handlers) {
    if (handler.removed) handler.removed(Stored(before));
  }
}

void Informer::State::index(const Entry& before, const Entry& after) {
  if (indexes.empty()) return;
  const Object old_object = before ? Stored(before).get() : Object(),
               new_object = after ? Stored(after).get() : Object();
  for (auto& [name, index] : indexes) {
    std::vector<std::string> values;
    if (old_object) index.values(old_object, values);
    for (const std::string& value : values) {
      const auto found = index.entries.find(value);
      if (found == index.entries.end()) continue;
      found->second.erase(before->key);
      if (found->second.empty()) index.entries.erase(found);
    }
    values.clear();
    if (new_object) index.values(new_object, values);
    for (const std::string& value : values) index.entries[value][after->key] = after;
  }
}

// ---------------------------------------------------------------------------------------------------- Watching

void Informer::State::heard(std::string_view resource_version) {
  std::unique_lock lock(mutex);
  contact = Clock::now();
  if (!resource_version.empty()) now.resource_version = resource_version;
  now.last_error.clear();
}

void Informer::State::failed(const Error& error) {
  std::unique_lock lock(mutex);
  now.last_error = error.message;
  ++now.failures;
}

void Informer::State::give_up(const Error& error) {
  log::error("informer stopped", {{"resource", resource.plural}, {"error", error.message}});
  std::unique_lock lock(mutex);
  now.failed = true;
  now.last_error = error.message;
  stopped = true;
}

Result<Unit> Informer::State::take(WatchEvent::Type type, Encoding from, std::string_view bytes, bool& end_of_initial) {
  Names names;
  Result<std::shared_ptr<Stored::Data>> data = stored_form(from, bytes, names);
  if (!data) return data.take_error();
  switch (type) {
    case WatchEvent::Type::Bookmark:
      end_of_initial = names.initial_events_end;
      break;
    case WatchEvent::Type::Deleted:
      erase(names.key);
      break;
    default: {
      if (listing) seen.insert(names.key);
      std::shared_lock lock(mutex);
      const auto found = objects.find(names.key);
      const bool same = found != objects.end() && found->second->resource_version == names.resource_version;
      lock.unlock();
      if (!same) put(std::move(*data));
    }
  }
  // During a list, the version is that of one object, not of a state to resume from.
  heard(listing && type != WatchEvent::Type::Bookmark ? std::string_view() : names.resource_version);
  return Unit{};
}

void Informer::State::end_of_list() {
  listing = false;
  list_done = true;
  std::vector<std::string> gone;
  for (const auto& [key, entry] : objects) {
    if (!seen.contains(std::string(key))) gone.emplace_back(key);
  }
  for (const std::string& key : gone) erase(key);
  seen = {};
  {
    std::unique_lock lock(mutex);
    now.synced = true;
    ++now.lists;
  }
  for (const std::coroutine_handle<> waiter : std::exchange(waiting_for_sync, {})) {
    core->loop.post([waiter] { waiter.resume(); });
  }
}

// Runs one watch until it ends. `initial`: starts with all existing objects.
Task<Result<Unit>> Informer::State::follow_watch(bool initial) {
  WatchOptions ask;
  ask.label_selector = options.label_selector;
  ask.field_selector = options.field_selector;
  ask.send_initial_events = initial;
  ask.shape = shape();
  if (!initial) ask.resource_version = now.resource_version;
  // Like client-go: watches end at different times, so that clients do not reconnect all at once.
  ask.timeout_seconds = static_cast<int64_t>(core->jitter(400));
  Result<Watch> opened = co_await open_watch(core, resource, options.space, std::move(ask), drops, encoding);
  if (!opened) co_return opened.take_error();
  if (stopped) co_return Unit{};
  watch = std::move(*opened);
  if (initial) {
    listing = true;
    list_done = false;
    seen.clear();
  }
  {
    std::unique_lock lock(mutex);
    ++now.watches;
    now.connected = true;
    contact = Clock::now();
  }
  Result<Unit> ended = Unit{};
  while (!stopped) {
    Result<std::optional<Watch::Raw>> raw = co_await watch->next_raw();
    if (!raw) {
      ended = raw.take_error();
      break;
    }
    if (!*raw) break;
    bool end_of_initial = false;
    Result<Unit> taken = take((*raw)->type, (*raw)->encoding, (*raw)->object, end_of_initial);
    if (!taken) {
      ended = taken.take_error();
      break;
    }
    if (end_of_initial && listing) end_of_list();
    delay = std::chrono::milliseconds(0);
  }
  watch.reset();
  if (std::exchange(listing, false) && ended)
    ended = Error{Reason::ServiceUnavailable, "the watch ended before its list did"};
  {
    std::unique_lock lock(mutex);
    now.connected = false;
  }
  co_return ended;
}

// For servers that do not support lists through watches.
Task<Result<Unit>> Informer::State::list_pages() {
  std::string token, version;
  listing = true;
  seen.clear();
  struct Listed {
    bool& listing;
    ~Listed() { listing = false; }
  } listed{listing};
  do {
    PreparedRequest sent;
    sent.target = core->path(resource, options.space);
    add_query(sent.target, "labelSelector", options.label_selector);
    add_query(sent.target, "fieldSelector", options.field_selector);
    add_query(sent.target, "limit", "500");
    add_query(sent.target, "continue", token);
    sent.accept = Core::accept(resource, *drops, encoding, shape(), Core::Asked::List);
    Result<Answer> answer = co_await Core::send(core, std::move(sent));
    if (!answer) co_return answer.take_error();
    const Encoding got = encoding_of(answer->response.header("content-type"));
    bool ignored = false;
    if (got == Encoding::Protobuf) {
      Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(answer->response.body);
      if (!envelope) co_return envelope.take_error();
      std::vector<std::string_view> items;
      token.clear();
      const bool good = for_each_bytes(envelope->message, [&](uint64_t number, std::string_view bytes) {
        if (number == 2) items.push_back(bytes);
        if (number != 1) return;
        for_each_bytes(bytes, [&](uint64_t field, std::string_view text) {
          if (field == 2) version = text;
          if (field == 3) token = text;
        });
      });
      if (!good) co_return bad_request("malformed list");
      std::string enveloped;
      for (const std::string_view item : items) {
        enveloped.clear();
        codec::write_envelope_head({form->api_version, form->kind}, item.size(), enveloped);
        enveloped += item;
        enveloped += codec::kEnvelopeTail;
        Result<Unit> taken = take(WatchEvent::Type::Added, got, enveloped, ignored);
        if (!taken) co_return taken.take_error();
      }
    } else {
      Result<Object> page = decode_answer(got, std::move(answer->response.body), *drops, Answered::List);
      if (!page) co_return page.take_error();
      version = page->root().text_at("metadata", "resourceVersion");
      token = page->root().text_at("metadata", "continue");
      for (const Value& item : page->root().items_at("items")) {
        // List items lack apiVersion and kind.
        Arena arena;
        Value whole = item;
        if (!item.has("kind")) {
          MapBuilder map(arena);
          map.add("kind", Value::string(form->kind));
          map.add("apiVersion", Value::string(form->api_version));
          for (const Member& member : item.members()) map.add(member.key, member.value);
          whole = map.build();
        }
        const std::string bytes = got == Encoding::Cbor ? codec::encode_cbor(whole) : codec::encode_json(whole);
        Result<Unit> taken = take(WatchEvent::Type::Added, got, bytes, ignored);
        if (!taken) co_return taken.take_error();
      }
    }
    if (stopped) co_return Unit{};
  } while (!token.empty());
  end_of_list();
  heard(version);
  co_return Unit{};
}

Task<void> Informer::State::run(std::shared_ptr<State> self) {
  State& me = *self;
  const Core::Use use(me.core);
  me.close_id = me.core->on_close([weak = self->weak_from_this()] {
    if (const std::shared_ptr<State> alive = weak.lock()) alive->stop();
  });
  bool from_nothing = true;
  if (!me.chosen) me.give_up(me.chosen.error());
  while (!me.stopped && !me.core->closing) {
    Result<Unit> ended = Unit{};
    if (from_nothing && !me.streaming) {
      ended = co_await me.list_pages();
      if (ended) from_nothing = false;
      if (ended && !me.stopped) ended = co_await me.follow_watch(false);
    } else {
      const Clock::time_point start = Clock::now();
      ended = co_await me.follow_watch(from_nothing);
      // Once the list is complete, the next watch resumes from it, however this one ended.
      if (me.list_done) from_nothing = false;
      // Limits the rate if watches keep ending immediately.
      if (ended && Clock::now() - start < std::chrono::seconds(1))
        me.delay = std::max(me.delay, std::chrono::milliseconds(500));
    }
    if (me.stopped || me.core->closing) break;
    if (!ended) {
      const Error& error = ended.error();
      me.failed(error);
      if (error.code == 406) {
        // The same request gets the same answer: the server knows the parameters, and refuses these fields.
        me.give_up(error);
      } else if (error.code == 410 || error.reason == Reason::Expired || error.reason == Reason::Gone) {
        from_nothing = true;
        me.list_done = false;
        me.delay = std::max(me.delay * 2, std::chrono::milliseconds(20));
      } else if (me.streaming && from_nothing && (error.code == 400 || error.code == 422)) {
        me.streaming = false;  // The server does not support lists through watches.
        continue;
      } else {
        me.delay = std::clamp(me.delay * 2, std::chrono::milliseconds(200), std::chrono::milliseconds(30'000));
        if (log::verbose(2)) {
          log::info("informer will retry", {{"resource", me.resource.plural}, {"error", error.message}});
        }
      }
    }
    if (me.delay.count() > 0) {
      co_await me.pause.wait(net::Millis(static_cast<int64_t>(me.core->jitter(static_cast<double>(me.delay.count())))));
    }
  }
  me.core->forget_close(me.close_id);
  me.stop();
  for (const std::coroutine_handle<> waiter : std::exchange(me.waiting_for_sync, {})) {
    me.core->loop.post([waiter] { waiter.resume(); });
  }
}

Task<void> Informer::State::resync(std::shared_ptr<State> self) {
  const Core::Use use(self->core);
  while (!self->stopped) {
    co_await self->resync_pause.wait(self->options.resync);
    if (self->stopped || !self->now.synced) continue;
    std::vector<Entry> all;
    for (const auto& [key, entry] : self->objects) all.push_back(entry);
    for (const Entry& entry : all) {
      for (const auto& [id, handler] : self->handlers) {
        if (handler.changed) handler.changed(Stored(entry), Stored(entry));
      }
    }
  }
}

void Informer::State::stop() {
  stopped = true;
  if (watch) watch->cancel();
  pause.wake();
  resync_pause.wake();
}

// ---------------------------------------------------------------------------------------------------- Public interface

std::shared_ptr<Informer> Informer::follow(const Client& client, Resource resource, InformerOptions options) {
  const std::shared_ptr<Core>& core = client.core();
  std::string name = resource.api_version() + " " + resource.plural + " " + options.space + " " +
                     options.label_selector + " " + options.field_selector + " " +
                     std::to_string(static_cast<int>(options.encoding.value_or(core->options.encoding))) +
                     (options.packed ? " packed" : " plain") + " " + std::to_string(options.resync.count()) +
                     (options.streaming_list ? " s" : " l") + (options.metadata_only ? " metadata" : "");
  for (const std::string& field : options.keep_fields) name += " +" + field;
  if (!options.drop_fields.inherits()) {
    name += " without";
    for (const std::string& field : options.drop_fields.fields()) name += " " + field;
  }
  std::lock_guard lock(core->informers_mutex);
  std::weak_ptr<void>& known = core->informers[name];
  if (std::shared_ptr<void> alive = known.lock()) {
    std::shared_ptr<Informer> shared = std::static_pointer_cast<Informer>(alive);
    if (!shared->status().failed) return shared;
  }
  auto state = std::make_shared<State>(core, std::move(resource), std::move(options));
  core->tasks.post([state] { return State::run(state); });
  if (state->options.resync.count() > 0) core->tasks.post([state] { return State::resync(state); });
  std::shared_ptr<Informer> informer(new Informer(std::move(state)));
  known = informer;
  return informer;
}

Informer::~Informer() {
  state_->core->loop.post([state = state_] { state->stop(); });
}

uint64_t Informer::add_handlers(Handlers handlers) {
  // Assigned here so that the handlers can be removed even before the loop has added them.
  static std::atomic<uint64_t> next{1};
  const uint64_t id = next++;
  state_->core->loop.post([state = state_, id, handlers = std::move(handlers)]() mutable {
    if (handlers.added) {
      std::vector<State::Entry> all;
      for (const auto& [key, entry] : state->objects) all.push_back(entry);
      for (const State::Entry& entry : all) handlers.added(Stored(entry));
    }
    state->handlers.emplace_back(id, std::move(handlers));
  });
  return id;
}

void Informer::remove_handlers(uint64_t id) {
  state_->core->loop.post([state = state_, id] {
    std::erase_if(state->handlers, [&](const auto& handler) { return handler.first == id; });
  });
}

void Informer::add_index(std::string name, IndexValues values) {
  std::unique_lock lock(state_->mutex);
  State::Index& index = state_->indexes[std::move(name)];
  index.values = std::move(values);
  index.entries.clear();
  for (const auto& [key, entry] : state_->objects) {
    std::vector<std::string> found;
    index.values(Stored(entry).get(), found);
    for (const std::string& value : found) index.entries[value][entry->key] = entry;
  }
}

std::optional<Stored> Informer::get(std::string_view key) const {
  std::shared_lock lock(state_->mutex);
  const auto found = state_->objects.find(key);
  if (found == state_->objects.end()) return std::nullopt;
  return Stored(found->second);
}

std::vector<Stored> Informer::list() const {
  std::shared_lock lock(state_->mutex);
  std::vector<Stored> all;
  all.reserve(state_->objects.size());
  for (const auto& [key, entry] : state_->objects) all.emplace_back(entry);
  return all;
}

std::vector<Stored> Informer::list(std::string_view index, std::string_view value) const {
  std::shared_lock lock(state_->mutex);
  std::vector<Stored> found;
  const auto known = state_->indexes.find(index);
  if (known == state_->indexes.end()) return found;
  const auto entries = known->second.entries.find(std::string(value));
  if (entries == known->second.entries.end()) return found;
  for (const auto& [key, entry] : entries->second) found.emplace_back(entry);
  return found;
}

namespace {

Task<Result<Unit>> until_synced(std::shared_ptr<Informer::State> state) {
  const Core::Use use(state->core);
  if (!state->core->loop.in_thread()) co_await resume_on(state->core->loop);
  struct Synced {
    Informer::State& state;
    bool await_ready() const noexcept { return state.now.synced || state.stopped; }
    void await_suspend(std::coroutine_handle<> h) { state.waiting_for_sync.push_back(h); }
    void await_resume() const noexcept {}
  };
  co_await Synced{*state};
  if (!state->now.synced) {
    const std::string why = state->now.failed ? ": " + state->now.last_error : "";
    co_return Error{state->now.failed ? Reason::NotAcceptable : Reason::ServiceUnavailable,
                    "the informer was stopped" + why};
  }
  co_return Unit{};
}

}  // namespace

Call<Result<Unit>> Informer::wait_synced() const { return {state_->core->loop, until_synced(state_)}; }

InformerStatus Informer::status() const {
  std::shared_lock lock(state_->mutex);
  InformerStatus status = state_->now;
  status.since_contact = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - state_->contact);
  return status;
}

}  // namespace holdfast::client
