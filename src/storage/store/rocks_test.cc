// Guarantees specific to the embedded engine: what survives closing, killing, power loss and damage, and which errors
// are reported otherwise.
#include <gmock/gmock.h>
#include <rocksdb/perf_context.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "base/files.h"
#include "base/test_folder.h"
#include "store/fault_fs.h"
#include "store/rocks_db.h"
#include "store/test_support.h"
#include "store/wal_scan.h"

namespace holdfast::store::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RocksOptions options_in(const std::string& directory) {
  RocksOptions options;
  options.directory = directory;
  options.housekeeping_interval = std::chrono::milliseconds(20);
  return options;
}

std::unique_ptr<Store> open(const RocksOptions& options) {
  StoreResult<std::unique_ptr<Store>> store = open_rocks(options);
  if (!store) {
    ADD_FAILURE() << store.error().message;
    std::abort();
  }
  return std::move(*store);
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<fs::path> files_of(const std::string& directory, const std::string& ending) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().ends_with(ending)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

// Rounds of the random tests: a few by default, HOLDFAST_CRASH_ROUNDS for a long run.
int rounds(int normal) {
  const char* asked = std::getenv("HOLDFAST_CRASH_ROUNDS");
  return asked ? std::atoi(asked) : normal;
}

TEST(RocksStore, keeps_everything_across_close_and_reopen) {
  TestFolder folder;
  Revision a1, a2, b1, b2;
  {
    auto store = open(options_in(folder.path()));
    Waiting waiting(*store);
    a1 = waiting.create("/a", "a1");
    b1 = waiting.create("/b", "b1");
    a2 = waiting.update("/a", a1, "a2");
    b2 = waiting.remove("/b", b1);
  }
  auto store = open(options_in(folder.path()));
  Waiting waiting(*store);
  EXPECT_EQ(*waiting.current_revision(), b2);
  EXPECT_EQ(*waiting.get("/a")->item->value, "a2");
  EXPECT_EQ(waiting.get("/a")->item->created, a1);
  EXPECT_EQ(waiting.range({.prefix = "/", .at = b1})->items.size(), 2u);
  auto watcher = store->watch({"/", a1});
  auto events = take(*watcher, 3);
  EXPECT_THAT((std::vector{describe(*events[0]), describe(*events[1]), describe(*events[2])}),
              ElementsAre("+/b@3=b1", "~/a@4=a2<a1", "-/b@5<b1"));
  EXPECT_EQ(waiting.create("/c", "c").value, b2.value + 1) << "revisions continue";
}

TEST(RocksStore, compacts_history_by_age_and_persists_the_compacted_revision) {
  TestFolder folder;
  TestClock clock;
  RocksOptions options = options_in(folder.path());
  options.clock = &clock;
  Revision old, kept;
  {
    auto store = open(options);
    Waiting waiting(*store);
    old = waiting.create("/a", "1");
    kept = waiting.update("/a", old, "2");
    Revision gone = waiting.create("/gone", "x");
    gone = waiting.remove("/gone", gone);
    clock.pass(std::chrono::minutes(3));
    Revision young = waiting.update("/a", kept, "3");
    clock.pass(std::chrono::minutes(3));
    while (waiting.status()->compacted < gone) std::this_thread::yield();
    EXPECT_EQ(waiting.status()->compacted, gone) << "three minutes old history is kept";
    EXPECT_EQ(waiting.range({.prefix = "/", .at = kept}).error().kind, ErrorKind::Compacted);
    EXPECT_EQ(*waiting.range({.prefix = "/", .at = gone})->items.at(0).value, "2");
    EXPECT_EQ(*waiting.range({.prefix = "/", .at = young})->items.at(0).value, "3");
  }
  auto store = open(options);
  Waiting waiting(*store);
  EXPECT_EQ(waiting.range({.prefix = "/", .at = old}).error().kind, ErrorKind::Compacted);
  EXPECT_EQ(*waiting.get("/a")->item->value, "3");
}

TEST(RocksStore, a_store_without_history_continues_at_its_revision) {
  TestFolder folder;
  Revision last;
  {
    auto store = open(options_in(folder.path()));
    Waiting waiting(*store);
    last = waiting.remove("/a", waiting.create("/a", "1"));
    ASSERT_TRUE(waiting.compact(last));
  }
  auto store = open(options_in(folder.path()));
  EXPECT_EQ(*Waiting(*store).current_revision(), last);
  EXPECT_EQ(Waiting(*store).create("/a", "2").value, last.value + 1);
}

TEST(RocksStore, a_ttl_continues_across_a_restart) {
  TestFolder folder;
  TestClock clock;
  RocksOptions options = options_in(folder.path());
  options.clock = &clock;
  Revision created;
  {
    auto store = open(options);
    created = Waiting(*store).commit({create("/event", make_blob("e"), std::chrono::hours(1))});
  }
  clock.pass(std::chrono::hours(2));
  auto store = open(options);
  auto watcher = store->watch({"/", created});
  EXPECT_EQ(describe(*take(*watcher, 1).at(0)), "-/event@3<e");
}

TEST(RocksStore, a_ttl_expires_in_time_after_the_clock_is_set_back) {
  TestFolder folder;
  TestClock clock;
  RocksOptions options = options_in(folder.path());
  options.clock = &clock;
  auto store = open(options);
  Waiting waiting(*store);
  clock.pass(std::chrono::hours(24 * 365));
  waiting.commit({create("/future", make_blob("f"), std::chrono::hours(1))});
  clock.pass(-std::chrono::hours(24 * 365));
  const Revision last = waiting.commit({create("/present", make_blob("p"), std::chrono::hours(1))});
  auto watcher = store->watch({"/", last});
  // Housekeeping runs at its own pace: advance the clock until it has seen both keys, but not up to the original
  // expiry.
  std::atomic<bool> done = false;
  std::thread passing([&] {
    for (int day = 0; day < 360 && !done; ++day) {
      clock.pass(std::chrono::hours(24));
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
  });
  std::vector<std::string> ended;
  for (const EventRef& event : take(*watcher, 2)) ended.push_back(event->key);
  done = true;
  passing.join();
  EXPECT_THAT(ended, ::testing::UnorderedElementsAre("/future", "/present"));
}

// Deleted records stay in their tables until RocksDB compacts them. Reads of one key, of expired TTLs, or of the next
// log entry must not step over all of them.
TEST(RocksStore, deleted_records_do_not_slow_down_other_reads) {
  constexpr int kKeys = 1000;
  TestFolder folder;
  {
    RocksOptions options = options_in(folder.path());
    options.history_age = std::chrono::milliseconds(0);
    options.recent_bytes = 0;
    auto store = open(options);
    Waiting waiting(*store);
    std::vector<Revision> written;
    for (int i = 0; i < kKeys; ++i) written.push_back(waiting.create("/key" + std::to_string(10000 + i), "value"));
    Revision last;
    for (int i = 0; i < kKeys; ++i)
      last = waiting.remove("/key" + std::to_string(10000 + i), written[static_cast<size_t>(i)]);
    while (waiting.status()->compacted < last) std::this_thread::yield();
    rocksdb::get_perf_context()->Reset();
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
    EXPECT_FALSE(waiting.get("/key10000")->item);
    EXPECT_LT(rocksdb::get_perf_context()->internal_delete_skipped_count, 10u);
  }
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::OpenForReadOnly({}, folder.path(), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocks::reading_expiries()));
  rocksdb::get_perf_context()->Reset();
  it->Seek("e");
  EXPECT_FALSE(it->Valid());
  it->SeekForPrev("f");
  EXPECT_FALSE(it->Valid());
  EXPECT_LT(rocksdb::get_perf_context()->internal_delete_skipped_count, 10u);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
}

TEST(RocksStore, a_second_store_on_the_same_directory_is_rejected_with_its_name) {
  TestFolder folder;
  auto store = open(options_in(folder.path()));
  StoreResult<std::unique_ptr<Store>> second = open_rocks(options_in(folder.path()));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(second.error().message, HasSubstr(folder.path() + " is in use by another store of this process"));
  EXPECT_EQ(rocks::lock_holder(folder.path()), ::getpid()) << "asking must not release the lock";
}

TEST(RocksStore, errors_name_a_directory_that_cannot_be_created) {
  StoreResult<std::unique_ptr<Store>> store = open_rocks(options_in("/proc/holdfast"));
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("/proc/holdfast"));
}

