// State and functions shared by all calls of a client: connection, credentials, retries, decoding of responses. Private
// to the module. Runs on the client's loop unless stated otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "base/task_group.h"
#include "client/api.h"
#include "client/credentials.h"

namespace holdfast::client {

struct Drops;
enum class Answered : uint8_t;

// A request, which may be sent several times.
struct PreparedRequest {
  std::string method = "GET";
  std::string target;
  std::string accept;
  std::string content_type;
  std::string body;
  bool retry_safe = true;  // Safe to send again after the connection broke.
  bool streaming = false;  // The caller reads the body.
  std::string if_none_match;
  std::shared_ptr<const Drops> drops;  // Null for responses that are no objects.
  Answered answered{};
};

struct Answer {
  net::ClientResponse response;  // With the body unless `stream` is set.
  std::optional<net::ClientStream> stream;
};

// Runs an exec plugin. Blocks; must not be called on the loop.
Result<Credentials> run_exec_plugin(const ExecPlugin& plugin, const Config& config);

// Where the server is.
struct ServerUrl {
  HttpUrl at;
  std::string prefix;  // Of all paths; without a trailing slash.
};
Result<ServerUrl> parse_server(std::string_view url);

// The fields to leave out of responses, by form of response. Immutable and shared.
struct Drops {
  const FieldList fields;  // Never null.
  std::string parameter;   // ";drop=metadata.managedFields", or empty.
  // If there is another field than managedFields: the parameter for servers that know only that one, and take no clause
  // that names another. Such clauses follow all others.
  std::optional<std::string> second_parameter;
  codec::FieldPaths object, list, table;

  explicit Drops(std::vector<std::string> names = {});
  bool empty() const { return fields->empty(); }
  bool only_ownership() const { return !empty() && !lacks_more_than_ownership(*fields); }
  static const std::shared_ptr<const Drops>& none();
};
using SharedDrops = std::shared_ptr<const Drops>;

// BadRequest naming a field that is not a dotted path, or that identifies the object.
Result<Unit> check_fields(const std::vector<std::string>& fields);

// What a response contains.
enum class Answered : uint8_t { Object, List, Table };

// Whether the gate is on: as given, else from the environment, else the default.
bool opt_out_gate(const std::optional<bool>& given);

struct Core : std::enable_shared_from_this<Core> {
  Core(net::EventLoop& event_loop, Config the_config, Options the_options);

  net::EventLoop& loop;
  const Config config;
  const Options options;
  ServerUrl url;
  const SharedDrops drops;
  // What a call's options choose. BadRequest if they name invalid fields.
  Result<SharedDrops> drops_of(const DropFields& choice) const;

  // --- Calls
  static Task<Result<Answer>> send(std::shared_ptr<Core> core, PreparedRequest sent);
  // The decoded response without the fields in `sent.drops`.
  static Task<Result<Object>> send_for_object(std::shared_ptr<Core> core, PreparedRequest sent);
  enum class Asked : uint8_t { Object, List };
  static std::string accept(const Resource& resource, const Drops& without, Encoding encoding, Shape shape,
                            Asked asked);
  std::string path(const Resource& resource, std::string_view space, std::string_view name = {},
                   std::string_view subresource = {}) const;

  // --- Lifetime
  struct Use {
    explicit Use(std::shared_ptr<Core> core);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    std::shared_ptr<Core> core;
  };
  // Registers a callback for when the client closes; returns an id for forget_close().
  uint64_t on_close(std::function<void()> callback);
  void forget_close(uint64_t id);
  void close();  // Waits for calls; must not be called on the loop.
  bool closing = false;
  TaskGroup tasks;  // Informers; its sleeps end when the client closes.

  double jitter(double around);  // Within 25% of `around`.

  // Whether bodies are sent as CBOR; turned off permanently once the server rejects one.
  std::atomic<bool> cbor_bodies{false};

  // --- Discovery, fetched on first use.
  struct Discovered {
    std::vector<ServedResource> resources;
    std::chrono::system_clock::time_point at;
  };
  std::optional<Discovered> discovered;
  std::map<std::string, bool> knows_markers;  // By the path of the OpenAPI document that says so.

  std::map<std::string, std::weak_ptr<void>> informers;  // Shared informers, by resource and options.
  std::mutex informers_mutex;

 private:
  static Task<void> drop_transport(std::shared_ptr<Core> core);
  Task<Result<Unit>> refresh_credentials(bool refused);
  Result<Unit> make_transport();
  Task<void> wait_for_turn();
  void add_headers(const PreparedRequest& sent, net::ClientRequest& request) const;

  std::shared_ptr<net::Client> transport_;
  std::optional<Credentials> credentials_;
  uint64_t credentials_generation_ = 0;  // Incremented on each refresh.
  bool refreshing_ = false;
  std::vector<std::coroutine_handle<>> waiting_for_credentials_;
  double tokens_ = 0;
  std::chrono::steady_clock::time_point refilled_;
  std::mt19937_64 random_{std::random_device{}()};

  std::mutex mutex_;  // Guards the members below, which are used on any thread.
  std::condition_variable idle_;
  size_t uses_ = 0;
  uint64_t next_close_id_ = 1;
  std::map<uint64_t, std::function<void()>> close_callbacks_;
};

// --- Decoding of responses

// Whether the value has a field at one of the paths.
bool has_any(const Value& value, const codec::FieldPaths& paths);
// Removes the members at the paths from a tree that was just decoded into the arena. Modified in place, since nothing
// else refers to it yet. Only values on a path are written.
Value without_fields(Arena& arena, const Value& fresh, const codec::FieldPaths& paths);

// The media types in order of preference, asking for the fields to be left out.
std::string accept_header(const std::vector<std::string>& types, const Drops& without);

// From a Content-Type.
Encoding encoding_of(std::string_view content_type);
// Decodes a complete response without the fields in `drops`. If a server sent them, no trees are built for them, and
// the result does not keep the memory of what was received.
Result<Object> decode_answer(Encoding encoding, std::string bytes, const Drops& drops, Answered answered);
inline Result<Object> decode_answer(Encoding encoding, std::string bytes) {
  return decode_answer(encoding, std::move(bytes), *Drops::none(), Answered::Object);
}
// The error for a response with a Status, or any other body.
Error error_of(const net::ClientResponse& response);
Error error_of_status(const Value& status, int code);

// Percent-encoded for use in a query.
std::string query_text(std::string_view value);
void add_query(std::string& target, std::string_view name, std::string_view value);

struct Watch::Raw {
  WatchEvent::Type type = WatchEvent::Type::Added;
  std::string_view object;  // JSON, CBOR item, or Protobuf with its envelope.
  Encoding encoding = Encoding::Json;
};

// A watch over one stream, without the fields in `drops`, whatever the options say.
Task<Result<Watch>> open_watch(std::shared_ptr<Core> core, Resource resource, std::string space, WatchOptions options,
                               SharedDrops drops, Encoding encoding);
// The rows of a Table do not follow from the Accept header.
void add_shape(std::string& target, Shape shape);

}  // namespace holdfast::client
