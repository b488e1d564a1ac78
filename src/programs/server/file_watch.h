// Notices that files were replaced or written to, by comparing what stat() says about them: works for files that are
// renamed into place, symbolic links that are switched (mounted Secrets), and every file system.
//
// Threading: one thread at a time.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <string>
#include <vector>

namespace holdfast::server {

class FileWatch {
 public:
  explicit FileWatch(std::vector<std::string> paths);

  // Whether any of the files differs from what it was at the previous call (or at construction).
  bool changed();

 private:
  struct Version {
    dev_t device = 0;
    ino_t inode = 0;  // 0 for a file that is missing.
    off_t bytes = 0;
    timespec modified{};
    bool operator==(const Version& other) const;
  };
  std::vector<Version> versions() const;

  const std::vector<std::string> paths_;
  std::vector<Version> seen_;
};

}  // namespace holdfast::server
