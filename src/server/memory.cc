#include "server/memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HOLDFAST_JEMALLOC
#include <jemalloc/jemalloc.h>

// Read by jemalloc before main. Few threads allocate, so two arenas do; what is free for a second is given back by a
// thread of jemalloc's own, because a server at rest allocates nothing that would make it look.
const char* malloc_conf =
    "narenas:2,background_thread:true,max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0";
#endif

namespace holdfast::server {
namespace {

int forget_code(dl_phdr_info* object, size_t, void*) {
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    // Segments that are written to, if only by relocation, hold what the file does not.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W)) continue;
    const ElfW(Addr) begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const ElfW(Addr) end = object->dlpi_addr + segment.p_vaddr + segment.p_filesz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void give_back_after_start() {
#ifdef HOLDFAST_JEMALLOC
  mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
  static_assert(MALLCTL_ARENAS_ALL == 4096, "the number in the next line");
  mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
#endif
  dl_iterate_phdr(forget_code, nullptr);
}

}  // namespace holdfast::server
