#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "flow/flow.h"

namespace holdfast::flow {

namespace {

// As in kube-apiserver.
constexpr double kBounds[] = {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30};

double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

// A request waiting for a seat. Completed once, by whatever removes it from its queue: a free seat or the timeout.
struct Dispatcher::Waiter {
  std::function<void(bool)> done;
  int64_t seats = 1;
  bool waiting = true;  // Guarded by the dispatcher's lock.
};

struct Dispatcher::LevelState {
  // Guarded by the dispatcher's lock.
  Level level;
  int64_t nominal = 0;                // Nominal seats.
  int64_t most = 0;                   // Including seats borrowed from other levels.
  int64_t max_seats_per_request = 0;  // Maximum seats per request; 0 means unlimited.
  int64_t running = 0;
  int64_t waiting = 0;
  struct Queue {
    std::deque<std::shared_ptr<Waiter>> waiters;
  };
  std::unordered_map<std::string, Queue, KeyHash> queues;  // By flow; only flows with waiting requests.
  std::list<std::string> turns;                            // The same flows, the next one first.
  struct Meters {
    Gauge *running, *seats, *waiting;
    Counter* dispatched;
    Histogram *waited, *waited_in_vain, *executed;
  };
  std::map<std::string, Meters, std::less<>> meters;  // By flow schema; caches a more expensive lookup.
};

struct Dispatcher::State {
  State(DispatcherOptions chosen, MetricRegistry& registry)
      : options(chosen),
        running(registry.gauges("apiserver_flowcontrol_current_executing_requests",
                                "Requests that hold a seat, by flow schema and priority level.",
                                {"flow_schema", "priority_level"})),
        waiting(registry.gauges("apiserver_flowcontrol_current_inqueue_requests",
                                "Requests that wait for a seat, by flow schema and priority level.",
                                {"flow_schema", "priority_level"})),
        dispatched(registry.counters("apiserver_flowcontrol_dispatched_requests_total",
                                     "Requests that were given a seat, by flow schema and priority level.",
                                     {"flow_schema", "priority_level"})),
        rejected(registry.counters("apiserver_flowcontrol_rejected_requests_total",
                                   "Requests that were refused, by flow schema, priority level and reason.",
                                   {"flow_schema", "priority_level", "reason"})),
        taken(registry.gauges("apiserver_flowcontrol_current_executing_seats",
                              "Seats that requests hold, by flow schema and priority level.",
                              {"flow_schema", "priority_level"})),
        waits(registry.histograms("apiserver_flowcontrol_request_wait_duration_seconds",
                                  "Time that requests waited for a seat, by flow schema, priority level and whether "
                                  "they were given one.",
                                  kBounds, {"priority_level", "flow_schema", "execute"})),
        executions(registry.histograms("apiserver_flowcontrol_request_execution_seconds",
                                       "Time that requests held their seats, by flow schema, priority level and type.",
                                       kBounds, {"priority_level", "flow_schema", "type"})),
        nominal(registry.gauges("apiserver_flowcontrol_nominal_limit_seats", "Seats of each priority level.",
                                {"priority_level"})),
        current(registry.gauges("apiserver_flowcontrol_current_limit_seats",
                                "Seats that each priority level may use of its own.", {"priority_level"})),
        least(registry.gauges("apiserver_flowcontrol_lower_limit_seats",
                              "Seats of each priority level that others cannot borrow.", {"priority_level"})),
        most(registry.gauges("apiserver_flowcontrol_upper_limit_seats",
                             "Seats of each priority level, with those that it may borrow.", {"priority_level"})) {}

  const DispatcherOptions options;
  Family<Gauge>&running, &waiting;
  Family<Counter>&dispatched, &rejected;
  Family<Gauge>& taken;
  Family<Histogram>&waits, &executions;
  Family<Gauge>&nominal, &current, &least, &most;

  std::mutex mutex;  // Guards what follows, and the level states.
  std::map<std::string, std::unique_ptr<LevelState>, std::less<>> levels;
  int64_t running_total = 0;  // Without exempt requests.

