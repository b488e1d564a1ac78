// A revisioned, watchable key-value store: one contract, two engines (rocks: embedded, the default; etcd: gRPC).
//
// Keys are kube-apiserver's (/registry/pods/ns/name), values are opaque bytes. Revisions are etcd's: one counter for
// the whole store; every transaction that changes something takes the next one, and all of its operations share it. A
// key's mod revision is the resourceVersion of the object. A store that was never written is at revision 1.
//
// Guarantees:
//   * A write returns Committed only when it is on disk (etcd: on a quorum of disks).
//   * Reads are linearizable: a read that starts after a write has completed sees that write.
//   * A watcher gets every change of its range once, in revision order, whole transactions at a time, with the values
//     before and after; if history no longer reaches back to its position, it gets Compacted and nothing else.
//
// Threading: every method may be called from any thread, and none blocks on disk or network unless documented.
// Every callback is called exactly once: on a thread of the store, or on the caller's before the method returns.
// Callbacks must not block and must not destroy the store; switch to your own executor (from_callback does).
//
// Lifetime: destroying a Store or a Watcher completes everything still pending with Closed, then returns. A
// Watcher may outlive its Store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace holdfast {

struct Revision {
  uint64_t value = 0;  // 0 means none, or "the latest" in a read request.
  auto operator<=>(const Revision&) const = default;
};

namespace store {

// Immutable bytes, shared by the writer, the store's recent history and every watcher.
using Blob = std::shared_ptr<const std::string>;
inline Blob make_blob(std::string bytes) { return std::make_shared<const std::string>(std::move(bytes)); }

// --- Errors ---------------------------------------------------------------------------------------------------------

enum class ErrorKind : uint8_t {
  Invalid,         // Bad request: an empty key, a NUL in a key, a duplicate key in one transaction.
  Compacted,       // The requested revision is older than the retained history.
  FutureRevision,  // The requested revision has not been reached yet.
  TooLarge,        // The request exceeds the engine's limit. Nothing was written.
  Unavailable,     // Definitely not written: no connection, disk full. Try again later.
  Timeout,         // No response in time, or the connection broke: a write may or may not have happened.
  Corrupt,         // Stored bytes contradict their checksums or each other.
  Closed,          // The store or the watcher was closed. A pending write may or may not have happened.
  LeaseGone,       // The lease behind a TTL has expired. The etcd engine then gets a new one, once.
  Internal,
};

struct StoreError {
  ErrorKind kind = ErrorKind::Internal;
  std::string message;  // Names the key, the revision, the file or the endpoint: for logs and for the operator.
  // Shown to API clients instead, if the message reveals where the server keeps its files. Empty if it does not.
  std::string public_message = {};
};

template <class T>
using StoreResult = Result<T, StoreError>;

template <class T>
using Callback = std::function<void(StoreResult<T>)>;

std::string_view to_string(ErrorKind kind);
// The error for an API client if nothing more specific is known about the request.
Error to_api_error(StoreError error);

// --- Reads ----------------------------------------------------------------------------------------------------------

struct KeyValue {
  std::string key;
  Blob value;            // Null if only keys were requested.
  Revision created;      // When the key was last created.
  Revision modified;     // The resourceVersion.
  bool expires = false;  // Written with a TTL. Only set by range().
};

struct Got {
  std::optional<KeyValue> item;
  Revision revision;  // The store's revision when it was read.
};

struct RangeRequest {
  std::string prefix;     // Every key with this prefix: end it with '/' for a resource.
  std::string from = {};  // Only keys >= from. After a page that ends with key K, continue at K + '\0'.
  uint64_t limit = 0;     // 0 means all.
  Revision at = {};       // 0 means the latest.
  bool keys_only = false;
  bool count = false;  // Also count all keys of the range, starting at `from`; costs a walk over them.
};

struct Page {
  std::vector<KeyValue> items;  // By key.
  Revision revision;            // Of the data: `at`, or the store's revision.
  bool more = false;            // There are keys after the last item.
  uint64_t count = 0;           // Only if requested.
};

// --- Writes ---------------------------------------------------------------------------------------------------------

struct Operation {
  enum class Kind : uint8_t {
    Create,  // The key must be absent.
    Update,  // The key must be at revision `expected`.
    Delete,  // Likewise.
    Check,   // The key must be at `expected` (0 for absent); changes nothing.
  };
  Kind kind = Kind::Create;
  std::string key;
  Revision expected = {};
  Blob value = nullptr;  // Create, Update.
  // If above 0, the key is deleted this long after the write, or up to a minute later.
  std::chrono::seconds ttl = {};
};

inline Operation create(std::string key, Blob value, std::chrono::seconds ttl = {}) {
  return {Operation::Kind::Create, std::move(key), {}, std::move(value), ttl};
}
inline Operation update(std::string key, Revision expected, Blob value, std::chrono::seconds ttl = {}) {
  return {Operation::Kind::Update, std::move(key), expected, std::move(value), ttl};
}
inline Operation remove(std::string key, Revision expected) {
  return {Operation::Kind::Delete, std::move(key), expected, nullptr, {}};
}
inline Operation check(std::string key, Revision expected) {
  return {Operation::Kind::Check, std::move(key), expected, nullptr, {}};
}

// All operations or none. Usually one. Each key may occur only once.
using Transaction = std::vector<Operation>;

struct Committed {
  Revision revision;  // Of the transaction: the new resourceVersion, for deletes too.
};

// Nothing was written because the condition of this operation (the first such) did not hold.
struct Conflict {
  size_t operation = 0;
  std::optional<KeyValue> current;  // The existing key; nullopt if it is absent.
  Revision revision;                // The store's revision at that time.
};

using WriteResult = std::variant<Committed, Conflict>;

// --- Watches --------------------------------------------------------------------------------------------------------

struct Event {
  enum class Type : uint8_t { Created, Updated, Deleted };
  Type type = Type::Created;
  std::string key;
  Revision revision;  // Of the change, including deletes.
  Revision created;   // The key's.
  Blob value;         // Null for Deleted.
  Blob previous;      // Null for Created.
  Revision previous_revision;
};
using EventRef = std::shared_ptr<const Event>;

struct WatchRequest {
  std::string prefix;  // "/registry/" for everything.
  // Changes with a greater revision. 0 means from now on (the first batch reports the revision of "now").
  Revision after = {};
};

// The changes of one or more whole transactions, and the watcher's position.
struct WatchBatch {
  std::vector<EventRef> events;  // Empty for a progress notification.
  Revision revision;             // Every change of the range up to here has been delivered, this batch included.
};

class Watcher {
 public:
  virtual ~Watcher() = default;

