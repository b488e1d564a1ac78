#include "client/leader.h"

#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "base/task_group.h"
#include "client/core.h"

namespace holdfast::client {

struct LeaderElection::State : std::enable_shared_from_this<LeaderElection::State> {
  State(Client& client, LeaderOptions the_options, std::function<void()> leading_callback,
        std::function<void()> lost_callback)
      : options(std::move(the_options)),
        on_leading(std::move(leading_callback)),
        on_lost(std::move(lost_callback)),
        core(client.core()),
        api(client.api(builtin("coordination.k8s.io/v1", "Lease"), options.space)),
        tasks(client.loop(), "leader election") {}

  const LeaderOptions options;
  const std::function<void()> on_leading, on_lost;
  const std::shared_ptr<Core> core;
  const Api<> api;
  TaskGroup tasks;
  bool started = false, stopped = false;
  std::atomic<bool> leading{false};

  // The last observed version, and when it was first seen by our clock.
  std::string seen_version;
  std::chrono::steady_clock::time_point seen_at;

  std::mutex mutex;  // Guards the members below.
  std::string holder;

  static Task<void> run(std::shared_ptr<State> self);
  Task<bool> try_to_lead();
  Task<void> release();
  Value record(Arena& arena, const Object& before, std::string_view identity) const;
};

Value LeaderElection::State::record(Arena& arena, const Object& before, std::string_view identity) const {
  const std::string now = format_rfc3339_micro(system_clock().now());
  Draft draft(arena, before.root());
  Draft::Node root = draft.root();
  if (!before) {
    root.set("apiVersion", Value::string("coordination.k8s.io/v1"));
    root.set("kind", Value::string("Lease"));
    root.child("metadata").set("name", Value::string(arena, options.name));
    root.child("metadata").set("namespace", Value::string(arena, options.space));
  }
  Draft::Node spec = root.child("spec");
  const std::string_view held = before.root().text_at("spec", "holderIdentity");
  if (held != identity) {
    spec.set("acquireTime", Value::string(arena, now));
    spec.set("leaseTransitions",
             Value::integer(before.root().int_at_or(0, "spec", "leaseTransitions") + (held.empty() ? 0 : 1)));
  }
  spec.set("holderIdentity", Value::string(arena, identity));
  spec.set("leaseDurationSeconds", Value::integer(std::max<int64_t>(1, options.lease_duration.count() / 1000)));
  spec.set("renewTime", Value::string(arena, now));
  return draft.value();
}

Task<bool> LeaderElection::State::try_to_lead() {
  Arena arena;
  Result<Object> lease = co_await api.get(options.name);
  if (!lease && lease.error().code != 404) {
    log::warning("leader election: the Lease cannot be read", {{"error", lease.error().message}});
    co_return false;
  }
  if (!lease) {
    Result<Object> made = co_await api.create(record(arena, Object(), options.identity));
    co_return made.ok();
  }
  const auto now = std::chrono::steady_clock::now();
  const std::string_view version = lease->resource_version();
  const std::string held(lease->root().text_at("spec", "holderIdentity"));
  {
    std::lock_guard lock(mutex);
    holder = held;
  }
  if (version != seen_version) {
    seen_version = version;
    seen_at = now;
  }
  if (!held.empty() && held != options.identity) {
    const std::chrono::seconds theirs(lease->root().int_at_or(15, "spec", "leaseDurationSeconds"));
    if (now - seen_at < theirs) co_return false;
  }
  // A concurrent candidate gets a conflict: the write includes the resourceVersion.
  Result<Object> renewed = co_await api.update(record(arena, *lease, options.identity));
  if (!renewed) co_return false;
  seen_version = renewed->resource_version();
  seen_at = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex);
  holder = options.identity;
  co_return true;
}

Task<void> LeaderElection::State::release() {
  Arena arena;
  Result<Object> lease = co_await api.get(options.name);
  if (!lease || lease->root().text_at("spec", "holderIdentity") != options.identity) co_return;
  Value free = record(arena, *lease, "");
  (void)co_await api.update(free);
}

Task<void> LeaderElection::State::run(std::shared_ptr<State> self) {
  State& me = *self;
  const Core::Use use(me.core);
  auto renewed_at = std::chrono::steady_clock::now();
  while (!me.tasks.closing() && !me.core->closing) {
    const bool held = co_await me.try_to_lead();
    const auto now = std::chrono::steady_clock::now();
    if (held) {
      renewed_at = now;
      if (!me.leading.exchange(true)) me.on_leading();
    } else if (me.leading && now - renewed_at > me.options.renew_deadline) {
      me.leading = false;
      me.on_lost();
    }
    co_await me.tasks.sleep(net::Millis(
        static_cast<int64_t>(me.leading ? static_cast<double>(me.options.retry_period.count())
                                        : me.core->jitter(static_cast<double>(me.options.retry_period.count())))));
  }
  if (me.leading.exchange(false)) {
    if (!me.core->closing) co_await me.release();
    me.on_lost();
  }
}

LeaderElection::LeaderElection(Client& client, LeaderOptions options, std::function<void()> on_leading,
                               std::function<void()> on_lost)
    : state_(std::make_shared<State>(client, std::move(options), std::move(on_leading), std::move(on_lost))) {}
LeaderElection::~LeaderElection() { stop(); }

void LeaderElection::start() {
  if (std::exchange(state_->started, true)) return;
  state_->tasks.post([state = state_] { return State::run(state); });
}

void LeaderElection::stop() {
  if (std::exchange(state_->stopped, true)) return;
  block_on(state_->core->loop, state_->tasks.close(state_->core->loop));
}

bool LeaderElection::leading() const { return state_->leading; }
std::string LeaderElection::holder() const {
  std::lock_guard lock(state_->mutex);
  return state_->holder;
}

}  // namespace holdfast::client
