// Several writers, readers and watchers work while the store restarts repeatedly; afterwards everything they observed
// is checked against the total order given by the revisions.
//
// The log of all changes, read at the end, is that order. Checked are: every result fits into the order at its
// revision, neither earlier nor later than it happened in real time (linearizability: with a revision on every result
// this needs no search); and each watcher saw its part of the log: ordered, unique, whole transactions, complete, also
// across restarts of the watch and for progress notifications.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <shared_mutex>
#include <thread>

#include "base/test_folder.h"
#include "store/memory_store.h"
#include "store/test_etcd.h"
#include "store/test_support.h"

namespace holdfast::store::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A store that can be restarted.
class Restarting {
 public:
  virtual ~Restarting() = default;
  virtual void restart() = 0;

  // Calls fn(store) while no restart is in progress; callbacks may come later.
  template <class F>
  auto with(F fn) {
    std::shared_lock lock(mutex_);
    return fn(*store_);
  }

 protected:
  std::shared_mutex mutex_;
  std::unique_ptr<Store> store_;
};

class RestartingRocks final : public Restarting {
 public:
  RestartingRocks() { open(); }
  ~RestartingRocks() override { store_.reset(); }
  void restart() override {
    std::unique_lock lock(mutex_);
    store_.reset();
    open();
  }

 private:
  void open() {
    RocksOptions options;
    options.directory = folder_.path();
    options.recent_bytes = 20000;  // Watchers often read from disk.
    options.memtable_bytes = 256 << 10;
    StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
  }
  TestFolder folder_;
};

class RestartingEtcd final : public Restarting {
 public:
  RestartingEtcd() { store_ = open_etcd_at({etcd_.url()}); }
  ~RestartingEtcd() override { store_.reset(); }
  void restart() override {
    etcd_.kill();
    etcd_.start();
  }

 private:
  EtcdProcess etcd_;
};

constexpr int kKeys = 6;
std::string key_of(uint64_t index) { return "/p/" + std::to_string(index % 2) + "/" + std::to_string(index % kKeys); }

struct Write {
  steady_clock::time_point begun, ended;
  std::string id;                            // The value; unique per write.
  std::map<std::string, uint64_t> expected;  // From key to the required revision (0 for absent).
  bool deletes = false;
  enum class Outcome : uint8_t { Committed, Conflict, NotDone, Unknown } outcome = Outcome::Unknown;
  uint64_t revision = 0;
};

struct Read {
  steady_clock::time_point begun, ended;
  uint64_t revision = 0;
  std::map<std::string, std::pair<uint64_t, std::string>> found;  // From key to revision and value.
  std::string prefix;                                             // The requested range.
};

struct Watched {
  std::string prefix;
  uint64_t start = 0;
  std::vector<WatchBatch> batches;
  size_t marks = 0;  // Of the keys written at the end.
};

class Promises : public ::testing::Test {
 protected:
  void work(Restarting& store, milliseconds time, milliseconds between_restarts) {
    uint64_t seed = std::getenv("HOLDFAST_SEED") ? std::strtoull(std::getenv("HOLDFAST_SEED"), nullptr, 10) : 5;
    SCOPED_TRACE("seed " + std::to_string(seed));
    base_ = await<Revision>([&](auto done) { store.with([&](Store& s) { s.current_revision(done); }); })->value;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { write_loop(store, seed * 10 + i); });
    for (int i = 0; i < 2; ++i) threads.emplace_back([&, i] { read_loop(store, seed * 20 + i); });
    std::vector<std::thread> watchers;
    for (const char* prefix : {"/p/", "/p/0/", "/p/1/"}) {
      watchers.emplace_back([&, prefix] { watch_loop(store, prefix); });
    }
    auto end = steady_clock::now() + time;
    while (steady_clock::now() + between_restarts < end) {
      std::this_thread::sleep_for(between_restarts);
      store.restart();
    }
    std::this_thread::sleep_until(end);
    while (!enough()) std::this_thread::sleep_for(milliseconds(10));  // A busy machine takes longer.
    stop_ = true;
    for (std::thread& thread : threads) thread.join();

