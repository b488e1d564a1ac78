// Request parsing: method, path and query (RequestInfo), selectors, continue tokens, and content negotiation. Pure
// functions of strings; nothing here blocks, locks or keeps state.
//
//   GET /api/v1/namespaces/a/pods?limit=5&labelSelector=app%3Dweb      Accept: application/json;as=Table;g=...;v=v1
//       \__________ Target ________/ \______ Query, ListQuery ______/          \____________ Accepted ____________/
//
// Everything is parsed, rejected and worded as in Kubernetes. Parsing a partially invalid request does not fail: the
// invalid part becomes an error where it is used, so that authorization is decided first.
#pragma once

#include "request/continue_token.h"
#include "request/info.h"
#include "request/negotiate.h"
#include "request/query.h"
#include "request/selectors.h"
