// The files of the page, as they are sent.
#pragma once

#include <string_view>

namespace holdfast::console {

struct PageFile {
  std::string_view name;  // "main.js"
  std::string_view type;  // Content-Type.
  std::string_view gzip;  // Compressed, with static lifetime.
};

// Null if there is no such file. The empty name is that of the page itself.
const PageFile* find_page_file(std::string_view name);

}  // namespace holdfast::console
