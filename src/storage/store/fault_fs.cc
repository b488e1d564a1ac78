#include "store/fault_fs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace holdfast::store::testing {

namespace fs = std::filesystem;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {
std::string folder_of(const std::string& path) { return fs::path(path).parent_path().lexically_normal().string(); }
}  // namespace

class FaultFileSystem::File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(FaultFileSystem& owner, std::string path, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), owner_(owner), path_(std::move(path)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    std::lock_guard lock(owner_.mutex_);
    uint64_t bytes = data.size();
    IOStatus refused = owner_.admit(&bytes);
    if (bytes > 0) {
      IOStatus status = target()->Append(Slice(data.data(), bytes), options, debug);
      if (!status.ok()) return status;
      owner_.files_[path_].bytes += bytes;
    }
    return refused;
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(owner_.mutex_);
    uint64_t none = 0;
    IOStatus refused = owner_.admit(&none);
    if (!refused.ok()) return refused;
    if (owner_.failing_syncs_ > 0) {
      --owner_.failing_syncs_;
      return IOStatus::IOError("injected failure of a sync");
    }
    Written& written = owner_.files_[path_];
    written.synced = written.bytes;
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return Sync(options, debug); }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    std::lock_guard lock(owner_.mutex_);
    Written& written = owner_.files_[path_];
    written.bytes = size;
    written.synced = std::min(written.synced, size);
    return target()->Truncate(size, options, debug);
  }

 private:
  FaultFileSystem& owner_;
  const std::string path_;
};

class FaultFileSystem::Folder final : public rocksdb::FSDirectoryWrapper {
 public:
  Folder(FaultFileSystem& owner, std::string path, std::unique_ptr<rocksdb::FSDirectory> folder)
      : FSDirectoryWrapper(std::move(folder)), owner_(owner), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    std::lock_guard lock(owner_.mutex_);
    uint64_t none = 0;
    IOStatus refused = owner_.admit(&none);
    if (!refused.ok()) return refused;
    for (const Change& change : owner_.changes_[path_]) {
      if (!change.kept.empty()) fs::remove(change.kept);
    }
    owner_.changes_[path_].clear();
    return IOStatus::OK();
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  FaultFileSystem& owner_;
  const std::string path_;
};

FaultFileSystem::FaultFileSystem(uint64_t seed) : FileSystemWrapper(rocksdb::FileSystem::Default()), random_(seed) {
  std::string pattern = (fs::temp_directory_path() / "holdfast-graveyard-XXXXXX").string();
  graveyard_ = ::mkdtemp(pattern.data());
}

FaultFileSystem::~FaultFileSystem() {
  std::error_code ignored;
  fs::remove_all(graveyard_, ignored);
}

void FaultFileSystem::freeze() {
  std::lock_guard lock(mutex_);
  frozen_ = true;
}

void FaultFileSystem::fill_up_after(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  room_ = bytes;
}

void FaultFileSystem::make_room() { fill_up_after(UINT64_MAX); }

void FaultFileSystem::fail_syncs(int count) {
  std::lock_guard lock(mutex_);
  failing_syncs_ = count;
}

IOStatus FaultFileSystem::admit(uint64_t* bytes) {
  if (frozen_) {
    *bytes = 0;
    return IOStatus::IOError("the power is gone");
  }
  if (*bytes > room_ || room_ == 0) {
    *bytes = room_;
    room_ = 0;
    return IOStatus::NoSpace("injected: no space left on device");
  }
  if (room_ != UINT64_MAX) room_ -= *bytes;
  return IOStatus::OK();
}

std::string FaultFileSystem::keep(const std::string& path) {
  if (!fs::exists(path)) return "";
  std::string kept = graveyard_ + "/" + std::to_string(++serial_);
  fs::create_hard_link(path, kept);
  return kept;
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) {
  std::lock_guard lock(mutex_);
  uint64_t none = 0;
  IOStatus refused = admit(&none);
  if (!refused.ok()) return refused;
  std::unique_ptr<rocksdb::FSWritableFile> real;
  IOStatus status = target()->NewWritableFile(path, options, &real, debug);
  if (!status.ok()) return status;
  files_[path] = {};
  changes_[folder_of(path)].push_back({Change::Kind::Created, path, "", ""});
  *file = std::make_unique<File>(*this, path, std::move(real));
  return status;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* folder, IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> real;
  IOStatus status = target()->NewDirectory(path, options, &real, debug);
  if (status.ok()) {
    *folder = std::make_unique<Folder>(*this, fs::path(path + "/").lexically_normal().parent_path().string(),
                                       std::move(real));
  }
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) {
  std::lock_guard lock(mutex_);
  if (frozen_) return IOStatus::IOError("the power is gone");
  std::string kept = keep(path);
  IOStatus status = target()->DeleteFile(path, options, debug);
  if (status.ok()) changes_[folder_of(path)].push_back({Change::Kind::Deleted, path, "", kept});
  return status;
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                     IODebugContext* debug) {
  std::lock_guard lock(mutex_);
  if (frozen_) return IOStatus::IOError("the power is gone");
  std::string kept = keep(to);
  IOStatus status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  changes_[folder_of(to)].push_back({Change::Kind::Renamed, from, to, kept});
  files_[to] = files_[from];
  files_.erase(from);
  return status;
}

void FaultFileSystem::take_back(const Change& change) {
  switch (change.kind) {
    case Change::Kind::Created:
      fs::remove(change.path);
      break;
    case Change::Kind::Deleted:
      if (!change.kept.empty() && !fs::exists(change.path)) fs::rename(change.kept, change.path);
      break;
    case Change::Kind::Renamed:
      if (!fs::exists(change.target)) break;
      fs::rename(change.target, change.path);
      if (!change.kept.empty()) fs::rename(change.kept, change.target);
      break;
  }
}

void FaultFileSystem::lose_power() {
  std::lock_guard lock(mutex_);
  for (const auto& [path, written] : files_) {
    if (!fs::exists(path)) continue;
    uint64_t on_disk = fs::file_size(path);
    uint64_t unsynced = on_disk > written.synced ? on_disk - written.synced : 0;
    if (unsynced == 0) continue;
    uint64_t survived = random_() % (unsynced + 1);
    fs::resize_file(path, written.synced + survived);
    // Sectors reach the disk in any order: some of those that should have been written are still empty.
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (uint64_t at = written.synced; at < written.synced + survived;) {
      uint64_t sector = std::min<uint64_t>(512 - at % 512, written.synced + survived - at);
      if (random_() % 4 == 0) {
        file.seekp(static_cast<std::streamoff>(at));
        file.write(std::string(sector, '\0').data(), static_cast<std::streamsize>(sector));
      }
      at += sector;
    }
  }
  for (auto& [folder, changes] : changes_) {
    size_t kept = random_() % (changes.size() + 1);
    for (size_t i = changes.size(); i > kept; --i) take_back(changes[i - 1]);
    changes.clear();
  }
  files_.clear();
}

}  // namespace holdfast::store::testing
