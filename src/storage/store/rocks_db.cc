#include "store/rocks_db.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "store/rocks_format.h"
#include "store/wal_scan.h"

// RocksDB is not built with ThreadSanitizer, which then does not see the atomics that order its memtables.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:rocksdb::\n"; }
#endif
#endif

namespace holdfast::store::rocks {
namespace {

namespace fs = std::filesystem;

// RocksDB reports problems to us as a Status; its own log file would cost two files and a rename at every start.
class SilentLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// RocksDB writes its options to a file at every start, syncs it, and reads it back. Ours are hard-coded below.
class NoOptionsFile final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "holdfast.NoOptionsFile"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (path.find("/OPTIONS-") != std::string::npos) return rocksdb::IOStatus::NotSupported();
    return target()->NewWritableFile(path, options, file, debug);
  }
};

// The default file system without that file, or the one of a test. Never destroyed: databases may be closed late.
rocksdb::Env* env_without_options_file(rocksdb::Env* env) {
  static rocksdb::Env* const machine =
      rocksdb::NewCompositeEnv(std::make_shared<NoOptionsFile>(rocksdb::FileSystem::Default())).release();
  return env ? env : machine;
}

// Bloom filters on keys without revision: most creates then read nothing. Iterators over more than one key must request
// total order.
class KeyOfVersion final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "holdfast.KeyOfVersion"; }
  bool InDomain(const rocksdb::Slice& bytes) const override {
    return parse_version_key(bytes.ToStringView()).has_value();
  }
  rocksdb::Slice Transform(const rocksdb::Slice& bytes) const override {
    return {bytes.data(), bytes.size() - sizeof(Revision)};
  }
};

rocksdb::Options database_options(const RocksOptions& options, rocksdb::Env* env) {
  rocksdb::Options db;
  db.create_if_missing = true;
  db.fail_if_options_file_error = false;  // The default of newer RocksDBs is true.
  db.env = env_without_options_file(env);
  db.info_log = std::make_shared<SilentLogger>();
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  db.track_and_verify_wals_in_manifest = true;
  db.paranoid_checks = true;
  db.write_buffer_size = options.memtable_bytes;
  db.max_write_buffer_number = 2;
  db.target_file_size_base = 16 << 20;
  db.max_bytes_for_level_base = 64 << 20;
  db.max_background_jobs = 2;
  db.max_open_files = 256;
  db.max_file_opening_threads = 1;  // The default, 16 threads even for an empty store, costs more than it saves.
  db.allow_concurrent_memtable_write = false;  // One thread writes.
  db.enable_write_thread_adaptive_yield = false;
  db.compression = rocksdb::kLZ4Compression;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.skip_stats_update_on_db_open = true;
  db.skip_checking_sst_file_sizes_on_db_open = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes, 2);
  table.block_size = 16 << 10;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = false;
  db.prefix_extractor = std::make_shared<KeyOfVersion>();
  db.memtable_prefix_bloom_size_ratio = 0.02;
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return db;
}

}  // namespace

pid_t lock_holder(const std::string& directory) {
  struct stat lock = {};
  if (::stat((directory + "/LOCK").c_str(), &lock) != 0) return 0;
  // Do not open the lock file itself: closing it would release a lock held by this process.
  // "1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, type, mode, access, file;
    pid_t holder = 0;
    if (!(words >> number >> type >> mode >> access >> holder >> file) || type != "POSIX" || access != "WRITE")
      continue;
    if (file.substr(file.rfind(':') + 1) == std::to_string(lock.st_ino)) return holder;
  }
  return 0;
}

namespace {

bool is_lock_failure(const rocksdb::Status& status) {
  std::string text = status.ToString();
  return status.IsIOError() && text.find("/LOCK: ") != std::string::npos && text.find("lock") != std::string::npos;
}

StoreError in_use(const std::string& directory) {
  pid_t holder = lock_holder(directory);
  std::string who = holder == ::getpid() ? "another store of this process"
                    : holder > 0         ? "process " + std::to_string(holder)
                                         : "another process";
  return {ErrorKind::Unavailable, directory + " is in use by " + who + "; stop it first, or choose another directory"};
}

StoreResult<std::string> read_whole(rocksdb::Env& env, const std::string& path) {
  std::string contents;
  rocksdb::Status status = rocksdb::ReadFileToString(&env, path, &contents);
  if (!status.ok()) return from_rocks(status, path);
  return contents;
}

}  // namespace

