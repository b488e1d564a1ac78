// Subresources that are more than another view of the same object, and resources that are only asked.
#pragma once

#include <string>

#include "api/call.h"

namespace holdfast::api {

// --- scale ---
Task<void> respond_scale(Call& call, cache::EntryRef entry);
Task<void> update_scale(Call& call, const std::string& bytes, request::Format format);
Task<void> patch_scale(Call& call, request::PatchType type, const std::string& bytes);

// --- pods ---
Task<void> serve_pod_log(Call& call, const cache::Entry& entry);
// Whether the pod has the container that was asked for; without a name it must have but one. 400.
Result<Unit> check_container(const Value& pod, std::string_view asked);
// Deletes the pod of the call, if its PodDisruptionBudget lets it go. 409, 429; 500 when two budgets select it.
Task<Result<Unit>> evict(Call& call, const Value& eviction, bool dry_run);

// --- exec, attach, portforward, proxy, by any verb ---
bool is_connect(const Call& call);
Task<void> serve_connect(Call& call);

// POST to a subresource: binding, eviction, token; or to bindings.
Task<void> create_subresource(Call& call, const std::string& bytes, request::Format format);
// --- serviceaccounts ---
Task<void> serve_token_request(Call& call, const std::string& bytes, request::Format format);

// POST of a review: answered, never stored.
Task<void> serve_review(Call& call, const std::string& bytes, request::Format format);
// 201 with an object that is not stored, and who owns its fields.
void respond_unstored(Call& call, const Value& object, const ownership::Managed& managed, const types::Type& type);

}  // namespace holdfast::api
