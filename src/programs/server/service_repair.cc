#include "server/service_repair.h"

#include "base/log.h"

namespace holdfast::server {
namespace {

constexpr std::chrono::minutes kBetween{3};  // controlplane.Config's RepairServicesInterval.

}  // namespace

Task<void> ServiceRepair::run() {
  try {
    const Result<Unit> repaired = co_await api_.repair_services(loop_);
    if (repaired) co_return;
    log::error("cannot repair the allocations of Services", {{"error", repaired.error().message}});
  } catch (...) {
    report_failed_task("service repair", std::current_exception());
  }
}

void ServiceRepair::start() {
  tasks_.post([this] { return keep_running(); });
}

Task<void> ServiceRepair::keep_running() {
  while (!tasks_.closing()) {
    co_await tasks_.sleep(kBetween);
    if (!tasks_.closing()) co_await run();
  }
}

}  // namespace holdfast::server