  // Whether the level has that many free seats: its own, or unused ones of other levels. A request that needs more
  // seats than the level has may run when the level is idle.
  bool has_seats(const LevelState& level, int64_t seats) const {
    const int64_t taken = level.running + seats;
    return taken <= level.nominal || (taken <= level.most && running_total + seats <= options.seats) ||
           (level.running == 0 && level.most > 0);
  }
  const LevelState::Meters& meters_of(LevelState& level, std::string_view schema) {
    if (const auto known = level.meters.find(schema); known != level.meters.end()) return known->second;
    return level.meters
        .emplace(std::string(schema),
                 LevelState::Meters{
                     &running.with({schema, level.level.name}), &taken.with({schema, level.level.name}),
                     &waiting.with({schema, level.level.name}), &dispatched.with({schema, level.level.name}),
                     &waits.with({level.level.name, schema, "true"}), &waits.with({level.level.name, schema, "false"}),
                     &executions.with({level.level.name, schema, "regular"})})
        .first->second;
  }
  void take(LevelState& level, int64_t seats) {
    level.running += seats;
    if (!level.level.exempt) running_total += seats;
  }
};

Dispatcher::Dispatcher(DispatcherOptions options, MetricRegistry& metrics)
    : state_(std::make_unique<State>(options, metrics)) {}
Dispatcher::~Dispatcher() = default;

void Dispatcher::configure(const Schemas& schemas) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  int64_t shares = 0;
  for (const std::unique_ptr<Level>& level : schemas.levels()) shares += level->shares;
  for (const std::unique_ptr<Level>& level : schemas.levels()) {
    std::unique_ptr<LevelState>& known = s.levels[level->name];
    if (!known) known = std::make_unique<LevelState>();
    known->level = *level;
    known->nominal = shares == 0 ? 0
                                 : static_cast<int64_t>(std::ceil(static_cast<double>(s.options.seats * level->shares) /
                                                                  static_cast<double>(shares)));
    known->most = level->borrowing < 0 ? s.options.seats : known->nominal + known->nominal * level->borrowing / 100;
    // As in kube-apiserver: a fraction of the level's seats, and never so many that a hand of queues could not be
    // served.
    constexpr double kWidestShare = 0.15;
    known->max_seats_per_request =
        level->queues && level->hand_size > 0
            ? std::max<int64_t>(
                  1, std::min(static_cast<int64_t>(std::ceil(static_cast<double>(known->nominal) * kWidestShare)),
                              known->nominal / level->hand_size))
            : 0;
    s.nominal.with({level->name}).set(known->nominal);
    s.current.with({level->name}).set(known->nominal);
    // Unused seats may be borrowed by every level that is allowed to.
    s.least.with({level->name}).set(0);
    s.most.with({level->name}).set(known->most);
  }
}

int64_t Dispatcher::max_seats_per_request(std::string_view level) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->levels.find(level);
  return found == state_->levels.end() ? 0 : found->second->max_seats_per_request;
}

