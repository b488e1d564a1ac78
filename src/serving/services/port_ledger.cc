#include "services/port_ledger.h"

#include <algorithm>
#include <functional>
#include <mutex>

#include "base/api_error.h"
#include "base/base64.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "types/types.h"

namespace holdfast::services {
namespace {

// A round is lost when another server wins the compare-and-swap; this many in a row are not a coincidence.
constexpr int kMaxRounds = 100;

Error store_trouble(std::string_view key, const store::StoreError& cause) {
  Error error = store::to_api_error(cause);
  error.message = "the ledger of node ports (" + std::string(key) + ") cannot be changed: " + error.message;
  return error;
}

const types::Type& ledger_type() {
  static const types::Type& type = *types::find_type("core/v1.RangeAllocation");
  return type;
}

struct Ledger {
  Value object;
  PortBitmap taken;
};

std::optional<int32_t> parse_port(std::string_view text) {
  const std::optional<int32_t> port = parse_number<int32_t>(text);
  return port && *port >= 0 && *port <= 65535 ? port : std::nullopt;
}

// "30000-32767"
std::optional<std::pair<int32_t, int32_t>> parse_range(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const std::optional<int32_t> first = parse_port(text.substr(0, dash));
  const std::optional<int32_t> last = parse_port(text.substr(std::min(dash + 1, text.size())));
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

Result<Ledger> decode(Arena& arena, std::string_view key, std::string_view stored) {
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(stored);
  if (!envelope) return corrupt_object(key, envelope.error().message);
  Result<Value> object = codec::decode_protobuf(arena, ledger_type(), envelope->message, envelope->type);
  if (!object) return corrupt_object(key, object.error().message);
  const auto range = parse_range(object->text_at("range"));
  if (!range) return corrupt_object(key, "\"" + std::string(object->text_at("range")) + "\" is not a range of ports");
  const std::optional<std::string> data = base64_decode(object->text_at("data"));
  if (!data) return corrupt_object(key, "its data is not valid");
  return Ledger{*object, PortBitmap::from_bytes(range->first, range->second, *data)};
}

// Keeps the metadata of `before`, which is null if there was no ledger.
Result<store::Blob> encode(Arena& arena, const Value& before, const PortBitmap& taken) {
  MapBuilder object(arena);
  object.add("kind", Value::string("RangeAllocation"));
  object.add("apiVersion", Value::string("v1"));
  const Value* metadata = before.is_map() ? before.find("metadata") : nullptr;
  object.add("metadata", metadata == nullptr ? Value::empty_map() : *metadata);
  object.add("range", Value::string(arena, std::to_string(taken.first()) + "-" + std::to_string(taken.last())));
  object.add("data", Value::string(arena, base64_encode(taken.bytes())));
  std::string bytes;
  Result<Unit> encoded = codec::encode_enveloped(ledger_type(), object.build(), bytes);
  if (!encoded) return encoded.take_error();
  return store::make_blob(std::move(bytes));
}

}  // namespace

struct PortLedger::State : std::enable_shared_from_this<PortLedger::State> {
  State(store::Store& the_store, std::string the_key, int32_t first, int32_t last)
      : store(the_store), key(std::move(the_key)), first_port(first), last_port(last) {}

  using Answer = Result<std::optional<AllocatedPorts>>;
  struct Change {
    std::vector<int32_t> wanted, released;
    bool keeps = true;  // False for look(): the ledger is not written.
    std::function<void(Answer)> done;
  };
  // A batch of changes in progress. Owned by the caller that set `busy`.
  struct Round {
    std::vector<Change> changes;
    int lost = 0;
    bool fresh = false;  // `known` was read during this round.
  };
  struct Known {
    store::Blob value;
    Revision revision;
  };

