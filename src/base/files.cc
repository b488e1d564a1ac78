#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace holdfast {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

Error failed(std::string_view what, const std::string& path) {
  return internal_error("cannot " + std::string(what) + " " + path + ": " + std::strerror(errno));
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Result<Unit> sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return failed("sync the folder of", path);
  return Unit{};
}

}  // namespace

Result<Unit> make_private_directory(const std::string& path) {
  std::string bare = path;
  while (bare.size() > 1 && bare.ends_with('/')) bare.pop_back();
  const std::filesystem::path parent = std::filesystem::path(bare).parent_path();
  std::error_code why;
  if (!parent.empty()) std::filesystem::create_directories(parent, why);
  if (why) return internal_error("cannot create " + bare + ": " + why.message());
  const bool made = ::mkdir(bare.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return failed("create", bare);
  const Descriptor fd(::open(bare.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return failed("open the folder", bare);
  if (found.st_uid != ::geteuid()) {
    return bad_request("the folder " + bare + " belongs to another user (uid " + std::to_string(found.st_uid) +
                       "): it holds keys and Secrets; give it to the user this server runs as, or use another one");
  }
  if ((found.st_mode & 0022) != 0) {
    return bad_request("the folder " + bare +
                       " can be written by others, who could replace keys and Secrets in it: chmod 0700 " + bare);
  }
  if ((found.st_mode & 07777) != 0700 && ::fchmod(fd.get(), 0700) != 0) return failed("close to other users", bare);
  if (made) return sync_folder_of(bare);
  return Unit{};
}

Result<Unit> replace_file(const std::string& path, std::string_view content, Readers readers) {
  const std::string temporary = path + ".new";
  const mode_t mode = readers == Readers::Owner ? 0600 : 0644;
  constexpr int kFresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int opened = ::open(temporary.c_str(), kFresh, mode);
  if (opened < 0 && errno == EEXIST) {
    ::unlink(temporary.c_str());  // Of a write that was interrupted.
    opened = ::open(temporary.c_str(), kFresh, mode);
  }
  const Descriptor fd(opened);
  if (!fd || ::fchmod(fd.get(), mode) != 0 || !write_all(fd.get(), content) || ::fsync(fd.get()) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    return failed("write", path);
  }
  return sync_folder_of(path);
}

}  // namespace holdfast
