// The system's random numbers, which become uids and the secret of hash tables, are the same in every simulation: the
// linker takes this function instead of the C library's.
#include <sys/random.h>

#include <cstring>

extern "C" ssize_t getrandom(void* buffer, size_t bytes, unsigned /*flags*/) {
  std::memset(buffer, 0x5a, bytes);
  return static_cast<ssize_t>(bytes);
}
