// What this process uses, for metrics and benchmarks.
#pragma once

#include <cstdint>

namespace holdfast {

// CPU time of all threads, user and system.
double cpu_seconds();
// Current resident memory; 0 if it is unknown.
uint64_t resident_bytes();
// Current virtual memory; 0 if it is unknown.
uint64_t virtual_bytes();
// Open file descriptors.
uint64_t open_descriptors();

}  // namespace holdfast
