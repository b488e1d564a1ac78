#include "store/rocks_records.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "store/rocks_format.h"
#include "store/rules.h"
#include "store/wal_scan.h"

namespace holdfast::store {
namespace rocks {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBatchBytes = 4 << 20;
constexpr size_t kListedProblems = 1000;

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

// Every revision between the compacted and the newest one must be in the log; otherwise a part of the database is
// missing.
StoreResult<Unit> check_log_is_whole(rocksdb::DB& db, Revision compacted, Revision current) {
  std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(reading_log()));
  uint64_t want = std::max<uint64_t>(compacted.value, 1) + 1;
  for (it->Seek(slice(log_key({want}))); it->Valid(); it->Next(), ++want) {
    std::optional<Revision> revision = parse_log_key(it->key().ToStringView());
    if (!revision) break;
    if (revision->value != want) break;
  }
  if (!it->status().ok()) return from_rocks(it->status(), "reading the log");
  if (want <= current.value) {
    return StoreError{ErrorKind::Corrupt, "the log has no revision " + std::to_string(want)};
  }
  return Unit{};
}

class RocksSource final : public Source {
 public:
  explicit RocksSource(std::unique_ptr<View> view) : view_(std::move(view)) {}

  Revision revision() const override { return view_->current(); }

  StoreResult<Unit> walk(const std::function<StoreResult<Unit>(const Record&)>& take) override {
    rocksdb::ReadOptions options = reading_in_order();
    options.fill_cache = false;
    std::unique_ptr<rocksdb::Iterator> it(view_->db().NewIterator(options));
    std::string seen;
    for (it->Seek("d"); it->Valid() && it->key()[0] == 'd'; it->Next()) {
      std::optional<VersionKey> found = parse_version_key(it->key().ToStringView());
      std::optional<Version> version = parse_version(it->value().ToStringView());
      if (!found || !version) {
        return StoreError{ErrorKind::Corrupt, it->key().ToString(true) + ": the stored record cannot be read"};
      }
      if (found->key == seen) continue;
      seen.assign(found->key);
      if (version->deleted) continue;
      StoreResult<Unit> taken =
          take({found->key, version->value, version->created, found->revision, version->expiry_ms});
      if (!taken) return taken;
    }
    if (!it->status().ok()) return from_rocks(it->status(), "after " + seen);
    return Unit{};
  }

 private:
  std::unique_ptr<View> view_;
};

class RocksSink final : public Sink {
 public:
  RocksSink(std::string directory, std::unique_ptr<rocksdb::DB> db)
      : directory_(std::move(directory)), db_(std::move(db)) {}
  ~RocksSink() override {
    db_.reset();
    std::error_code ignored;
    if (!finished_) fs::remove_all(partial_of(directory_), ignored);
  }

  static std::string partial_of(const std::string& directory) { return directory + ".partial"; }

  StoreResult<Unit> put(const Record& record) override {
    if (record.expiry_ms != 0) {
      batch_.Put(slice(expiry_key(record.expiry_ms, record.modified, record.key)), rocksdb::Slice());
    }
    std::string key = version_key(record.key, record.modified);
    std::string head = version_head({false, record.created, record.expiry_ms, {}});
    rocksdb::Slice key_part = slice(key);
    rocksdb::Slice value_parts[] = {slice(head), slice(record.value)};
    batch_.Put(rocksdb::SliceParts(&key_part, 1), rocksdb::SliceParts(value_parts, 2));
    return batch_.GetDataSize() < kBatchBytes ? Unit{} : write();
  }

  StoreResult<Unit> finish(Revision revision) override {
    batch_.Put(slice(kFormatKey), slice(kFormat));
    // There is no history before the copy.
    batch_.Put(slice(kCompactedKey), slice(encode_revision(revision)));
    StoreResult<Unit> written = write();
    if (!written) return written;
    rocksdb::Status status = db_->Flush(rocksdb::FlushOptions());
    if (status.ok()) status = db_->Close();
    if (!status.ok()) return from_rocks(status, directory_);
    db_.reset();
    StoreResult<AckMarker> marker = AckMarker::open(partial_of(directory_));
    if (!marker) return marker.take_error();
    marker->set(revision);
    marker->sync();
    std::error_code failed;
    fs::rename(partial_of(directory_), directory_, failed);
    if (failed) return StoreError{ErrorKind::Unavailable, directory_ + ": " + failed.message()};
    finished_ = true;
    for (const fs::path& folder : {fs::path(directory_), fs::absolute(directory_).parent_path()}) {
      const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (file) ::fsync(file.get());
    }
    return Unit{};
  }

