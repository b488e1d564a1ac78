// The embedded engine: one thread commits, in groups; readers access the database directly.
//
//   write() -> queue_ -> committer: take all that are queued, check each against the newest state, assign revisions,
//                        one WriteBatch, one sync -> Feed (watchers) -> callbacks
//
// While one group is synced the next one accumulates, so the number of writes per sync adapts to the load.
#include <rocksdb/write_batch.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "base/varint.h"
#include "store/embedded.h"
#include "store/feed.h"
#include "store/rocks_db.h"
#include "store/rocks_format.h"
#include "store/rules.h"

namespace holdfast::store::rocks {
namespace {

using std::chrono::steady_clock;

// A larger group gains nothing and delays its first writer.
constexpr size_t kGroupTransactions = 4096;
constexpr uint64_t kGroupBytes = 4 << 20;
// Log entries compacted with one group, in addition to twice as many as it adds: few enough to be unnoticeable, both to
// writers and to a server that starts after a long time. Without writes there is a pause between two such steps.
constexpr size_t kCompactionStep = 1024;
constexpr auto kBacklogPause = std::chrono::milliseconds(50);
constexpr size_t kExpiryStep = 1024;
// Limits of one read of history for a watcher that is behind.
constexpr size_t kHistoryEvents = 512;
constexpr uint64_t kHistoryBytes = 1 << 20;
constexpr size_t kHistoryEntries = 8192;
constexpr uint64_t kDiskCheckBytes = 4 << 20;
// Well above the time that a busy machine takes to prepare one of many writes.
constexpr auto kExpectedWriteWait = std::chrono::milliseconds(50);
constexpr auto kReopenInterval = std::chrono::seconds(1);

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

int64_t to_ms(UnixTime time) { return time.seconds * 1000 + time.nanos / 1'000'000; }

// Deletes free space, so they are allowed when the disk is full.
bool only_deletes(const Transaction& transaction) {
  return std::ranges::none_of(transaction, [](const Operation& operation) { return operation.value != nullptr; });
}

StoreError damaged(std::string_view key) {
  return {ErrorKind::Corrupt, std::string(key) + ": the stored record cannot be read"};
}

using Answers = std::function<void(std::vector<StoreResult<WriteResult>>)>;

struct Submission {
  std::vector<Transaction> transactions;
  Answers done;
  std::vector<std::string> expiries = {};  // Records to delete with the transaction of the same index.
  struct Moved {
    std::string from, to, value;
  };
  std::vector<Moved> moved = {};  // Expiry records to move, because the clock was set back.
};

class RocksStore final : public Store {
 public:
  RocksStore(RocksOptions options, rocksdb::Env* env, Database database)
      : options_(std::move(options)),
        limits_{options_.max_transaction_bytes, options_.max_operations},
        clock_(options_.clock ? *options_.clock : system_clock()),
        env_(env),
        database_(std::move(database)),
        feed_(std::make_shared<Feed>(database_.current, database_.compacted, options_.recent_bytes,
                                     [this](std::string prefix, Revision after, Callback<Feed::History> done) {
                                       readers_.post([this, prefix = std::move(prefix), after, done = std::move(done)] {
                                         done(read_history(prefix, after));
                                       });
                                     })),
        readers_(2),
        committer_([this] { commit_loop(); }) {}

  ~RocksStore() override {
    {
      std::lock_guard lock(queue_mutex_);
      stopping_ = true;
    }
    queue_wake_.notify_all();
    committer_.join();
    feed_->close();
    // ~ThreadPool runs the posted reads; after that nothing uses the database.
  }

