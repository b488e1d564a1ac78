// Copying and checking of stores, etcds and backups.
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "store/embedded.h"
#include "store/records.h"
#include "store/rocks_records.h"
#include "store/rules.h"

namespace holdfast::store {
namespace {

constexpr uint64_t kPageItems = 500;
constexpr size_t kWritesTogether = 256;
constexpr uint64_t kProgressItems = 1000;

// Calls start(callback) and blocks: these functions are for the command line.
template <class T, class Start>
T wait_for(Start start) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<T> answer;
  start([&](T value) {
    std::lock_guard lock(mutex);
    answer.emplace(std::move(value));
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answer.has_value(); });
  return std::move(*answer);
}

class EtcdSource final : public Source {
 public:
  EtcdSource(std::unique_ptr<Store> store, std::string prefix, Page first)
      : store_(std::move(store)), prefix_(std::move(prefix)), first_(std::move(first)) {}

  static RangeRequest request(const std::string& prefix) { return {.prefix = prefix, .limit = kPageItems}; }

  Revision revision() const override { return first_.revision; }

  StoreResult<Unit> walk(const std::function<StoreResult<Unit>(const Record&)>& take) override {
    RangeRequest next = request(prefix_);
    next.at = first_.revision;
    while (true) {
      StoreResult<Page> page = wait_for<StoreResult<Page>>([&](auto done) { store_->range(next, std::move(done)); });
      if (!page) return page.take_error();
      for (const KeyValue& item : page->items) {
        StoreResult<Unit> taken = take({item.key, *item.value, item.created, item.modified, item.expires ? -1 : 0});
        if (!taken) return taken;
      }
      if (!page->more || page->items.empty()) return Unit{};
      next.from = page->items.back().key + '\0';
    }
  }

 private:
  std::unique_ptr<Store> store_;
  const std::string prefix_;
  const Page first_;
};

class EtcdSink final : public Sink {
 public:
  EtcdSink(std::unique_ptr<Store> store, std::string prefix, const Clock& clock)
      : store_(std::move(store)), prefix_(std::move(prefix)), clock_(clock) {}

  // An etcd counts its own revisions. It is advanced to the source's revision by writes to temporary keys, because
  // clients take an object with a smaller revision for an older one.
  StoreResult<Unit> begin_after(Revision revision) override {
    StoreResult<Revision> now =
        wait_for<StoreResult<Revision>>([&](auto done) { store_->current_revision(std::move(done)); });
    if (!now) return now.take_error();
    if (*now >= revision) return Unit{};
    std::vector<Revision> at(std::min<uint64_t>(kWritesTogether, revision.value - now->value));
    const auto key = [&](size_t i) { return prefix_ + "holdfast-revision/" + std::to_string(i); };
    const Blob nothing = make_blob(std::string());
    // Deleting the keys counts as well.
    for (bool made = false; !made || now->value + at.size() < revision.value; made = true) {
      for (size_t i = 0; i < at.size(); ++i) {
        waiting_.push_back({made ? update(key(i), at[i], nothing) : create(key(i), nothing)});
      }
      StoreResult<std::vector<Revision>> written = write();
      if (!written) return written.take_error();
      at = std::move(*written);
      *now = *std::max_element(at.begin(), at.end());
    }
    for (size_t i = 0; i < at.size(); ++i) waiting_.push_back({remove(key(i), at[i])});
    StoreResult<std::vector<Revision>> removed = write();
    if (!removed) return removed.take_error();
    const Revision last = *std::max_element(removed->begin(), removed->end());
    return wait_for<StoreResult<Unit>>([&](auto done) { store_->compact(last, std::move(done)); });
  }

  StoreResult<Unit> put(const Record& record) override {
    std::chrono::seconds ttl{};
    if (record.expiry_ms != 0) {
      // Records that have expired in the meantime are deleted as soon as possible.
      ttl = std::chrono::seconds(std::max<int64_t>(1, record.expiry_ms / 1000 - clock_.now().seconds));
    }
    waiting_.push_back({create(std::string(record.key), make_blob(std::string(record.value)), ttl)});
    return waiting_.size() < kWritesTogether ? Unit{} : flush();
  }

  StoreResult<Unit> finish(Revision) override { return flush(); }

 private:
  StoreResult<Unit> flush() {
    StoreResult<std::vector<Revision>> written = write();
    if (!written) return written.take_error();
    return Unit{};
  }

  // Returns the revision of each transaction.
  StoreResult<std::vector<Revision>> write() {
    auto results = wait_for<std::vector<StoreResult<WriteResult>>>(
        [&](auto done) { store_->write_all(std::exchange(waiting_, {}), std::move(done)); });
    std::vector<Revision> revisions;
    for (StoreResult<WriteResult>& result : results) {
      if (!result) return result.take_error();
      if (auto* conflict = std::get_if<Conflict>(&*result)) {
        std::string key = conflict->current ? conflict->current->key : "";
        return StoreError{ErrorKind::Invalid, key + ": another client is writing to the target"};
      }
      revisions.push_back(std::get<Committed>(*result).revision);
    }
    return revisions;
  }