 private:
  StoreResult<Unit> write() {
    rocksdb::WriteOptions unlogged;  // finish() flushes; until then nobody relies on it.
    unlogged.disableWAL = true;
    rocksdb::Status status = db_->Write(unlogged, &batch_);
    batch_.Clear();
    if (!status.ok()) return from_rocks(status, directory_);
    return Unit{};
  }

  const std::string directory_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteBatch batch_;
  bool finished_ = false;
};

// Collects problems, and only counts them beyond a limit.
class Problems {
 public:
  explicit Problems(CheckReport& report) : report_(report) {}
  void add(std::string where, std::string what) {
    if (report_.problems.size() < kListedProblems) {
      report_.problems.push_back({std::move(where), std::move(what)});
    } else {
      ++report_.more_problems;
    }
  }

 private:
  CheckReport& report_;
};

void check_log_files(const std::string& directory, Problems& problems) {
  if (lock_holder(directory) != 0) return;  // The owner is writing to them.
  rocksdb::Env& env = *rocksdb::Env::Default();
  StoreResult<std::vector<std::string>> names = log_files(env, directory);
  if (!names) return problems.add(directory, names.error().message);
  for (const std::string& name : *names) {
    std::string contents;
    rocksdb::Status status = rocksdb::ReadFileToString(&env, directory + "/" + name, &contents);
    if (!status.ok()) {
      problems.add(name, status.ToString());
      continue;
    }
    WalScan scan = scan_wal(contents);
    bool torn = scan.state == WalScan::State::TornTail && name == names->back();
    if (scan.state != WalScan::State::Whole && !torn) {
      problems.add(name, "at byte " + std::to_string(scan.damage_bytes) + ": " + scan.what);
    }
  }
}

void check_versions(View& view, const CheckOptions& check, CheckReport& report, Problems& problems) {
  std::unique_ptr<rocksdb::Iterator> it(view.db().NewIterator(reading_in_order()));
  std::string seen;
  for (it->Seek("d"); it->Valid() && it->key()[0] == 'd'; it->Next()) {
    std::optional<VersionKey> found = parse_version_key(it->key().ToStringView());
    if (!found) {
      problems.add(it->key().ToString(true), "not a valid version key");
      continue;
    }
    std::string key(found->key);
    std::optional<Version> version = parse_version(it->value().ToStringView());
    ++report.versions;
    if (!version) {
      problems.add(key, "revision " + std::to_string(found->revision.value) + " cannot be read");
      continue;
    }
    if (found->revision > view.current() || version->created > found->revision) {
      problems.add(key, "its revision " + std::to_string(found->revision.value) + " cannot be");
    }
    if (std::exchange(seen, key) == key || version->deleted || !has_prefix(key, check.prefix)) continue;
    ++report.checked.items;
    report.checked.bytes += key.size() + version->value.size();
    if (check.verify) {
      if (std::optional<std::string> wrong = check.verify(key, version->value)) problems.add(key, std::move(*wrong));
    }
    if (check.progress && report.checked.items % 1000 == 0) check.progress(report.checked);
  }
  if (!it->status().ok()) problems.add("after " + seen, it->status().ToString());
}

// Checks that the versions of each change in the log exist.
void check_log(View& view, Problems& problems) {
  std::unique_ptr<rocksdb::Iterator> it(view.db().NewIterator(reading_in_order()));
  auto check_version = [&](std::string_view key, Revision revision, bool deleted) {
    std::string bytes;
    rocksdb::Status status = view.db().Get(rocksdb::ReadOptions(), slice(version_key(key, revision)), &bytes);
    std::optional<Version> version = status.ok() ? parse_version(bytes) : std::nullopt;
    if (!version || version->deleted != deleted) {
      problems.add(std::string(key), "the log names revision " + std::to_string(revision.value) +
                                         ", which does not exist" + (status.ok() ? "" : ": " + status.ToString()));
    }
  };
  for (it->Seek("l"); it->Valid() && it->key()[0] == 'l'; it->Next()) {
    std::optional<Revision> revision = parse_log_key(it->key().ToStringView());
    std::optional<LogEntry> entry = parse_log_entry(it->value().ToStringView());
    if (!revision || !entry) {
      problems.add("log " + it->key().ToString(true), "cannot be read");
      continue;
    }
    for (const Change& change : entry->changes) {
      check_version(change.key, *revision, change.type == Event::Type::Deleted);
      if (change.type != Event::Type::Created) check_version(change.key, change.previous, false);
    }
  }
  if (!it->status().ok()) problems.add("the log", it->status().ToString());
}

}  // namespace

