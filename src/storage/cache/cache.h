// The watch cache of one resource: its current state, recent history, and its watchers. Reads and watches are served
// from here; the store is read once at start and then followed.
//
//   store's watch -> Codec::decode -> Entry -> index (copy-on-write tree) -> Snapshot -> lists
//                                        \---> Event -> window -> Watcher queues -> watches
//
// An Entry is one object at one revision: canonical body (the response form in the storage version, resourceVersion in
// it, managedFields not) and, separately, its ownership. Both belong to that revision and never change; an event, a
// snapshot and a page at revision R therefore always show the ownership as of R, and DELETED shows the last one.
//
// For any one watcher: events arrive in revision order, each once, none skipped; the revision of a bookmark is a safe
// place to resume from. A watcher that falls behind is closed once its buffered events have been sent, so that its
// client lists again; other watchers are not affected. If the store's watch is lost (compacted), the cache lists again,
// closes every watcher, and reports NotReady meanwhile: it never serves stale data as fresh.
//
// A stored value that cannot be decoded is an error of that object alone (Unreadable): reads report it, and everything
// else is served. When a value becomes unreadable, or an unreadable one is deleted, no event can show that: all
// watchers are closed and history starts over, so that their clients list again.
//
// Threading: every method may be called from any thread. Nothing here blocks; anything that takes time is a Task that
//   resumes on the given executor. Decoding and dispatch run on `Executors::feed`, one batch at a time.
// Lifetime: close() ends the feed and every watcher. Entries, snapshots, events and watchers may outlive the cache.
// Time: the cache has no timers of its own. Call tick() about every 100 ms; simulated time works the same way.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/task.h"
#include "ownership/ownership.h"
#include "store/store.h"

namespace holdfast::cache {

using store::Blob;

// --- Supplied by the resource ---------------------------------------------------------------------------------------

// One stored value, decoded. Views point into `body`, into the stored bytes, or into `memory`.
struct Decoded {
  std::string body;  // In canonical form.
  std::string uid;
  std::vector<std::pair<std::string_view, std::string_view>> labels;  // In any order.
  std::vector<std::string_view> fields;                               // Values, in the order of Codec::field_names().
  std::vector<ownership::ManagedEntry> managed;                       // metadata.managedFields, in its order.
  std::shared_ptr<void> memory;                                       // Owns what the views point to.
};

// How the objects of a resource are encoded in the store and in the cache. Built-in kinds (Protobuf) and custom
// resources (JSON) have one each. Pure functions of their arguments, called from several threads.
class Codec {
 public:
  virtual ~Codec() = default;

  // Stored bytes -> canonical body and the rest, normalised: defaults applied, storage version, `revision` set. An
  // error names the key; encrypted values (k8s:enc:) are rejected as such.
  virtual Result<Decoded> decode(std::string_view key, std::string_view stored, Revision revision) const = 0;

  // A canonical body (with any resourceVersion) and its managedFields -> the value to store.
  virtual Result<std::string> encode(std::string_view body, std::span<const ownership::ManagedEntry> managed) const = 0;
  // Like encode(), for a body that decode() is known to return unchanged, with these values of its selectable fields:
  // the codec need not verify that.
  virtual Result<std::string> encode_normal(std::string_view body, std::span<const ownership::ManagedEntry> managed,
                                            std::span<const std::string_view> fields) const {
    (void)fields;
    return encode(body, managed);
  }

  // The same body with another resourceVersion.
  virtual std::string with_revision(std::string_view body, Revision revision) const = 0;

