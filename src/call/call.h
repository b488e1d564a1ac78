// One request while it is served: what was asked, by whom, for which resource, and the form of the response. The
// verbs share this; everything else that a verb needs is passed separately.
//
//   net::Request --RequestInfo--> Call --negotiate_answer()--> view --> respond(), respond_error(), ...
//
// Threading and lifetime: a Call belongs to its request's event loop and lives in the frame of Api::handle.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

// What holds for every request.
struct Settings {
  Gates gates;

  // Kubernetes' own limit on a request body.
  size_t max_body_bytes = limits::kBodyBytes;
  std::string registry_prefix = "/registry";
  // The store is embedded, where values may have our own form (docs/formats/at_rest.md); an etcd holds Kubernetes'
  // form.
  bool embedded_store = false;
  // Events are deleted after this.
  std::chrono::seconds event_ttl{3600};
  bool allow_privileged = true;
  std::vector<std::string_view> service_ip_families = {"IPv4"};  // Of cluster addresses.

  // "host:port" as clients reach the server; /api shows it.
  std::string server_address;

  // False: reads are answered as Kubernetes answers them without a watch cache, as fresh as the store.
  bool watch_cache = true;

  // A watch without timeoutSeconds ends after a random time between this and twice this.
  std::chrono::seconds min_watch_timeout{1800};
};

// What an audit log records about a request, collected while it is served.
struct Recording {
  bool wants_request = false, wants_response = false;
  std::function<void(int code)> on_stream = {};  // A streamed response begins.

  std::string ns, name, uid, resource_version;  // Of the object in the body.
  std::string request, response;                // JSON; a patch as it was sent.
  std::string status;                           // JSON of the Status that was sent.
  // Annotations of the event, by key, set by plugins and webhooks. The first value of a key wins.
  std::map<std::string, std::string, std::less<>> annotations;
};

// The same for all requests; outlives them.
struct Surroundings {
  const Settings& settings;
  const Clock& clock;
  Family<Counter>& opt_outs;
  Family<Counter>& unset_applies;
  ArenaBudget& memory;   // Of the requests under way.
  Executor* background;  // For work that would block a loop. Null: there is none.
};

struct Call {
  Call(const Surroundings& around, const request::RequestInfo& read, resource::Registry::SnapshotRef resources,
       net::Request& asked, net::Response& answer, auth::UserRef who, Recording* record)
      : settings(around.settings),
        clock(around.clock),
        opt_outs(around.opt_outs),
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
  // A second object that the same request is about: a pod's budget, when it is evicted.
  Call(const Call& other, auth::UserRef who, const resource::Served& resource, request::Target target)
      : settings(other.settings),
        clock(other.clock),
        opt_outs(other.opt_outs),
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
  const resource::Served* served = nullptr;         // Null: not a resource, or not one that is served.
  const types::Subresource* subresource = nullptr;  // Null: the resource itself.
  render::View view;                                // Of negotiate_answer().
  render::Warnings warnings;
  Recording* const recording = nullptr;  // Null: the request is not audited.
  Arena arena;
  std::shared_ptr<void> quota_hold;  // See write/quota.h; released when the request has been answered.
  Value document;                    // What was sent, before it became an object of its type. Null: unknown.
  std::string reason;                // For an error without one: as a webhook that denied the request gave it.
  std::vector<std::shared_ptr<const void>> held;  // What must live as long as the request: converted objects.

  // Where its work runs: on the loop of its connection, or elsewhere when it is long (leave_loop).
  Executor& executor() { return off_loop_ ? *background : request.loop(); }
  bool left_loop() const { return off_loop_; }
  GroupResource group_resource() const { return {served->resource->group, served->resource->plural}; }
  GroupKind group_kind() const { return {served->resource->group, served->resource->kind}; }
  resource::Storage& storage() const { return *served->storage; }
  // The namespace of the request as objects have it: empty for cluster-scoped kinds.
  std::string_view ns() const { return served->resource->namespaced ? info.ns : std::string_view{}; }
  // Another verb on what the request is about, for a right that the request's own verb does not imply.
  auth::Attributes attributes(std::string_view verb) const;
  // Ends the calls to webhooks that are made for this request when its client disconnects and at its deadline: a
  // request that waits for one holds a seat. It is the response's on_interrupt(); a handler with one of its own takes
  // it first, and cancels it.
  // On the loop's thread.
  const std::shared_ptr<net::Cancellation>& outgoing() const;

 private:
  friend Task<void> leave_loop(Call& call);
  friend Task<void> return_to_loop(Call& call);
  friend Task<void> finish(Call& call);
  friend void respond(Call& call, int code, net::Body body, std::string_view content_type);
  friend void respond_error(Call& call, const Error& error);

  bool off_loop_ = false;
  std::function<void()> answer_;  // What respond() is to do once the request is back on its loop.
  mutable std::shared_ptr<net::Cancellation> outgoing_;  // Null: nothing was called yet.
};

// What authorization, audit and flow schemas see of a request. The user is null until it is known.
auth::Attributes attributes_of(const request::RequestInfo& info, const auth::UserInfo* user);

request::NegotiationInput negotiation_input(const net::Request& request, const request::Query& query);
// A request with a large body, or about a large object, is decoded, merged, validated and rendered on another thread
// than its loop's: read_body() and the code that reads the object leave the loop for it, and finish() returns with the
// response. In between everything that belongs to the connection (call.response, timers, webhooks) is used after
// return_to_loop() only; what awaits call.executor() continues elsewhere.
//
// Reading, changing and writing an object of this size takes about a millisecond: smaller ones are not worth it.
inline constexpr size_t kLongBytes = 64 << 10;
Task<void> leave_loop(Call& call);
Task<void> return_to_loop(Call& call);
Task<void> finish(Call& call);  // Where left_loop().

// Negotiates the form of the response, into call.view. 406, or 400 for a bad includeObject.
Result<Unit> negotiate_answer(Call& call);
// The whole body, up to the limit. 413.
Task<Result<std::string>> read_body(Call& call);

// --- Responses. Warnings collected so far become headers. ---

void respond(Call& call, int code, std::string body);
void respond(Call& call, int code, net::Body body, std::string_view content_type);
void respond_error(Call& call, const Error& error);
// A tree of a type of its own (Scale, a review, a Status).
void respond_tree(Call& call, int code, const Value& tree, const types::Type& type);
void respond_status(Call& call, int code, const Value& status);

// Sends an error in the encoding that the client accepts: for the parts of the server that reject a request before
// there is a Call (401, 403, unknown paths).
void send_error(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                const Error& error, const Gates& gates);
// The Status of an error, as JSON.
std::string status_json(const Error& error);

// --- For the audit log. These do nothing for requests that are not audited. ---

// The object of a body, decoded and defaulted.
void record_request(Call& call, const Value& object);
// A body that is not an object of the resource, as it was sent: a patch, options.
void record_request(Call& call, request::Format format, std::string_view bytes);
// How the response is recorded: as JSON, including what the client asked to leave out, with managedFields as FieldsV1.
// Nothing: it is not recorded.
std::optional<render::View> recorded_view(const Call& call);
// The response in the form of recorded_view(), or why it could not be rendered. Only the first one is recorded.
void record_response(Call& call, const Result<std::string>& json);
// A response that is the same for every client.
void record_response(Call& call, std::string_view content_type, const net::Body& body);
void record_status(Call& call, const Value& status);
void record_error(Call& call, const Error& error);
// An annotation of the audit event.
void record_annotation(Call& call, std::string key, std::string value);

}  // namespace holdfast::call
