#include "net/resolver.h"

#include <netinet/in.h>

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace holdfast::net::detail {

namespace {

using Endpoints = std::vector<Endpoint>;

// A caller, suspended on its loop. In its lookup's list until it is told the result or gives up.
struct Waiter {
  EventLoop& loop;
  std::coroutine_handle<> handle = {};  // Used on the loop; null once resumed.
  std::optional<CallResult<Endpoints>> result = {};

  void finish(CallResult<Endpoints> with) {
    if (!handle) return;
    result.emplace(std::move(with));
    loop.state().resume_soon(std::exchange(handle, {}));
  }
};
using WaiterRef = std::shared_ptr<Waiter>;

CallError lookup_error(const std::string& host, std::string_view why) {
  return call_error("dial tcp: lookup " + host + ": " + std::string(why), CallError::Progress::NotConnected);
}

void set_port(Endpoint& endpoint, uint16_t port) {
  if (endpoint.storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(endpoint.storage).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(endpoint.storage).sin6_port = htons(port);
  }
  endpoint.text = "tcp " + address_text(endpoint.storage);
}

}  // namespace

struct Resolver::State {
  State(Lookup how, size_t threads) : lookup(std::move(how)), max_threads(threads) {}

  const Lookup lookup;
  const size_t max_threads;

  // Guarded by mutex. A waiter in a list is suspended, so its loop exists.
  std::mutex mutex;
  std::map<std::string, std::vector<WaiterRef>> lookups;  // Running or queued, by host.
  std::deque<std::string> queue;
  size_t threads = 0;

  // False if there is no room.
  bool add(const std::shared_ptr<State>& self, const std::string& host, const WaiterRef& waiter) {
    const std::lock_guard lock(mutex);
    const auto [found, is_new] = lookups.try_emplace(host);
    if (is_new) {
      if (queue.size() >= limits::kWaitingNames || !(threads < max_threads ? start(self) : threads > 0)) {
        lookups.erase(found);
        return false;
      }
      queue.push_back(host);
    }
    found->second.push_back(waiter);
    return true;
  }

  void give_up(const std::string& host, const WaiterRef& waiter) {
    const std::lock_guard lock(mutex);
    const auto found = lookups.find(host);
    if (found != lookups.end()) std::erase(found->second, waiter);
  }

  bool start(const std::shared_ptr<State>& self) {
    try {
      std::thread([self] { self->run(); }).detach();
    } catch (const std::system_error&) {
      return threads > 0;  // The others will get to it.
    }
    ++threads;
    return true;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!queue.empty()) {
      const std::string host = std::move(queue.front());
      queue.pop_front();
      if (lookups.at(host).empty()) {
        lookups.erase(host);  // Everybody gave up while it was queued.
        continue;
      }
      lock.unlock();
      const CallResult<Endpoints> result = lookup(host);
      lock.lock();
      for (const WaiterRef& waiter : lookups.at(host)) {
        waiter->loop.post([waiter, result] { waiter->finish(result); });
      }
      lookups.erase(host);
    }
    --threads;
  }
};

Resolver::Resolver(Lookup lookup, size_t max_threads)
    : state_(std::make_shared<State>(std::move(lookup), max_threads)) {}
Resolver::~Resolver() = default;

Task<CallResult<Endpoints>> Resolver::find(EventLoop& loop, std::string host, uint16_t port, Millis timeout,
                                           std::shared_ptr<Cancellation> cancellation) {
  const std::shared_ptr<State> state = state_;
  const WaiterRef waiter = std::make_shared<Waiter>(Waiter{.loop = loop});
  struct Awaiter {
    State& state;
    const std::shared_ptr<State>& owner;
    const std::string& host;
    const WaiterRef& waiter;
    bool await_ready() const noexcept { return waiter->result.has_value(); }
    bool await_suspend(std::coroutine_handle<> h) {
      waiter->handle = h;
      if (state.add(owner, host, waiter)) return true;
      waiter->handle = {};
      waiter->result = lookup_error(host, "too many lookups");
      return false;
    }
    void await_resume() const noexcept {}
  };
  Timer timer(loop, timeout, [&] { waiter->finish(lookup_error(host, "i/o timeout")); });
  const CancellationScope scope(std::move(cancellation), [&] {
    if (waiter->handle) return waiter->finish(call_error(std::string(kCancelled)));
    waiter->result.emplace(call_error(std::string(kCancelled)));  // Before it began.
  });
  co_await Awaiter{*state, state, host, waiter};
  state->give_up(host, waiter);
  CallResult<Endpoints> result = std::move(*waiter->result);
  if (result) {
    for (Endpoint& endpoint : *result) set_port(endpoint, port);
  }
  co_return result;
}

Resolver& Resolver::shared() {
  static Resolver& resolver = *new Resolver([](const std::string& host) { return lookup(host, 0, 0); });
  return resolver;
}

}  // namespace holdfast::net::detail
