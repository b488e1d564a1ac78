// Clients, and the verbs of resources. Public by way of client.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/error.h"
#include "base/gates.h"
#include "base/task.h"
#include "base/task_group.h"
#include "client/apply.h"
#include "client/config.h"
#include "client/object.h"
#include "codec/codec.h"
#include "net/net.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::client {

struct Core;

// ---------------------------------------------------------------------------------------------------- Calls

// A call that has been prepared. Nothing is sent until it is awaited or waited for, once.
template <class T>
class [[nodiscard]] Call {
 public:
  Call(net::EventLoop& loop, Task<T> task) : loop_(&loop), task_(std::move(task)) {}

  auto operator co_await() && { return std::move(task_); }
  auto operator co_await() & { return std::move(task_); }

  // Blocks the thread until the response has arrived. Not on the client's own loop.
  T wait() && {
    assert(!loop_->in_thread());
    return block_on(*loop_, std::move(task_));
  }
  T wait() & { return std::move(*this).wait(); }

 private:
  net::EventLoop* loop_;
  Task<T> task_;
};

// ---------------------------------------------------------------------------------------------------- Options

enum class Encoding : uint8_t {
  Best,  // Protobuf for built-in kinds, JSON for others.
  Json,
  Cbor,  // Where the server has it, else JSON.
  Protobuf,
};

// When a failed call is retried. Only where that is safe: the server asked for it (429 and 5xx with Retry-After), the
// connection could not be made, or it broke during a call that changes nothing when it is made twice (reads and
// applies).
struct Retry {
  int max_attempts = 5;  // 1: no retries.
  net::Millis first_delay{100};
  net::Millis max_delay{10'000};
};

struct Options {
  // Recorded as the owner of what is written. Give your program a stable name of its own, without a version: each new
  // name adds an entry to managedFields forever.
  // Empty: the server uses the user agent's name for updates, and rejects applies without one.
  std::string field_manager = "holdfast-client";
  std::string user_agent = "holdfast-client";
  // Fields to leave out of responses: the server is asked to do so, and where it does not know how, they are removed
  // here, so that callers never see them. docs/opting-out.md says when not to use this.
  std::vector<std::string> drop_fields;
  // ManagedFieldsOptOutClient off: drop_fields counts as empty. From the environment variable
  // KUBE_FEATURE_ManagedFieldsOptOutClient (true or false) unless given.
  std::optional<bool> opt_out_gate;
  Encoding encoding = Encoding::Best;
  Retry retry;
  double max_calls_per_second = 0;  // 0: no limit; otherwise with a burst of ten times that.
  net::Millis timeout{60'000};      // Of one attempt of a call; watches have none.
  size_t max_answer_bytes = size_t{1} << 30;
  // Discovery is kept there between runs; empty: only in memory.
  std::string cache_folder;
  // Called with each Warning header of a response, on the client's loop.
  std::function<void(std::string_view)> on_warning;
};

// The path of managedFields, for Options::drop_fields of programs that never look at them.
inline constexpr std::string_view kManagedFields = "metadata.managedFields";

// The form in which reads are requested. A server that does not support it returns whole objects: look at
// `kind`.
enum class Shape : uint8_t {
  Object,
  Table,           // What kubectl prints: columnDefinitions and rows, each with its object's metadata.
  TableOfObjects,  // The same, each row with the whole object.
  Metadata,        // PartialObjectMetadata: names, labels, owners and the like, and nothing of the kind's own.
};

struct GetOptions {
  std::string resource_version;
  std::string subresource;
  Shape shape = Shape::Object;
};
struct ListOptions {
  std::string label_selector, field_selector;
  int64_t limit = 0;  // Of one page; 0: no paging.
  std::string continue_token;
  std::string resource_version, resource_version_match;
  Shape shape = Shape::Object;
};
struct WatchOptions {
  std::string label_selector, field_selector;
  std::string resource_version;
  bool send_initial_events = false;
  bool bookmarks = true;
  int64_t timeout_seconds = 0;  // 0: the server's own.
  Shape shape = Shape::Object;
};
struct WriteOptions {
  std::string field_manager;  // Empty: the client's.
  bool dry_run = false;
  std::string field_validation;  // Ignore, Warn, Strict; empty: the server's default.
  std::string subresource;
};
struct ApplyOptions {
  bool force = false;
  std::string field_manager;
  bool dry_run = false;
  std::string field_validation;
  std::string subresource;
};
struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::string propagation_policy;     // Foreground, Background, Orphan; empty: the kind's own.
  std::string uid, resource_version;  // Preconditions.
  bool dry_run = false;
};

enum class Patch : uint8_t { Json, Merge, Strategic };

// ---------------------------------------------------------------------------------------------------- Watches

struct WatchEvent {
  enum class Type : uint8_t { Added, Modified, Deleted, Bookmark };
  Type type = Type::Added;
  Object object;
  // A bookmark behind the last of the objects that were there when the watch began (send_initial_events).
  bool initial_events_end = false;
};

// A watch that the server has accepted. Used by one coroutine or thread at a time.
class Watch {
 public:
  struct State;
  explicit Watch(std::shared_ptr<State> state);
  // The next event; nothing when the server has ended the watch, as it does every few minutes. Expired (410): list
  // again. Any other error: watch again from the last resourceVersion.
  Call<Result<std::optional<WatchEvent>>> next();
  // Makes next() return an error, now and later. From any thread.
  void cancel();

  // For the informer: the event as it came, undecoded. The bytes are valid until the next call.
  struct Raw;
  Task<Result<std::optional<Raw>>> next_raw();

