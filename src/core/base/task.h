// Task<T>: a lazy coroutine, awaited once by its caller. Executor: where coroutines resume.
//
// Only net, store, cache and the verbs that combine them suspend; everything else is plain functions. We use this small
// type rather than Asio's awaitable so that no module has to include Asio.
//
// A coroutine is a named function that takes its parameters by value; after co_await, check again what you checked
// before.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/recycle.h"

namespace holdfast {

// One or more threads that run posted work. Implemented by net (event loops) and by tests.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::function<void()> work) = 0;
};

template <class T>
class [[nodiscard]] Task;

namespace detail {

struct PromiseBase {
  std::coroutine_handle<> continuation;
  std::exception_ptr failure;

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) noexcept {
      auto next = h.promise().continuation;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { failure = std::current_exception(); }

  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* frame, size_t bytes) { recycle_block(frame, bytes); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  void return_value(T v) { value.emplace(std::move(v)); }
  T take() {
    if (failure) std::rethrow_exception(failure);
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
    handle_.promise().continuation = caller;
    return handle_;
  }
  T await_resume() { return handle_.promise().take(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    // run_task catches everything the task throws; an exception here is a bug of our own.
    void unhandled_exception() noexcept { std::terminate(); }

    static void* operator new(size_t bytes) { return allocate_block(bytes); }
    static void operator delete(void* frame, size_t bytes) { recycle_block(frame, bytes); }
  };
};

inline Detached run_task(Task<void> task, std::function<void(std::exception_ptr)> done) {
  std::exception_ptr failure;
  try {
    co_await task;
  } catch (...) {
    failure = std::current_exception();
  }
  done(failure);
}

}  // namespace detail

// Starts `task` on this thread; `done` runs once when it has ended, with the exception it threw, if any. The owner of a
// task counts it and waits for `done` before being destroyed: nothing is left running.
inline void spawn(Task<void> task, std::function<void(std::exception_ptr)> done) {
  detail::run_task(std::move(task), std::move(done));
}

// co_await resume_on(executor) continues there.
inline auto resume_on(Executor& executor) {
  struct Awaiter {
    Executor& executor;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) {
      executor.post([h] { h.resume(); });
    }
    void await_resume() const noexcept {}
  };
  return Awaiter{executor};
}

// co_await from_callback<T>(executor, start) calls start(done); done(value) must be called once, on any thread,
// immediately or later. The coroutine continues on this thread if done was called before start returned, else on
// `executor`.
template <class T, class Start>
auto from_callback(Executor& executor, Start start) {
  struct State {
    std::atomic<int> arrivals{0};
    std::optional<T> value;
    std::coroutine_handle<> waiting;
  };
  struct Awaiter {
    Executor& executor;
    Start start;
    std::shared_ptr<State> state = std::make_shared<State>();
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h) {
      auto shared = state;  // The frame, and with it this awaiter, may be destroyed before start() returns.
      shared->waiting = h;
      Executor* where = &executor;
      start([shared, where](T value) {
        shared->value.emplace(std::move(value));
        if (shared->arrivals.fetch_add(1, std::memory_order_acq_rel) == 1) {
          where->post([shared] { shared->waiting.resume(); });
        }
      });
      // True (stay suspended) if done has not been called yet.
      return shared->arrivals.fetch_add(1, std::memory_order_acq_rel) == 0;
    }
    T await_resume() { return std::move(*state->value); }
  };
  return Awaiter{executor, std::move(start)};
}

}  // namespace holdfast
