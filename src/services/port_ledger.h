// The node ports that are taken, in the store: for all API servers on one etcd.
//
// The ledger is kube-apiserver's own, a RangeAllocation at /registry/ranges/servicenodeports with one bit per port. It
// is changed by compare-and-swap on its revision, so that servers never take the same port. What arrives while a change
// is under way waits, and is then written at once:
//
//   claim()   --+
//   claim()   --+--> waiting --> one round: read if unknown, apply all, compare and swap --> answers
//   release() --+                  ^______________ another server was faster ________|
//
// A claim that fails may have been written all the same (no response in time). Its ports are leaked then, and free
// again after some repairs: see LeakedPorts.
//
// Threading: any thread. Lifetime: what waits when a ledger is destroyed is still answered.
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

  // A port for each of `wanted` (0: any); all or none. Nothing: there is no ledger yet, which a repair makes. An error
  // is one of the store. These resume on `executor`.
  Task<Result<std::optional<PortsTaken>>> claim(std::vector<int32_t> wanted, Executor& executor);
  // What claim() would answer now; takes nothing.
  Task<Result<std::optional<PortsTaken>>> look(std::vector<int32_t> wanted, Executor& executor);
  Task<Result<Unit>> release(std::vector<int32_t> ports, Executor& executor);

  // For repairs: the ledger as it is, of whatever range; nothing: there is none.
  struct Stored {
    std::optional<PortBitmap> taken;
    Revision revision;
  };
  Task<Result<Stored>> read(Executor& executor);
  // Puts `next` in the place of what was read. False: another server was faster.
  Task<Result<bool>> replace(Stored read, PortBitmap next, Executor& executor);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// Finds ports that the ledger has although no Service uses them: those of a server that stopped between taking a port
// and storing its Service, or between removing a Service and releasing its port. As such a Service may still be on its
// way, a port is free only when it was seen so in several repairs (portallocator/controller/repair.go).
class LeakedPorts {
 public:
  static constexpr int kSightings = 3;

  struct Rebuilt {
    PortBitmap next;
    std::vector<int32_t> missing;      // Used, and not in the ledger.
    std::vector<int32_t> freed;        // Leaked, and not in `next`.
    std::map<int32_t, int> sightings;  // For note().
  };
  // The ledger as it should be. `used` has the range of this server.
  Rebuilt rebuild(const std::optional<PortBitmap>& stored, const PortBitmap& used) const;
  // It was stored.
  void note(Rebuilt rebuilt) { sightings_ = std::move(rebuilt.sightings); }

 private:
  std::map<int32_t, int> sightings_;
};

}  // namespace holdfast::services
