// The newest state of a store as a stream of records: out of an embedded store, an etcd or a backup, and into them.
// Private to store.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "store/store.h"

namespace holdfast::store {

struct Record {
  std::string_view key;
  std::string_view value;
  Revision created;
  Revision modified;
  int64_t expiry_ms = 0;  // Unix time; 0: never, -1: some time, which the source does not tell.
};

class Source {
 public:
  virtual ~Source() = default;
  // The revision that all records belong to.
  virtual Revision revision() const = 0;
  // Calls take() for each record in the order of keys, until it returns an error.
  virtual StoreResult<Unit> walk(const std::function<StoreResult<Unit>(const Record&)>& take) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Before anything is put. What is put has greater revisions than this, or its own.
  virtual StoreResult<Unit> begin_after(Revision) { return Unit{}; }
  virtual StoreResult<Unit> put(const Record& record) = 0;
  // Everything was put: make it last, and show it under its name.
  virtual StoreResult<Unit> finish(Revision revision) = 0;
};

StoreResult<std::unique_ptr<Source>> open_rocks_source(const RocksOptions& options);
StoreResult<std::unique_ptr<Sink>> make_rocks_sink(const RocksOptions& options);
StoreResult<std::unique_ptr<Source>> open_backup(const std::string& path);
StoreResult<std::unique_ptr<Sink>> make_backup(const std::string& path);

}  // namespace holdfast::store