View::~View() {
  db_.reset();
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

StoreResult<std::unique_ptr<View>> View::open(const std::string& directory) {
  if (!fs::exists(directory + "/CURRENT")) {
    return StoreError{ErrorKind::Invalid, directory + ": there is no store"};
  }
  StoreError last;
  // The owner may change files while we read them; the result is then inconsistent, but may not be next time.
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50 * attempt));
    std::string pattern = (fs::temp_directory_path() / "holdfast-view-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) return StoreError{ErrorKind::Unavailable, pattern + ": cannot be created"};
    std::unique_ptr<View> view(new View(pattern));
    Revision acknowledged = AckMarker::read(directory);
    StoreResult<std::unique_ptr<rocksdb::DB>> db = open_for_reading(directory, pattern);
    if (!db) {
      last = db.take_error();
      continue;
    }
    view->db_ = std::move(*db);
    StoreResult<std::pair<Revision, Revision>> revisions = read_revisions(*view->db_);
    if (!revisions) {
      last = revisions.take_error();
      continue;
    }
    std::tie(view->current_, view->compacted_) = *revisions;
    StoreResult<Unit> whole = check_log_is_whole(*view->db_, view->compacted_, view->current_);
    if (!whole) {
      last = whole.take_error();
      continue;
    }
    if (view->current_ < acknowledged) {
      last = {ErrorKind::Corrupt, directory + ": writes up to revision " + std::to_string(acknowledged.value) +
                                      " were acknowledged, but only revision " + std::to_string(view->current_.value) +
                                      " can be read"};
      continue;
    }
    return view;
  }
  return last;
}

StoreResult<CheckReport> check_rocks(const RocksOptions& options, const CheckOptions& check) {
  CheckReport report;
  Problems problems(report);
  if (fs::exists(options.directory)) check_log_files(options.directory, problems);
  StoreResult<std::unique_ptr<View>> view = View::open(options.directory);
  if (!view) {
    if (view.error().kind != ErrorKind::Corrupt) return view.take_error();
    problems.add(options.directory, view.error().message);
    return report;
  }
  report.checked.revision = (*view)->current();
  rocksdb::Status sums = (*view)->db().VerifyChecksum();
  if (!sums.ok()) problems.add(options.directory, sums.ToString());
  check_versions(**view, check, report, problems);
  check_log(**view, problems);
  return report;
}

}  // namespace rocks

StoreResult<std::unique_ptr<Source>> open_rocks_source(const RocksOptions& options) {
  StoreResult<std::unique_ptr<rocks::View>> view = rocks::View::open(options.directory);
  if (!view) return view.take_error();
  return std::unique_ptr<Source>(std::make_unique<rocks::RocksSource>(std::move(*view)));
}

StoreResult<std::unique_ptr<Sink>> make_rocks_sink(const RocksOptions& options) {
  const std::string& directory = options.directory;
  std::error_code failed;
  if (std::filesystem::exists(directory, failed) && !std::filesystem::is_empty(directory, failed)) {
    return StoreError{ErrorKind::Invalid, directory + " is not empty"};
  }
  std::string partial = rocks::RocksSink::partial_of(directory);
  std::filesystem::remove_all(partial, failed);  // Left behind by an interrupted copy.
  std::filesystem::create_directories(partial, failed);
  if (failed) return StoreError{ErrorKind::Unavailable, partial + ": " + failed.message()};
  StoreResult<std::unique_ptr<rocksdb::DB>> db = rocks::create_database(partial);
  if (!db) return db.take_error();
  return std::unique_ptr<Sink>(std::make_unique<rocks::RocksSink>(directory, std::move(*db)));
}

}  // namespace holdfast::store
