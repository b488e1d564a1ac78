#include "net/loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace holdfast::net {

namespace detail {

namespace {
constexpr size_t kScratchBytes = 64 << 10;
}

LoopState::LoopState()
    : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      now_(std::chrono::steady_clock::now()) {
  assert(epoll_fd_ >= 0 && wake_fd_ >= 0);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // Edge-triggered: each write is reported once, so the counter need not be read.
  event.data.ptr = nullptr;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event);
  received.resize(kScratchBytes);
  plain.resize(kScratchBytes);
}

LoopState::~LoopState() {
  graveyard_.clear();
  close(wake_fd_);
  close(epoll_fd_);
}

void LoopState::post(std::function<void()> work) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    // A loop that is awake checks posted work before it sleeps.
    wake = asleep_ && asleep_.exchange(false);
  }
  if (wake) {
    const uint64_t one = 1;
    [[maybe_unused]] auto n = write(wake_fd_, &one, sizeof one);
  }
}

void LoopState::stop() {
  stopping_ = true;
  post([] {});
}

void LoopState::add(int fd, EventSource* source, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = source;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void LoopState::change(int fd, EventSource* source, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = source;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void LoopState::remove(int fd, EventSource* source) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  for (int i = 0; i < event_count_; ++i) {
    if (events_[i].data.ptr == source) events_[i].events = 0;
  }
}

void LoopState::forget(Flushable* what) {
  if (!what->flush_scheduled) return;
  std::erase(dirty_, what);
  std::replace(flushing_.begin(), flushing_.end(), what, static_cast<Flushable*>(nullptr));
  what->flush_scheduled = false;
}

uint64_t LoopState::add_timer(TimePoint when, std::function<void()> work) {
  const uint64_t id = next_timer_++;
  timers_.emplace(id, std::move(work));
  heap_.push_back({when, id});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  return id;
}

int LoopState::wait_millis() const {
  if (!ready_.empty() || !dirty_.empty()) return 0;
  if (heap_.empty()) return -1;
  const auto left = heap_.front().when - current_time();
  if (left <= left.zero()) return 0;
  // Rounded up: waking a fraction of a millisecond early would spin.
  return static_cast<int>(
      std::min<int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1, 60'000));
}

void LoopState::run_timers() {
  while (!heap_.empty() && heap_.front().when <= now_) {
    const uint64_t id = heap_.front().id;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    auto node = timers_.extract(id);
    if (!node.empty()) run_guarded("timer", node.mapped());
  }
}

void LoopState::run_posted() {
  {
    std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (auto& work : running_) run_guarded("event loop", work);
  running_.clear();
}

void LoopState::measure_stall() {
  const TimePoint end = current_time();
  const int64_t took = std::chrono::duration_cast<std::chrono::microseconds>(end - measured_).count();
  measured_ = end;
  if (took > longest_stall_us.load(std::memory_order_relaxed)) longest_stall_us.store(took, std::memory_order_relaxed);
}

void LoopState::run() {
  thread = std::this_thread::get_id();
  while (!stopping_) {
    int wait = wait_millis();
    if (wait != 0) {
      std::lock_guard lock(mutex_);
      if (!posted_.empty()) {
        wait = 0;
      } else if (simulated_ != nullptr && wait > 0) {
        simulated_->jump_to(heap_.front().when);
        wait = 0;
      } else {
        asleep_ = true;
      }
    }
    event_count_ = std::max(0, epoll_wait(epoll_fd_, events_.data(), static_cast<int>(events_.size()), wait));
    asleep_ = false;
    now_ = measured_ = current_time();
    for (int i = 0; i < event_count_; ++i) {
      auto* source = static_cast<EventSource*>(events_[i].data.ptr);
      if (source != nullptr && events_[i].events != 0) source->on_events(events_[i].events);
    }
    event_count_ = 0;
    run_timers();
    run_round();
    measure_stall();
  }
  // Work posted before the stop still runs, as does what it resumes: others may be waiting for it, and ending a
  // connection frees it. Bounded, because work may post itself again.
  constexpr int kLastRounds = 100;
  for (int round = 0; round < kLastRounds && has_work(); ++round) run_round();
}

void LoopState::simulate(SimulatedTime& time) {
  assert(heap_.empty());
  simulated_ = &time;
  now_ = measured_ = time.monotonic();
}

bool LoopState::has_work() {
  std::lock_guard lock(mutex_);
  return !posted_.empty() || !ready_.empty() || !dirty_.empty();
}

void LoopState::run_round() {
  run_posted();
  resuming_.swap(ready_);
  for (auto handle : resuming_) handle.resume();
  resuming_.clear();
  flushing_.swap(dirty_);
  for (size_t i = 0; i < flushing_.size(); ++i) {
    if (Flushable* what = flushing_[i]) {
      what->flush_scheduled = false;
      what->flush();
    }
  }
  flushing_.clear();
  graveyard_.clear();
}

std::string_view LoopState::http_date() {
  timespec spec{};
  clock_gettime(CLOCK_REALTIME_COARSE, &spec);
  if (spec.tv_sec != date_second_) {
    date_second_ = spec.tv_sec;
    tm parts{};
    gmtime_r(&spec.tv_sec, &parts);
    char text[40];
    date_.assign(text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date_;
}

}  // namespace detail

EventLoop::EventLoop() : state_(std::make_unique<detail::LoopState>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::post(std::function<void()> work) { state_->post(std::move(work)); }

bool EventLoop::in_thread() const {
  return state_->thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

EventLoop::TimerId EventLoop::run_after(Millis delay, std::function<void()> work) {
  return state_->add_timer(state_->current_time() + delay, std::move(work));
}

std::chrono::microseconds EventLoop::take_longest_stall() {
  return std::chrono::microseconds(state_->longest_stall_us.exchange(0, std::memory_order_relaxed));
}

void EventLoop::cancel(TimerId id) { state_->cancel_timer(id); }

UnixTime SimulatedTime::now() const {
  constexpr int64_t kStartSeconds = 1'800'000'000;
  const int64_t nanos = passed_.load();
  return {kStartSeconds + nanos / 1'000'000'000, static_cast<int32_t>(nanos % 1'000'000'000)};
}

void SimulatedTime::jump_to(std::chrono::steady_clock::time_point when) {
  passed_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(when - kStart).count());
}

void simulate_time(EventLoop& loop, SimulatedTime& time) { loop.state().simulate(time); }

struct Loops::Threads {
  std::vector<std::thread> threads;
};

Loops::Loops(uint32_t count) : threads_(std::make_unique<Threads>()) {
  for (uint32_t i = 0; i < std::max(1u, count); ++i) {
    loops_.push_back(std::make_unique<EventLoop>());
    threads_->threads.emplace_back([state = &loops_.back()->state()] { state->run(); });
  }
}

Loops::~Loops() {
  for (auto& loop : loops_) loop->state().stop();
  for (auto& thread : threads_->threads) thread.join();
}

}  // namespace holdfast::net
