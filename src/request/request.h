// Requests, parsed: method, path and query (RequestInfo), selectors, continue tokens, and the encoding
// and form of the answer (negotiation). Plain functions of texts; nothing here waits, locks or keeps anything.
//
//   GET /api/v1/namespaces/a/pods?limit=5&labelSelector=app%3Dweb      Accept: application/json;as=Table;g=...;v=v1
//       \__________ Target ________/ \______ Query, ListQuery ______/          \____________ Accepted ____________/
//
// Everything is parsed, refused and worded as in Kubernetes. Reading a request that is wrong in part does not fail: the
// part that is wrong is an error where it is needed, so that authorization can be decided first.
#pragma once

#include "request/continue_token.h"
#include "request/info.h"
#include "request/negotiate.h"
#include "request/query.h"
#include "request/selectors.h"
