// Enforces ResourceQuotas: a write is charged to the quotas of its namespace before it is stored.
//
// Usage is kept in the quotas' status and updated with a precondition, so two servers on one store never admit more
// than fits. Within one server, writes in a namespace are serialized to avoid conflicts with each other. A charge whose
// write then fails is corrected by the resourcequota controller; QuotaLedger tells it when that would be too early.
#pragma once

#include <coroutine>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "base/task.h"
#include "call/call.h"
#include "own_calls/own_calls.h"
#include "write/admission_request.h"

namespace holdfast::write {

// Any thread.
class QuotaLedger {
 public:
  // While it is held, a write in this namespace has been charged but may not be stored yet.
  std::shared_ptr<void> hold(std::string_view ns);
  bool is_held(std::string_view ns) const;

  // Waits for exclusive access: co_await ledger.turn(ns, executor), later done(ns).
  auto turn(std::string ns, Executor& executor) {
    struct Awaiter {
      QuotaLedger& ledger;
      std::string ns;
      Executor& executor;
      bool await_ready() const { return false; }
      bool await_suspend(std::coroutine_handle<> h) { return ledger.wait(ns, executor, h); }
      void await_resume() const {}
    };
    return Awaiter{*this, std::move(ns), executor};
  }
  void done(std::string_view ns);

 private:
  struct Queue {
    std::deque<std::pair<Executor*, std::coroutine_handle<>>> waiting;
  };
  bool wait(const std::string& ns, Executor& executor, std::coroutine_handle<> waiter);

  mutable std::mutex mutex_;
  std::map<std::string, int, std::less<>> held_;     // Guarded by mutex_.
  std::map<std::string, Queue, std::less<>> turns_;  // Guarded by mutex_; namespaces with a write in progress.
};

class Quotas {
 public:
  // `own` is used to store usage; `on` says whether the ResourceQuota plugin is enabled. Resources in `limited` require
  // a quota.
  Quotas(own_calls::Handler own, bool on, std::vector<admission::quota::LimitedResource> limited)
      : own_(std::move(own)), on_(on), limited_(std::move(limited)) {}

  // 403 with Kubernetes' message if a quota rejects the write. `object` and `old` are in the requested version.
  Task<Result<Unit>> charge(call::Call& call, AdmissionOperation operation, const Value& object, const Value* old,
                            bool dry_run);
  // Whether a write in this namespace has been charged but may not be stored yet. Any thread.
  bool is_charged(std::string_view ns) const { return ledger_.is_held(ns); }

 private:
  Task<int> store_usage(call::Call& call, const Value& counted);

  const own_calls::Handler own_;
  const bool on_;
  const std::vector<admission::quota::LimitedResource> limited_;
  QuotaLedger ledger_;
};

}  // namespace holdfast::write
