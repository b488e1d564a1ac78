// Reading an embedded store from outside, whether or not its owner runs. Private to store.
#pragma once

#include "store/records.h"
#include "store/rocks_db.h"

namespace holdfast::store::rocks {

// A view of the database as it was when opened. Waits for the disk.
class View {
 public:
  // Corrupt if what is there does not hold together; tried again a few times if the owner is writing.
  static StoreResult<std::unique_ptr<View>> open(const std::string& directory);
  ~View();

  rocksdb::DB& db() { return *db_; }
  Revision current() const { return current_; }
  Revision compacted() const { return compacted_; }

 private:
  explicit View(std::string scratch) : scratch_(std::move(scratch)) {}

  const std::string scratch_;  // A folder that RocksDB wants for itself.
  std::unique_ptr<rocksdb::DB> db_;
  Revision current_;
  Revision compacted_;
};

StoreResult<CheckReport> check_rocks(const RocksOptions& options, const CheckOptions& check);

}  // namespace holdfast::store::rocks
