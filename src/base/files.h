// Folders and files that hold secrets: nobody else reads or changes them, and they are still there after a power cut.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace holdfast {

// Makes the folder, and those above it, if it is not there; readable by its owner alone (0700) whatever the umask.
// Refuses one that belongs to somebody else or that others may write, and says what to do; one that others may read
// is closed to them.
Result<Unit> make_private_directory(const std::string& path);

enum class Readers : uint8_t { Owner, Everybody };

// The whole file, replaced in one step and synced together with its folder: after a power cut there is the old or the
// new content, never an empty file. Not through a link that somebody may have put there. Errors name the path.
Result<Unit> replace_file(const std::string& path, std::string_view content, Readers readers);

}  // namespace holdfast
