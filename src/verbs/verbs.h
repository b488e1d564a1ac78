// The verbs of the API, one file per verb; subresources that are more than a view of their object have files beside
// them.
//
//   get.cc list.cc watch.cc   create.cc update.cc patch.cc (with apply.cc) delete.cc
//   scale.cc eviction.cc pod_subresources.cc connect.cc token_request.cc reviews.cc component_statuses.cc
//   discovery.cc openapi_endpoint.cc
//
// serve() finds the verb's function and gives it what it needs out of Parts. Every function answers its request,
// whatever happens.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "access/access.h"
#include "aggregate/aggregate.h"
#include "auth/auth.h"
#include "call/call.h"
#include "custom/custom.h"
#include "tokens/tokens.h"
#include "verbs/openapi_endpoint.h"
#include "write/write.h"

namespace holdfast::verbs {

// How tokens of service accounts are made.
struct TokenIssuer {
  tokens::Signer signer;
  std::string issuer;
  std::vector<std::string> audiences;      // Of tokens for this server: what a request that names none gets.
  bool extends_expiration = true;          // A pod's usual token lives for a year, and is marked after its hour.
  std::chrono::seconds max_expiration{0};  // 0: Kubernetes' own limit alone.
};

// Whom a token belongs to, for TokenReviews; empty: nobody.
using TokenReviewer =
    std::function<Result<auth::TokenUser>(std::string_view token, const std::vector<std::string>& audiences)>;

// What the verbs work with. Everything outlives the requests.
struct Parts {
  write::Writer& writer;
  custom::CustomResources& definitions;
  aggregate::Aggregation& aggregation;
  const resource::Registry& registry;
  OpenApiDocuments& openapi;
  const auth::Authorizer& authorizer;
  const access::RbacAuthorizer* rbac;  // The same authorizer; null: another one, which has no rules.
  const TokenIssuer* token_issuer;     // Null: serviceaccounts/token refuses.
  TokenReviewer review_token;
};

// Answers a request for a path below /api or /apis, or for /openapi.
Task<void> serve(call::Call& call, const Parts& parts);

}  // namespace holdfast::verbs
