// A whole server, or two on one store, with clients and watchers, in one thread and in simulated time. Everything
// follows from a seed: what clients do, how long each call of the store takes, and what fails.
//
//   clients -> Api -> FaultyStore -\
//   clients -> Api -> FaultyStore --> MemoryStore      each Api as in a server; no sockets, disks, threads or waiting
#pragma once

#include <cstdint>

#include "simulation/faulty_store.h"
#include "simulation/history.h"

namespace holdfast::simulation {

struct Plan {
  uint64_t seed = 0;
  Bug bug = Bug::None;
};

struct Report {
  History history;
  uint64_t requests = 0;
  uint64_t failures = 0;  // Injected.
  double simulated_seconds = 0;
};

// Runs it; blocks until it has ended. If it does not end, because a request is never answered, writes what is known to
// stderr and aborts.
Report run(const Plan& plan);

}  // namespace holdfast::simulation
