#include "client/controller.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/log.h"
#include "base/task_group.h"
#include "client/core.h"

namespace holdfast::client {

// ---------------------------------------------------------------------------------------------------- Work queue

struct WorkQueue::State : std::enable_shared_from_this<State> {
  State(net::EventLoop& event_loop, RateLimit the_limit) : loop(event_loop), limit(the_limit) {}

  net::EventLoop& loop;
  const RateLimit limit;
  std::deque<std::string> ready;
  std::unordered_set<std::string> dirty;    // In `ready`, or to be put there when its processing is done.
  std::unordered_set<std::string> working;  // Taken but not done.
  std::unordered_map<std::string, int> failures;
  struct Scheduled {
    net::EventLoop::TimerId timer;
    std::chrono::steady_clock::time_point due;
  };
  std::unordered_map<std::string, Scheduled> later;
  std::deque<std::coroutine_handle<>> takers;
  bool closed = false;

  void add(std::string key) {
    if (closed || !dirty.insert(key).second || working.contains(key)) return;
    ready.push_back(std::move(key));
    wake();
  }
  // The sooner of two times wins.
  void add_after(const std::string& key, std::chrono::milliseconds delay) {
    if (closed) return;
    delay = std::max(delay, std::chrono::milliseconds(1));
    const auto due = std::chrono::steady_clock::now() + delay;
    if (const auto found = later.find(key); found != later.end()) {
      if (found->second.due <= due) return;
      loop.cancel(found->second.timer);
    }
    const auto timer = loop.run_after(delay, [weak = weak_from_this(), key] {
      const std::shared_ptr<State> alive = weak.lock();
      if (!alive) return;
      alive->later.erase(key);
      alive->add(key);
    });
    later.insert_or_assign(key, Scheduled{timer, due});
  }
  void wake() {
    if (takers.empty() || (ready.empty() && !closed)) return;
    loop.post([taker = takers.front()] { taker.resume(); });
    takers.pop_front();
  }
};

namespace {

template <class Work>
void on_loop(const std::shared_ptr<WorkQueue::State>& state, Work work) {
  if (state->loop.in_thread()) {
    work(*state);
  } else {
    state->loop.post([state, work = std::move(work)]() mutable { work(*state); });
  }
}

}  // namespace

WorkQueue::WorkQueue(net::EventLoop& loop, RateLimit limit) : state_(std::make_shared<State>(loop, limit)) {}
WorkQueue::~WorkQueue() { close(); }

void WorkQueue::add(std::string key) {
  on_loop(state_, [key = std::move(key)](State& state) mutable { state.add(std::move(key)); });
}

void WorkQueue::add_after(std::string key, std::chrono::milliseconds delay) {
  on_loop(state_, [key = std::move(key), delay](State& state) { state.add_after(key, delay); });
}

void WorkQueue::add_with_backoff(std::string key) {
  on_loop(state_, [key = std::move(key)](State& state) {
    const int failures = std::min(state.failures[key]++, 40);
    const auto longest = state.limit.max_delay;
    auto delay = state.limit.first_delay;
    for (int i = 0; i < failures && delay < longest; ++i) delay *= 2;
    state.add_after(key, std::min(delay, longest));
  });
}

void WorkQueue::forget(const std::string& key) {
  on_loop(state_, [key](State& state) { state.failures.erase(key); });
}

Task<std::optional<std::string>> WorkQueue::take() {
  const std::shared_ptr<State> state = state_;
  struct Ready {
    State& state;
    bool await_ready() const noexcept { return !state.ready.empty() || state.closed; }
    void await_suspend(std::coroutine_handle<> h) { state.takers.push_back(h); }
    void await_resume() const noexcept {}
  };
  while (state->ready.empty() && !state->closed) co_await Ready{*state};
  if (state->closed) co_return std::nullopt;
  std::string key = std::move(state->ready.front());
  state->ready.pop_front();
  state->dirty.erase(key);
  state->working.insert(key);
  state->wake();
  co_return key;
}

void WorkQueue::done(const std::string& key) {
  state_->working.erase(key);
  if (!state_->dirty.contains(key)) return;
  state_->ready.push_back(key);
  state_->wake();
}

void WorkQueue::close() {
  on_loop(state_, [](State& state) {
    state.closed = true;
    for (const auto& [key, scheduled] : state.later) state.loop.cancel(scheduled.timer);
    state.later.clear();
    while (!state.takers.empty()) state.wake();
  });
}

size_t WorkQueue::waiting() const { return state_->ready.size() + state_->later.size(); }

// ---------------------------------------------------------------------------------------------------- Controller

Options controller_options(std::string field_manager) {
  Options options;
  options.user_agent = field_manager;
  options.field_manager = std::move(field_manager);
  options.drop_fields = {std::string(kManagedFields)};
  return options;
}

struct Controller::State : std::enable_shared_from_this<Controller::State> {
  State(Client& the_client, Reconcile the_reconcile, ControllerOptions the_options)
      : client(the_client),
        reconcile(std::move(the_reconcile)),
        options(the_options),
        queue(client.loop(), options.limit),
        tasks(client.loop(), "controller") {}

