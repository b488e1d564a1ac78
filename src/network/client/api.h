// Clients and the verbs of resources. Include client.h, not this file.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/api_version.h"
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

// A prepared call. Nothing is sent until it is awaited or waited for; do so once.
template <class T>
class [[nodiscard]] Call {
 public:
  Call(net::EventLoop& loop, Task<T> task) : loop_(&loop), task_(std::move(task)) {}

  auto operator co_await() && { return std::move(task_); }
  auto operator co_await() & { return std::move(task_); }

  // Blocks until the response has arrived. Must not be called on the client's loop.
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
  Cbor,  // If the server supports it, else JSON.
  Protobuf,
};

// When failed calls are retried. Only where it is safe: the server asked for it (429 and 5xx with Retry-After), no
// connection could be made, or the connection broke during an idempotent call (reads and applies).
struct Retry {
  int max_attempts = 5;  // 1 disables retries.
  net::Millis first_delay{100};
  net::Millis max_delay{10'000};
};

// Which fields responses leave out: kInherit takes the list of the client, kKeep leaves out nothing, and a list names
// dotted paths. An empty list leaves out nothing, too.
class DropFields {
 public:
  enum Choice : uint8_t { kInherit, kKeep };
  DropFields(Choice choice) : inherits_(choice == kInherit) {}
  DropFields(std::initializer_list<std::string_view> fields) : fields_(fields.begin(), fields.end()) {}
  explicit DropFields(std::vector<std::string> fields) : fields_(std::move(fields)) {}

  bool inherits() const { return inherits_; }
  const std::vector<std::string>& fields() const { return fields_; }

 private:
  bool inherits_ = false;
  std::vector<std::string> fields_;
};

struct Options {
  // Recorded as the owner of written fields. Use a stable name without a version: each new name adds a permanent
  // managedFields entry. If empty, the server uses the user agent's name for updates, and rejects applies. An object
  // that declares its manager (metadata.options.fieldManager) is written as that one, on any server.
  std::string field_manager = "holdfast-client";
  std::string user_agent = "holdfast-client";
  // Fields to leave out of responses, as dotted paths. The server is asked to omit them; if it cannot, they are removed
  // here, so callers never see them. docs/opting-out.md says when not to use this. connect() fails if one is not a
  // path, or identifies the object.
  std::vector<std::string> drop_fields;
  // ManagedFieldsOptOutClient; if off, drop_fields is ignored. Defaults to the environment variable
  // KUBE_FEATURE_ManagedFieldsOptOutClient (true or false).
  std::optional<bool> opt_out_gate;
  Encoding encoding = Encoding::Best;
  Retry retry;
  double max_calls_per_second = 0;  // 0 means unlimited; bursts of ten times the rate are allowed.
  net::Millis timeout{60'000};      // Per attempt; watches have none.
  size_t max_answer_bytes = size_t{1} << 30;
  // Where discovery is cached between runs; only in memory if empty.
  std::string cache_folder;
  // Called on the client's loop for each Warning header of a response.
  std::function<void(std::string_view)> on_warning;
};

// The representation requested for reads. A server that does not support it returns whole objects: check `kind`.
enum class Shape : uint8_t {
  Object,
  Table,           // What kubectl prints: columnDefinitions and rows, each with the object's metadata.
  TableOfObjects,  // The same, but each row contains the whole object.
  Metadata,        // PartialObjectMetadata: apiVersion, kind and metadata.
};

struct GetOptions {
  std::string resource_version;
  std::string subresource;
  Shape shape = Shape::Object;
  DropFields drop_fields = DropFields::kInherit;
};
struct ListOptions {
  std::string label_selector, field_selector;
  int64_t limit = 0;  // Per page; 0 disables paging.
  std::string continue_token;
  std::string resource_version, resource_version_match;
  Shape shape = Shape::Object;
  DropFields drop_fields = DropFields::kInherit;
};
struct WatchOptions {
  std::string label_selector, field_selector;
  std::string resource_version;
  bool send_initial_events = false;
  bool bookmarks = true;
  int64_t timeout_seconds = 0;  // 0 means the server's default.
  Shape shape = Shape::Object;
  DropFields drop_fields = DropFields::kInherit;
};
struct WriteOptions {
  std::string field_manager;  // If empty, the client's.
  bool dry_run = false;
  std::string field_validation;  // Ignore, Warn, Strict; the server's default if empty.
  std::string subresource;
  DropFields drop_fields = DropFields::kInherit;  // Of the response.
};
struct ApplyOptions {
  bool force = false;
  std::string field_manager;
  bool dry_run = false;
  std::string field_validation;
  std::string subresource;
  DropFields drop_fields = DropFields::kInherit;
};
struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::string propagation_policy;     // Foreground, Background, Orphan; the kind's default if empty.
  std::string uid, resource_version;  // Preconditions.
  bool dry_run = false;
  DropFields drop_fields = DropFields::kInherit;
};

enum class Patch : uint8_t { Json, Merge, Strategic };

// ---------------------------------------------------------------------------------------------------- Watches

struct WatchEvent {
  enum class Type : uint8_t { Added, Modified, Deleted, Bookmark };
  Type type = Type::Added;
  Object object;
  // The bookmark that follows the last initial object (send_initial_events).
  bool initial_events_end = false;
};

// A watch accepted by the server. Used by one coroutine or thread at a time.
class Watch {
 public:
  struct State;
  explicit Watch(std::shared_ptr<State> state);
  // The next event; nullopt when the server has ended the watch, as it does every few minutes. On Expired (410), list
  // again; on any other error, watch again from the last resourceVersion.
  Call<Result<std::optional<WatchEvent>>> next();
  // Makes pending and later calls of next() return an error. Thread-safe.
  void cancel();

