#include "controllers/leases.h"

#include "base/task_group.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/objects.h"
#include "types/types.h"

namespace holdfast::controllers {
namespace {

// Same as kube-apiserver's IdentityLeaseGCPeriod; the first run is at startup.
constexpr std::chrono::milliseconds kPeriod = std::chrono::hours(1);

}  // namespace

struct LeaseCleaner::State {
  State(api::Api& served, net::EventLoop& loop, const Clock& time, const own_calls::OwnCalls& own)
      : api(served), tasks(loop, "lease cleanup"), clock(time), calls(own) {}

  api::Api& api;
  TaskGroup tasks;
  const Clock& clock;
  const own_calls::OwnCalls& calls;

  Task<void> run() {
    while (!tasks.closing()) {
      co_await clean();
      co_await tasks.sleep(kPeriod);
    }
  }

  Task<void> clean() {
    static const types::Resource& resource = *types::find_resource("coordination.k8s.io", "v1", "leases");
    cache::Cache* leases = api.cache_of(resource.group, resource.plural);
    Result<cache::Snapshot> all = leases->snapshot();
    if (!all) co_return;
    cache::ListRequest request;
    request.scope = "kube-system/";
    const cache::ListPage page = all->list(request);
    for (const cache::EntryRef& entry : page.entries) {
      if (entry->label("apiserver.kubernetes.io/identity") != "kube-apiserver" || tasks.closing()) continue;
      Arena arena;
      const cache::Blob body = entry->body();
      Result<Value> lease = object_tree(arena, *resource.type, *body);
      if (!lease || !expired(*lease)) continue;
      // Unless it was renewed in the meantime.
      (void)co_await own_calls::send(
          calls, own_calls::Request::remove(target_of(resource, entry->key()),
                                            {.revision = lease->text_at("metadata", "resourceVersion")}));
    }
  }

  bool expired(const Value& lease) const {
    const std::optional<UnixTime> renewed = parse_rfc3339(lease.text_at("spec", "renewTime"));
    const int64_t lasts = lease.int_at_or(0, "spec", "leaseDurationSeconds");
    return !renewed || renewed->seconds + lasts < clock.now().seconds;
  }
};

LeaseCleaner::LeaseCleaner(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls)
    : state_(std::make_unique<State>(api, loop, clock, calls)) {}
LeaseCleaner::~LeaseCleaner() = default;

void LeaseCleaner::start() {
  state_->tasks.post([state = state_.get()] { return state->run(); });
}

Task<void> LeaseCleaner::close(Executor& executor) { co_await state_->tasks.close(executor); }

}  // namespace holdfast::controllers