  Client& client;
  const Reconcile reconcile;
  const ControllerOptions options;
  WorkQueue queue;
  struct Followed {
    std::shared_ptr<Informer> informer;
    uint64_t handlers;
  };
  std::vector<Followed> followed;

  TaskGroup tasks;
  bool stopped = false;

  static Task<void> work(std::shared_ptr<State> self);
  static Task<void> begin(std::shared_ptr<State> self);
};

Task<void> Controller::State::begin(std::shared_ptr<State> self) {
  for (const Followed& followed : self->followed) {
    // Polled instead of awaited, so that stop() does not wait for an unresponsive server.
    while (!followed.informer->status().synced && !self->tasks.closing()) {
      co_await self->tasks.sleep(std::chrono::milliseconds(10));
    }
  }
  for (int i = 0; i < self->options.workers; ++i) self->tasks.run(work(self));
}

Task<void> Controller::State::work(std::shared_ptr<State> self) {
  State& me = *self;
  while (std::optional<std::string> key = co_await me.queue.take()) {
    Result<ReconcileResult> result = Error{Reason::InternalError, "the reconciler threw an exception"};
    try {
      result = co_await me.reconcile(*key);
    } catch (const std::exception& thrown) {
      result = internal_error(thrown.what());
    }
    if (!result) {
      log::warning("reconcile failed, will retry", {{"key", *key}, {"error", result.error().message}});
      me.queue.add_with_backoff(*key);
    } else {
      me.queue.forget(*key);
      if (result->requeue_after) me.queue.add_after(*key, *result->requeue_after);
    }
    me.queue.done(*key);
  }
}

Controller::Controller(Client& client, Reconcile reconcile, ControllerOptions options)
    : state_(std::make_shared<State>(client, std::move(reconcile), options)) {}
Controller::~Controller() { stop(); }
WorkQueue& Controller::queue() { return state_->queue; }

std::shared_ptr<Informer> Controller::follow(Resource resource, InformerOptions options, Keys keys) {
  if (options.drop_fields.inherits()) options.drop_fields = {kManagedFields};
  std::shared_ptr<Informer> informer = Informer::follow(state_->client, std::move(resource), std::move(options));
  auto add = [weak = std::weak_ptr<State>(state_), keys](const Stored& stored) {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    if (!keys) return state->queue.add(stored.key());
    std::vector<std::string> all;
    keys(stored.get(), all);
    for (std::string& key : all) state->queue.add(std::move(key));
  };
  const uint64_t handlers = informer->add_handlers({.added = add,
                                                    .changed =
                                                        [add, keys](const Stored& before, const Stored& after) {
                                                          if (keys) add(before);  // The owner may have changed.
                                                          add(after);
                                                        },
                                                    .removed = add});
  state_->followed.push_back({informer, handlers});
  return informer;
}

std::shared_ptr<Informer> Controller::follow_owned(Resource resource, std::string_view owner_kind,
                                                   InformerOptions options) {
  return follow(
      std::move(resource), std::move(options),
      [kind = std::string(owner_kind)](const Object& object, std::vector<std::string>& into) {
        for (const Value& owner : object->items_at("metadata", "ownerReferences")) {
          const Value* controls = owner.find("controller");
          if (owner.text_at("kind") != kind || controls == nullptr || !controls->is_bool() || !controls->as_bool()) {
            continue;
          }
          const std::string name(owner.text_at("name"));
          into.push_back(object.space().empty() ? name : std::string(object.space()) + "/" + name);
        }
      });
}

void Controller::start() {
  state_->tasks.post([state = state_] { return State::begin(state); });
}

void Controller::stop() {
  for (const State::Followed& followed : state_->followed) followed.informer->remove_handlers(followed.handlers);
  if (std::exchange(state_->stopped, true)) return;
  state_->queue.close();
  block_on(state_->client.loop(), state_->tasks.close(state_->client.loop()));
}

}  // namespace holdfast::client
