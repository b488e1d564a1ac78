// Opens the RocksDB of an embedded store such that acknowledged writes are never lost silently. Private to store.
#pragma once

#include <rocksdb/db.h>

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

namespace holdfast::store::rocks {

// The newest acknowledged revision, in a separate file beside the database. It is written after each commit but not
// synced (that would be a second sync per commit), so after a power loss it may be too old, but it is never too new: a
// database that does not reach it has lost acknowledged writes. After the process was killed and after a clean close it
// is exact. Two slots, so that a torn write leaves the other one intact.
class AckMarker {
 public:
  AckMarker() = default;
  AckMarker(AckMarker&& other) noexcept;
  AckMarker& operator=(AckMarker&& other) noexcept;
  ~AckMarker();

  static constexpr const char* kFile = "ACKNOWLEDGED";
  static StoreResult<AckMarker> open(const std::string& directory);
  // Read-only; 0 if there is no marker.
  static Revision read(const std::string& directory);

  Revision acknowledged() const { return acknowledged_; }
  void set(Revision revision);  // A failed write only makes the marker older.
  void sync();

 private:
  void load();

  int file_ = -1;
  Revision acknowledged_;
  bool second_slot_ = false;
};

struct Database {
  std::unique_ptr<rocksdb::DB> db;
  AckMarker marker;
  Revision current;
  Revision compacted;
  bool is_new = false;    // Contains no records, not even the format's: the first commit writes that too.
  std::string recovered;  // What was cut off while opening, for the log; empty if nothing.
};

// Null `env` means the default one. It must be the file system of options.directory.
StoreResult<Database> open_database(const RocksOptions& options, rocksdb::Env* env);

// The store as its owner sees it, for a second process that only reads: takes no lock, changes nothing.
StoreResult<std::unique_ptr<rocksdb::DB>> open_for_reading(const std::string& directory, const std::string& scratch);

// Creates an empty database.
StoreResult<std::unique_ptr<rocksdb::DB>> create_database(const std::string& directory);

// The process that holds the lock of the database, possibly this one; 0 if none, or if unknown.
pid_t lock_holder(const std::string& directory);

// The names of a database's log files, oldest first.
StoreResult<std::vector<std::string>> log_files(rocksdb::Env& env, const std::string& directory);

// Read options that bound an iterator to what it reads. An unbounded iterator steps over every deleted record on the
// way to the next existing one, and the log begins with all entries compacted since RocksDB last cleaned up.
rocksdb::ReadOptions reading_one_key();   // Versions of the key it seeks.
rocksdb::ReadOptions reading_log();       // The log.
rocksdb::ReadOptions reading_expiries();  // TTLs.
rocksdb::ReadOptions reading_in_order();  // Everything, in key order.

// The newest and the compacted revision according to the records.
StoreResult<std::pair<Revision, Revision>> read_revisions(rocksdb::DB& db);

StoreError from_rocks(const rocksdb::Status& status, const std::string& what);

// open_rocks with a file system for fault injection.
StoreResult<std::unique_ptr<Store>> open_rocks_on(RocksOptions options, rocksdb::Env* env);

}  // namespace holdfast::store::rocks
