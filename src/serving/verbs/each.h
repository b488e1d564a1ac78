// The handler of each verb. Private to the module.
#pragma once

#include "verbs/verbs.h"

namespace holdfast::verbs {

Task<void> serve_get(call::Call& call, const Parts& parts);
Task<void> serve_list(call::Call& call);
Task<void> serve_watch(call::Call& call);
Task<void> serve_create(call::Call& call, const Parts& parts);
Task<void> serve_update(call::Call& call, const Parts& parts);
Task<void> serve_patch(call::Call& call, const Parts& parts);
Task<void> serve_delete(call::Call& call, write::Writer& writer);
Task<void> serve_delete_collection(call::Call& call, write::Writer& writer);
Task<void> serve_discovery(call::Call& call, const Parts& parts);
Task<void> serve_openapi(call::Call& call, const Parts& parts);

// For an unknown path: 404, or 503 as long as some custom resources may not be served yet, because a client that gets a
// 404 concludes that its objects there were deleted.
void respond_path_not_found(call::Call& call, const Parts& parts);

// Ends every create, update and patch: responds with the object as requested, or with the error. After a write of a
// CRD, blocks the response until the API it defines is being served.
Task<void> respond_to_write(call::Call& call, const Parts& parts, Result<write::Written> written);

}  // namespace holdfast::verbs