  // The order of FieldsV1 members in this resource's bytes: Bytewise if an object is a plain JSON map.
  virtual ownership::MemberOrder member_order() const { return ownership::MemberOrder::Canonical; }
  // The selectable fields besides metadata.name and metadata.namespace, in a fixed order.
  virtual std::span<const std::string_view> field_names() const = 0;
  // Which of them have an index (pods: spec.nodeName), as positions in field_names().
  virtual std::span<const uint16_t> indexed_fields() const { return {}; }
};

struct AtRestOptions {
  bool fields_v2 = true;  // Gate FieldsV2AtRest. If off, FieldsV1 is written; both are read.
};
// The codec of the embedded store, wrapping the one for Kubernetes' format: values that it wrote itself enter the cache
// by copying, and field sets are stored as FieldsV2 (docs/formats/at_rest.md). Values that are not Protobuf differ only
// in their field sets.
std::shared_ptr<const Codec> embedded_codec(std::shared_ptr<const Codec> inner, AtRestOptions options);
// Converts a value of the embedded store to what kube-apiserver would have written, for copying to etcd. Other values
// are returned unchanged. The error says what is invalid.
Result<std::string> kubernetes_value(std::string_view embedded);

// --- Entries --------------------------------------------------------------------------------------------------------

class Bodies;     // Private: the bodies of one cache, compressed and counted.
struct LabelSet;  // Private: equal label sets are shared.
struct Packed;    // Private: one compressed body.

// The error for a stored value that cannot be decoded: StoreReadError, object not decodable revision=7: why.
Error undecodable(Revision revision, std::string_view why);

// One object at one revision. Immutable, reference counted; hold it in an EntryRef.
class Entry {
 public:
  std::string_view key() const;             // Without the resource's prefix: "namespace/name" or "name".
  std::string_view namespace_name() const;  // Empty if not namespaced.
  std::string_view name() const;
  Revision revision() const { return revision_; }
  std::string_view uid() const;

  // The canonical body. It may be compressed; Use::Hot keeps it uncompressed, for readers likely to read it again.
  enum class Use : uint8_t { Once, Hot };
  Blob body(Use use = Use::Once) const;
  uint32_t body_bytes() const { return body_bytes_; }  // Uncompressed size.
  // Size of the object's message including its owners (as FieldsV1), if the body is Protobuf; otherwise 0.
  uint32_t joined_bytes() const { return joined_bytes_; }

  // Prefetches body and ownership into the CPU cache, as far as they can be located without cache misses.
  void fetch() const;

  // As of this revision. The view is valid as long as the entry.
  ownership::Owners ownership() const;

  // The value of a label; nullopt if it is absent.
  std::optional<std::string_view> label(std::string_view key) const;
  // All labels; entries with equal labels share one set. Null if there are none.
  const LabelSet* labels() const { return labels_; }
  // The value of Codec::field_names()[position].
  std::string_view field(size_t position) const;

 private:
  friend class EntryRef;
  friend class Bodies;
  friend class BodyReader;
  Entry() = default;
  ~Entry() = default;
  static void destroy(Entry* entry);

  mutable std::atomic<uint32_t> references_{1};
  uint32_t body_bytes_ = 0;
  Revision revision_;
  Bodies* bodies_ = nullptr;
  const LabelSet* labels_ = nullptr;
  ownership::OwnersBlock* owners_ = nullptr;
  mutable Blob plain_;                            // Guarded by a lock of bodies_; null if only packed_ is set.
  mutable std::atomic<Packed*> packed_{nullptr};  // Changed under the same lock; null if only plain_ is set.
  uint32_t key_bytes_ = 0;
  uint32_t uid_bytes_ = 0;
  uint32_t joined_bytes_ = 0;
  uint16_t field_count_ = 0;
  mutable std::atomic<bool> used_{false};  // Since it was queued, for eviction by bodies_.
  // Followed by the end offsets of the fields, then key, uid and fields.
};

// Reads the bodies of many entries in turn, reusing one buffer.
class BodyReader {
 public:
  // The canonical body; valid until the next one is read.
  std::string_view read(const Entry& entry);

