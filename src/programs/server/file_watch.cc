#include "server/file_watch.h"

#include <sys/stat.h>

#include <utility>

namespace holdfast::server {

bool FileWatch::Version::operator==(const Version& other) const {
  return device == other.device && inode == other.inode && bytes == other.bytes &&
         modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec;
}

FileWatch::FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)), seen_(versions()) {}

bool FileWatch::changed() {
  std::vector<Version> now = versions();
  if (now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

std::vector<FileWatch::Version> FileWatch::versions() const {
  std::vector<Version> all;
  all.reserve(paths_.size());
  for (const std::string& path : paths_) {
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) status = {};
    all.push_back({status.st_dev, status.st_ino, status.st_size, status.st_mtim});
  }
  return all;
}

}  // namespace holdfast::server
