// The system's random numbers, which become uids, the secret of hash tables and the seeds of other generators, are the
// same in every simulation: the linker takes these functions instead of those of the C and C++ libraries.
#include <sys/random.h>

#include <cstring>
#include <random>

extern "C" ssize_t getrandom(void* buffer, size_t bytes, unsigned /*flags*/) {
  std::memset(buffer, 0x5a, bytes);
  return static_cast<ssize_t>(bytes);
}

std::random_device::result_type std::random_device::_M_getval() { return 0x5a5a5a5a; }