  void get(std::string key, Callback<Got> done) override {
    Revision current = feed_->current();
    if (EventRef event = feed_->recent(key)) {
      Got got{std::nullopt, std::max(current, event->revision)};
      if (event->type != Event::Type::Deleted) {
        got.item = KeyValue{std::move(key), event->value, event->created, event->revision};
      }
      return done(std::move(got));
    }
    rocksdb::ReadOptions memory_only = reading_one_key();
    memory_only.read_tier = rocksdb::kBlockCacheTier;
    if (std::optional<StoreResult<Got>> got = try_get(key, memory_only)) return done(std::move(*got));
    readers_.post([this, key = std::move(key), done = std::move(done)] { done(*try_get(key, reading_one_key())); });
  }

  void range(RangeRequest request, Callback<Page> done) override {
    readers_.post([this, request = std::move(request), done = std::move(done)] { done(read_range(request)); });
  }

  void current_revision(Callback<Revision> done) override { done(feed_->current()); }

  void write(Transaction transaction, Callback<WriteResult> done) override {
    std::vector<Transaction> one;
    one.push_back(std::move(transaction));
    write_all(std::move(one), [done = std::move(done)](auto results) { done(std::move(results.front())); });
  }

  void write_all(std::vector<Transaction> transactions, Answers done) override {
    if (transactions.empty()) return done({});
    submit({std::move(transactions), std::move(done)});
  }

  void expect_writes(size_t count) override {
    std::lock_guard lock(queue_mutex_);
    expected_ += count;
    expected_until_ = steady_clock::now() + kExpectedWriteWait;
  }

  std::unique_ptr<Watcher> watch(WatchRequest request) override { return feed_->watch(std::move(request)); }

  void compact(Revision revision, Callback<Unit> done) override {
    {
      std::lock_guard lock(queue_mutex_);
      if (!stopping_) {
        compactions_.emplace_back(revision, std::move(done));
        queue_wake_.notify_all();
        return;
      }
    }
    done(closed_error());
  }

  void status(Callback<Status> done) override {
    Status status{"rocks", "RocksDB " + rocksdb::GetRocksVersionAsString(), feed_->current(), feed_->compacted(), 0,
                  true};
    {
      std::shared_lock lock(database_mutex_);
      if (database_.db) {
        uint64_t files = 0, memory = 0;
        database_.db->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &files);
        database_.db->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &memory);
        status.db_bytes = files + memory;
      }
    }
    done(std::move(status));
  }

 private:
  // ---- Reading ----

  StoreError not_open() const {
    std::lock_guard lock(failure_mutex_);
    return {ErrorKind::Unavailable, options_.directory + ": " + failure_.message, failure_.public_message};
  }

  // nullopt if the result is not available in the requested tier.
  std::optional<StoreResult<Got>> try_get(const std::string& key, const rocksdb::ReadOptions& options) {
    while (true) {
      Revision at = feed_->current();
      std::optional<StoreResult<Got>> result = get_at(key, at, options);
      // The version at `at` may have been compacted during the read; then there is a newer revision to read at.
      if (feed_->compacted() <= at) return result;
    }
  }

