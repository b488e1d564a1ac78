// Probes the store for the health checks "etcd" and "etcd-readiness", whichever store it is, and logs when that
// changes.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"
#include "store/etcd.h"
#include "store/store.h"

namespace holdfast::server {

class StoreProbe {
 public:
  // `key` is the key to read; it need not exist. The store must outlive the last refresh().
  // `directory` is that of an embedded store, and empty for an etcd.
  StoreProbe(store::Store& store, std::string key, std::string directory = {})
      : store_(store), key_(std::move(key)), directory_(std::move(directory)) {}

  // Probes the store, at most twice a second regardless of the number of callers; waits no longer than kube-apiserver
  // does. Call on the loop's thread.
  Task<void> refresh(net::EventLoop& loop);
  // The problem found by the last probe; nullopt if there was none.
  std::optional<std::string> wrong() const;
  // Why an embedded store takes no writes, although reads work; nullopt if it does.
  std::optional<std::string> writes_rejected() const;
  bool embedded() const { return !directory_.empty(); }

 private:
  using Problem = std::optional<std::string>;
  Task<Problem> read(net::EventLoop& loop);

  store::Store& store_;
  const std::string key_, directory_;

  mutable std::mutex mutex_;  // Guards the members below.
  bool asking_ = false;
  std::optional<std::chrono::steady_clock::time_point> asked_;
  Problem wrong_;
};

// Logs what happens to an etcd, each kind of event once a minute at most per endpoint.
store::EtcdNotices log_etcd_notices();

// Refreshes probes every second and logs, once for each change, what is wrong and what to do, and when it is over.
class StoreWatch {
 public:
  // The probes must outlive close().
  StoreWatch(net::EventLoop& loop, std::vector<StoreProbe*> probes);
  void start();
  Task<void> close(Executor& executor) { return tasks_.close(executor); }

 private:
  struct Watched {
    StoreProbe* probe;
    std::optional<std::chrono::steady_clock::time_point> failing_since, rejecting_since;
  };
  Task<void> watch();
  static void note(Watched& watched);

  net::EventLoop& loop_;
  TaskGroup tasks_;
  std::vector<Watched> watched_;
};

}  // namespace holdfast::server
