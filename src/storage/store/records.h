// The newest state of a store as a stream of records: read from an embedded store, an etcd or a backup, and written to
// them. Private to store.
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
  int64_t expiry_ms = 0;  // Unix time; 0 for never, -1 if it expires at a time that the source does not report.
};

class Source {
 public:
  virtual ~Source() = default;
  // The revision of the snapshot.
  virtual Revision revision() const = 0;
  // Calls take() for each record in key order, until it returns an error.
  virtual StoreResult<Unit> walk(const std::function<StoreResult<Unit>(const Record&)>& take) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Called before the first put. Records then get revisions greater than this, or keep their own.
  virtual StoreResult<Unit> begin_after(Revision) { return Unit{}; }
  virtual StoreResult<Unit> put(const Record& record) = 0;
  // Called after the last put: makes everything durable and visible under its final name.
  virtual StoreResult<Unit> finish(Revision revision) = 0;
};

StoreResult<std::unique_ptr<Source>> open_rocks_source(const RocksOptions& options);
StoreResult<std::unique_ptr<Sink>> make_rocks_sink(const RocksOptions& options);
StoreResult<std::unique_ptr<Source>> open_backup(const std::string& path);
StoreResult<std::unique_ptr<Sink>> make_backup(const std::string& path, std::string attachment = {});

}  // namespace holdfast::store
