// EventRateLimit: token buckets per server, namespace, user, or source and object. Private to the module.
//
// Threading: any thread.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "admission/configuration.h"
#include "base/error.h"
#include "base/hash.h"
#include "value/value.h"

namespace holdfast::admission {

class EventLimits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit EventLimits(const std::vector<EventLimit>& limits);

  // Takes one event from each bucket that counts it; 429 if one is empty.
  Result<Unit> accept(std::string_view ns, std::string_view user, const Value& event, Time now);

 private:
  struct Bucket {
    std::string key;
    double tokens = 0;
    Time filled;
  };
  // The buckets of one limit; the one that has not been used for longest makes room for another.
  struct Limiter {
    EventLimit limit;
    std::list<Bucket> buckets;  // The last used first.
    std::unordered_map<std::string_view, std::list<Bucket>::iterator, KeyHash> by_key;
  };
  static bool take(Limiter& limiter, const std::string& key, Time now);

  std::mutex mutex_;
  std::list<Limiter> limiters_;
};

}  // namespace holdfast::admission
