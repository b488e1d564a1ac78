// What all calls of a client share: the connection, the credentials, retrying, and the bytes of answers. Private to the
// module. Everything here happens on the client's loop, unless it says otherwise.
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

// One attempt after the other at one request.
struct Sent {
  std::string method = "GET";
  std::string target;
  std::string accept;
  std::string content_type;
  std::string body;
  bool safe_twice = true;  // Making it again after the connection broke changes nothing more.
  bool streaming = false;  // The body is read by whoever asked.
  std::string if_none_match;
};

struct Answer {
  net::ClientResponse response;  // With the body unless `stream`.
  std::optional<net::ClientStream> stream;
};

// What an exec plugin said. Blocks; not on the loop.
Result<Credentials> run_exec_plugin(const ExecPlugin& plugin, const Config& config);

// Where the server is.
struct ServerUrl {
  HttpUrl at;
  std::string prefix;  // Of all paths; without a slash at the end.
};
Result<ServerUrl> parse_server(std::string_view url);

// Which fields are left out of an answer, by what it is.
struct Drops {
  std::vector<std::string> fields;
  std::string parameter;  // ";drop=metadata.managedFields", or nothing.
  codec::FieldPaths object, list;

  explicit Drops(std::vector<std::string> names = {});
  bool empty() const { return fields.empty(); }
};

// Whether the gate is on: as given, else as the environment says, else its default.
bool opt_out_gate(const std::optional<bool>& given);

struct Core : std::enable_shared_from_this<Core> {
  Core(net::EventLoop& event_loop, Config the_config, Options the_options);

  net::EventLoop& loop;
  const Config config;
  const Options options;
  ServerUrl url;
  Drops drops;

  // --- Calls
  static Task<Result<Answer>> send(std::shared_ptr<Core> core, Sent sent);
  // The answer decoded; fields of `drops` are gone.
  static Task<Result<Object>> send_for_object(std::shared_ptr<Core> core, Sent sent, bool list);
  enum class Asked : uint8_t { Object, List };
  std::string accept(const Resource& resource, const Drops& without, Encoding encoding, Shape shape, Asked asked) const;
  std::string accept(const Resource& resource, Shape shape = Shape::Object, Asked asked = Asked::Object) const {
    return accept(resource, drops, options.encoding, shape, asked);
  }
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
  // Something to be told when the client closes; returns how to take it back.
  uint64_t on_close(std::function<void()> callback);
  void forget_close(uint64_t id);
  void close();  // Not on the loop: waits for calls.
  bool closing = false;
  TaskGroup tasks;  // Informers; and whoever sleeps in it wakes when the client closes.

  double jitter(double around);  // Around it by a quarter.

  // Bodies are written as CBOR; off for good once the server has refused one.
  std::atomic<bool> cbor_bodies{false};

  // --- Discovery, made by the first who asks.
  struct Discovered {
    std::vector<ServedResource> resources;
    std::chrono::system_clock::time_point at;
  };
  std::optional<Discovered> discovered;
  std::optional<bool> knows_markers;

  std::map<std::string, std::weak_ptr<void>> informers;  // Shared ones, by what they follow.
  std::mutex informers_mutex;

 private:
  static Task<void> drop_transport(std::shared_ptr<Core> core);
  Task<Result<Unit>> refresh_credentials(bool refused);
  Result<Unit> make_transport();
  Task<void> wait_for_turn();
  void add_headers(const Sent& sent, net::ClientRequest& request) const;

  std::shared_ptr<net::Client> transport_;
  std::optional<Credentials> credentials_;
  uint64_t credentials_made_ = 0;  // How often.
  bool refreshing_ = false;
  std::vector<std::coroutine_handle<>> waiting_for_credentials_;
  double tokens_ = 0;
  std::chrono::steady_clock::time_point refilled_;
  std::mt19937_64 random_{std::random_device{}()};

  std::mutex mutex_;  // Guards what follows: any thread.
  std::condition_variable idle_;
  size_t uses_ = 0;
  uint64_t next_close_id_ = 1;
  std::map<uint64_t, std::function<void()>> close_callbacks_;
};

// --- Bytes of answers

// A tree that was decoded into the arena just now, without the members at the paths. Changed in place, since nothing
// else refers to it yet: opting out with a server that does not support it only costs time. Only what is on a path is
// written to.
Value without_fields(Arena& arena, const Value& fresh, const codec::FieldPaths& paths);

// What Content-Type says they are.
Encoding encoding_of(std::string_view content_type);
// A whole answer. `list`: what drops apply to.
Result<Object> decode_answer(Encoding encoding, std::string bytes, const codec::FieldPaths& drop);
// The error that a Status, or whatever else came with that code, stands for.
Error error_of(const net::ClientResponse& response);
Error error_of_status(const Value& status, int code);

// Values for queries: percent-encoded.
std::string query_text(std::string_view value);
void add_query(std::string& target, std::string_view name, std::string_view value);

struct Watch::Raw {
  WatchEvent::Type type = WatchEvent::Type::Added;
  std::string_view object;  // JSON, CBOR item, or Protobuf with its envelope.
  Encoding encoding = Encoding::Json;
};

// A watch over one stream, with drops of its own.
Task<Result<Watch>> open_watch(std::shared_ptr<Core> core, Resource resource, std::string space, WatchOptions options,
                               Drops drops, Encoding encoding);

}  // namespace holdfast::client
