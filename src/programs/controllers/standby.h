// Whether a kube-controller-manager is active: the embedded controllers are then on standby, to avoid doing the same
// work twice.
#pragma once

#include <chrono>
#include <utility>

#include "api/api.h"
#include "base/clock.h"
#include "base/keyed_queue.h"

namespace holdfast::controllers {

class Standby {
 public:
  Standby(api::Api& api, const Clock& clock) : api_(api), clock_(clock) {}

  // Whether the Lease kube-system/kube-controller-manager is held and has not expired. Cheap enough to call before
  // every step. Call on the controllers' loop.
  bool on();
  // Options for a queue whose work does not begin meanwhile.
  KeyedQueueOptions pausing(KeyedQueueOptions options = {}) {
    options.paused = [this] { return on(); };
    return options;
  }

 private:
  bool look() const;

  api::Api& api_;
  const Clock& clock_;
  bool last_ = false;
  std::chrono::steady_clock::time_point looked_at_{};
};

}  // namespace holdfast::controllers