  // For the informer: the undecoded event. Its bytes are valid until the next call.
  struct Raw;
  Task<Result<std::optional<Raw>>> next_raw();

 private:
  std::shared_ptr<State> state_;
};

// ---------------------------------------------------------------------------------------------------- Resources

// A resource as identified by its URL.
struct Resource {
  std::string group, version;  // "" and "v1" for the core group.
  std::string plural, kind;
  bool namespaced = true;

  std::string api_version() const { return api_version_of(group, version); }
  bool operator==(const Resource&) const = default;
};

// A resource as described by discovery.
struct ServedResource {
  Resource resource;
  std::string singular;
  std::vector<std::string> short_names, categories, verbs;
  std::vector<std::string> subresources;  // "status", "scale".
};

// A built-in kind: builtin("apps/v1", "Deployment"). Asserts that it exists.
Resource builtin(std::string_view api_version, std::string_view kind);

// The resource of T, a generated apply configuration.
template <class T>
Resource resource_of() {
  return Resource{std::string(T::kGroup), std::string(T::kVersion), std::string(T::kPlural), std::string(T::kKind),
                  T::kNamespaced};
}

// The verbs of one resource in one namespace. For reads, an empty namespace means all namespaces.
class ApiBase {
 public:
  ApiBase(std::shared_ptr<Core> core, Resource resource, std::string space);

  const Resource& resource() const { return resource_; }

  Call<Result<Object>> get(std::string name, GetOptions options = {}) const;
  // One page: root() has `items`, and metadata.continue for the next page.
  Call<Result<Object>> list(ListOptions options = {}) const;
  // All pages in order; restarts at the latest state if the server has compacted the old one.
  Call<Result<std::vector<Object>>> list_all(ListOptions options = {}) const;
  Call<Result<Watch>> watch(WatchOptions options = {}) const;

  Call<Result<Object>> patch(std::string name, Patch type, std::string_view body, WriteOptions options = {}) const;
  Call<Result<Object>> remove(std::string name, DeleteOptions options = {}) const;
  // Returns a list of the deleted objects, or a Status.
  Call<Result<Object>> remove_all(ListOptions which = {}, DeleteOptions options = {}) const;

