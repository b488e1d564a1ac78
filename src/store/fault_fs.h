// A disk for tests: forgets what was not synced when the power goes, tears what was half written, fills up, fails.
//
// Everything is written to a real folder at once; next to it this keeps, for each file, how much of it was synced, and
// for each folder what was created, renamed and deleted since the folder was synced. lose_power() then makes the folder
// look as it might after a power loss: of each file the synced part and a random, perhaps garbled, piece of the rest;
// of the unsynced changes to the folder a random number of the first ones.
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

  // From now on nothing reaches the disk any more. Close the store, then call lose_power().
  void freeze();
  void lose_power();

  // Appends and syncs fail with NoSpace once this many more bytes were written, the last append in its middle.
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
  // A change of a folder that can be taken back.
  struct Change {
    enum class Kind : uint8_t { Created, Deleted, Renamed };
    Kind kind;
    std::string path;
    std::string target;  // Renamed: the new name.
    std::string kept;    // What was deleted or replaced, under a hidden name; empty: nothing.
  };

  std::string keep(const std::string& path);
  void take_back(const Change& change);
  // With the lock held: why a write cannot be done now; `bytes` is cut to what fits.
  rocksdb::IOStatus admit(uint64_t* bytes);

  std::mutex mutex_;
  std::mt19937_64 random_;
  bool frozen_ = false;
  uint64_t room_ = UINT64_MAX;
  int failing_syncs_ = 0;
  uint64_t serial_ = 0;
  std::string graveyard_;
  std::map<std::string, Written> files_;
  std::map<std::string, std::vector<Change>> changes_;  // By folder, in order.
};

}  // namespace holdfast::store::testing
