// Node port allocations in the store, shared by all API servers on one etcd.
//
// The ledger is kube-apiserver's own, a RangeAllocation at /registry/ranges/servicenodeports with one bit per port. It
// is changed by compare-and-swap on its revision, so servers never allocate the same port twice. Changes that arrive
// while a write is in flight are queued and written together:
//
//   claim()   --+
//   claim()   --+--> waiting --> one round: read if unknown, apply all, compare and swap --> results
//   release() --+                  ^______________ another server was faster ________|
//
// A failed claim may have been written nevertheless (no response in time). Its ports are then leaked, and freed after
// several repairs: see LeakedPorts.
//
// Threading: any thread. Lifetime: operations still waiting when the ledger is destroyed are completed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/task.h"
#include "services/port_bitmap.h"
#include "store/store.h"

namespace holdfast::services {

class PortLedger {
 public:
  PortLedger(store::Store& store, std::string key, int32_t first_port, int32_t last_port);

  // Allocates a port for each of `wanted` (0 for any); all or none. nullopt if the ledger does not exist yet; a repair
  // creates it. Errors are store errors. These tasks resume on `executor`.
  Task<Result<std::optional<AllocatedPorts>>> claim(std::vector<int32_t> wanted, Executor& executor);
  // What claim() would return now, without allocating anything.
  Task<Result<std::optional<AllocatedPorts>>> look(std::vector<int32_t> wanted, Executor& executor);
  Task<Result<Unit>> release(std::vector<int32_t> ports, Executor& executor);

  // For repairs: the current ledger, whatever its range; nullopt if it does not exist.
  struct Stored {
    std::optional<PortBitmap> taken;
    Revision revision;
  };
  Task<Result<Stored>> read(Executor& executor);
  // Replaces the ledger that was read with `next`. False if another server changed it in the meantime.
  Task<Result<bool>> replace(Stored read, PortBitmap next, Executor& executor);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// Finds ports that are allocated in the ledger but not used by any Service: left by a server that stopped between
// allocating a port and storing its Service, or between deleting a Service and releasing its port. Because such a
// Service may still be in flight, a port is freed only after several repairs have found it unused
// (portallocator/controller/repair.go).
class LeakedPorts {
 public:
  static constexpr int kSightings = 3;

  struct Rebuilt {
    PortBitmap next;
    std::vector<int32_t> missing;      // Used, but not in the ledger.
    std::vector<int32_t> freed;        // Leaked, and removed from `next`.
    std::map<int32_t, int> sightings;  // How often each port was found unused, for note().
  };
  // The corrected ledger. `used` has the range of this server.
  Rebuilt rebuild(const std::optional<PortBitmap>& stored, const PortBitmap& used) const;
  // Call when `rebuilt` has been stored.
  void note(Rebuilt rebuilt) { sightings_ = std::move(rebuilt.sightings); }

 private:
  std::map<int32_t, int> sightings_;
};

}  // namespace holdfast::services
