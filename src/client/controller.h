// A reconcile loop: keys of objects that changed go into a queue, and your function reconciles them, one key at a time,
// and again after a delay when it failed.
//
//   Controller controller(client, [&](std::string key) -> Task<Result<Again>> { ... co_return Again{}; });
//   controller.follow(builtin("apps/v1", "Deployment"));
//   controller.start();
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
  // Between attempts at one key: doubles with each failure.
  std::chrono::milliseconds first_delay{5};
  std::chrono::milliseconds max_delay{1'000'000};
};

// Keys that wait for work. A key that is added while it waits counts once; one that is added while it is being worked
// on waits until that is done. Never full: it holds a key at most once. add functions may be called on any thread, the
// rest on the loop.
class WorkQueue {
 public:
  explicit WorkQueue(net::EventLoop& loop, RateLimit limit = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(std::string key);
  void add_after(std::string key, std::chrono::milliseconds delay);
  // After a pause that grows with each call until forget().
  void add_again(std::string key);
  void forget(const std::string& key);

  // Waits for a key; nothing once the queue is closed. Each take is followed by a done.
  Task<std::optional<std::string>> take();
  void done(const std::string& key);
  void close();
  size_t waiting() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// When a key is to be looked at again although nothing changed.
struct Again {
  std::optional<std::chrono::milliseconds> after;
};
using Reconcile = std::function<Task<Result<Again>>(std::string key)>;

// Options for the client of a controller: responses without managedFields, which a reconciler does not look at.
Options controller_options(std::string field_manager);

struct ControllerOptions {
  int workers = 1;  // Keys worked on at the same time.
  RateLimit limit;
};

class Controller {
 public:
  // The client must outlive it.
  Controller(Client& client, Reconcile reconcile, ControllerOptions options = {});
  ~Controller();  // stop()
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Changes of these objects add keys: by default their own. Unless it says otherwise, the informer leaves
  // managedFields out. Before start().
  using Keys = std::function<void(const Object& object, std::vector<std::string>& into)>;
  std::shared_ptr<Informer> follow(Resource resource, InformerOptions options = {}, Keys keys = {});
  // Keys of the objects' controlling owners: for what a reconciler makes itself.
  std::shared_ptr<Informer> follow_owned(Resource resource, std::string_view owner_kind, InformerOptions options = {});

  // Work begins when all informers are complete. Returns at once.
  void start();
  // Waits for the keys being worked on. Not on the loop.
  void stop();
  WorkQueue& queue();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
