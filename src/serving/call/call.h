// The state of one request while it is handled: the target, the user, the resource, and the negotiated response format.
// Shared by all verbs; any other dependencies of a verb are passed separately.
//
//   net::Request --RequestInfo--> Call --negotiate_response()--> view --> respond(), respond_error(), ...
//
// Threading and lifetime: a Call belongs to its request's event loop and is owned by the coroutine frame of
// Api::handle.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/gates.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/task.h"
#include "kinds/kinds.h"
#include "net/net.h"
#include "render/render.h"
#include "request/request.h"
#include "resource/resource.h"

namespace holdfast::call {

// Settings that apply to every request.
struct Settings {
  Gates gates;
  request::AcceptRule accept_rule = request::AcceptRule::Lenient;

  // Kubernetes' own limit on a request body.
  size_t max_body_bytes = limits::kBodyBytes;
  std::string registry_prefix = "/registry";
  // Whether the store is embedded and values may be in our own format (docs/formats/at_rest.md); etcd always holds
  // Kubernetes' format.
  bool embedded_store = false;
  // Time to live of Events.
  std::chrono::seconds event_ttl{3600};
  bool allow_privileged = true;
  std::vector<std::string_view> service_ip_families = {"IPv4"};  // Of cluster IPs.

  // The "host:port" that clients use to reach the server; reported by /api.
  std::string server_address;

  // When false, reads behave as in Kubernetes without a watch cache: always as fresh as the store.
  bool watch_cache = true;

  // Field managers named by a request that yield to the one that its object declares, rather than contradicting it.
  std::set<std::string, std::less<>> yielding_field_managers = {};

  // A watch without timeoutSeconds ends after a random time between this and twice this value.
  std::chrono::seconds min_watch_timeout{1800};
};

// Audit data about a request, collected while it is handled.
struct Recording {
  bool wants_request = false, wants_response = false;
  std::function<void(int code)> on_stream = {};  // Called when a streamed response begins.

  std::string ns, name, uid, resource_version;  // From the object in the body.
  std::string request, response;                // JSON; a patch verbatim.
  std::string status;                           // JSON of the Status that was sent.
  // Annotations of the audit event, set by plugins and webhooks. The first value of a key wins.
  std::map<std::string, std::string, std::less<>> annotations;
};

// Dependencies shared by all requests; they outlive every request.
struct CallDependencies {
  const Settings& settings;
  const Clock& clock;
  Family<Counter>& opt_outs;
  Family<Counter>& opt_out_bytes;
  Family<Counter>& watch_events;
  Family<Histogram>& watch_event_sizes;
  Family<Counter>& unset_applies;
  ArenaBudget& memory;   // Budget shared by all requests in flight.
  Executor* background;  // For work that would block a loop. Null if there is none.
};

struct Call {
  Call(const CallDependencies& around, const request::RequestInfo& read, resource::Registry::SnapshotRef resources,
       net::Request& asked, net::Response& answer, auth::UserRef who, Recording* record)
      : settings(around.settings),
        clock(around.clock),
        opt_outs(around.opt_outs),
        opt_out_bytes(around.opt_out_bytes),
        watch_events(around.watch_events),
        watch_event_sizes(around.watch_event_sizes),
        unset_applies(around.unset_applies),
        memory(around.memory),
        background(around.background),
        request_info(read),
        request(asked),
        response(answer),
        user(std::move(who)),
        info(read.target()),
        registry(std::move(resources)),
        recording(record),
        arena(around.memory) {}
  // For a second object handled within the same request, such as the disruption budget of an evicted pod.
  Call(const Call& other, auth::UserRef who, const resource::Served& resource, request::Target target)
      : settings(other.settings),
        clock(other.clock),
        opt_outs(other.opt_outs),
        opt_out_bytes(other.opt_out_bytes),
        watch_events(other.watch_events),
        watch_event_sizes(other.watch_event_sizes),
        unset_applies(other.unset_applies),
        memory(other.memory),
        background(other.background),
        request_info(other.request_info),
        request(other.request),
        response(other.response),
        user(std::move(who)),
        info(target),
        registry(other.registry),
        served(&resource),
        view(other.view),
        arena(memory),
        off_loop_(other.off_loop_),
        outgoing_(other.outgoing()) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Settings& settings;
  const Clock& clock;
  Family<Counter>& opt_outs;
  Family<Counter>& opt_out_bytes;
  Family<Counter>& watch_events;
  Family<Histogram>& watch_event_sizes;
  Family<Counter>& unset_applies;
  ArenaBudget& memory;
  Executor* const background;
  const request::RequestInfo& request_info;
  net::Request& request;
  net::Response& response;
  auth::UserRef user;
  const request::Query& query = request_info.query();
  request::Target info;
  const resource::Registry::SnapshotRef registry;
  const resource::Served* served = nullptr;         // Null if the path is not a served resource.
  const types::Subresource* subresource = nullptr;  // Null for the resource itself.
  render::View view;                                // Set by negotiate_response().
  Warnings warnings;
  Recording* const recording = nullptr;  // Null if the request is not audited.
  Arena arena;
  std::shared_ptr<void> quota_hold;  // See write/quota.h; released once the response has been sent.
  Value document;                    // The body as sent, before conversion to its type. Null if unknown.
  std::string reason;                // Status reason for errors without one, from the webhook that denied the request.
  std::vector<std::shared_ptr<const void>> held;  // Keeps data alive until the request ends, such as converted objects.

