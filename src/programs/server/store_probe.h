// Probes the store for the health checks "etcd" and "etcd-readiness", whichever store it is.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/task.h"
#include "net/net.h"
#include "store/store.h"

namespace holdfast::server {

class StoreProbe {
 public:
  // `key` is the key to read; it need not exist. The store must outlive the last refresh().
  StoreProbe(store::Store& store, std::string key) : store_(store), key_(std::move(key)) {}

  // Probes the store, at most twice a second regardless of the number of callers; waits no longer than kube-apiserver
  // does. Call on the loop's thread.
  Task<void> refresh(net::EventLoop& loop);
  // The problem found by the last probe; nullopt if there was none.
  std::optional<std::string> wrong() const;

 private:
  store::Store& store_;
  const std::string key_;

  mutable std::mutex mutex_;  // Guards the members below.
  bool asking_ = false;
  std::optional<std::chrono::steady_clock::time_point> asked_;
  std::optional<std::string> wrong_;
};

}  // namespace holdfast::server