// ---- Damage ----

// A closed store with some writes in its log, and its files to modify.
class DamagedStore : public ::testing::Test {
 protected:
  static constexpr int kWrites = 12;

  void SetUp() override {
    auto store = open(options_in(folder_.path()));
    Waiting waiting(*store);
    std::mt19937_64 random(7);
    for (int i = 0; i < kWrites; ++i) {
      marker_before_last_ = *read_file(marker());
      // Incompressible values, one of them longer than a block of the log.
      std::string value(i == 5 ? 50000 : 200, ' ');
      for (char& c : value) c = static_cast<char>(random());
      last_ = waiting.create("/k" + std::to_string(i), value);
    }
    store.reset();
    log_ = files_of(folder_.path(), ".log").back();
    contents_ = *read_file(log_);
  }

  fs::path marker() const { return folder_.path() + "/ACKNOWLEDGED"; }

  StoreResult<std::unique_ptr<Store>> reopen() { return open_rocks(options_in(folder_.path())); }

  TestFolder folder_;
  Revision last_;
  std::string marker_before_last_;
  fs::path log_;
  std::string contents_;
};

TEST_F(DamagedStore, an_undamaged_log_is_whole) {
  rocks::WalScan scan = rocks::scan_wal(contents_);
  EXPECT_EQ(scan.state, rocks::WalScan::State::Whole) << scan.what;
  EXPECT_EQ(scan.good_bytes, contents_.size());
}