  void add(Change change);
  void start();
  void attempt(std::shared_ptr<Round> round);
  void read_again(std::shared_ptr<Round> round);
  void write(std::shared_ptr<Round> round, std::vector<AllocatedPorts> results, store::Blob next);
  void answer(Round& round, const std::function<Answer(size_t)>& result);
  void fail(Round& round, const Error& error) {
    known.reset();
    answer(round, [&](size_t) { return Answer(error); });
  }

  store::Store& store;
  const std::string key;
  const int32_t first_port, last_port;

  std::mutex mutex;
  std::vector<Change> waiting;  // Guarded by the mutex.
  bool busy = false;            // Guarded by the mutex.
  // Owned by the current round.
  std::optional<Known> known;  // The ledger as last seen.
  std::mt19937 random{std::random_device{}()};
};

void PortLedger::State::add(Change change) {
  {
    const std::lock_guard lock(mutex);
    waiting.push_back(std::move(change));
  }
  start();
}

void PortLedger::State::start() {
  auto round = std::make_shared<Round>();
  {
    const std::lock_guard lock(mutex);
    if (busy || waiting.empty()) return;
    busy = true;
    round->changes = std::exchange(waiting, {});
  }
  attempt(std::move(round));
}

void PortLedger::State::attempt(std::shared_ptr<Round> round) {
  if (!known) return read_again(std::move(round));
  Arena arena;
  Result<Ledger> ledger = decode(arena, key, *known->value);
  if (!ledger) return fail(*round, ledger.error());
  if (ledger->taken.first() != first_port || ledger->taken.last() != last_port) {
    return fail(*round, internal_error("failed to allocate a nodePort: the provided range does not match the current "
                                       "range"));
  }
  PortBitmap next = ledger->taken;
  std::vector<AllocatedPorts> results;
  for (const Change& change : round->changes) {
    PortBitmap trial = next;
    PortBitmap& bitmap = change.keeps ? next : trial;
    for (const int32_t port : change.released) bitmap.remove(port);
    results.push_back(take_ports(bitmap, change.wanted, random));
  }
  if (next == ledger->taken) {
    // `known` may be stale: rejected ports may be free by now, and released ones may have been allocated.
    if (!round->fresh) return read_again(std::move(round));
    return answer(*round, [&](size_t i) { return Answer(std::move(results[i])); });
  }
  Result<store::Blob> bytes = encode(arena, ledger->object, next);
  if (!bytes) return fail(*round, bytes.error());
  write(std::move(round), std::move(results), std::move(*bytes));
}

void PortLedger::State::read_again(std::shared_ptr<Round> round) {
  store.get(key, [self = shared_from_this(), round](store::StoreResult<store::Got> got) {
    if (!got) return self->fail(*round, store_trouble(self->key, got.error()));
    if (!got->item) {
      self->known.reset();
      return self->answer(*round, [](size_t) { return Answer(std::nullopt); });
    }
    self->known = Known{std::move(got->item->value), got->item->modified};
    round->fresh = true;
    self->attempt(round);
  });
}

void PortLedger::State::write(std::shared_ptr<Round> round, std::vector<AllocatedPorts> results, store::Blob next) {
  store.write({store::update(key, known->revision, next)},
              [self = shared_from_this(), round, results = std::move(results),
               next](store::StoreResult<store::WriteResult> written) mutable {
                if (!written) return self->fail(*round, store_trouble(self->key, written.error()));
                if (const auto* committed = std::get_if<store::Committed>(&*written)) {
                  self->known = Known{std::move(next), committed->revision};
                  return self->answer(*round, [&](size_t i) { return Answer(std::move(results[i])); });
                }
                auto& conflict = std::get<store::Conflict>(*written);
                if (++round->lost == kMaxRounds) {
                  Error error =
                      store_trouble(self->key, {store::ErrorKind::Unavailable, "other servers change it all the time"});
                  return self->fail(*round, error);
                }
                self->known.reset();
                if (conflict.current && conflict.current->value != nullptr) {
                  self->known = Known{std::move(conflict.current->value), conflict.current->modified};
                  round->fresh = true;
                }
                self->attempt(round);
              });
}

void PortLedger::State::answer(Round& round, const std::function<Answer(size_t)>& result) {
  const std::vector<Change> changes = std::move(round.changes);
  {
    const std::lock_guard lock(mutex);
    busy = false;
  }
  // The next round only waits for the store, not for the callbacks invoked here.
  start();
  for (size_t i = 0; i < changes.size(); ++i) changes[i].done(result(i));
}

PortLedger::PortLedger(store::Store& store, std::string key, int32_t first_port, int32_t last_port)
    : state_(std::make_shared<State>(store, std::move(key), first_port, last_port)) {}

Task<Result<std::optional<AllocatedPorts>>> PortLedger::claim(std::vector<int32_t> wanted, Executor& executor) {
  co_return co_await from_callback<State::Answer>(executor, [this, &wanted](auto done) {
    state_->add({.wanted = std::move(wanted), .released = {}, .done = std::move(done)});
  });
}

Task<Result<std::optional<AllocatedPorts>>> PortLedger::look(std::vector<int32_t> wanted, Executor& executor) {
  co_return co_await from_callback<State::Answer>(executor, [this, &wanted](auto done) {
    state_->add({.wanted = std::move(wanted), .released = {}, .keeps = false, .done = std::move(done)});
  });
}

Task<Result<Unit>> PortLedger::release(std::vector<int32_t> ports, Executor& executor) {
  State::Answer answer = co_await from_callback<State::Answer>(executor, [this, &ports](auto done) {
    state_->add({.wanted = {}, .released = std::move(ports), .done = std::move(done)});
  });
  if (!answer) co_return answer.take_error();
  co_return Unit{};
}

Task<Result<PortLedger::Stored>> PortLedger::read(Executor& executor) {
  const std::shared_ptr<State> state = state_;
  store::StoreResult<store::Got> got = co_await from_callback<store::StoreResult<store::Got>>(
      executor, [&state](auto done) { state->store.get(state->key, std::move(done)); });
  if (!got) co_return store_trouble(state->key, got.error());
  Stored stored;
  if (!got->item) co_return stored;
  Arena arena;
  Result<Ledger> ledger = decode(arena, state->key, *got->item->value);
  if (!ledger) co_return ledger.take_error();
  stored.taken = std::move(ledger->taken);
  stored.revision = got->item->modified;
  co_return stored;
}

Task<Result<bool>> PortLedger::replace(Stored read, PortBitmap next, Executor& executor) {
  const std::shared_ptr<State> state = state_;
  Arena arena;
  Result<store::Blob> bytes = encode(arena, Value(), next);
  if (!bytes) co_return bytes.take_error();
  const store::Transaction change = {read.taken ? store::update(state->key, read.revision, std::move(*bytes))
                                                : store::create(state->key, std::move(*bytes))};
  store::StoreResult<store::WriteResult> written = co_await from_callback<store::StoreResult<store::WriteResult>>(
      executor, [&](auto done) { state->store.write(change, std::move(done)); });
  if (!written) co_return store_trouble(state->key, written.error());
  co_return std::holds_alternative<store::Committed>(*written);
}

LeakedPorts::Rebuilt LeakedPorts::rebuild(const std::optional<PortBitmap>& stored, const PortBitmap& used) const {
  Rebuilt rebuilt{.next = used, .missing = {}, .freed = {}, .sightings = {}};
  for (const int32_t port : used.ports()) {
    if (stored && !stored->has(port)) rebuilt.missing.push_back(port);
  }
  if (!stored) return rebuilt;
  for (const int32_t port : stored->ports()) {
    if (used.has(port)) continue;
    const auto known = sightings_.find(port);
    const int sightings = (known == sightings_.end() ? 0 : known->second) + 1;
    if (sightings >= kSightings) {
      rebuilt.freed.push_back(port);
      continue;
    }
    rebuilt.sightings[port] = sightings;
    rebuilt.next.add(port);
  }
  return rebuilt;
}

}  // namespace holdfast::services
