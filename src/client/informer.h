// A copy of a resource's objects that follows the server: list once, then watch.
//
//   std::shared_ptr<Informer> pods = Informer::follow(client, builtin("v1", "Pod"), {.drop_fields =
//   {{kManagedFields}}}); pods->wait_synced().wait(); for (const Stored& pod : pods->list()) use(pod.get());
//
// It never stops silently: an expired version means a new list, whatever else goes wrong means another attempt after a
// growing, jittered pause; status() says how stale the copy is meanwhile. Its objects come as the server's own bytes
// and stay that way, packed; get() decodes one.
//
// One writer (the client's loop), any number of readers on any thread, who share a lock for the time it takes to copy a
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
  std::string space;  // Empty: the whole cluster.
  std::string label_selector, field_selector;
  // Left out of the objects; nothing: what the client leaves out. The gate holds here, too.
  std::optional<std::vector<std::string>> drop_fields;
  // Objects are reduced to these fields (dotted paths) beside apiVersion, kind and what names them; empty: all stay.
  std::vector<std::string> keep_fields;
  bool metadata_only = false;           // The server sends PartialObjectMetadata and nothing of the kind's own.
  std::optional<Encoding> encoding;     // Nothing: the client's.
  bool packed = true;                   // Kept compressed against each other.
  std::chrono::milliseconds resync{0};  // Tells handlers about every object this often; 0: never.
  bool streaming_list = true;           // The first list as a watch; off for measuring: servers are asked anyway.
};

// One object in a store, as it was when it was looked up.
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
  bool synced = false;     // It was complete at least once.
  bool connected = false;  // A watch is open.
  std::string resource_version;
  // Since the server last said anything: the copy is at most that old. An open watch is checked every quarter of a
  // minute, so that a dead connection is noticed.
  std::chrono::milliseconds since_contact{0};
  std::string last_error;  // Of the last attempt that failed; empty after one that did not.
  uint64_t lists = 0, watches = 0, failures = 0;
  size_t objects = 0;
  size_t bytes = 0;  // Of objects, as kept.
};

class Informer {
 public:
  struct State;
  // Starts following. Equal requests share one informer, which ends with its last user.
  static std::shared_ptr<Informer> follow(const Client& client, Resource resource, InformerOptions options = {});
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  struct Handlers {
    std::function<void(const Stored&)> added;
    std::function<void(const Stored& before, const Stored& after)> changed;
    std::function<void(const Stored&)> removed;
  };
  // Existing objects are reported as added. Returns how to remove the handlers.
  uint64_t add_handlers(Handlers handlers);
  void remove_handlers(uint64_t id);

  // An index: `values` adds the index values of one object. Before or after objects have arrived.
  using IndexValues = std::function<void(const Object& object, std::vector<std::string>& into)>;
  void add_index(std::string name, IndexValues values);

  std::optional<Stored> get(std::string_view key) const;
  std::vector<Stored> list() const;
  std::vector<Stored> list(std::string_view index, std::string_view value) const;

  // Returns once it is complete; an error when the client closes before that.
  Call<Result<Unit>> wait_synced() const;
  InformerStatus status() const;

 private:
  explicit Informer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