TEST_F(DamagedStore, a_flipped_bit_before_the_last_record_is_damage_and_within_it_a_torn_tail) {
  // The last record begins where the log is still whole without it.
  uint64_t last_record = 0;
  for (uint64_t cut = contents_.size() - 1; last_record == 0; --cut) {
    if (rocks::scan_wal(contents_.substr(0, cut)).state == rocks::WalScan::State::Whole) last_record = cut;
  }
  for (uint64_t at = 0; at < contents_.size(); at += at < 2000 || at > 51000 ? 17 : 1997) {
    std::string flipped = contents_;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    auto want = at < last_record ? rocks::WalScan::State::Damaged : rocks::WalScan::State::TornTail;
    rocks::WalScan scan = rocks::scan_wal(flipped);
    ASSERT_EQ(scan.state, want) << "byte " << at << " of " << contents_.size() << ": " << scan.what;
  }
}

TEST_F(DamagedStore, a_truncated_log_is_whole_or_torn_but_never_damaged) {
  for (uint64_t cut = 0; cut < contents_.size(); cut += cut < 1000 || cut > 52000 ? 17 : 501) {
    rocks::WalScan scan = rocks::scan_wal(contents_.substr(0, cut));
    ASSERT_NE(scan.state, rocks::WalScan::State::Damaged) << "cut at " << cut << ": " << scan.what;
    ASSERT_LE(scan.good_bytes, cut);
  }
}

TEST_F(DamagedStore, a_flipped_bit_in_the_middle_of_the_log_is_rejected_with_the_file_name) {
  std::string flipped = contents_;
  flipped[flipped.size() / 2] ^= 1;
  write_file(log_, flipped);
  auto store = reopen();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Corrupt);
  EXPECT_THAT(store.error().message, HasSubstr(log_.filename().string()));
  EXPECT_THAT(store.error().message, HasSubstr("acknowledged"));
  EXPECT_EQ(*read_file(log_), flipped) << "the file must not be modified";
}

TEST_F(DamagedStore, a_flipped_bit_in_the_last_acknowledged_write_is_rejected) {
  std::string flipped = contents_;
  flipped[flipped.size() - 20] ^= 1;
  write_file(log_, flipped);
  auto store = reopen();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Corrupt);
  EXPECT_THAT(store.error().message, HasSubstr("writes up to revision " + std::to_string(last_.value)));
  EXPECT_EQ(*read_file(log_), flipped);
}

