// What ownership costs, by resource and by object: for operators who look for the objects that cost most.
#pragma once

#include <string>

#include "api/api.h"
#include "request/query.h"

namespace holdfast::api {

// Sets holdfast_ownership_bytes and holdfast_ownership_raw_bytes of every resource. Looks at every cached object, so it
// is called when somebody reads the metrics, not before.
void refresh_ownership_metrics(Api::State& state);

// The page /debug/ownership: a line for each resource, or, with resource=PLURAL[.GROUP], a line for each object of it,
// the most expensive first (limit=N, 50 unless given). BadRequest for a resource that is not served.
Result<std::string> ownership_page(Api::State& state, const request::Query& query);

}  // namespace holdfast::api
