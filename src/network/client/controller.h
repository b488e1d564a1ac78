// A reconcile loop: keys of changed objects are queued, and your function reconciles them, one key at a time, retrying
// failures with backoff.
//
//   Controller controller(client, [&](std::string key) -> Task<Result<ReconcileResult>> { ... co_return
//   ReconcileResult{}; }); controller.follow(builtin("apps/v1", "Deployment")); controller.start();
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/informer.h"

namespace holdfast::client {

struct RateLimit {
  // Delay between attempts at one key; doubles with each failure.
  std::chrono::milliseconds first_delay{5};
  std::chrono::milliseconds max_delay{1'000'000};
};

// A queue of keys to reconcile. Adding a queued key has no effect; a key added while it is being processed is queued
// again when that is done. Needs no bound, because it holds each key at most once. The add functions are thread-safe,
// the others must be called on the loop.
class WorkQueue {
 public:
  explicit WorkQueue(net::EventLoop& loop, RateLimit limit = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(std::string key);
  // A key that is scheduled already gets the sooner of the two times.
  void add_after(std::string key, std::chrono::milliseconds delay);
  // After a delay that grows with each call until forget().
  void add_with_backoff(std::string key);
  void forget(const std::string& key);

  // Waits for a key; nullopt once the queue is closed. Each take() must be followed by done().
  Task<std::optional<std::string>> take();
  void done(const std::string& key);
  void close();
  size_t waiting() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// When to reconcile a key again even if nothing changes.
struct ReconcileResult {
  std::optional<std::chrono::milliseconds> requeue_after;
};
using Reconcile = std::function<Task<Result<ReconcileResult>>(std::string key)>;

// Client options for a controller: responses omit managedFields, which reconcilers do not need.
Options controller_options(std::string field_manager);

struct ControllerOptions {
  int workers = 1;  // Number of keys processed concurrently.
  RateLimit limit;
};

class Controller {
 public:
  // `client` must outlive the controller.
  Controller(Client& client, Reconcile reconcile, ControllerOptions options = {});
  ~Controller();  // Calls stop().
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Adds keys when these objects change: by default the objects' own keys. The informer drops managedFields unless the
  // options say otherwise. Call before start().
  using Keys = std::function<void(const Object& object, std::vector<std::string>& into)>;
  std::shared_ptr<Informer> follow(Resource resource, InformerOptions options = {}, Keys keys = {});
  // Adds the keys of the objects' controlling owners: for objects created by the reconciler.
  std::shared_ptr<Informer> follow_owned(Resource resource, std::string_view owner_kind, InformerOptions options = {});

  // Returns at once; work begins when all informers are synced.
  void start();
  // Waits for keys being processed. Must not be called on the loop.
  void stop();
  WorkQueue& queue();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
