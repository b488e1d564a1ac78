#include "console/page.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace holdfast::console {

namespace {

struct PackedFile {
  std::string_view name, type;
  const unsigned char* bytes;
  size_t count;
};

#include "page.inc"

std::vector<PageFile> page_files() {
  std::vector<PageFile> files;
  for (const PackedFile& file : kFiles) {
    files.push_back({file.name, file.type, {reinterpret_cast<const char*>(file.bytes), file.count}});
  }
  return files;
}

}  // namespace

const PageFile* find_page_file(std::string_view name) {
  static const std::vector<PageFile> kAll = page_files();
  if (name.empty()) name = "index.html";
  const auto found = std::find_if(kAll.begin(), kAll.end(), [&](const PageFile& file) { return file.name == name; });
  return found == kAll.end() ? nullptr : &*found;
}

}  // namespace holdfast::console
