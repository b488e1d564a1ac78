// The requests that the server makes to its own API, as data.
//
//   const Target secret = object(*types::find_resource("", "v1", "secrets"), "default", "token");
//   Result<Answer> read = co_await send(calls, Request::get(secret));
//   Result<Answer> gone = co_await send(calls, Request::remove(secret, {.uid = uid}));
//
// Names may come from the objects of any user, and a name can never become another path, a query or a deletion of a
// whole collection. A name that cannot stand in a path is refused without a call (BadRequest). There is no watch: to
// follow objects, watch their cache.
//
// Every call has a deadline (Timeout) and a limit on its response (RequestEntityTooLarge); it fails as soon as its
// handler has noticed. Threading: as OwnCalls.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/task.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::own_calls {

// What a request is about: a collection without a name, an object, or a subresource of one.
struct Target {
  std::string group, version, resource;
  std::string ns = {};  // Empty for cluster-scoped resources, and for a collection in all namespaces.
  std::string name = {}, subresource = {};

  Target sub(std::string_view subresource_name) const;  // "status"
};
// `ns` is ignored for cluster-scoped resources.
Target collection(const types::Resource& resource, std::string_view ns = {});
Target object(const types::Resource& resource, std::string_view ns, std::string_view name);

// Whether it may be a name in a path, by Kubernetes' rules: not empty, "." or "..", and without "/" and "%".
bool is_path_segment(std::string_view text);
// "/apis/apps/v1/namespaces/NS/deployments/NAME/status", percent-encoded. BadRequest if a part cannot stand in a path.
Result<std::string> path_of(const Target& target);

// What may be deleted, and how. Empty fields are not sent.
struct Deletion {
  std::string_view uid = {}, revision = {};  // Preconditions.
  std::string_view propagation = {};         // "Foreground", "Background", "Orphan".
};

struct Answer;

// A request that can be sent later, on any loop. Everything passed to these functions is encoded at once. `manager` is
// the field manager.
class Request {
 public:
  static Request get(const Target& object);
  static Request list(const Target& collection);
  static Request create(const Target& collection, const Value& object, std::string_view manager);
  static Request update(const Target& object, const Value& next, std::string_view manager);
  static Request merge_patch(const Target& object, const Value& patch, std::string_view manager);
  // Takes over fields of other managers.
  static Request apply(const Target& object, const Value& configuration, std::string_view manager);
  static Request remove(const Target& object, const Deletion& deletion = {});
  static Request remove_all(const Target& collection);
  // The OpenAPI v3 document of a group version.
  static Request openapi(std::string_view group, std::string_view version);

  // Chooses the response that is cheapest to render, of a kind that has Protobuf; for callers that only look at the
  // status.
  Request without_body() &&;
  // For log messages: "DELETE /api/v1/namespaces/default/secrets/token".
  std::string text() const { return http_.method + " " + http_.target; }

 private:
  friend Task<Result<Answer>> send(const OwnCalls& calls, Request request, net::Millis timeout);
  Request(std::string_view method, Result<std::string> path, std::string_view manager = {});
  static Request on_object(std::string_view method, const Target& target, std::string_view manager = {});
  static Request on_collection(std::string_view method, const Target& target, std::string_view manager = {});
  Request with(const Value& body, std::string_view content_type) &&;
  Request with_query(std::string_view name, std::string_view value) &&;

  net::ClientRequest http_;
  std::optional<Error> refusal_;  // Set if the target is not valid.
};

// Every answer of the API, also an error, has a status.
struct Answer {
  int status = 0;
  std::string body;

  bool succeeded() const { return status < 300; }
  bool not_found() const { return status == 404; }
  // The response as a tree whose texts point into `body`.
  Result<Value> object(Arena& arena) const;
};
// For log messages: the response, or why there is none.
std::string_view text_of(const Result<Answer>& answer);

Task<Result<Answer>> send(const OwnCalls& calls, Request request,
                          net::Millis timeout = net::Millis(limits::kRequestSeconds * 1000));

// Ends the calls that are under way on these loops, with ServiceUnavailable: for shutting down. Any thread.
void cancel_calls(net::Loops& loops);

}  // namespace holdfast::own_calls
