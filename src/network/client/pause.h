// An interruptible sleep. Private to the module; used on the loop's thread.
#pragma once

#include <coroutine>
#include <utility>

#include "net/net.h"

namespace holdfast::client {

class Pause {
 public:
  explicit Pause(net::EventLoop& loop) : loop_(loop) {}
  ~Pause() { loop_.cancel(timer_); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  // One sleeper at a time. Without a delay, sleeps until woken.
  auto wait(net::Millis delay = net::Millis(0)) {
    struct Awaiter {
      Pause& pause;
      net::Millis delay;
      bool await_ready() const noexcept { return std::exchange(pause.woken_, false); }
      void await_suspend(std::coroutine_handle<> h) {
        pause.sleeper_ = h;
        if (delay.count() > 0) pause.timer_ = pause.loop_.run_after(delay, [p = &pause] { p->resume(); });
      }
      void await_resume() const noexcept {}
    };
    return Awaiter{*this, delay};
  }
  // Ends the sleep, or the next one if there is none.
  void wake() {
    if (!sleeper_) {
      woken_ = true;
      return;
    }
    loop_.cancel(std::exchange(timer_, 0));
    // Not resumed inline: the caller may still use objects that the resumed coroutine releases.
    loop_.post([h = std::exchange(sleeper_, {})] { h.resume(); });
  }

 private:
  void resume() {
    timer_ = 0;
    if (sleeper_) std::exchange(sleeper_, {}).resume();
  }

  net::EventLoop& loop_;
  net::EventLoop::TimerId timer_ = 0;
  std::coroutine_handle<> sleeper_;
  bool woken_ = false;
};

}  // namespace holdfast::client
