// Whether a kube-controller-manager is active: the embedded controllers then pause, to avoid doing the same work twice.
#pragma once

#include <chrono>

#include "api/api.h"
#include "base/clock.h"

namespace holdfast::controllers {

class Pause {
 public:
  // Sleep interval while waiting for the pause to end.
  static constexpr std::chrono::milliseconds kLook{500};

  Pause(api::Api& api, const Clock& clock) : api_(api), clock_(clock) {}

  // Whether the Lease kube-system/kube-controller-manager is held and has not expired. Cheap enough to call before
  // every step. Call on the controllers' loop.
  bool on();

 private:
  bool look() const;

  api::Api& api_;
  const Clock& clock_;
  bool last_ = false;
  std::chrono::steady_clock::time_point looked_at_{};
};

}  // namespace holdfast::controllers
