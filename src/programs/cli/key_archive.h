// The keys and certificates of a server in a backup: the files of a directory, encrypted by a passphrase
// (docs/formats/store.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace holdfast::cli {

// Names and contents.
using KeyFiles = std::vector<std::pair<std::string, std::string>>;

// The regular files of the directory, by name; none if it does not exist.
Result<KeyFiles> read_key_files(const std::string& directory);
// Writes them, keys readable by the owner only. The directory must not exist, or be empty.
Result<Unit> write_key_files(const std::string& directory, const KeyFiles& files);

// Takes a second and 128 MB of memory on purpose: so does each guess of the passphrase.
Result<std::string> seal_keys(const KeyFiles& files, std::string_view passphrase);
// An error if the passphrase is wrong or the bytes were changed.
Result<KeyFiles> open_keys(std::string_view sealed, std::string_view passphrase);

}  // namespace holdfast::cli
