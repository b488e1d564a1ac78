// A local copy of a resource's objects that follows the server: list once, then watch.
//
//   std::shared_ptr<Informer> pods = Informer::follow(client, builtin("v1", "Pod"));
//   pods->wait_synced().wait();
//   for (const Stored& pod : pods->list()) use(pod.get());
//
// It never stops silently: after Expired it lists again, after any other error it retries with jittered backoff;
// status() tells how stale the copy is meanwhile. Objects are stored as the bytes sent by the server, compressed; get()
// decodes one.
//
// One writer (the client's loop) and any number of readers on any thread, which hold a shared lock only while copying a
// pointer. Handlers are called on the loop, in the server's order; they must not block.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/api.h"

namespace holdfast::client {

struct InformerOptions {
  std::string space;  // The whole cluster if empty.
  std::string label_selector, field_selector;
  // Subject to Options::opt_out_gate, too.
  DropFields drop_fields = DropFields::kInherit;
  // If not empty, only these fields (dotted paths) are kept, besides apiVersion, kind and the identifying metadata.
  std::vector<std::string> keep_fields;
  bool metadata_only = false;           // The server sends PartialObjectMetadata.
  std::optional<Encoding> encoding;     // nullopt means the client's.
  bool packed = true;                   // Keep objects compressed with a shared dictionary.
  std::chrono::milliseconds resync{0};  // How often handlers are called for every object; 0 means never.
  // Get the initial list through a watch if the server supports it. Turned off only in benchmarks.
  bool streaming_list = true;
};

// An object in the store, as of the time it was looked up.
class Stored {
 public:
  struct Data;
  explicit Stored(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const std::string& key() const;  // "namespace/name"
  const std::string& resource_version() const;
  Object get() const;

 private:
  std::shared_ptr<const Data> data_;
};

struct InformerStatus {
  bool synced = false;     // Was complete at least once.
  bool connected = false;  // A watch is open.
  std::string resource_version;
  // Time since the server last sent anything: an upper bound on the copy's age. An open watch is probed every 15
  // seconds, so that a dead connection is noticed.
  std::chrono::milliseconds since_contact{0};
  // Gave up: the server cannot send what was asked for (406), or the options are invalid. Waiting ends with last_error.
  bool failed = false;
  std::string last_error;  // Empty after a successful attempt.
  uint64_t lists = 0, watches = 0, failures = 0;
  size_t objects = 0;
  size_t bytes = 0;  // Of objects, as stored.
};

class Informer {
 public:
  struct State;
  // Starts following. Identical requests share one informer, which ends with its last user.
  static std::shared_ptr<Informer> follow(const Client& client, Resource resource, InformerOptions options = {});
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  struct Handlers {
    std::function<void(const Stored&)> added;
    std::function<void(const Stored& before, const Stored& after)> changed;
    std::function<void(const Stored&)> removed;
  };
  // Existing objects are reported as added. Returns an id for remove_handlers().
  uint64_t add_handlers(Handlers handlers);
  void remove_handlers(uint64_t id);

  // Adds an index: `values` appends the index values of one object. May be called at any time.
  using IndexValues = std::function<void(const Object& object, std::vector<std::string>& into)>;
  void add_index(std::string name, IndexValues values);

  std::optional<Stored> get(std::string_view key) const;
  std::vector<Stored> list() const;
  std::vector<Stored> list(std::string_view index, std::string_view value) const;

  // Returns once the copy is complete; fails if the client closes first, or if the informer gives up.
  Call<Result<Unit>> wait_synced() const;
  InformerStatus status() const;

 private:
  explicit Informer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