StoreResult<std::vector<std::string>> log_files(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  rocksdb::Status status = env.GetChildren(directory, &names);
  if (!status.ok()) return from_rocks(status, directory);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  std::ranges::sort(names, {}, [](const std::string& name) { return std::strtoull(name.c_str(), nullptr, 10); });
  return names;
}

namespace {

StoreError lost_writes(const std::string& directory, Revision acknowledged, Revision found) {
  return {ErrorKind::Corrupt, directory + ": writes up to revision " + std::to_string(acknowledged.value) +
                                  " were acknowledged, but the files reach only revision " +
                                  std::to_string(found.value) +
                                  ". Nothing was changed; restore a backup, or the damaged files, and start again"};
}

// Called when RocksDB rejected the log. Cuts off a tail that was never acknowledged and returns what it cut; anything
// else is Corrupt.
StoreResult<std::string> repair_torn_tail(const rocksdb::Options& options, const std::string& directory,
                                          Revision acknowledged, const rocksdb::Status& refusal) {
  rocksdb::Env& env = *options.env;
  StoreResult<std::vector<std::string>> logs = log_files(env, directory);
  if (!logs) return logs.take_error();
  for (const std::string& name : *logs) {
    std::string path = directory + "/" + name;
    StoreResult<std::string> contents = read_whole(env, path);
    if (!contents) return contents.take_error();
    WalScan scan = scan_wal(*contents);
    if (scan.state == WalScan::State::Whole) continue;
    std::string where = path + " at byte " + std::to_string(scan.damage_bytes) + ": " + scan.what;
    // A newer log is only started after the previous one has been synced completely.
    if (scan.state == WalScan::State::Damaged || name != logs->back()) {
      return StoreError{ErrorKind::Corrupt,
                        where + ", followed by acknowledged writes. Nothing was changed; restore a backup"};
    }
    // Check before cutting: what remains must contain everything that was acknowledged.
    rocksdb::Options looking = options;
    looking.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
    rocksdb::DB* raw = nullptr;
    rocksdb::Status status = rocksdb::DB::OpenForReadOnly(looking, directory, &raw);
    if (!status.ok()) return from_rocks(status, directory);
    std::unique_ptr<rocksdb::DB> db(raw);
    StoreResult<std::pair<Revision, Revision>> revisions = read_revisions(*db);
    db.reset();
    if (!revisions) return revisions.take_error();
    if (revisions->first < acknowledged) return lost_writes(directory, acknowledged, revisions->first);

    status = rocksdb::WriteStringToFile(&env, contents->substr(0, scan.good_bytes), path + ".whole", true);
    if (status.ok()) status = env.RenameFile(path + ".whole", path);
    std::unique_ptr<rocksdb::Directory> folder;
    if (status.ok()) status = env.NewDirectory(directory, &folder);
    if (status.ok()) status = folder->Fsync();
    if (!status.ok()) return from_rocks(status, path);
    return where + ": cut off " + std::to_string(contents->size() - scan.good_bytes) +
           " bytes that were never acknowledged";
  }
  return from_rocks(refusal, directory);
}

}  // namespace

AckMarker::AckMarker(AckMarker&& other) noexcept
    : file_(std::exchange(other.file_, -1)), acknowledged_(other.acknowledged_), second_slot_(other.second_slot_) {}

AckMarker& AckMarker::operator=(AckMarker&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(acknowledged_, other.acknowledged_);
  std::swap(second_slot_, other.second_slot_);
  return *this;
}

AckMarker::~AckMarker() {
  if (file_ >= 0) ::close(file_);
}

