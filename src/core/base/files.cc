#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace holdfast {
namespace {

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
  if (!fd || ::fsync(fd.get()) != 0) return failed("sync the directory of", path);
  return Unit{};
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> read_file(const std::string& path) {
  const auto unreadable = [&] {
    const int why = errno;
    return Error{why == ENOENT ? Reason::NotFound : Reason::InternalError,
                 "cannot read " + path + ": " + std::strerror(why)};
  };
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return unreadable();
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0) return unreadable();
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

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
  if (!fd || ::fstat(fd.get(), &found) != 0) return failed("open the directory", bare);
  if (found.st_uid != ::geteuid()) {
    return bad_request(
        "the directory " + bare + " belongs to another user (uid " + std::to_string(found.st_uid) +
        "): it holds keys and Secrets; change its owner to the user this server runs as, or use another directory");
  }
  if ((found.st_mode & 0022) != 0) {
    return bad_request("the directory " + bare +
                       " can be written by others, who could replace keys and Secrets in it: chmod 0700 " + bare);
  }
  if ((found.st_mode & 07777) != 0700 && ::fchmod(fd.get(), 0700) != 0) return failed("set the mode of", bare);
  if (made) return sync_folder_of(bare);
  return Unit{};
}

Result<Unit> replace_file(const std::string& path, std::string_view content, Readers readers) {
  const std::string temporary = path + ".new";
  const mode_t mode = readers == Readers::Owner ? 0600 : 0644;
  constexpr int kFresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int opened = ::open(temporary.c_str(), kFresh, mode);
  if (opened < 0 && errno == EEXIST) {
    ::unlink(temporary.c_str());  // Left behind by an interrupted write.
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