  // The next batch, once there is one. One call at a time. After an error every further call returns the same error;
  // after Compacted, list again and start a new watcher. A slow watcher is not closed: the store keeps nothing for it
  // beyond its normal history, until compaction passes it.
  virtual void next(Callback<WatchBatch> done) = 0;

  // Requests a progress notification: a batch without events, unless events with a newer revision come first.
  virtual void request_progress() = 0;
};

// --- The store ------------------------------------------------------------------------------------------------------

struct Status {
  std::string engine;   // "rocks", "etcd".
  std::string version;  // Of the engine.
  Revision current;
  Revision compacted;  // Reads at, and watches after, this revision still work. 0 if nothing was compacted, or unknown.
  uint64_t db_bytes = 0;
  // Whether request_progress() can be relied on for consistent reads. False on etcd before 3.4.31 and 3.5.13, where
  // progress may overtake events: read from the store there instead.
  bool progress_is_exact = true;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual void get(std::string key, Callback<Got> done) = 0;
  virtual void range(RangeRequest request, Callback<Page> done) = 0;
  // The newest revision, linearizable: a consistent read must not be older.
  virtual void current_revision(Callback<Revision> done) = 0;

  virtual void write(Transaction transaction, Callback<WriteResult> done) = 0;
  // Independent transactions, each with its own revision and result, submitted (and in the embedded store committed)
  // together. For bootstrap, copies and restores.
  virtual void write_all(std::vector<Transaction> transactions,
                         std::function<void(std::vector<StoreResult<WriteResult>>)> done) = 0;
  // Announces this many write() calls, from any thread: an engine that syncs to disk delays the first until the last
  // has arrived and commits them together. If a call does not come, the others are delayed by a few milliseconds.
  virtual void expect_writes(size_t) {}

  // Never fails: a watcher that cannot start reports that in its first next().
  virtual std::unique_ptr<Watcher> watch(WatchRequest request) = 0;

  // Compacts history before `revision`, which itself stays readable. Engines compact automatically, by age; this is for
  // tests and tools. Compacted or FutureRevision if there is nothing to do at that revision.
  virtual void compact(Revision revision, Callback<Unit> done) = 0;

  virtual void status(Callback<Status> done) = 0;
};

// The smallest key after every key with this prefix; empty if there is none.
std::string prefix_end(std::string_view prefix);

// --- Engines --------------------------------------------------------------------------------------------------------

struct RocksOptions {
  std::string directory;  // Created if missing.

