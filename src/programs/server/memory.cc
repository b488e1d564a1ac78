#include "server/memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HOLDFAST_JEMALLOC
#include <jemalloc/jemalloc.h>

// Read by jemalloc before main. Few threads allocate, so two arenas are enough; a background thread of jemalloc returns
// pages that are unused for a second, because an idle server makes no allocations that would trigger it.
const char* malloc_conf =
    "narenas:2,background_thread:true,max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0";
#endif

namespace holdfast::server {
namespace {

int forget_code(dl_phdr_info* object, size_t, void*) {
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    // Writable segments, even if only written by relocation, contain data that is not in the file.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W)) continue;
    const ElfW(Addr) begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const ElfW(Addr) end = object->dlpi_addr + segment.p_vaddr + segment.p_filesz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void release_startup_memory() {
#ifdef HOLDFAST_JEMALLOC
  mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
  static_assert(MALLCTL_ARENAS_ALL == 4096, "the number in the next line");
  mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
#endif
  dl_iterate_phdr(forget_code, nullptr);
}

}  // namespace holdfast::server