 protected:
  Call<Result<Object>> create_value(const Value& object, const WriteOptions& options) const;
  // `dropped`: what the object lacks; nullopt if that is not known.
  Call<Result<Object>> update_value(const Value& object, const WriteOptions& options,
                                    std::optional<std::span<const std::string>> dropped) const;
  Call<Result<Object>> apply_value(const Value& config, const ApplyOptions& options) const;
  // For subresources whose body is of another kind: Eviction, TokenRequest, Scale, Binding.
  Call<Result<Object>> create_at_value(std::string name, const Value& body, const WriteOptions& options) const;

  std::shared_ptr<Core> core_;
  Resource resource_;
  std::string space_;
};

// Adds verbs with bodies. T is Value, or a generated type (holdfast applygen), which also determines the resource.
template <class T = Value>
class Api : public ApiBase {
 public:
  using ApiBase::ApiBase;

  Call<Result<Object>> create(const T& object, WriteOptions options = {}) const {
    Arena arena;
    return create_value(to_object(arena, object), options);
  }
  // Replaces the object. Fails with BadRequest if it was read without more than managedFields, because the update would
  // delete those fields. A Value does not tell how it was read: it is refused if the client drops such fields, unless
  // the options say kKeep or give a list of their own.
  Call<Result<Object>> update(const T& object, WriteOptions options = {}) const {
    Arena arena;
    if constexpr (std::is_same_v<T, Value>) {
      return update_value(object, options, std::nullopt);
    } else {
      return update_value(to_object(arena, object), options, object.dropped());
    }
  }
  Call<Result<Object>> update(const Object& object, WriteOptions options = {}) const {
    return update_value(object.root(), options, object.dropped());
  }
  // Server-Side Apply. Unset markers are sent only to servers that support them; otherwise fails with BadRequest.
  Call<Result<Object>> apply(const T& config, ApplyOptions options = {}) const {
    Arena arena;
    if constexpr (std::is_same_v<T, Value>) {
      return apply_value(config, options);
    } else {
      return apply_value(config.to_value(arena), options);
    }
  }
  Call<Result<Object>> create_subresource(std::string name, const Value& body, WriteOptions options) const {
    return create_at_value(std::move(name), body, options);
  }

 private:
  static Value to_object(Arena& arena, const T& object) {
    if constexpr (std::is_same_v<T, Value>) {
      return object;
    } else {
      return object.to_value(arena, apply::Form::Object);
    }
  }
};

// ---------------------------------------------------------------------------------------------------- The client

class Client {
 public:
  // Creates its own loop and thread.
  static Result<Client> connect(Options options = {});
  static Result<Client> connect(const Config& config, Options options = {});
  // Uses the given loop, which must outlive the client. Destroy the client on another thread.
  static Result<Client> connect(net::EventLoop& loop, const Config& config, Options options = {});

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // An empty namespace means the whole cluster; "." means the kubeconfig's namespace.
  Api<> api(Resource resource, std::string_view space = {}) const;
  template <class T>
  Api<T> api(std::string_view space = {}) const {
    return Api<T>(core_, resource_of<T>(), resolve(space));
  }

  // All served resources, newest versions first within each group. Uses the cache if it is younger than `max_age`;
  // revalidating it is cheap for the server.
  Call<Result<std::vector<Resource>>> discover(std::chrono::seconds max_age = std::chrono::minutes(10)) const;
  // The same with all discovery data.
  Call<Result<std::vector<ServedResource>>> served(std::chrono::seconds max_age = std::chrono::minutes(10)) const;
  // By plural, singular, short name or kind, with or without version and group: "deploy", "deployments.apps",
  // "deployments.v1.apps", "Deployment". Case-insensitive.
  Call<Result<Resource>> find(std::string name) const;
  // By the names used in a manifest: "apps/v1", "Deployment".
  Call<Result<Resource>> find_kind(std::string api_version, std::string kind) const;

  // GET of any path: "/version", "/openapi/v3".
  Call<Result<std::string>> get_text(std::string path, std::string accept = "*/*") const;
  // Whether the server of the resource supports unset markers: the one that we talk to, or one behind it. Cached after
  // the first call.
  Call<Result<bool>> supports_unset(Resource resource) const;

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