  // History older than this is compacted. Continue tokens and watches work for about this long, as in Kubernetes.
  std::chrono::milliseconds history_age = std::chrono::minutes(5);
  // How often history age and expired TTLs are checked.
  std::chrono::milliseconds housekeeping_interval = std::chrono::seconds(1);

  // Size of one transaction; etcd's default request limit.
  uint64_t max_transaction_bytes = 1536 * 1024;
  uint64_t max_operations = 128;

  // Recent changes kept in memory for watchers; older ones are read from disk.
  uint64_t recent_bytes = 4 << 20;
  // RocksDB's own memory: two memtables of this size, and the cache of uncompressed blocks.
  uint64_t memtable_bytes = 8 << 20;
  uint64_t block_cache_bytes = 8 << 20;

  // If false, writes are acknowledged before they are on disk, and a power loss may lose the newest ones. For tests.
  bool fsync = true;

  const Clock* clock = nullptr;  // Null means the system clock.
};

// Opens or creates the store; may block on disk. Unavailable, naming the directory, if another process has it open.
// Corrupt, naming the file, if acknowledged data is damaged or missing. A torn tail that was never acknowledged is
// dropped.
StoreResult<std::unique_ptr<Store>> open_rocks(RocksOptions options);

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "http://host:2379", "https://...". Tried in turn.
  std::string ca_file = {};            // PEM; for https. Empty means the system's roots.
  std::string cert_file = {};          // Client certificate and key, PEM.
  std::string key_file = {};

  std::chrono::milliseconds request_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds keepalive_time = std::chrono::seconds(30);
  std::chrono::milliseconds keepalive_timeout = std::chrono::seconds(10);
  // Compaction shared with other API servers on the same etcd (compact_rev_key). 0 leaves it to them.
  std::chrono::milliseconds compaction_interval = std::chrono::minutes(5);

  // Path of the engine. Empty searches for libholdfast_etcd.so beside the program, in the install and build
  // directories, and in the library path.
  std::string module_path = {};
};

// Loads the etcd engine (a separate shared library, so that gRPC does not slow down every start) and connects; may
// block. Unavailable when no endpoint answers within request_timeout.
StoreResult<std::unique_ptr<Store>> open_etcd(EtcdOptions options);

// --- Copying and checking -------------------------------------------------------------------------------------------
// For the command line: these functions block.

// A file that contains the current state of a store, checksummed (docs/formats/store.md).
struct BackupFile {
  std::string path;
};
using Location = std::variant<RocksOptions, EtcdOptions, BackupFile>;

struct Moved {
  uint64_t items = 0;
  uint64_t bytes = 0;  // Keys and values.
  Revision revision;   // The source's revision of this snapshot.
};

struct CopyOptions {
  std::string prefix = "/";  // Restricts the copy, for an etcd shared with other users.
  // etcd does not report remaining lifetimes: expiring keys get this one.
  std::chrono::seconds ttl = std::chrono::hours(1);
  // Converts each value for the target. From an embedded store to an etcd: cache::kubernetes_value.
  std::function<StoreResult<std::string>(std::string_view key, std::string_view value)> convert = nullptr;
  std::function<void(const Moved& so_far)> progress = nullptr;  // Called occasionally.
};

// Copies the current state of every key. The source may be in use, even if it is an embedded store. The target must be
// empty (otherwise Invalid, naming it). Embedded stores and backups keep every revision; an etcd assigns new ones. A
// failed copy leaves nothing behind, except in an etcd.
StoreResult<Moved> copy_store(const Location& from, const Location& to, const CopyOptions& options = {});

struct Problem {
  std::string where;  // The key, the revision or the file.
  std::string what;
};

struct CheckReport {
  Moved checked;
  uint64_t versions = 0;  // Including history, for an embedded store.
  std::vector<Problem> problems;
  uint64_t more_problems = 0;  // In addition to those listed.
};

struct CheckOptions {
  std::string prefix = "/";
  // Why a value is invalid; nullopt if it is valid.
  std::function<std::optional<std::string>(std::string_view key, std::string_view value)> verify = nullptr;
  std::function<void(const Moved& so_far)> progress = nullptr;
};

// Reads everything and reports damage. Returns an error only if the store could not be read at all.
StoreResult<CheckReport> check_store(const Location& location, const CheckOptions& options = {});

}  // namespace store
}  // namespace holdfast