TEST_F(DamagedStore, an_acknowledged_write_cut_off_cleanly_is_detected) {
  uint64_t cut = contents_.size() - 1;
  while (rocks::scan_wal(contents_.substr(0, cut)).state != rocks::WalScan::State::Whole) --cut;
  write_file(log_, contents_.substr(0, cut));
  auto store = reopen();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Corrupt);
  EXPECT_THAT(store.error().message, HasSubstr("reach only revision " + std::to_string(last_.value - 1)));
}

TEST_F(DamagedStore, a_missing_log_is_rejected) {
  fs::remove(log_);
  auto store = reopen();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Corrupt) << store.error().message;
}

TEST_F(DamagedStore, a_torn_tail_that_was_never_acknowledged_is_cut_off) {
  for (uint64_t cut = contents_.size() - 1; cut > contents_.size() - 200; cut -= 37) {
    TestFolder copy;
    fs::copy(folder_.path(), copy.path(), fs::copy_options::recursive);
    // As if the power had failed during the last write: it has no acknowledgement.
    write_file(copy.path() + "/ACKNOWLEDGED", marker_before_last_);
    write_file(fs::path(copy.path()) / log_.filename(), contents_.substr(0, cut));
    auto store = open(options_in(copy.path()));
    Waiting waiting(*store);
    EXPECT_EQ(waiting.current_revision()->value, last_.value - 1);
    EXPECT_EQ(waiting.range({.prefix = "/", .count = true})->count, static_cast<uint64_t>(kWrites - 1));
    EXPECT_EQ(waiting.create("/again", "x"), last_);
  }
}

TEST_F(DamagedStore, a_damaged_manifest_is_rejected) {
  for (const fs::path& path : fs::directory_iterator(folder_.path())) {
    if (!path.filename().string().starts_with("MANIFEST")) continue;
    std::string bytes = *read_file(path);
    bytes[bytes.size() / 2] ^= 1;
    write_file(path, bytes);
  }
  auto store = reopen();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Corrupt) << store.error().message;
}

TEST_F(DamagedStore, a_missing_database_beside_its_marker_is_rejected_and_not_recreated) {
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (entry.path() != marker()) fs::remove_all(entry.path());
  }
  auto store = reopen();
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::Corrupt) << store.error().message;
}

TEST_F(DamagedStore, a_flipped_bit_in_a_table_is_reported_as_corrupt) {
  {
    auto store = open(options_in(folder_.path()));
  }  // Opening moves the log to a table.
  ASSERT_FALSE(files_of(folder_.path(), ".sst").empty());
  for (const fs::path& path : files_of(folder_.path(), ".sst")) {
    std::string bytes = *read_file(path);
    bytes[bytes.size() / 3] ^= 1;
    write_file(path, bytes);
  }
  auto store = reopen();
  if (!store) {
    EXPECT_EQ(store.error().kind, ErrorKind::Corrupt) << store.error().message;
    return;
  }
  StoreResult<Page> page = Waiting(**store).range({.prefix = "/"});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind, ErrorKind::Corrupt) << page.error().message;
}

// ---- Power loss and failing disks ----