  std::unique_ptr<Store> store_;
  const std::string prefix_;
  const Clock& clock_;
  std::vector<Transaction> waiting_;
};

// Copying and checking leave compaction to the servers.
StoreResult<std::unique_ptr<Store>> open_without_compaction(EtcdOptions options) {
  options.compaction_interval = {};
  return open_etcd(std::move(options));
}

StoreResult<std::unique_ptr<Source>> open_source(const Location& location, const std::string& prefix) {
  if (auto* rocks = std::get_if<RocksOptions>(&location)) return open_rocks_source(*rocks);
  if (auto* backup = std::get_if<BackupFile>(&location)) return open_backup(backup->path);
  StoreResult<std::unique_ptr<Store>> store = open_without_compaction(std::get<EtcdOptions>(location));
  if (!store) return store.take_error();
  RangeRequest request = EtcdSource::request(prefix);
  request.limit = 1;
  request.keys_only = true;
  StoreResult<Page> first = wait_for<StoreResult<Page>>([&](auto done) { (*store)->range(request, std::move(done)); });
  if (!first) return first.take_error();
  return std::unique_ptr<Source>(std::make_unique<EtcdSource>(std::move(*store), prefix, std::move(*first)));
}

StoreResult<std::unique_ptr<Sink>> make_sink(const Location& location, const std::string& prefix) {
  if (auto* rocks = std::get_if<RocksOptions>(&location)) return make_rocks_sink(*rocks);
  if (auto* backup = std::get_if<BackupFile>(&location)) return make_backup(backup->path);
  const auto& options = std::get<EtcdOptions>(location);
  StoreResult<std::unique_ptr<Store>> store = open_without_compaction(options);
  if (!store) return store.take_error();
  StoreResult<Page> first = wait_for<StoreResult<Page>>(
      [&](auto done) { (*store)->range({.prefix = prefix, .limit = 1, .keys_only = true}, std::move(done)); });
  if (!first) return first.take_error();
  if (!first->items.empty()) {
    return StoreError{ErrorKind::Invalid, "the etcd at " + options.endpoints.front() + " is not empty: it holds " +
                                              first->items.front().key};
  }
  return std::unique_ptr<Sink>(std::make_unique<EtcdSink>(std::move(*store), prefix, system_clock()));
}

StoreResult<Moved> copy(const Location& from, const std::function<StoreResult<std::unique_ptr<Sink>>()>& make,
                        const CopyOptions& options) {
  StoreResult<std::unique_ptr<Source>> source = open_source(from, options.prefix);
  if (!source) return source.take_error();
  StoreResult<std::unique_ptr<Sink>> sink = make();
  if (!sink) return sink.take_error();
  Moved moved;
  moved.revision = (*source)->revision();
  StoreResult<Unit> started = (*sink)->begin_after(moved.revision);
  if (!started) return started.take_error();
  StoreResult<Unit> walked = (*source)->walk([&](const Record& record) -> StoreResult<Unit> {
    if (!has_prefix(record.key, options.prefix)) return Unit{};
    Record copied = record;
    if (copied.expiry_ms < 0) copied.expiry_ms = (system_clock().now().seconds + options.ttl.count()) * 1000;
    std::string converted;
    if (options.convert) {
      StoreResult<std::string> value = options.convert(record.key, record.value);
      if (!value) return value.take_error();
      converted = std::move(*value);
      copied.value = converted;
    }
    StoreResult<Unit> put = (*sink)->put(copied);
    if (!put) return put;
    ++moved.items;
    moved.bytes += record.key.size() + record.value.size();
    if (options.progress && moved.items % kProgressItems == 0) options.progress(moved);
    return Unit{};
  });
  if (!walked) return walked.take_error();
  StoreResult<Unit> finished = (*sink)->finish(moved.revision);
  if (!finished) return finished.take_error();
  return moved;
}

}  // namespace

StoreResult<Moved> copy_store(const Location& from, const Location& to, const CopyOptions& options) {
  return copy(from, [&] { return make_sink(to, options.prefix); }, options);
}

StoreResult<Moved> back_up(const RocksOptions& from, const BackupFile& to, std::string attachment,
                           const CopyOptions& options) {
  return copy(from, [&] { return make_backup(to.path, std::move(attachment)); }, options);
}

StoreResult<CheckReport> check_store(const Location& location, const CheckOptions& options) {
  if (auto* rocks = std::get_if<RocksOptions>(&location)) return rocks::check_rocks(*rocks, options);
  StoreResult<std::unique_ptr<Source>> source = open_source(location, options.prefix);
  if (!source) return source.take_error();
  CheckReport report;
  report.checked.revision = (*source)->revision();
  StoreResult<Unit> walked = (*source)->walk([&](const Record& record) -> StoreResult<Unit> {
    if (!has_prefix(record.key, options.prefix)) return Unit{};
    ++report.checked.items;
    ++report.versions;
    report.checked.bytes += record.key.size() + record.value.size();
    if (options.verify) {
      if (std::optional<std::string> wrong = options.verify(record.key, record.value)) {
        report.problems.push_back({std::string(record.key), std::move(*wrong)});
      }
    }
    if (options.progress && report.checked.items % kProgressItems == 0) options.progress(report.checked);
    return Unit{};
  });
  if (!walked) return walked.take_error();
  return report;
}

}  // namespace holdfast::store
