// The function of each verb. Private to the module.
#pragma once

#include "verbs/verbs.h"

namespace holdfast::verbs {

Task<void> serve_get(call::Call& call);
Task<void> serve_list(call::Call& call);
Task<void> serve_watch(call::Call& call);
Task<void> serve_create(call::Call& call, const Parts& parts);
Task<void> serve_update(call::Call& call, const Parts& parts);
Task<void> serve_patch(call::Call& call, const Parts& parts);
Task<void> serve_delete(call::Call& call, write::Writer& writer);
Task<void> serve_delete_collection(call::Call& call, write::Writer& writer);
Task<void> serve_discovery(call::Call& call, const Parts& parts);
Task<void> serve_openapi(call::Call& call, const Parts& parts);

// For an unknown path: not found, unless what custom resources define may not be served yet. A client that
// gets a 404 concludes that the objects it knows there were deleted.
void respond_no_page(call::Call& call, const Parts& parts);

// The end of every create, update and patch: the object as the client asked for it, or the error. What a definition
// defines is served before its writer hears of it.
Task<void> answer_written(call::Call& call, const Parts& parts, Result<write::Written> written);

}  // namespace holdfast::verbs