 private:
  std::shared_ptr<State> state_;
};

// ---------------------------------------------------------------------------------------------------- Resources

// One kind of object, as its URL names it.
struct Resource {
  std::string group, version;  // "" and "v1" for the core group.
  std::string plural, kind;
  bool namespaced = true;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  bool operator==(const Resource&) const = default;
};

// What discovery says of one resource.
struct ServedResource {
  Resource resource;
  std::string singular;
  std::vector<std::string> short_names, categories, verbs;
  std::vector<std::string> subresources;  // "status", "scale".
};

// A kind that Kubernetes has built in: builtin("apps/v1", "Deployment"). Asserts that there is such a kind.
Resource builtin(std::string_view api_version, std::string_view kind);

// The resource of a T (a generated apply configuration).
template <class T>
Resource resource_of() {
  return Resource{std::string(T::kGroup), std::string(T::kVersion), std::string(T::kPlural), std::string(T::kKind),
                  T::kNamespaced};
}

// The verbs of one resource in one namespace. Empty namespace: the whole cluster, for reads of namespaced kinds.
class ApiBase {
 public:
  ApiBase(std::shared_ptr<Core> core, Resource resource, std::string space);

  const Resource& resource() const { return resource_; }

  Call<Result<Object>> get(std::string name, GetOptions options = {}) const;
  // One page: `items` of root() and metadata.continue for the next.
  Call<Result<Object>> list(ListOptions options = {}) const;
  // All pages, one after the other; starts over at the latest state when the server no longer has the old one.
  Call<Result<std::vector<Object>>> list_all(ListOptions options = {}) const;
  Call<Result<Watch>> watch(WatchOptions options = {}) const;

  Call<Result<Object>> patch(std::string name, Patch type, std::string_view body, WriteOptions options = {}) const;
  Call<Result<Object>> remove(std::string name, DeleteOptions options = {}) const;
  // The list of what was there, or a Status.
  Call<Result<Object>> remove_all(ListOptions which = {}, DeleteOptions options = {}) const;

 protected:
  Call<Result<Object>> create_value(const Value& object, const WriteOptions& options) const;
  Call<Result<Object>> update_value(const Value& object, const WriteOptions& options) const;
  Call<Result<Object>> apply_value(const Value& config, const ApplyOptions& options) const;
  // A body for a subresource that is not an object of this kind: Eviction, TokenRequest, Scale, Binding.
  Call<Result<Object>> create_at_value(std::string name, const Value& body, const WriteOptions& options) const;

  std::shared_ptr<Core> core_;
  Resource resource_;
  std::string space_;
};

// The same with bodies: T is Value, or a generated type (holdfast applygen), which names the resource too.
template <class T = Value>
class Api : public ApiBase {
 public:
  using ApiBase::ApiBase;

  Call<Result<Object>> create(const T& object, WriteOptions options = {}) const {
    Arena arena;
    return create_value(to_value(arena, object), options);
  }
  Call<Result<Object>> update(const T& object, WriteOptions options = {}) const {
    Arena arena;
    return update_value(to_value(arena, object), options);
  }
  // Server-Side Apply. Unset markers go only to servers that understand them; else BadRequest, and nothing is sent.
  Call<Result<Object>> apply(const T& config, ApplyOptions options = {}) const {
    Arena arena;
    return apply_value(to_value(arena, config), options);
  }
  Call<Result<Object>> create_subresource(std::string name, const Value& body, WriteOptions options) const {
    return create_at_value(std::move(name), body, options);
  }

 private:
  static Value to_value(Arena& arena, const T& object) {
    if constexpr (std::is_same_v<T, Value>) {
      return object;
    } else {
      return object.to_value(arena);
    }
  }
};

// ---------------------------------------------------------------------------------------------------- The client

class Client {
 public:
  // With a loop and thread of its own.
  static Result<Client> connect(Options options = {});
  static Result<Client> connect(const Config& config, Options options = {});
  // On a loop of yours, which must outlive it. Destroy it on another thread.
  static Result<Client> connect(net::EventLoop& loop, const Config& config, Options options = {});

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Empty namespace: the cluster; "." stands for the kubeconfig's own.
  Api<> api(Resource resource, std::string_view space = {}) const;
  template <class T>
  Api<T> api(std::string_view space = {}) const {
    return Api<T>(core_, resource_of<T>(), resolve(space));
  }

  // Everything the server serves, newest versions first in each group. From the cache where it is younger than
  // `max_age`; an unchanged response costs the server nothing.
  Call<Result<std::vector<Resource>>> discover(std::chrono::seconds max_age = std::chrono::minutes(10)) const;
  // The same with everything that discovery says.
  Call<Result<std::vector<ServedResource>>> served(std::chrono::seconds max_age = std::chrono::minutes(10)) const;
  // By plural, singular, short name or kind, with or without version and group: "deploy", "deployments.apps",
  // "deployments.v1.apps", "Deployment". Case-insensitive.
  Call<Result<Resource>> find(std::string name) const;
  // As a manifest names it: "apps/v1", "Deployment".
  Call<Result<Resource>> find_kind(std::string api_version, std::string kind) const;

  // GET of any path: "/version", "/openapi/v3".
  Call<Result<std::string>> get_text(std::string path, std::string accept = "*/*") const;
  // Whether the server understands unset markers. Asked once.
  Call<Result<bool>> understands_unset() const;

  const std::string& default_namespace() const;
  net::EventLoop& loop() const;
  const std::shared_ptr<Core>& core() const { return core_; }  // For the client's own files.

 private:
  struct Owned;
  Client(std::unique_ptr<Owned> owned, std::shared_ptr<Core> core);
  std::string resolve(std::string_view space) const;

  std::unique_ptr<Owned> owned_;
  std::shared_ptr<Core> core_;
};

}  // namespace holdfast::client
