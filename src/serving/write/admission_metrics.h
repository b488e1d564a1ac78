// kube-apiserver's metrics about admission steps and webhooks, under the same names.
//
// Threading: any thread. Lifetime: the registry must outlive it.
#pragma once

#include <chrono>
#include <string_view>

#include "base/metrics.h"

namespace holdfast::write {

class AdmissionMetrics {
 public:
  explicit AdmissionMetrics(MetricRegistry& registry);

  using Time = std::chrono::nanoseconds;
  // `operation` is CREATE, UPDATE, ...; `step` is admit or validate.
  void step_done(std::string_view operation, std::string_view step, bool rejected, Time took);

  // One call of a webhook.
  struct Call {
    std::string_view webhook, operation;
    std::string_view type;  // "admit" for a mutating webhook, otherwise "validating".
  };
  enum class Result : uint8_t { Allowed, Denied, Failed };
  // `code`: of the denial, 0 if there is none.
  void webhook_called(const Call& call, Result result, int code, Time took);
  // The call failed and the webhook's policy is to ignore that.
  void failed_open(const Call& call);

 private:
  Family<Histogram>& steps_;
  Family<Histogram>& durations_;
  Family<Counter>& calls_;
  Family<Counter>& rejections_;
  Family<Counter>& failed_open_;
};

}  // namespace holdfast::write
