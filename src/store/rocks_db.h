// Opens the RocksDB of an embedded store so that nothing acknowledged is lost silently. Private to store.
#pragma once

#include <rocksdb/db.h>

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

namespace holdfast::store::rocks {

// The newest acknowledged revision, in a file of its own beside the database. It is written after each commit but not
// synced (that would be a second sync for each commit), so after a power loss it may be old, but it is never too new:
// a database that does not reach it has lost acknowledged writes. After a kill of the process and after a clean close
// it is exact. Two slots, so that a torn write leaves the other one.
class AckMarker {
 public:
  AckMarker() = default;
  AckMarker(AckMarker&& other) noexcept;
  AckMarker& operator=(AckMarker&& other) noexcept;
  ~AckMarker();

  static constexpr const char* kFile = "ACKNOWLEDGED";
  static StoreResult<AckMarker> open(const std::string& directory);
  // Only looks; 0 if there is none.
  static Revision read(const std::string& directory);

  Revision acknowledged() const { return acknowledged_; }
  void set(Revision revision);  // Failing to write it only makes it older.
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
  bool is_new = false;    // Holds no records, not even the format's: the first commit writes that too.
  std::string recovered;  // What was cut off while opening, for the log; empty: nothing.
};

// `env` null: the machine's own. It must be the file system of options.directory.
StoreResult<Database> open_database(const RocksOptions& options, rocksdb::Env* env);

// The same store as its owner sees it, for a second process that only reads: takes no lock, changes nothing.
StoreResult<std::unique_ptr<rocksdb::DB>> open_for_reading(const std::string& directory, const std::string& scratch);

// A new, empty one.
StoreResult<std::unique_ptr<rocksdb::DB>> create_database(const std::string& directory);

// The process that holds the database's lock, perhaps this one; 0 if no one, or if that cannot be told.
pid_t lock_holder(const std::string& directory);

// The names of a database's log files, oldest first.
StoreResult<std::vector<std::string>> log_files(rocksdb::Env& env, const std::string& directory);

// Each stays where it reads: an iterator without bounds steps over every deleted record on its way to the next that is
// there, and the log begins with as many as were forgotten since RocksDB last cleaned up.
rocksdb::ReadOptions reading_one_key();   // The versions of the key that it seeks.
rocksdb::ReadOptions reading_log();       // Of the log.
rocksdb::ReadOptions reading_expiries();  // Of TTLs.
rocksdb::ReadOptions reading_in_order();  // Everything, in the order of keys.

// The newest and the compacted revision as the records tell them.
StoreResult<std::pair<Revision, Revision>> read_revisions(rocksdb::DB& db);

StoreError from_rocks(const rocksdb::Status& status, const std::string& what);

// The engine behind open_rocks, with a file system to inject faults into.
StoreResult<std::unique_ptr<Store>> open_rocks_on(RocksOptions options, rocksdb::Env* env);

}  // namespace holdfast::store::rocks
