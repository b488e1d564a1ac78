// The verbs of the API, one file per verb; subresources that are not just a view of their object have files of their
// own.
//
//   get.cc list.cc watch.cc   create.cc update.cc patch.cc (with apply.cc) delete.cc
//   scale.cc eviction.cc pod_subresources.cc pod_log.cc connect.cc token_request.cc reviews.cc ownership_reviews.cc
//   ownership_transfers.cc component_statuses.cc discovery.cc openapi_endpoint.cc
//
// serve() dispatches to the verb's function and passes it the Parts it needs. Every function sends a response in all
// cases.
//
// Threading: a call begins on the loop of its request; a long one may have left it when its function ends
//   (call/call.h). Calls share nothing that changes except the Parts, which are used from every loop.
// Lifetime: Parts outlive all calls; a Call lives until its function has ended.
// Errors: become responses. Only exceptions leave serve(): they fail this request alone.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "access/access.h"
#include "aggregate/aggregate.h"
#include "auth/auth.h"
#include "call/call.h"
#include "custom/custom.h"
#include "nodes/nodes.h"
#include "own_calls/own_calls.h"
#include "signer/signer.h"
#include "tokens/tokens.h"
#include "verbs/openapi_endpoint.h"
#include "write/write.h"

namespace holdfast::verbs {

// Signs service account tokens: this server with its own key, or another program.
using TokenSigner = std::variant<tokens::Signer, signer::ExternalSigner*>;

// Settings for issuing service account tokens.
struct TokenIssuer {
  TokenSigner signer;
  std::string issuer;
  std::vector<std::string> audiences;  // The audiences of this server; the default for requests that specify none.
  bool extends_expiration = true;      // A pod's usual token is valid for longer, with a warning claim after an hour.
  std::chrono::seconds max_expiration{0};  // 0 for Kubernetes' own limit only.
  std::chrono::seconds extended_expiration{365 * 24 * 60 * 60};
};

// Authenticates a token for TokenReviews, on the thread of `loop`. May be empty.
using TokenReviewer =
    std::function<Task<Result<auth::TokenUser>>(std::string token, std::vector<std::string> audiences,
                                                net::EventLoop& loop, std::shared_ptr<net::Cancellation> cancellation)>;

// The dependencies of the verbs. They outlive all requests.
struct Parts {
  write::Writer& writer;
  custom::CustomResources& definitions;
  aggregate::Aggregation& aggregation;
  const nodes::Nodes& connections;  // To nodes, pods and services.
  const resource::Registry& registry;
  OpenApiDocuments& openapi;
  const access::Authorizers& authorizers;
  const TokenIssuer* token_issuer;  // Null disables serviceaccounts/token.
  TokenReviewer review_token;
  own_calls::Handler own;  // Serves a request on behalf of a user, without authorizing it.
};

// Handles a request for a path below /api or /apis, or for /openapi.
Task<void> serve(call::Call& call, const Parts& parts);

}  // namespace holdfast::verbs
