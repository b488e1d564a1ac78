// A disk for tests: loses unsynced data on power loss, tears partial writes, fills up, fails.
//
// Everything is written to a real directory immediately. For each file this records how much of it was synced, and for
// each directory what was created, renamed and deleted since it was last synced. lose_power() then makes the directory
// look as it might after a power loss: each file keeps its synced part and a random, possibly garbled, piece of the
// rest; of the unsynced changes to the directory a random number of the first ones survive.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace holdfast::store::testing {

class FaultFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultFileSystem(uint64_t seed);
  ~FaultFileSystem() override;

  const char* Name() const override { return "FaultFileSystem"; }

  // From now on nothing reaches the disk. Close the store, then call lose_power().
  void freeze();
  void lose_power();

  // Appends and syncs fail with NoSpace once this many more bytes have been written; the last append is partial.
  void fill_up_after(uint64_t bytes);
  void make_room();
  // The next syncs fail, whether or not the data reached the disk.
  void fail_syncs(int count);

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* folder,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  class File;
  class Folder;

  struct Written {
    uint64_t bytes = 0;
    uint64_t synced = 0;
  };
  // A change to a directory that can be undone.
  struct Change {
    enum class Kind : uint8_t { Created, Deleted, Renamed };
    Kind kind;
    std::string path;
    std::string target;  // The new name, if renamed.
    std::string kept;    // Hidden copy of the file that was deleted or replaced; empty if there was none.
  };

  std::string keep(const std::string& path);
  void take_back(const Change& change);
  // Call with the lock held. Returns why a write is not possible now; reduces `bytes` to what fits.
  rocksdb::IOStatus admit(uint64_t* bytes);

  std::mutex mutex_;
  std::mt19937_64 random_;
  bool frozen_ = false;
  uint64_t room_ = UINT64_MAX;
  int failing_syncs_ = 0;
  uint64_t serial_ = 0;
  std::string graveyard_;
  std::map<std::string, Written> files_;
  std::map<std::string, std::vector<Change>> changes_;  // By directory, in order.
};

}  // namespace holdfast::store::testing
