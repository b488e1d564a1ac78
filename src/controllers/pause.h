// Whether a kube-controller-manager is active: then the embedded controllers pause, so that work is not done twice.
#pragma once

#include <chrono>

#include "api/api.h"
#include "base/clock.h"

namespace holdfast::controllers {

class Pause {
 public:
  // How long those that wait for its end may sleep between two looks.
  static constexpr std::chrono::milliseconds kLook{500};

  Pause(api::Api& api, const Clock& clock) : api_(api), clock_(clock) {}

  // The Lease kube-system/kube-controller-manager is held and has not expired. Cheap enough to ask before every step.
  // On the controllers' loop.
  bool on();

 private:
  bool look() const;

  api::Api& api_;
  const Clock& clock_;
  bool last_ = false;
  std::chrono::steady_clock::time_point looked_at_{};
};

}  // namespace holdfast::controllers
