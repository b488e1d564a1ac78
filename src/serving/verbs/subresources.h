// Subresources that are not just another view of the object, and resources that are not stored.
#pragma once

#include <string>

#include "call/call.h"
#include "verbs/verbs.h"
#include "write/write.h"

namespace holdfast::verbs {

// --- scale ---
Task<void> respond_scale(call::Call& call, cache::EntryRef entry);
Task<void> update_scale(call::Call& call, write::Writer& writer, const std::string& bytes, request::Format format);
Task<void> patch_scale(call::Call& call, write::Writer& writer, request::PatchType type, const std::string& bytes);

// --- pods ---
Task<void> serve_pod_log(call::Call& call, const nodes::Nodes& nodes);
// The requested container, or the only one if none is. 400.
Result<std::string> choose_container(const Value& pod, std::string_view asked);
// The path of a pod at its kubelet: /exec/NAMESPACE/NAME. `how` names what is wanted.
std::string kubelet_path(std::string_view how, const Value& pod);
// Deletes the pod of the call if its PodDisruptionBudget allows it. 409, 429; 500 if two budgets select it.
Task<Result<Unit>> evict(call::Call& call, write::Writer& writer, const Value& eviction, bool dry_run);

// --- exec, attach, portforward, proxy, with any verb ---
bool is_connect(const call::Call& call);
Task<void> serve_connect(call::Call& call, const Parts& parts);

// POST to a subresource (binding, eviction, token) or to bindings.
Task<void> create_subresource(call::Call& call, write::Writer& writer, const TokenIssuer* issuer,
                              const std::string& bytes, request::Format format);
// --- serviceaccounts ---
Task<void> serve_token_request(call::Call& call, write::Writer& writer, const TokenIssuer* issuer,
                               const std::string& bytes, request::Format format);

// POST of a review, which is evaluated but not stored.
Task<void> serve_review(call::Call& call, const Parts& parts, const std::string& bytes, request::Format format);
// Responds 201 with an object that is not stored, and its managedFields.
void respond_unstored(call::Call& call, const Value& object, const ownership::Managed& managed,
                      const types::Type& type);

}  // namespace holdfast::verbs