// Concurrent writers that record acknowledged and unknown results.
class Load {
 public:
  Load(Store& store, int writers, std::map<std::string, uint64_t> known, uint64_t seed) : known_(std::move(known)) {
    for (int w = 0; w < writers; ++w) {
      threads_.emplace_back([this, &store, w, seed] { run(store, w, seed); });
    }
  }
  void stop() { stopping_ = true; }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }

  // Checks a store against the acknowledged writes; returns its current state.
  std::map<std::string, uint64_t> verify(Store& store) {
    std::map<std::string, uint64_t> now;
    StoreResult<Page> page = Waiting(store).range({.prefix = "/load/"});
    if (!page) {
      ADD_FAILURE() << page.error().message;
      return now;
    }
    for (const KeyValue& item : page->items) {
      EXPECT_EQ(item.value->substr(0, item.value->find(' ')), item.key) << "partial write";
      now[item.key] = item.modified.value;
    }
    for (const auto& [key, revision] : known_) {
      auto it = now.find(key);
      uint64_t found = it == now.end() ? 0 : it->second;
      auto unknown = unknown_.find(key);
      bool maybe = unknown != unknown_.end();
      // The last write of a key may have failed without a response but still happened.
      EXPECT_TRUE(found == revision || (maybe && (found > revision || found == 0)))
          << key << " was acknowledged at " << revision << ", found at " << found;
      if (found < revision && found != 0) ADD_FAILURE() << key << " went back";
    }
    return now;
  }
  size_t acknowledged() const { return acknowledged_; }

 private:
  void run(Store& store, int writer, uint64_t seed) {
    std::mt19937_64 random(seed * 1000 + writer);
    Waiting waiting(store);
    while (!stopping_) {
      // Each writer has its own keys, so that it knows which must exist.
      std::string key = "/load/" + std::to_string(writer) + "/" + std::to_string(random() % 8);
      uint64_t at = 0;
      {
        std::lock_guard lock(mutex_);
        if (unknown_.contains(key)) continue;
        if (auto it = known_.find(key); it != known_.end()) at = it->second;
      }
      bool removing = at != 0 && random() % 5 == 0;
      Blob value = make_blob(key + " " + std::string(random() % 3000, static_cast<char>('a' + random() % 26)));
      Transaction transaction = {at == 0    ? create(key, value)
                                 : removing ? remove(key, {at})
                                            : update(key, {at}, value)};
      StoreResult<WriteResult> result = waiting.write(std::move(transaction));
      std::lock_guard lock(mutex_);
      if (!result) {
        if (result.error().kind == ErrorKind::Unavailable) continue;
        unknown_.insert(key);
        if (unknown_.size() > 4) return;
        continue;
      }
      if (!std::holds_alternative<Committed>(*result)) {
        ADD_FAILURE() << key << ": unexpected conflict";
        return;
      }
      ++acknowledged_;
      if (removing) {
        known_.erase(key);
        gone_.insert(key);
      } else {
        known_[key] = std::get<Committed>(*result).revision.value;
      }
    }
  }

  std::mutex mutex_;
  std::map<std::string, uint64_t> known_;
  std::set<std::string> unknown_;
  std::set<std::string> gone_;
  std::atomic<size_t> acknowledged_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

TEST(RocksPowerLoss, unsynced_data_may_be_lost_but_no_acknowledged_write) {
  uint64_t seed = std::getenv("HOLDFAST_SEED") ? std::strtoull(std::getenv("HOLDFAST_SEED"), nullptr, 10) : 1;
  TestFolder folder;
  std::map<std::string, uint64_t> known;
  size_t acknowledged = 0;
  std::string older_marker;
  for (int round = 0; round < rounds(15); ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    std::mt19937_64 random(seed + round);
    auto faults = std::make_shared<FaultFileSystem>(random());
    std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
    RocksOptions options = options_in(folder.path());
    options.memtable_bytes = 128 << 10;  // Many flushes and log switches.
    options.history_age = std::chrono::milliseconds(50);
    StoreResult<std::unique_ptr<Store>> store = rocks::open_rocks_on(options, env.get());
    ASSERT_TRUE(store) << store.error().message;
    Load load(**store, 6, known, random());
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    older_marker = *read_file(folder.path() + "/ACKNOWLEDGED");
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    faults->freeze();
    load.stop();
    load.join();
    store->reset();
    faults->lose_power();
    // The marker is not synced: after a power loss it may be older.
    if (random() % 2) write_file(folder.path() + "/ACKNOWLEDGED", older_marker);
    acknowledged += load.acknowledged();

    StoreResult<std::unique_ptr<Store>> again = open_rocks(options);
    ASSERT_TRUE(again) << again.error().message;
    known = load.verify(**again);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(acknowledged, 100u);
}

TEST(RocksFailures, a_full_disk_is_reported_and_writes_resume_when_space_is_freed) {
  TestFolder folder;
  auto faults = std::make_shared<FaultFileSystem>(3);
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
  StoreResult<std::unique_ptr<Store>> opened = rocks::open_rocks_on(options_in(folder.path()), env.get());
  ASSERT_TRUE(opened) << opened.error().message;
  Store& store = **opened;
  Waiting waiting(store);
  Revision before = waiting.create("/before", "1");
  auto watcher = store.watch({"/", before});
  faults->fill_up_after(1000);
  StoreResult<WriteResult> result = waiting.write({create("/large", make_blob(std::string(50000, 'x')))});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("the disk is full"));
  EXPECT_THAT(result.error().message, HasSubstr(folder.path()));
  const std::string told = to_api_error(result.error()).message;
  EXPECT_EQ(told, "store: the disk is full");
  EXPECT_THAT(told, ::testing::Not(HasSubstr(folder.path()))) << "clients must not see file paths";
  // Writes keep failing while the disk is full; reads work.
  StoreResult<WriteResult> another = waiting.write({create("/other", make_blob("x"))});
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().kind, ErrorKind::Unavailable) << another.error().message;

  faults->make_room();
  StoreResult<WriteResult> after = waiting.write({create("/after", make_blob("2"))});
  for (int i = 0; i < 200 && !after; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    after = waiting.write({create("/after", make_blob("2"))});
  }
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*waiting.get("/before")->item->value, "1");
  std::vector<EventRef> events = take(*watcher, 1);
  EXPECT_EQ(events.at(0)->key, "/after") << "watchers continue undisturbed";
}