Task<Dispatcher::Entry> Dispatcher::enter(Flow flow, int64_t seats, Executor& executor, RunAfter after) {
  State& s = *state_;
  const std::string level_name = flow.level->name;
  LevelState* level = nullptr;
  const LevelState::Meters* meters = nullptr;
  const auto arrived = std::chrono::steady_clock::now();
  auto granted = [&] {
    Entry entry;
    entry.seat.from_ = this;
    entry.seat.level_ = level;
    entry.seat.width_ = seats;
    entry.seat.since_ = std::chrono::steady_clock::now();
    entry.seat.meters_ = meters;
    meters->running->add(1);
    meters->seats->add(seats);
    meters->dispatched->add();
    meters->waited->observe(seconds(entry.seat.since_ - arrived));
    return entry;
  };
  auto refused = [&](std::string_view reason) {
    s.rejected.with({flow.schema, level_name, reason}).add();
    meters->waited_in_vain->observe(seconds(std::chrono::steady_clock::now() - arrived));
    Entry entry;
    entry.refused = reason;
    return entry;
  };

  std::shared_ptr<Waiter> waiter;
  std::string_view problem;
  {
    const std::lock_guard lock(s.mutex);
    const auto found = s.levels.find(level_name);
    if (found == s.levels.end()) co_return Entry{};  // Not configured yet.
    level = found->second.get();
    meters = &s.meters_of(*level, flow.schema);
    const Level& config = level->level;
    const std::string key = std::string(flow.schema) + "/" + flow.distinguisher;
    if (config.exempt || (level->waiting == 0 && s.has_seats(*level, seats))) {
      s.take(*level, seats);
    } else if (!config.queues) {
      problem = "concurrency-limit";
    } else {
      LevelState::Queue& queue = level->queues[key];
      const int64_t of_flow = static_cast<int64_t>(queue.waiters.size());
      if (of_flow >= config.hand_size * config.queue_length ||
          level->waiting >= config.queue_count * config.queue_length) {
        if (queue.waiters.empty()) level->queues.erase(key);
        problem = "queue-full";
      } else {
        waiter = std::make_shared<Waiter>();
        waiter->seats = seats;
        if (queue.waiters.empty()) level->turns.push_back(key);
        queue.waiters.push_back(waiter);
        ++level->waiting;
      }
    }
  }
  if (!problem.empty()) co_return refused(problem);
  if (!waiter) co_return granted();

  meters->waiting->add(1);
  const bool seated = co_await from_callback<bool>(executor, [&](auto done) {
    const std::lock_guard lock(s.mutex);
    if (!waiter->waiting) {  // A seat became free in the meantime.
      done(true);
      return;
    }
    waiter->done = done;
    after(s.options.longest_wait, [waiter, &s, level] {
      std::function<void(bool)> end;
      {
        const std::lock_guard again(s.mutex);
        if (!waiter->waiting) return;
        waiter->waiting = false;
        --level->waiting;
        end = std::move(waiter->done);
      }
      end(false);
    });
  });
  meters->waiting->add(-1);
  if (!seated) co_return refused("time-out");
  co_return granted();
}

// Passes the seats on to waiting requests, round-robin by flow.
void Dispatcher::leave(LevelState& level, int64_t seats) {
  State& s = *state_;
  std::vector<std::function<void(bool)>> seated;
  {
    const std::lock_guard lock(s.mutex);
    s.take(level, -seats);
    while (!level.turns.empty()) {
      const std::string key = level.turns.front();
      LevelState::Queue& queue = level.queues[key];
      // Requests whose wait timed out are still in the queue.
      while (!queue.waiters.empty() && !queue.waiters.front()->waiting) queue.waiters.pop_front();
      std::shared_ptr<Waiter> next;
      if (!queue.waiters.empty()) {
        // No request overtakes the next one, however few seats it needs: a wide request would starve.
        if (!s.has_seats(level, queue.waiters.front()->seats)) break;
        next = std::move(queue.waiters.front());
        queue.waiters.pop_front();
      }
      level.turns.pop_front();
      if (queue.waiters.empty()) {
        level.queues.erase(key);
      } else {
        level.turns.push_back(key);
      }
      if (!next) continue;
      next->waiting = false;
      --level.waiting;
      s.take(level, next->seats);
      if (next->done) seated.push_back(std::move(next->done));
    }
  }
  for (const std::function<void(bool)>& done : seated) done(true);
}

Dispatcher::Seat::~Seat() {
  if (from_ == nullptr) return;
  const auto& meters = *static_cast<const LevelState::Meters*>(meters_);
  meters.running->add(-1);
  meters.seats->add(-width_);
  meters.executed->observe(seconds(std::chrono::steady_clock::now() - since_));
  from_->leave(*static_cast<LevelState*>(level_), width_);
}

}  // namespace holdfast::flow