 private:
  friend class Bodies;
  Blob plain_;  // Keeps the body alive while it is read.
  std::unique_ptr<char[]> memory_;
  size_t memory_bytes_ = 0;
};

class EntryRef {
 public:
  EntryRef() = default;
  EntryRef(const EntryRef& other) : entry_(other.entry_) {
    if (entry_ != nullptr) entry_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  EntryRef(EntryRef&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  EntryRef& operator=(EntryRef other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~EntryRef() {
    if (entry_ != nullptr && entry_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) Entry::destroy(entry_);
  }

  explicit operator bool() const { return entry_ != nullptr; }
  const Entry& operator*() const { return *entry_; }
  const Entry* operator->() const { return entry_; }
  const Entry* get() const { return entry_; }
  bool operator==(const EntryRef& other) const { return entry_ == other.entry_; }

  // Takes over a reference held by the caller.
  static EntryRef adopt(Entry* entry) {
    EntryRef ref;
    ref.entry_ = entry;
    return ref;
  }
  Entry* release() { return std::exchange(entry_, nullptr); }
  // Adds a reference to an entry that is already referenced.
  static EntryRef share(const Entry& entry) {
    entry.references_.fetch_add(1, std::memory_order_relaxed);
    return adopt(const_cast<Entry*>(&entry));
  }

 private:
  Entry* entry_ = nullptr;
};

// --- Selectors ------------------------------------------------------------------------------------------------------

struct LabelRequirement {
  enum class Operator : uint8_t { Exists, Absent, In, NotIn, Greater, Less };  // In: =, ==, in. NotIn: !=, notin.
  std::string key;
  Operator op = Operator::Exists;
  std::vector<std::string> values;  // Greater, Less: one decimal integer.
};

struct FieldRequirement {
  static constexpr int kName = -1, kNamespace = -2;  // metadata.name, metadata.namespace.
  int field = kName;                                 // Otherwise a position in Codec::field_names().
  bool equal = true;
  std::string value;
};

// All requirements must hold. Empty matches everything.
struct Selector {
  std::vector<LabelRequirement> labels;
  std::vector<FieldRequirement> fields;

  bool empty() const { return labels.empty() && fields.empty(); }
  bool matches(const Entry& entry) const;
};

// --- Snapshots ------------------------------------------------------------------------------------------------------

struct Index;  // Private: copy-on-write ordered trees.

// A stored value that cannot be decoded.
struct Unreadable {
  std::string key;  // Without the resource's prefix.
  std::string why;  // Kubernetes' message: object not decodable revision=7: ...
};

struct ListRequest {
  std::string scope;  // "" for everything, "namespace/" for one namespace.
  Selector selector = {};
  std::string from = {};  // Only keys >= from (whole keys, scope included). Empty starts at the beginning.
  uint64_t limit = 0;     // Maximum number of matching entries; 0 means all.
};

struct ListPage {
  std::vector<EntryRef> entries;  // In bytewise key order.
  bool more = false;              // There are keys in scope after the last one examined ...
  std::string next = {};          // ... and this is where to continue (`from`).
  // Entries in scope from `next` on, ignoring the selector.
  uint64_t remaining = 0;
  // Values in the examined range that could not be decoded: they may or may not have matched.
  std::vector<Unreadable> unreadable = {};
};

// The whole resource as of one revision. Taking, copying and keeping one is cheap and does not block anyone.
class Snapshot {
 public:
  Revision revision() const { return revision_; }
  uint64_t count() const;
  EntryRef find(std::string_view key) const;
  // The value of this key, if it cannot be decoded. Valid as long as the snapshot.
  const Unreadable* find_unreadable(std::string_view key) const;
  bool has_unreadable() const;
  // Whether nothing changed between the two: a single comparison, regardless of size.
  bool same_objects(const Snapshot& other) const { return index_ == other.index_; }
  // Uses an index if the selector requires a value of an indexed field.
  ListPage list(const ListRequest& request) const;

 private:
  friend struct CacheState;
  friend struct WatcherState;
  std::shared_ptr<const Index> index_;
  Revision revision_;
};

// --- Events ---------------------------------------------------------------------------------------------------------

enum class EventType : uint8_t { Added, Modified, Deleted, Bookmark };

class Event;  // Private: one change, shared by all watchers, with its rendered forms.

// One event as delivered to one watcher.
class Delivery {
 public:
  EventType type = EventType::Bookmark;
  Revision revision;  // Of the change; of the object for initial events; for bookmarks, a safe revision to resume from.
  bool initial_events_end = false;  // Only for bookmarks: the initial state is complete.

  // Null for bookmarks. For Deleted, the last state that the watcher saw, with the resourceVersion of the change.
  const EntryRef& object() const;

  // The serialized event. `form` identifies everything the bytes depend on besides event and type (format, version,
  // drop set, table options ...): the first watcher renders, all others share the result. Initial events belong to one
  // watcher and are rendered each time.
  Blob render(std::string_view form, const std::function<std::string(const Delivery&)>& make) const;

 private:
  friend struct CacheState;
  friend struct WatcherState;
  std::shared_ptr<const Event> event_;
  EntryRef object_;  // If different from the event's object.
};

struct WatchRequest {
  std::string scope;  // "" for everything, "namespace/" for one namespace.
  Selector selector = {};

  enum class Start : uint8_t {
    After,    // Changes after `revision`, which may be in the future: nothing up to it is delivered.
    Now,      // Changes after the cache's current revision.
    Initial,  // Added for every existing object, then changes.
  };
  Start start = Start::Now;
  Revision revision = {};

  bool bookmarks = false;
  // With Initial and bookmarks: send a bookmark with initial_events_end after the initial state.
  bool initial_events_bookmark = false;
  // When the client will be disconnected; the last bookmark comes 2 s before. Never by default.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct CacheState;    // Private.
struct WatcherState;  // Private.

// Watches one resource. Movable, not copyable; destroying it ends the watch.
class Watcher {
 public:
  Watcher(Watcher&&) noexcept;
  Watcher& operator=(Watcher&&) noexcept;
  ~Watcher();

  // co_await watcher.next(executor, out) replaces `out` with the available events, at most `max`, in order; waits if
  // there are none. Empty means that the watch has ended (cancelled, too slow, the cache listed again or was closed)
  // and the client is to be disconnected without an ERROR. One call at a time; the watcher must not be moved during it.
  // Not a coroutine, and `out` is reused, because thousands of watchers do this for every event.
  struct Next {
    WatcherState& state;
    Executor& executor;
    std::vector<Delivery>& out;
    size_t max;
    bool await_ready();
    bool await_suspend(std::coroutine_handle<> follower);
    void await_resume();
  };
  Next next(Executor& executor, std::vector<Delivery>& out, size_t max = 256) { return {*state_, executor, out, max}; }
  // Whether next() would return immediately. If not, flush before waiting.
  bool pending() const;
  // Ends the watch from any thread: queued events are no longer delivered.
  void cancel();

  enum class End : uint8_t { Open, Cancelled, TooSlow, Relisted, Closed };
  End end() const;

 private:
  friend struct CacheState;
  explicit Watcher(std::shared_ptr<WatcherState> state);
  std::shared_ptr<WatcherState> state_;
};

// --- Accounting -----------------------------------------------------------------------------------------------------

// Exact bytes by category, as requested from the allocator.
struct Usage {
  uint64_t entries = 0;            // Objects in the index.
  uint64_t unreadable = 0;         // Stored values that cannot be decoded.
  uint64_t entry_bytes = 0;        // Keys, uids, fields and the rest of all live entries, including history.
  uint64_t label_bytes = 0;        // Distinct label sets.
  uint64_t index_bytes = 0;        // Live tree nodes, including snapshots.
  uint64_t body_raw_bytes = 0;     // Uncompressed size of all live bodies.
  uint64_t body_plain_bytes = 0;   // Stored plain ...
  uint64_t body_packed_bytes = 0;  // ... and compressed.
  uint64_t dictionary_bytes = 0;
  uint64_t event_bytes = 0;  // The window, excluding entries and renderings.
  uint64_t events = 0;
  uint64_t rendered_bytes = 0;  // Cached serializations.
  uint64_t snapshots = 0;       // Retained snapshots.
  uint64_t watchers = 0;
  // Ownership is counted by the pool: see ownership::Pool::usage().

  uint64_t total_bytes() const {
    return entry_bytes + label_bytes + index_bytes + body_plain_bytes + body_packed_bytes + dictionary_bytes +
           event_bytes + rendered_bytes;
  }
};

struct Counters {
  uint64_t events = 0;           // Changes since start.
  uint64_t renders = 0;          // Forms rendered ...
  uint64_t render_hits = 0;      // ... and shared.
  uint64_t decoded = 0;          // Stored values decoded.
  uint64_t relists = 0;          // Excluding the first list.
  uint64_t slow_watchers = 0;    // Closed for being too slow.
  uint64_t unpacked = 0;         // Bodies decompressed for a reader.
  uint64_t dictionaries = 0;     // Trained.
  uint64_t store_fallbacks = 0;  // Reads that fell back to the store.
};

// --- The cache ------------------------------------------------------------------------------------------------------

struct Options {
  std::string prefix;      // "/registry/pods/", with the slash.
  bool namespaced = true;  // Keys after the prefix are "namespace/name".
  // Name in error messages: "pods", "widgets.example.com".
  std::string resource;

  // Retained changes: at least history_events regardless of age while the resource has objects, and more while they are
  // younger than history_age, up to max_history_events. kube-apiserver promises 75 s at moderate rates.
  uint32_t history_events = 100;
  uint32_t max_history_events = 102400;
  std::chrono::milliseconds history_age = std::chrono::seconds(75);
  // A snapshot of the index is kept this often; states in between are reconstructed from the next one by undoing
  // events.
  uint32_t events_per_snapshot = 1024;
  // Most recently used snapshots requested by revision (continue, Exact).
  uint32_t kept_exact_snapshots = 8;

  // A watcher this far behind is closed. While it reads its initial state it may be a whole window behind.
  uint32_t watcher_queue_events = 1024;
  std::chrono::milliseconds bookmark_interval = std::chrono::minutes(1);

  // How long a read waits for a revision before it fails as too large or falls back to the store.
  std::chrono::milliseconds wait_timeout = std::chrono::seconds(3);
  std::chrono::milliseconds progress_interval = std::chrono::milliseconds(100);
  std::chrono::milliseconds compaction_poll_interval = std::chrono::seconds(15);
  // Backoff after a failure of the feed, doubling up to the maximum.
  std::chrono::milliseconds min_retry_delay = std::chrono::milliseconds(100);
  std::chrono::milliseconds max_retry_delay = std::chrono::seconds(5);

  // Bodies beyond this are compressed against a dictionary of the resource; the most recently used ones stay
  // uncompressed.
  uint64_t plain_body_bytes = 4 << 20;
  bool compress_bodies = true;
  uint32_t dictionary_bytes = 112 << 10;
  uint32_t dictionary_samples = 1000;
  // Serializations cached with events for later watchers; the oldest are dropped first.
  uint64_t rendered_bytes = 8 << 20;

  // Page size of the first list; the next page is read while the values of this one are decoded in `load_parallelism`
  // pieces of background work.
  uint32_t list_page = 500;
  uint32_t load_parallelism = 2;
};

// Where work runs. `background` gets long-running work (training dictionaries, decoding long lists) and should have its
// own threads; both may be the same in tests.
struct Executors {
  Executor* feed = nullptr;
  Executor* background = nullptr;
};

class Cache {
 public:
  // All must outlive close().
  Cache(store::Store& store, std::shared_ptr<const Codec> codec, ownership::Pool& pool, Executors executors,
        Options options, const Clock& clock = system_clock());
  ~Cache();  // Closes the cache if close() was not called.
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Starts listing and following the store; returns immediately.
  void start();
  // Ends the feed and all watchers; resumes on `executor` when no work of the cache is left. Call once.
  Task<void> close(Executor& executor);
  // Ends all watches, including those that start from now on, once their queued events have been delivered: another
  // cache takes over. Reads continue to work.
  void end_watches();
  // Time-driven work: bookmarks, timeouts, retries, ageing.
  void tick();

  bool ready() const;
  // The revision up to which the cache has followed the store.
  Revision revision() const;
  // Why the cache is not ready; nullopt if it is.
  std::optional<Error> last_error() const;
  const Codec& codec() const;
  const Options& options() const;

  // --- Reads. Fail with TooManyRequests and a growing retry_after_seconds if the cache is not ready. ---

  // The cache's current state (resourceVersion=0).
  Result<Snapshot> snapshot() const;
  // At least `revision`: waits for it; after wait_timeout fails with the Timeout of a too large resourceVersion. Reads
  // from the store if the engine's progress notifications are not exact.
  Task<Result<Snapshot>> at_least(Revision revision, Executor& executor);
  // As fresh as the store (resourceVersion unset). Falls back to reading the store if the cache does not catch up in
  // time, is not ready, or the engine's progress notifications are not exact.
  Task<Result<Snapshot>> consistent(Executor& executor);
  // Exactly `revision`: from a retained state, otherwise from the store. Expired if that is too old.
  Task<Result<Snapshot>> exactly(Revision revision, Executor& executor);
  // One object, as fresh as the store (GET with resourceVersion unset; the read before a write). The entry is null if
  // not found, and the cache's own if that has the same revision. StoreReadError if it cannot be decoded.
  struct Latest {
    EntryRef entry;
    Revision revision;  // Of the store when it was read.
  };
  Task<Result<Latest>> latest(std::string key, Executor& executor);

  // An entry of this resource that did not come from the store's watch, such as one that was just written.
  Result<EntryRef> make_entry(std::string_view key, std::string_view stored, Revision revision) const;

  // --- Watches ---

  // Start::Initial waits until the cache has reached `revision` (0 does not wait); Timeout as above. Start::After fails
  // with Expired, "too old resource version: <requested> (<oldest>)", if history does not reach back.
  Task<Result<Watcher>> watch(WatchRequest request, Executor& executor);
  // The revision that a watch or list must reach to be consistent.
  Task<Result<Revision>> store_revision(Executor& executor);

  Usage usage() const;
  Counters counters() const;

 private:
  std::shared_ptr<CacheState> state_;
};

// Number of caches in this process, including closed ones that a reader or a watcher still uses.
int64_t cache_count();

}  // namespace holdfast::cache
