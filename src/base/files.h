// Directories and files for secrets: nobody else can read or change them, and they survive a power failure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast {

// Creates the directory and its parents if they do not exist, readable by the owner only (0700) whatever the umask.
// Rejects one that belongs to another user or that others can write to, and says what to do; one that others can read
// is made private.
Result<Unit> make_private_directory(const std::string& path);

enum class Readers : uint8_t { Owner, Everybody };

// Replaces the whole file atomically and syncs it together with its directory: after a power failure it has the old or
// the new content, never none. Does not follow a symbolic link that somebody may have put there. Errors name the path.
Result<Unit> replace_file(const std::string& path, std::string_view content, Readers readers);

}  // namespace holdfast
