// What this process uses, for metrics and benchmarks.
#pragma once

#include <cstdint>

namespace holdfast {

// CPU time of all threads, user and system.
double cpu_seconds();
// Current resident memory; 0 if it is unknown.
uint64_t resident_bytes();

}  // namespace holdfast
