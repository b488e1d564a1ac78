#include "base/process.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace holdfast {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

namespace {

struct Pages {
  uint64_t total = 0, resident = 0;
};
Pages memory_pages() {
  std::ifstream file("/proc/self/statm");
  Pages pages;
  file >> pages.total >> pages.resident;
  return pages;
}
uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

uint64_t resident_bytes() { return memory_pages().resident * page_bytes(); }

uint64_t virtual_bytes() { return memory_pages().total * page_bytes(); }

uint64_t open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] == '.' ? 0 : 1;
  closedir(folder);
  return count - 1;  // That of the folder itself.
}

}  // namespace holdfast
