// Preloaded into the server under test: disk and clock behave as specified by the control file, and synced sizes are
// recorded, so that a power loss can be simulated afterwards. Only files below TORTURE_FOLDER are affected. For Linux
// on x86-64 and arm64.
//
// TORTURE_CONTROL  file that starts with a Control, changed by the test while the server runs
// TORTURE_SYNCED   file to which "INODE SIZE" is appended for each sync
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

// Not through the C library's syscall(), which is one of the functions replaced here.
long kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  result = x0;
#endif
  if (result < 0 && result >= -4095) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}
long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

// torture.py writes the same layout.
struct Control {
  std::atomic<int32_t> write_error;  // errno of every write, 0 for none
  std::atomic<int32_t> sync_error;   // errno of every sync, 0 for none
  std::atomic<int32_t> delay_ms;     // of every sync
  std::atomic<int32_t> reserved;
  std::atomic<int64_t> clock_offset_ns;
};

Control* control() {
  static Control* mapped = [] {
    static Control none;
    const char* path = getenv("TORTURE_CONTROL");
    if (path == nullptr) return &none;
    const int file = static_cast<int>(kernel(SYS_openat, AT_FDCWD, address(path), O_RDONLY | O_CLOEXEC, 0));
    if (file < 0) return &none;
    void* memory = mmap(nullptr, sizeof(Control), PROT_READ, MAP_SHARED, file, 0);
    kernel(SYS_close, file);
    return memory == MAP_FAILED ? &none : static_cast<Control*>(memory);
  }();
  return mapped;
}

constexpr int kMostFiles = 65536;
std::atomic<bool> ours[kMostFiles];

void opened(int file) {
  if (file < 0 || file >= kMostFiles) return;
  static const char* folder = getenv("TORTURE_FOLDER");
  if (folder == nullptr) return;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  ours[file] = length > 0 && strncmp(path, folder, strlen(folder)) == 0;
}

bool touched(int file) { return file >= 0 && file < kMostFiles && ours[file]; }

// True if a write to this file fails now; errno is set.
bool write_fails(int file) {
  const int32_t code = touched(file) ? control()->write_error.load() : 0;
  if (code != 0) errno = code;
  return code != 0;
}

void note_synced(int file, off_t size) {
  static const int log = [] {
    const char* path = getenv("TORTURE_SYNCED");
    return path == nullptr ? -1
                           : static_cast<int>(kernel(SYS_openat, AT_FDCWD, address(path),
                                                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  }();
  struct stat status;
  if (log < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  char line[64];
  const int length = snprintf(line, sizeof line, "%llu %lld\n", static_cast<unsigned long long>(status.st_ino),
                              static_cast<long long>(size));
  kernel(SYS_write, log, address(line), length);
}

int synced(int file, long call) {
  if (!touched(file)) return static_cast<int>(kernel(call, file));
  struct stat before{};
  fstat(file, &before);
  if (const int32_t delay = control()->delay_ms.load(); delay > 0) usleep(static_cast<useconds_t>(delay) * 1000);
  if (const int32_t code = control()->sync_error.load(); code != 0) {
    errno = code;
    return -1;
  }
  const int result = static_cast<int>(kernel(call, file));
  if (result == 0) note_synced(file, before.st_size);
  return result;
}

int open_file(int folder, const char* path, int flags, va_list rest) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  const int file = static_cast<int>(kernel(SYS_openat, folder, address(path), flags, mode));
  opened(file);
  return file;
}

void shift(timespec* time, int64_t offset) {
  const int64_t total = static_cast<int64_t>(time->tv_sec) * 1'000'000'000 + time->tv_nsec + offset;
  time->tv_sec = total / 1'000'000'000;
  time->tv_nsec = total % 1'000'000'000;
}

}  // namespace

#define HOOK extern "C" __attribute__((visibility("default")))

HOOK int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int file = open_file(AT_FDCWD, path, flags, rest);
  va_end(rest);
  return file;
}
HOOK int open64(const char* path, int flags, ...) __attribute__((alias("open")));
HOOK int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int file = open_file(folder, path, flags, rest);
  va_end(rest);
  return file;
}
HOOK ssize_t write(int file, const void* data, size_t size) {
  return write_fails(file) ? -1 : kernel(SYS_write, file, address(data), static_cast<long>(size));
}
HOOK ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  return write_fails(file) ? -1 : kernel(SYS_pwrite64, file, address(data), static_cast<long>(size), offset);
}
HOOK ssize_t pwrite64(int file, const void* data, size_t size, off_t offset) {
  return pwrite(file, data, size, offset);
}
HOOK ssize_t writev(int file, const iovec* parts, int count) {
  return write_fails(file) ? -1 : kernel(SYS_writev, file, address(parts), count);
}
HOOK int ftruncate(int file, off_t size) {
  return write_fails(file) ? -1 : static_cast<int>(kernel(SYS_ftruncate, file, size));
}
HOOK int fallocate(int file, int mode, off_t offset, off_t length) {
  return write_fails(file) ? -1 : static_cast<int>(kernel(SYS_fallocate, file, mode, offset, length));
}
HOOK int fsync(int file) { return synced(file, SYS_fsync); }
HOOK int fdatasync(int file) { return synced(file, SYS_fdatasync); }
HOOK int close(int file) {
  if (file >= 0 && file < kMostFiles) ours[file] = false;
  return static_cast<int>(kernel(SYS_close, file));
}

// A wait until an absolute time of the modified clock, as used by abseil.
HOOK long syscall(long number, ...) noexcept {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& value : a) value = va_arg(rest, long);
  va_end(rest);
  timespec moment;
  if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && (a[1] & FUTEX_CLOCK_REALTIME) != 0 &&
      a[3] != 0) {
    moment = *reinterpret_cast<const timespec*>(a[3]);
    shift(&moment, -control()->clock_offset_ns.load());
    a[3] = address(&moment);
  }
  return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

HOOK int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  static const Function real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    shift(time, control()->clock_offset_ns.load());
  }
  return result;
}
HOOK int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}
HOOK time_t time(time_t* out) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