  // Where the request runs: on its connection's loop, or on the background executor after leave_loop().
  Executor& executor() { return off_loop_ ? *background : request.loop(); }
  bool left_loop() const { return off_loop_; }
  GroupResource group_resource() const { return {served->resource->group, served->resource->plural}; }
  GroupKind group_kind() const { return {served->resource->group, served->resource->kind}; }
  resource::Storage& storage() const { return *served->storage; }
  // The namespace as stored in objects: empty for cluster-scoped resources.
  std::string_view ns() const { return served->resource->namespaced ? info.ns : std::string_view{}; }
  // The request's attributes with another verb, to check a permission that the request's own verb does not imply.
  auth::Attributes attributes(std::string_view verb) const;
  // Cancels webhook calls made for this request when its client disconnects and at its deadline: a request waiting for
  // a webhook holds a seat. Installs itself as the response's on_interrupt(); a handler that sets its own must call
  // this first and cancel it there. Call on the loop's thread.
  const std::shared_ptr<net::Cancellation>& outgoing() const;

 private:
  friend Task<void> leave_loop(Call& call);
  friend Task<void> return_to_loop(Call& call);
  friend Task<void> finish(Call& call);
  friend void respond(Call& call, int code, net::Body body, std::string_view content_type);
  friend void respond_error(Call& call, const Error& error);

  bool off_loop_ = false;
  std::function<void()> answer_;  // The deferred respond(), run once the request is back on its loop.
  mutable std::shared_ptr<net::Cancellation> outgoing_;  // Null until the first outgoing call.
};

// The attributes of a request for authorization, audit and flow schemas. `user` is null until authenticated.
auth::Attributes attributes_of(const request::RequestInfo& info, const auth::UserInfo* user);

request::NegotiationInput negotiation_input(const net::Request& request, const request::Query& query,
                                            request::AcceptRule rule);
// Requests with a large body, or on a large object, are decoded, merged, validated and rendered off their event loop:
// read_body() and the code that reads the object leave the loop, and finish() returns to it with the response. In
// between, anything that belongs to the connection (call.response, timers, webhooks) may be used only after
// return_to_loop(); code awaiting call.executor() resumes on another thread.
//
// Reading, changing and writing an object of this size takes about a millisecond; for smaller ones it is not worth it.
inline constexpr size_t kLongBytes = 64 << 10;
Task<void> leave_loop(Call& call);
Task<void> return_to_loop(Call& call);
Task<void> finish(Call& call);  // Only if left_loop().

// Negotiates the response format and stores it in call.view. 406, or 400 for a bad includeObject.
Result<Unit> negotiate_response(Call& call);
// Reads the whole body. 413 if it exceeds the limit.
Task<Result<std::string>> read_body(Call& call);

// --- Responses. Warnings collected so far are sent as headers. ---

void respond(Call& call, int code, std::string body);
void respond(Call& call, int code, net::Body body, std::string_view content_type);
void respond_error(Call& call, const Error& error);
// Responds with a tree of another type than the resource's (Scale, a review, a Status).
void respond_tree(Call& call, int code, const Value& tree, const types::Type& type);
void respond_status(Call& call, int code, const Value& status);

// Sends an error in the client's accepted encoding, for code that rejects a request before a Call exists (401, 403,
// unknown paths).
void send_error(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                const Error& error, const Gates& gates, request::AcceptRule rule);
// The Status for an error, as JSON.
std::string status_json(const Error& error);

// --- Audit data. No-ops for requests that are not audited. ---

// Records the object in the body, decoded and defaulted.
void record_request(Call& call, const Value& object);
// Records a body that is not an object of the resource (a patch, options) as it was sent.
void record_request(Call& call, request::Format format, std::string_view bytes);
// The view in which the response is recorded: JSON with all fields, even those the client asked to leave out, and
// managedFields as FieldsV1. nullopt if the response is not recorded.
std::optional<render::View> recorded_view(const Call& call);
// Records the response rendered in recorded_view(), or the rendering error. Only the first call has an effect.
void record_response(Call& call, const Result<std::string>& json);
// Records a response that is the same for every client.
void record_response(Call& call, std::string_view content_type, const net::Body& body);
void record_status(Call& call, const Value& status);
void record_error(Call& call, const Error& error);
// Adds an annotation to the audit event.
void record_annotation(Call& call, std::string key, std::string value);

}  // namespace holdfast::call