    // All threads are done. One change in each range, so that watchers reach the end even where progress cannot be
    // requested.
    for (const char* key : {"/p/0/end", "/p/1/end"}) {
      StoreResult<WriteResult> written = retry<WriteResult>(
          [&](auto done) { store.with([&](Store& s) { s.write({create(key, make_blob(key))}, done); }); });
      EXPECT_TRUE(written) << written.error().message;  // A conflict is fine: a retried write had succeeded.
    }
    // The log must reach the newest revision.
    StoreResult<Revision> last =
        retry<Revision>([&](auto done) { store.with([&](Store& s) { s.current_revision(done); }); });
    EXPECT_TRUE(last) << last.error().message;
    if (HasFailure()) {
      given_up_ = true;
      for (std::thread& watcher : watchers) watcher.join();
      return;
    }
    until_ = last->value;
    for (std::thread& watcher : watchers) watcher.join();
    read_log(store);
    check_writes();
    check_reads();
    for (const Watched& watched : watched_) check_watcher(watched);
    RecordProperty("writes", std::to_string(writes_.size()));
  }

 private:
  // Whether there is enough to check.
  bool enough() {
    std::lock_guard lock(mutex_);
    const auto committed =
        std::ranges::count_if(writes_, [](const Write& write) { return write.outcome == Write::Outcome::Committed; });
    return committed > 50 && reads_.size() > 50;
  }

  // Retries errors for a while: the store may be restarting.
  template <class T, class Start>
  static StoreResult<T> retry(Start start) {
    const auto end = steady_clock::now() + kPatience;
    StoreResult<T> result = await<T>(start);
    while (!result && steady_clock::now() < end) result = await<T>(start);
    return result;
  }

  void write_loop(Restarting& store, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::map<std::string, uint64_t> guess;  // The state as known to this writer; conflicts correct it.
    for (int i = 0; !stop_; ++i) {
      Write write;
      write.id = std::to_string(seed) + "-" + std::to_string(i);
      write.deletes = random() % 6 == 0;
      uint64_t first = random();
      std::vector<std::string> keys = {key_of(first)};
      if (random() % 4 == 0) keys.push_back(key_of(first + 1));
      Transaction transaction;
      for (const std::string& key : keys) {
        uint64_t at = guess[key];
        write.expected[key] = at;
        transaction.push_back(at == 0         ? create(key, make_blob(write.id))
                              : write.deletes ? remove(key, {at})
                                              : update(key, {at}, make_blob(write.id)));
      }
      write.begun = steady_clock::now();
      StoreResult<WriteResult> result = await<WriteResult>(
          [&](auto done) { store.with([&](Store& s) { s.write(std::move(transaction), std::move(done)); }); });
      write.ended = steady_clock::now();
      if (!result) {
        // Unavailable guarantees that nothing was written; after any other error it is unknown.
        bool not_done = result.error().kind == ErrorKind::Unavailable;
        write.outcome = not_done ? Write::Outcome::NotDone : Write::Outcome::Unknown;
      } else if (auto* conflict = std::get_if<Conflict>(&*result)) {
        write.outcome = Write::Outcome::Conflict;
        guess[keys[conflict->operation]] = conflict->current ? conflict->current->modified.value : 0;
      } else {
        write.outcome = Write::Outcome::Committed;
        write.revision = std::get<Committed>(*result).revision.value;
        for (const std::string& key : keys) {
          guess[key] = write.deletes && write.expected[key] != 0 ? 0 : write.revision;
        }
      }
      std::lock_guard lock(mutex_);
      writes_.push_back(std::move(write));
    }
  }

  void read_loop(Restarting& store, uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!stop_) {
      Read read;
      read.begun = steady_clock::now();
      if (random() % 2) {
        read.prefix = key_of(random());
        StoreResult<Got> got =
            await<Got>([&](auto done) { store.with([&](Store& s) { s.get(read.prefix, std::move(done)); }); });
        read.ended = steady_clock::now();
        if (!got) continue;
        read.revision = got->revision.value;
        if (got->item) read.found[got->item->key] = {got->item->modified.value, *got->item->value};
      } else {
        read.prefix = "/p/";
        StoreResult<Page> page =
            await<Page>([&](auto done) { store.with([&](Store& s) { s.range({.prefix = "/p/"}, std::move(done)); }); });
        read.ended = steady_clock::now();
        if (!page) continue;
        read.revision = page->revision.value;
        for (const KeyValue& item : page->items) read.found[item.key] = {item.modified.value, *item.value};
      }
      std::lock_guard lock(mutex_);
      reads_.push_back(std::move(read));
    }
  }

  void watch_loop(Restarting& store, const std::string& prefix) {
    Watched watched{prefix, base_, {}};
    const size_t all_marks = prefix == "/p/" ? 2 : 1;
    uint64_t position = base_;
    std::mt19937_64 random(prefix.size());
    while (watched.marks < all_marks && !given_up_) {
      std::unique_ptr<Watcher> watcher = store.with([&](Store& s) { return s.watch({prefix, {position}}); });
      // Occasionally the watch is dropped and restarted at its position.
      for (int batches = 0; watched.marks < all_marks && batches < 40; ++batches) {
        if (random() % 3 == 0) watcher->request_progress();
        StoreResult<WatchBatch> batch = next(*watcher);
        if (!batch) {
          ASSERT_EQ(batch.error().kind, ErrorKind::Closed) << batch.error().message;
          break;
        }
        position = batch->revision.value;
        for (const EventRef& event : batch->events) watched.marks += event->key.ends_with("/end");
        watched.batches.push_back(std::move(*batch));
      }
    }
    std::lock_guard lock(mutex_);
    watched_.push_back(std::move(watched));
  }

  void read_log(Restarting& store) {
    std::unique_ptr<Watcher> watcher = store.with([&](Store& s) { return s.watch({"/", {base_}}); });
    uint64_t reached = base_;
    while (reached < until_) {
      StoreResult<WatchBatch> batch = next(*watcher);
      ASSERT_TRUE(batch) << batch.error().message;
      for (const EventRef& event : batch->events) {
        ASSERT_GE(event->revision.value, reached);
        reached = event->revision.value;
        log_[reached].push_back(event);
      }
    }
  }

  void check_writes() {
    std::map<std::string, uint64_t> revision_of;  // By id; only writes with a value.
    for (const auto& [revision, events] : log_) {
      for (const EventRef& event : events) {
        if (!event->value || event->key.ends_with("/end")) continue;
        auto [it, first] = revision_of.emplace(*event->value, revision);
        ASSERT_EQ(it->second, revision) << "write " << *event->value << " happened twice";
      }
    }
    for (const Write& write : writes_) {
      if (write.outcome == Write::Outcome::Conflict || write.outcome == Write::Outcome::NotDone) {
        EXPECT_FALSE(revision_of.contains(write.id)) << write.id << " was rejected but happened";
        continue;
      }
      if (write.outcome != Write::Outcome::Committed) continue;
      ASSERT_TRUE(log_.contains(write.revision)) << write.id << " was acknowledged but is missing";
      const auto& events = log_[write.revision];
      ASSERT_EQ(events.size(), write.expected.size()) << write.id << " happened only partially";
      for (const EventRef& event : events) {
        ASSERT_TRUE(write.expected.contains(event->key));
        EXPECT_EQ(event->previous_revision.value, write.expected.at(event->key)) << "the condition did not hold";
        if (event->value) EXPECT_EQ(*event->value, write.id);
      }
    }
    // A write that completed before another began must precede it.
    RealTime times = real_time();
    for (const Write& write : writes_) {
      if (write.outcome != Write::Outcome::Committed) continue;
      EXPECT_GT(write.revision, times.newest_over_before(write.begun)) << write.id << " was ordered too early";
    }
  }

  // Committed writes sorted by completion time, with the greatest revision up to there; and by start time, with the
  // smallest revision from there on.
  struct RealTime {
    std::vector<std::pair<steady_clock::time_point, uint64_t>> over, begun;

    uint64_t newest_over_before(steady_clock::time_point time) const {
      auto it = std::ranges::lower_bound(over, time, {}, [](const auto& o) { return o.first; });
      return it == over.begin() ? 0 : std::prev(it)->second;
    }
    uint64_t oldest_begun_after(steady_clock::time_point time) const {
      auto it = std::ranges::upper_bound(begun, time, {}, [](const auto& b) { return b.first; });
      return it == begun.end() ? UINT64_MAX : it->second;
    }
  };

  RealTime real_time() const {
    RealTime times;
    for (const Write& write : writes_) {
      if (write.outcome != Write::Outcome::Committed) continue;
      times.over.emplace_back(write.ended, write.revision);
      times.begun.emplace_back(write.begun, write.revision);
    }
    std::ranges::sort(times.over);
    std::ranges::sort(times.begun);
    for (size_t i = 1; i < times.over.size(); ++i) {
      times.over[i].second = std::max(times.over[i].second, times.over[i - 1].second);
    }
    for (size_t i = times.begun.size(); i-- > 1;) {
      times.begun[i - 1].second = std::min(times.begun[i - 1].second, times.begun[i].second);
    }
    return times;
  }

  void check_reads() {
    RealTime times = real_time();
    std::ranges::sort(reads_, {}, &Read::revision);
    std::map<std::string, std::pair<uint64_t, std::string>>
        state;  // At the revision of the read, according to the log.
    auto entry = log_.begin();
    for (const Read& read : reads_) {
      for (; entry != log_.end() && entry->first <= read.revision; ++entry) {
        for (const EventRef& event : entry->second) {
          if (event->type == Event::Type::Deleted) {
            state.erase(event->key);
          } else {
            state[event->key] = {event->revision.value, *event->value};
          }
        }
      }
      auto want = state;
      std::erase_if(want, [&](const auto& item) {
        return read.prefix.ends_with('/') ? !item.first.starts_with(read.prefix) : item.first != read.prefix;
      });
      ASSERT_EQ(want, read.found) << "a read at " << read.revision << " of " << read.prefix;
      ASSERT_GE(read.revision, times.newest_over_before(read.begun)) << "a read missed a completed write";
      ASSERT_LT(read.revision, times.oldest_begun_after(read.ended)) << "a read saw the future";
    }
  }

  void check_watcher(const Watched& watched) {
    std::vector<std::string> want, got;
    uint64_t progress = watched.start;
    for (const WatchBatch& batch : watched.batches) {
      for (const EventRef& event : batch.events) {
        EXPECT_GT(event->revision.value, progress) << "an event is older than the reported progress";
        got.push_back(describe(*event));
      }
      EXPECT_GE(batch.revision.value, progress) << "progress went back";
      progress = batch.revision.value;
      // Whole transactions: the last one of the batch is not split.
      if (!batch.events.empty()) {
        uint64_t last = batch.events.back()->revision.value;
        size_t here = std::ranges::count_if(batch.events, [&](auto& e) { return e->revision.value == last; });
        size_t all = std::ranges::count_if(log_[last], [&](auto& e) { return e->key.starts_with(watched.prefix); });
        EXPECT_EQ(here, all) << "a transaction was split";
      }
    }
    for (const auto& [revision, events] : log_) {
      for (const EventRef& event : events) {
        if (event->key.starts_with(watched.prefix)) want.push_back(describe(*event));
      }
    }
    EXPECT_EQ(got, want) << "what " << watched.prefix << " saw";
  }

  uint64_t base_ = 0;
  std::atomic<uint64_t> until_ = UINT64_MAX;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> given_up_ = false;
  std::mutex mutex_;
  std::vector<Write> writes_;
  std::vector<Read> reads_;
  std::vector<Watched> watched_;
  std::map<uint64_t, std::vector<EventRef>> log_;
};

TEST_F(Promises, hold_for_the_embedded_store_across_restarts) {
  RestartingRocks store;
  work(store, milliseconds(1500), milliseconds(150));
}

TEST_F(Promises, hold_for_etcd_across_restarts) {
  ASSERT_TRUE(EtcdProcess::installed()) << "etcd is not installed; run ./dev setup";
  RestartingEtcd store;
  work(store, milliseconds(6000), milliseconds(2000));
}

}  // namespace
}  // namespace holdfast::store::testing