TEST(RocksFailures, no_conflict_is_reported_with_a_write_that_failed) {
  TestFolder folder;
  auto faults = std::make_shared<FaultFileSystem>(5);
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
  StoreResult<std::unique_ptr<Store>> opened = rocks::open_rocks_on(options_in(folder.path()), env.get());
  ASSERT_TRUE(opened) << opened.error().message;
  Store& store = **opened;
  Waiting(store).create("/there", "1");
  faults->fill_up_after(1000);
  // In one group: the first conflicts with an existing key, the last with the second, which will fail.
  std::vector<Transaction> group;
  for (const char* key : {"/there", "/large", "/large"}) {
    group.push_back({create(key, make_blob(std::string(50000, 'x')))});
  }
  std::promise<std::vector<StoreResult<WriteResult>>> promise;
  store.write_all(std::move(group), [&](auto results) { promise.set_value(std::move(results)); });
  const std::vector<StoreResult<WriteResult>> results = promise.get_future().get();
  ASSERT_TRUE(results.at(0));
  EXPECT_TRUE(std::holds_alternative<Conflict>(*results[0])) << "a conflict with an existing key is reported";
  EXPECT_FALSE(results.at(1));
  EXPECT_FALSE(results.at(2)) << "a conflict with a write that failed";
}

TEST(RocksFailures, a_failed_sync_is_not_an_acknowledgement) {
  TestFolder folder;
  auto faults = std::make_shared<FaultFileSystem>(4);
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
  Revision before;
  {
    StoreResult<std::unique_ptr<Store>> opened = rocks::open_rocks_on(options_in(folder.path()), env.get());
    ASSERT_TRUE(opened) << opened.error().message;
    Waiting waiting(**opened);
    before = waiting.create("/a", "1");
    faults->fail_syncs(1);
    StoreResult<WriteResult> result = waiting.write({update("/a", before, make_blob("2"))});
    // The store reopens itself to find out what was written; the result is then certain, either way.
    StoreResult<Got> got = waiting.get("/a");
    ASSERT_TRUE(got) << got.error().message;
    if (result) {
      EXPECT_EQ(*got->item->value, "2");
    } else {
      EXPECT_EQ(*got->item->value, "1") << result.error().message;
    }
    Revision now = got->item->modified;
    waiting.update("/a", now, "3");
  }
  auto store = open(options_in(folder.path()));
  EXPECT_EQ(*Waiting(*store).get("/a")->item->value, "3");
}

}  // namespace
}  // namespace holdfast::store::testing