  std::optional<StoreResult<Got>> get_at(const std::string& key, Revision at, const rocksdb::ReadOptions& options) {
    std::shared_lock lock(database_mutex_);
    if (!database_.db) return not_open();
    std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(options));
    it->Seek(slice(version_key(key, at)));
    if (it->status().IsIncomplete()) return std::nullopt;
    if (!it->status().ok()) return from_rocks(it->status(), key);
    Got got{std::nullopt, at};
    if (it->Valid()) {
      std::optional<VersionKey> found = parse_version_key(it->key().ToStringView());
      if (found && found->key == key) {
        std::optional<Version> version = parse_version(it->value().ToStringView());
        if (!version) return damaged(key);
        if (!version->deleted) {
          got.item = KeyValue{key, make_blob(std::string(version->value)), version->created, found->revision};
        }
      }
    }
    return got;
  }

  StoreResult<Page> read_range(const RangeRequest& request) {
    while (true) {
      Revision current = feed_->current();
      Revision at = request.at == Revision{} ? current : request.at;
      if (at > current) return future_error(at, current);
      StoreResult<Page> page = read_range_at(request, at);
      Revision compacted = feed_->compacted();
      if (compacted <= at || (!page && page.error().kind == ErrorKind::Unavailable)) return page;
      // Compacted before or during the read. A read of the latest state can be retried; one at a given revision cannot.
      if (request.at != Revision{}) return compacted_error(at, compacted);
    }
  }

  StoreResult<Page> read_range_at(const RangeRequest& request, Revision at) {
    std::shared_lock lock(database_mutex_);
    if (!database_.db) return not_open();
    rocksdb::ReadOptions options = reading_in_order();
    options.fill_cache = false;  // Ranges are read once, by a cache above.
    std::string upper = "d" + prefix_end(request.prefix);
    if (upper.size() == 1) upper = "e";
    rocksdb::Slice bound = slice(upper);
    options.iterate_upper_bound = &bound;
    std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(options));

    Page page;
    page.revision = at;
    std::string seen;  // The key whose version was taken or skipped; its remaining versions are older.
    int stale = 0;
    it->Seek(slice("d" + std::max(request.prefix, request.from)));
    while (it->Valid()) {
      std::optional<VersionKey> found = parse_version_key(it->key().ToStringView());
      if (!found) return damaged(it->key().ToString());
      if (found->key < request.from || found->key == seen || found->revision > at) {
        // Stepping over a few versions is cheap, over the history of a busy key it is not.
        if (++stale < 16) {
          it->Next();
        } else {
          bool wanted = found->key >= request.from && found->key != seen;
          std::string target = wanted ? version_key(found->key, at) : "d" + std::string(found->key) + '\1';
          it->Seek(slice(target));
          stale = 0;
        }
        continue;
      }
      stale = 0;
      seen.assign(found->key);
      std::optional<Version> version = parse_version(it->value().ToStringView());
      if (!version) return damaged(found->key);
      if (!version->deleted) {
        if (request.limit == 0 || page.items.size() < request.limit) {
          Blob value = request.keys_only ? nullptr : make_blob(std::string(version->value));
          page.items.push_back({seen, std::move(value), version->created, found->revision, version->expiry_ms != 0});
        } else {
          page.more = true;
          if (!request.count) break;
        }
        ++page.count;
      }
      it->Next();
    }
    if (!it->status().ok()) return from_rocks(it->status(), request.prefix);
    if (!request.count) page.count = 0;
    return page;
  }

  StoreResult<Blob> read_version(std::string_view key, Revision revision) {
    std::string bytes;
    rocksdb::Status status = database_.db->Get(rocksdb::ReadOptions(), slice(version_key(key, revision)), &bytes);
    if (status.IsNotFound()) {
      return StoreError{ErrorKind::Corrupt,
                        std::string(key) + ": revision " + std::to_string(revision.value) + " is missing"};
    }
    if (!status.ok()) return from_rocks(status, std::string(key));
    std::optional<Version> version = parse_version(bytes);
    if (!version) return damaged(key);
    return make_blob(std::string(version->value));
  }

  StoreResult<Feed::History> read_history(const std::string& prefix, Revision after) {
    StoreResult<Feed::History> history = read_history_of(prefix, after);
    // Checked afterwards: entries compacted in the meantime look like damage.
    Revision compacted = feed_->compacted();
    if (after < compacted) return compacted_error(after, compacted);
    return history;
  }

  StoreResult<Feed::History> read_history_of(const std::string& prefix, Revision after) {
    std::shared_lock lock(database_mutex_);
    if (!database_.db) return not_open();
    std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(reading_log()));
    Feed::History history{{}, after};
    uint64_t bytes = 0;
    size_t entries = 0;
    Revision current = feed_->current();
    for (it->Seek(slice(log_key({after.value + 1}))); it->Valid(); it->Next()) {
      std::optional<Revision> revision = parse_log_key(it->key().ToStringView());
      // What is committed but not yet published is left to publish().
      if (!revision || *revision > current) break;
      if (revision->value != history.reached.value + 1) {
        return StoreError{ErrorKind::Corrupt, "the log has no revision " + std::to_string(history.reached.value + 1)};
      }
      if (history.events.size() >= kHistoryEvents || bytes >= kHistoryBytes || ++entries > kHistoryEntries) break;
      std::optional<LogEntry> entry = parse_log_entry(it->value().ToStringView());
      if (!entry) return damaged("log entry " + std::to_string(revision->value));
      for (const Change& change : entry->changes) {
        if (!has_prefix(change.key, prefix)) continue;
        auto event = std::make_shared<Event>();
        event->type = change.type;
        event->key.assign(change.key);
        event->revision = *revision;
        event->created = change.created;
        event->previous_revision = change.previous;
        if (change.type != Event::Type::Deleted) {
          StoreResult<Blob> value = read_version(change.key, *revision);
          if (!value) return value.take_error();
          bytes += (*value)->size();
          event->value = std::move(*value);
        }
        if (change.type != Event::Type::Created) {
          StoreResult<Blob> previous = read_version(change.key, change.previous);
          if (!previous) return previous.take_error();
          bytes += (*previous)->size();
          event->previous = std::move(*previous);
        }
        history.events.push_back(std::move(event));
      }
      history.reached = *revision;
    }
    if (!it->status().ok()) return from_rocks(it->status(), "reading the log");
    if (history.reached == after) {
      return StoreError{ErrorKind::Corrupt, "the log has no revision " + std::to_string(after.value + 1)};
    }
    return history;
  }

  // ---- Committing: everything below runs on the committer thread unless noted otherwise ----

  // Any thread.
  void submit(Submission submission) {
    std::unique_lock lock(queue_mutex_);
    if (stopping_) {
      lock.unlock();
      std::vector<StoreResult<WriteResult>> results(submission.transactions.size(), closed_error());
      return submission.done(std::move(results));
    }
    bool wake = queue_.empty();
    queue_.push_back(std::move(submission));
    if (expected_ > 0) {
      expected_until_ = steady_clock::now() + kExpectedWriteWait;
      // The first write wakes the committer to start the timeout, the last to continue.
      wake = --expected_ == 0 || wake;
    }
    lock.unlock();
    if (wake) queue_wake_.notify_one();
  }

  void commit_loop() {
    steady_clock::time_point housekeeping = steady_clock::now() + options_.housekeeping_interval;
    std::vector<Submission> group;
    while (true) {
      std::vector<std::pair<Revision, Callback<Unit>>> compactions;
      {
        std::unique_lock lock(queue_mutex_);
        queue_wake_.wait_until(lock, backlog_ ? steady_clock::now() + kBacklogPause : housekeeping,
                               [this] { return stopping_ || !queue_.empty() || !compactions_.empty(); });
        while (expected_ > 0 && !queue_.empty() && !stopping_) {
          if (steady_clock::now() >= expected_until_) expected_ = 0;
          if (expected_ > 0) queue_wake_.wait_until(lock, steady_clock::time_point(expected_until_));
        }
        if (stopping_ && queue_.empty()) break;
        size_t transactions = 0;
        uint64_t bytes = 0;
        while (!queue_.empty() && transactions < kGroupTransactions && bytes < kGroupBytes) {
          for (const Transaction& transaction : queue_.front().transactions) {
            for (const Operation& operation : transaction) bytes += operation.value ? operation.value->size() : 0;
          }
          transactions += queue_.front().transactions.size();
          group.push_back(std::move(queue_.front()));
          queue_.pop_front();
        }
        compactions = std::exchange(compactions_, {});
      }
      bool due = steady_clock::now() >= housekeeping;
      if (due) {
        housekeeping = steady_clock::now() + options_.housekeeping_interval;
        add_expired(group);
        check_disk();
      }
      commit(group, due || backlog_);
      group.clear();
      for (auto& [revision, done] : compactions) done(compact_now(revision));
    }
    for (auto& [revision, done] : std::exchange(compactions_, {})) done(closed_error());
    if (database_.db) database_.marker.sync();
  }

  struct Group {
    rocksdb::WriteBatch batch;
    std::vector<std::vector<EventRef>> transactions;
    std::unordered_map<std::string_view, EventRef, KeyHash> newest;  // By key; only this group.
    Revision next;
    int64_t now_ms = 0;
    std::unique_ptr<rocksdb::Iterator> iterator;  // Of the state before the group; created on first use.
  };

  struct Current {
    Revision modified;  // 0 if absent.
    Revision created;
    Blob value;
  };

  StoreResult<Current> current_of(Group& group, const std::string& key) {
    EventRef event;
    if (auto it = group.newest.find(key); it != group.newest.end()) {
      event = it->second;
    } else {
      event = feed_->recent(key);
    }
    if (event) {
      if (event->type == Event::Type::Deleted) return Current{};
      return Current{event->revision, event->created, event->value};
    }
    if (!group.iterator) group.iterator.reset(database_.db->NewIterator(reading_one_key()));
    group.iterator->Seek(slice(version_key(key, {UINT64_MAX})));
    if (!group.iterator->status().ok()) return from_rocks(group.iterator->status(), key);
    if (!group.iterator->Valid()) return Current{};
    std::optional<VersionKey> found = parse_version_key(group.iterator->key().ToStringView());
    if (!found || found->key != key) return Current{};
    std::optional<Version> version = parse_version(group.iterator->value().ToStringView());
    if (!version) return damaged(key);
    if (version->deleted) return Current{};
    return Current{found->revision, version->created, make_blob(std::string(version->value))};
  }

  StoreResult<WriteResult> add(Group& group, Transaction& transaction) {
    if (auto wrong = check_transaction(transaction, limits_)) return *wrong;
    std::vector<Current> currents;
    currents.reserve(transaction.size());
    for (size_t i = 0; i < transaction.size(); ++i) {
      StoreResult<Current> current = current_of(group, transaction[i].key);
      if (!current) return current.take_error();
      if (!fits(transaction[i], current->modified)) {
        Conflict conflict{i, std::nullopt, {group.next.value - 1}};
        if (current->value) {
          conflict.current =
              KeyValue{transaction[i].key, std::move(current->value), current->created, current->modified};
        }
        return WriteResult(std::move(conflict));
      }
      currents.push_back(std::move(*current));
    }
    std::vector<EventRef> events;
    LogEntry entry{group.now_ms, {}};
    for (size_t i = 0; i < transaction.size(); ++i) {
      Operation& operation = transaction[i];
      if (!changes(operation)) continue;
      bool exists = currents[i].modified != Revision{};
      auto event = std::make_shared<Event>();
      event->type = operation.kind == Operation::Kind::Delete ? Event::Type::Deleted
                    : exists                                  ? Event::Type::Updated
                                                              : Event::Type::Created;
      event->revision = group.next;
      event->created = exists ? currents[i].created : group.next;
      event->previous_revision = currents[i].modified;
      event->previous = std::move(currents[i].value);
      event->value = std::move(operation.value);
      event->key = std::move(operation.key);

      Version version{.deleted = event->type == Event::Type::Deleted, .created = event->created};
      if (operation.ttl.count() > 0) {
        version.expiry_ms = group.now_ms + std::chrono::milliseconds(operation.ttl).count();
        expired_until_ms_ = std::min(expired_until_ms_, version.expiry_ms);  // The clock may have been set back.
        std::string ttl;
        put_big_endian(ttl, static_cast<uint64_t>(std::chrono::milliseconds(operation.ttl).count()));
        group.batch.Put(slice(expiry_key(version.expiry_ms, group.next, event->key)), slice(ttl));
      }
      std::string key = version_key(event->key, group.next);
      std::string head = version_head(version);
      rocksdb::Slice key_part = slice(key);
      rocksdb::Slice value_parts[] = {slice(head), event->value ? slice(*event->value) : rocksdb::Slice()};
      group.batch.Put(rocksdb::SliceParts(&key_part, 1), rocksdb::SliceParts(value_parts, 2));
      entry.changes.push_back({event->type, event->previous_revision, event->created, event->key});
      events.push_back(std::move(event));
    }
    if (events.empty()) return WriteResult(Committed{{group.next.value - 1}});
    std::string log;
    append_log_entry(log, entry);
    group.batch.Put(slice(log_key(group.next)), slice(log));
    for (const EventRef& event : events) {
      group.newest.erase(event->key);  // The map's key points into the event.
      group.newest.emplace(event->key, event);
    }
    group.transactions.push_back(std::move(events));
    return WriteResult(Committed{std::exchange(group.next, {group.next.value + 1})});
  }

  // Whether a result is valid only if its group is on disk: its writes, and conflicts with them.
  static bool depends_on_group(const WriteResult& result, Revision before) {
    const Conflict* conflict = std::get_if<Conflict>(&result);
    return conflict == nullptr || conflict->revision > before;
  }

  void commit(std::vector<Submission>& submissions, bool compact_by_age) {
    if (!database_.db) try_reopen();
    std::optional<StoreError> refused;
    if (!database_.db) refused = not_open();
    const Revision before = feed_->current();
    Group group;
    group.next = {before.value + 1};
    group.now_ms = to_ms(clock_.now());
    std::vector<std::vector<StoreResult<WriteResult>>> results(submissions.size());
    for (size_t s = 0; s < submissions.size(); ++s) {
      Submission& submission = submissions[s];
      for (size_t t = 0; t < submission.transactions.size(); ++t) {
        if (refused) {
          results[s].emplace_back(*refused);
          continue;
        }
        if (!disk_full_.empty() && !only_deletes(submission.transactions[t])) {
          results[s].emplace_back(
              StoreError{ErrorKind::Unavailable, options_.directory + ": " + disk_full_, "store: " + disk_full_});
          continue;
        }
        results[s].push_back(add(group, submission.transactions[t]));
        if (t < submission.expiries.size()) group.batch.Delete(slice(submission.expiries[t]));
      }
      for (const Submission::Moved& moved : submission.moved) {
        if (refused) break;
        group.batch.Delete(slice(moved.from));
        group.batch.Put(slice(moved.to), slice(moved.value));
      }
    }
    backlog_ = false;
    if (!refused && compact_by_age) {
      const size_t most = kCompactionStep + 2 * group.transactions.size();
      Revision compacted = add_compaction(group, {UINT64_MAX}, group.now_ms - options_.history_age.count(), most);
      feed_->set_compacted(compacted);  // Before the records are deleted, so that no reader misses them unnoticed.
    }
    group.iterator.reset();
    if (group.batch.Count() > 0) {
      std::optional<StoreError> failed = write_batch(group.batch);
      if (failed) {
        // The group is on disk as a whole or not at all; reopening the store tells which.
        Revision last{group.next.value - 1};
        try_reopen();
        bool known = database_.db != nullptr;
        if (!known) failed->kind = ErrorKind::Timeout;
        if (!known || database_.current < last) {
          for (auto& answers : results) {
            for (auto& result : answers) {
              if (result && depends_on_group(*result, before)) result = *failed;
            }
          }
        }
      } else {
        if (!group.transactions.empty()) database_.marker.set({group.next.value - 1});
        feed_->publish(std::move(group.transactions));
      }
    }
    for (size_t s = 0; s < submissions.size(); ++s) {
      if (submissions[s].done) submissions[s].done(std::move(results[s]));
    }
  }

  std::optional<StoreError> write_batch(rocksdb::WriteBatch& batch) {
    if (database_.is_new) batch.Put(slice(kFormatKey), slice(kFormat));
    rocksdb::WriteOptions sync;
    sync.sync = options_.fsync;
    rocksdb::Status status = database_.db->Write(sync, &batch);
    if (!status.ok()) return from_rocks(status, options_.directory);
    database_.is_new = false;
    written_bytes_ += batch.GetDataSize();
    if (written_bytes_ >= kDiskCheckBytes) check_disk();
    return std::nullopt;
  }

  // After a failed write RocksDB cannot continue. Reopening determines what is on disk.
  void try_reopen() {
    auto now = steady_clock::now();
    if (!database_.db && now < reopen_not_before_) return;
    reopen_not_before_ = now + kReopenInterval;
    expired_until_ms_ = 0;  // Expired keys may still exist.
    std::unique_lock lock(database_mutex_);
    database_.db.reset();
    database_.marker = {};
    StoreResult<Database> again = open_database(options_, env_);
    {
      std::lock_guard failure(failure_mutex_);
      failure_ = again ? StoreError{} : again.error();
      if (failure_.public_message.empty()) failure_.public_message = "store: cannot be opened";
    }
    if (!again) return;
    database_ = std::move(*again);
    lock.unlock();
    feed_->restart(database_.current);
  }

  // Expired TTLs become ordinary deletes, unless the key was written again since.
  void add_expired(std::vector<Submission>& group) {
    if (!database_.db) return;
    int64_t now_ms = to_ms(clock_.now());
    Submission expired;
    std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(reading_expiries()));
    if (now_ms < expired_until_ms_) expired_until_ms_ = 0;
    bool all = true;
    for (it->Seek(slice(expiry_key(expired_until_ms_, {}, {}))); it->Valid(); it->Next()) {
      std::optional<ExpiryKey> parsed = parse_expiry_key(it->key().ToStringView());
      if (!parsed || parsed->expiry_ms > now_ms) break;
      if (expired.expiries.size() == kExpiryStep) {
        all = false;
        break;
      }
      expired.transactions.push_back({remove(std::string(parsed->key), parsed->revision)});
      expired.expiries.push_back(it->key().ToString());
    }
    if (all) expired_until_ms_ = now_ms;
    // The clock was set back: keys written in what is now the future expire one TTL from now.
    for (it->SeekForPrev("f"); it->Valid() && expired.moved.size() < kExpiryStep; it->Prev()) {
      std::optional<ExpiryKey> parsed = parse_expiry_key(it->key().ToStringView());
      if (!parsed || it->value().size() != sizeof(uint64_t)) break;
      const int64_t latest_ms = now_ms + static_cast<int64_t>(read_big_endian(it->value().ToStringView()));
      if (parsed->expiry_ms <= latest_ms) break;
      expired.moved.push_back(
          {it->key().ToString(), expiry_key(latest_ms, parsed->revision, parsed->key), it->value().ToString()});
    }
    if (!expired.expiries.empty() || !expired.moved.empty()) group.push_back(std::move(expired));
  }

  // Adds the deletion of history up to a revision and a time, at most `most` log entries. Returns the revision reached.
  Revision add_compaction(Group& group, Revision until, int64_t until_ms, size_t most) {
    std::unique_ptr<rocksdb::Iterator> it(database_.db->NewIterator(reading_log()));
    Revision reached = database_.compacted;
    size_t steps = 0;
    for (it->Seek(slice(log_key({reached.value + 1}))); it->Valid(); it->Next()) {
      std::optional<Revision> revision = parse_log_key(it->key().ToStringView());
      if (!revision || *revision > until) break;
      std::optional<LogEntry> entry = parse_log_entry(it->value().ToStringView());
      // A damaged entry is kept: readers get an error, and nothing is deleted on a guess.
      if (!entry || entry->time_ms > until_ms) break;
      if (++steps > most) {
        backlog_ = true;
        break;
      }
      for (const Change& change : entry->changes) {
        if (change.previous != Revision{}) group.batch.SingleDelete(slice(version_key(change.key, change.previous)));
        if (change.type == Event::Type::Deleted) group.batch.SingleDelete(slice(version_key(change.key, *revision)));
      }
      group.batch.SingleDelete(it->key());
      reached = *revision;
    }
    if (reached > database_.compacted) {
      group.batch.Put(slice(kCompactedKey), slice(encode_revision(reached)));
      database_.compacted = reached;
    }
    return reached;
  }

  StoreResult<Unit> compact_now(Revision revision) {
    if (!database_.db) return not_open();
    Revision current = feed_->current();
    if (revision <= feed_->compacted()) return compacted_error(revision, feed_->compacted());
    if (revision > current) return future_error(revision, current);
    feed_->set_compacted(revision);
    while (database_.compacted < revision) {
      Group group;
      Revision before = database_.compacted;
      if (add_compaction(group, revision, INT64_MAX, kGroupTransactions) == before) {
        return StoreError{ErrorKind::Corrupt, "the log cannot be read after revision " + std::to_string(before.value)};
      }
      if (std::optional<StoreError> failed = write_batch(group.batch)) {
        try_reopen();
        return *failed;
      }
    }
    return Unit{};
  }

  void check_disk() {
    written_bytes_ = 0;
    disk_full_ = disk_full(options_.directory).value_or("");
  }

  // Constant after construction.
  const RocksOptions options_;
  const Limits limits_;
  const Clock& clock_;
  rocksdb::Env* const env_;

  // Replaced by the committer under the exclusive lock; read by others under the shared lock. A null db means that
  // opening failed, see failure_.
  std::shared_mutex database_mutex_;
  Database database_;
  mutable std::mutex failure_mutex_;
  StoreError failure_;

  // Used only by the committer.
  bool backlog_ = false;  // History remains to be compacted.
  // No key expires before this time: scans for expired keys skip the deleted records up to here.
  int64_t expired_until_ms_ = 0;
  std::string disk_full_;  // Why writes are rejected; empty if they are not.
  uint64_t written_bytes_ = 0;
  steady_clock::time_point reopen_not_before_;

  std::mutex queue_mutex_;  // Guards the next six members.
  std::condition_variable queue_wake_;
  std::deque<Submission> queue_;
  size_t expected_ = 0;  // Announced submissions that have not arrived yet.
  steady_clock::time_point expected_until_;
  std::vector<std::pair<Revision, Callback<Unit>>> compactions_;
  bool stopping_ = false;

  std::shared_ptr<Feed> feed_;
  ThreadPool readers_;
  std::thread committer_;
};

}  // namespace

StoreResult<std::unique_ptr<Store>> open_rocks_on(RocksOptions options, rocksdb::Env* env) {
  StoreResult<Database> database = open_database(options, env);
  if (!database) return database.take_error();
  return std::unique_ptr<Store>(std::make_unique<RocksStore>(std::move(options), env, std::move(*database)));
}

}  // namespace holdfast::store::rocks

namespace holdfast::store {

std::optional<std::string> disk_full(const std::string& directory) {
  // Below this, writes are rejected, before the disk fills up in the middle of one.
  constexpr uint64_t kReservedDiskBytes = 16 << 20;
  struct statvfs disk = {};
  if (::statvfs(directory.c_str(), &disk) != 0) return std::nullopt;
  if (static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize >= kReservedDiskBytes) return std::nullopt;
  return "the disk is full (less than " + std::to_string(kReservedDiskBytes >> 20) + " MB are left)";
}

StoreResult<std::unique_ptr<Store>> open_rocks(RocksOptions options) {
  return rocks::open_rocks_on(std::move(options), nullptr);
}

}  // namespace holdfast::store
