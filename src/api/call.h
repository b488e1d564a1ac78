// One request on its way through the API: what was asked, by whom, and what has been found out so far. Lives in the
// frame of Api::handle.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/api.h"
#include "base/arena.h"
#include "kinds/kinds.h"
#include "render/render.h"
#include "render/warnings.h"
#include "request/info.h"
#include "request/negotiate.h"
#include "request/query.h"
#include "resource/registry.h"
#include "resource/storage.h"

namespace holdfast::api {

struct Call {
  Call(Api::State& state, ArenaBudget& memory, const request::RequestInfo& read, net::Request& asked,
       net::Response& answer, auth::UserRef who)
      : api(state),
        request_info(read),
        request(asked),
        response(answer),
        user(std::move(who)),
        info(read.target()),
        arena(memory) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Api::State& api;
  const request::RequestInfo& request_info;
  net::Request& request;
  net::Response& response;
  auth::UserRef user;
  const request::Query& query = request_info.query();
  request::Target info;
  resource::Registry::SnapshotRef registry;
  const resource::Served* served = nullptr;
  const types::Subresource* subresource = nullptr;
  render::View view;
  render::Warnings warnings;
  Recording* recording = nullptr;  // Null: nobody wants to know.
  Arena arena;
  std::shared_ptr<void> quota_hold;  // See QuotaLedger; gone when the request is answered.
  Value document;                    // What was written, before it became an object of its type. Null: unknown.
  std::string reason;                // Of an error without one: that of a webhook that refused, in its words.
  std::vector<std::shared_ptr<const void>> held;  // What must stay as long as the request: converted objects.

  Executor& executor() { return request.loop(); }
  GroupResource group_resource() const { return {served->resource->group, served->resource->plural}; }
  GroupKind group_kind() const { return {served->resource->group, served->resource->kind}; }
  resource::Storage& storage() const { return *served->storage; }
  // The namespace of the request as objects have it: empty for cluster-scoped kinds.
  std::string_view ns() const { return served->resource->namespaced ? info.ns : std::string_view{}; }
};

request::NegotiationInput negotiation_input(const net::Request& request, const request::Query& query);
// Negotiates what this request's answer looks like, into call.view. 406, or 400 for a bad includeObject.
Result<Unit> negotiate_answer(Call& call);
// The whole body, up to the limit. 413.
Task<Result<std::string>> read_body(Call& call);

// --- Answers. Warnings gathered so far become headers. ---

void respond(Call& call, int code, std::string body);
void respond(Call& call, int code, net::Body body, std::string_view content_type);
void respond_error(Call& call, const Error& error);
// A tree of a type of its own (Scale, a review, a Status).
void respond_tree(Call& call, int code, const Value& tree, const types::Type& type);
void respond_status(Call& call, int code, const Value& status);

// --- Verbs ---

Task<void> serve_get(Call& call);
Task<void> serve_list(Call& call);
Task<void> serve_watch(Call& call);
Task<void> serve_create(Call& call);
Task<void> serve_update(Call& call);
Task<void> serve_patch(Call& call);
Task<void> serve_delete(Call& call);
Task<void> serve_delete_collection(Call& call);
Task<void> serve_discovery(Call& call);

}  // namespace holdfast::api
