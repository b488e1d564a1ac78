// Reads an embedded store from another process, whether or not its owner is running. Private to store.
#pragma once

#include "store/records.h"
#include "store/rocks_db.h"

namespace holdfast::store::rocks {

// A snapshot of the database at the time of opening. Blocks on the disk.
class View {
 public:
  // Corrupt if the contents are inconsistent; retried a few times in case the owner is writing.
  static StoreResult<std::unique_ptr<View>> open(const std::string& directory);
  ~View();

  rocksdb::DB& db() { return *db_; }
  Revision current() const { return current_; }
  Revision compacted() const { return compacted_; }

 private:
  explicit View(std::string scratch) : scratch_(std::move(scratch)) {}

  const std::string scratch_;  // A directory that RocksDB requires for itself.
  std::unique_ptr<rocksdb::DB> db_;
  Revision current_;
  Revision compacted_;
};

StoreResult<CheckReport> check_rocks(const RocksOptions& options, const CheckOptions& check);

}  // namespace holdfast::store::rocks