Revision AckMarker::read(const std::string& directory) {
  AckMarker marker;
  marker.file_ = ::open((directory + "/" + kFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (marker.file_ >= 0) marker.load();
  return marker.acknowledged_;
}

StoreResult<AckMarker> AckMarker::open(const std::string& directory) {
  AckMarker marker;
  std::string path = directory + "/" + kFile;
  marker.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (marker.file_ < 0) return StoreError{ErrorKind::Unavailable, path + ": " + std::strerror(errno)};
  marker.load();
  return marker;
}

void AckMarker::load() {
  for (bool second : {false, true}) {
    std::array<uint64_t, 2> slot = {};
    if (::pread(file_, slot.data(), sizeof slot, second ? 16 : 0) != static_cast<ssize_t>(sizeof slot)) continue;
    uint64_t check = hash_bytes({reinterpret_cast<const char*>(slot.data()), sizeof slot[0]});
    if (check == slot[1] && Revision{slot[0]} > acknowledged_) {
      acknowledged_ = {slot[0]};
      second_slot_ = !second;
    }
  }
}

void AckMarker::set(Revision revision) {
  std::array<uint64_t, 2> slot = {revision.value, 0};
  slot[1] = hash_bytes({reinterpret_cast<const char*>(slot.data()), sizeof slot[0]});
  ssize_t written = ::pwrite(file_, slot.data(), sizeof slot, second_slot_ ? 16 : 0);
  if (written == static_cast<ssize_t>(sizeof slot)) acknowledged_ = revision;
  second_slot_ = !second_slot_;
}

void AckMarker::sync() { ::fdatasync(file_); }

namespace {

std::string summary_of(const rocksdb::Status& status) {
  if (status.IsCorruption()) return "stored data is damaged";
  if (status.IsIOError()) return "input/output error";
  if (status.IsBusy() || status.IsTryAgain()) return "busy, try again";
  if (status.IsTimedOut()) return "the operation timed out";
  return "internal error";
}

}  // namespace

StoreError from_rocks(const rocksdb::Status& status, const std::string& what) {
  ErrorKind kind = ErrorKind::Internal;
  if (status.IsCorruption()) kind = ErrorKind::Corrupt;
  if (status.IsIOError() || status.IsNoSpace() || status.IsBusy() || status.IsTryAgain()) kind = ErrorKind::Unavailable;
  if (status.IsTimedOut()) kind = ErrorKind::Timeout;
  // RocksDB's message contains file names.
  const std::string full = status.IsNoSpace() ? "the disk is full" : "";
  return {kind, what + ": " + (full.empty() ? "" : full + ": ") + status.ToString(),
          "store: " + (full.empty() ? summary_of(status) : full)};
}

rocksdb::ReadOptions reading_one_key() {
  rocksdb::ReadOptions options;
  options.prefix_same_as_start = true;
  return options;
}

namespace {
rocksdb::ReadOptions reading_between(const rocksdb::Slice& from, const rocksdb::Slice& to) {
  rocksdb::ReadOptions options = reading_in_order();
  options.iterate_lower_bound = &from;
  options.iterate_upper_bound = &to;
  return options;
}
}  // namespace

rocksdb::ReadOptions reading_log() {
  static const rocksdb::Slice from("l"), to("m");
  return reading_between(from, to);
}

rocksdb::ReadOptions reading_expiries() {
  static const rocksdb::Slice from("e"), to("f");
  return reading_between(from, to);
}

rocksdb::ReadOptions reading_in_order() {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  return options;
}

StoreResult<std::pair<Revision, Revision>> read_revisions(rocksdb::DB& db) {
  Revision compacted;
  std::string bytes;
  rocksdb::Status status =
      db.Get(rocksdb::ReadOptions(), rocksdb::Slice(kCompactedKey.data(), kCompactedKey.size()), &bytes);
  if (status.ok()) {
    std::optional<Revision> parsed = parse_revision(bytes);
    if (!parsed) return StoreError{ErrorKind::Corrupt, "the record of the compacted revision cannot be read"};
    compacted = *parsed;
  } else if (!status.IsNotFound()) {
    return from_rocks(status, "reading the compacted revision");
  }
  std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(reading_log()));
  it->SeekForPrev(log_key({UINT64_MAX}));
  Revision newest = std::max(Revision{1}, compacted);
  if (it->Valid()) {
    if (std::optional<Revision> logged = parse_log_key(it->key().ToStringView())) newest = std::max(newest, *logged);
  }
  if (!it->status().ok()) return from_rocks(it->status(), "reading the newest revision");
  return std::pair(newest, compacted);
}

StoreResult<Database> open_database(const RocksOptions& options, rocksdb::Env* env) {
  const std::string& directory = options.directory;
  if (Result<Unit> ours = make_private_directory(directory); !ours) {
    return StoreError{ErrorKind::Unavailable, ours.take_error().message};
  }

  Database database;
  StoreResult<AckMarker> marker = AckMarker::open(directory);
  if (!marker) return marker.take_error();
  database.marker = std::move(*marker);

  rocksdb::Options db_options = database_options(options, env);
  // A store that has acknowledged something must exist: never create a new one in its place.
  db_options.create_if_missing = database.marker.acknowledged() == Revision{};
  rocksdb::DB* raw = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(db_options, directory, &raw);
  if (status.IsCorruption()) {
    StoreResult<std::string> repaired = repair_torn_tail(db_options, directory, database.marker.acknowledged(), status);
    if (!repaired) return repaired.take_error();
    database.recovered = std::move(*repaired);
    status = rocksdb::DB::Open(db_options, directory, &raw);
  }
  if (is_lock_failure(status)) return in_use(directory);
  if (status.IsInvalidArgument() && !db_options.create_if_missing) {
    return lost_writes(directory, database.marker.acknowledged(), {});
  }
  if (!status.ok()) return from_rocks(status, directory);
  database.db.reset(raw);

  std::string format;
  rocksdb::Slice format_key(kFormatKey.data(), kFormatKey.size());
  status = database.db->Get(rocksdb::ReadOptions(), format_key, &format);
  database.is_new = status.IsNotFound();
  if (!status.ok() && !database.is_new) return from_rocks(status, directory);
  if (!database.is_new && format != kFormat) {
    return StoreError{ErrorKind::Invalid, directory + " was written in the format '" + format +
                                              "', which this program does not know (it writes '" +
                                              std::string(kFormat) + "')"};
  }

  StoreResult<std::pair<Revision, Revision>> revisions = read_revisions(*database.db);
  if (!revisions) return revisions.take_error();
  database.current = revisions->first;
  database.compacted = revisions->second;
  if (database.current < database.marker.acknowledged()) {
    return lost_writes(directory, database.marker.acknowledged(), database.current);
  }
  // Opening has written the contents of the log to synced tables, so readers can rely on them.
  if (!database.is_new) database.marker.set(database.current);
  return database;
}

StoreResult<std::unique_ptr<rocksdb::DB>> open_for_reading(const std::string& directory, const std::string& scratch) {
  RocksOptions options;
  options.directory = directory;
  rocksdb::Options db_options = database_options(options, nullptr);
  db_options.create_if_missing = false;
  db_options.max_open_files = -1;  // Files stay readable even if the owner deletes them.
  // The owner may be in the middle of a write.
  db_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocksdb::DB* raw = nullptr;
  rocksdb::Status status = rocksdb::DB::OpenAsSecondary(db_options, directory, scratch, &raw);
  if (!status.ok()) return from_rocks(status, directory);
  return std::unique_ptr<rocksdb::DB>(raw);
}

StoreResult<std::unique_ptr<rocksdb::DB>> create_database(const std::string& directory) {
  RocksOptions options;
  options.directory = directory;
  rocksdb::Options db_options = database_options(options, nullptr);
  db_options.error_if_exists = true;
  rocksdb::DB* raw = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(db_options, directory, &raw);
  if (!status.ok()) return from_rocks(status, directory);
  return std::unique_ptr<rocksdb::DB>(raw);
}

}  // namespace holdfast::store::rocks
