// Reads files; writes directories and files for secrets: inaccessible to other users, and durable across a power
// failure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast {

// An open file, or negative if there is none; closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// The content of the file. NotFound if it does not exist; errors name the path.
Result<std::string> read_file(const std::string& path);

// Creates the directory and its parents if they do not exist, accessible to the owner only (0700) whatever the umask.
// Rejects a directory that belongs to another user or is writable by others, with an error that says what to do; one
// that is readable by others is made private.
Result<Unit> make_private_directory(const std::string& path);

enum class Readers : uint8_t { Owner, Everybody };

// Replaces the whole file atomically and syncs it together with its directory: after a power failure it has the old or
// the new content, never neither. Does not follow symbolic links planted by others. Errors name the path.
Result<Unit> replace_file(const std::string& path, std::string_view content, Readers readers);

}  // namespace holdfast
