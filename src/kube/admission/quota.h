// ResourceQuota: computes the usage of objects by quota resource name, and whether a namespace's quotas allow a write.
// Pure functions; storing and recalculating usage is up to the caller.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "codec/quantity.h"

namespace holdfast::admission::quota {

using Usage = std::map<std::string, codec::Quantity, std::less<>>;

// The plugin's name.
inline constexpr std::string_view kName = "ResourceQuota";

Usage usage_in(const Value& holder, std::string_view member);  // From a tree like {"pods": "3"}.
Value to_value(Arena& arena, const Usage& usage);

// Whether such a write may change usage. `old` is null for a create.
bool handles(const types::Resource& resource, std::string_view subresource, Operation operation, const Value& object,
             const Value* old);

// The quota's resource names that objects of this resource count against.
std::vector<std::string> counted_names(const types::Resource& resource, const Usage& hard);
// Whether only the number of objects counts, so that their content does not matter.
bool counts_objects_only(const types::Resource& resource);
bool in_scopes(const types::Resource& resource, const Value& quota, const Value& object);
Usage usage_of(const types::Resource& resource, const Value& object, UnixTime now);

// The result of checking a write against one quota.
struct Verdict {
  std::string refusal;    // "exceeded quota: ..."; empty if allowed.
  bool exceeded = false;  // The refusal is "exceeded quota", which is reported only if there is no other one.
  bool changes = false;
  Usage used;  // The quota's new status.used, if it changes.
};
Verdict check(const types::Resource& resource, Operation operation, const Value& object, const Value* old,
              const Value& quota, UnixTime now);

// A write of a resource limited by default that no quota covers.
struct Uncovered {
  std::string why;        // "insufficient quota to consume: ..."
  bool by_scope = false;  // "... to match these scopes: ...", an error without a reason in Kubernetes.
};
// Checks a write against all quotas of its namespace; nullopt if it is covered or not limited.
std::optional<Uncovered> find_uncovered(const types::Resource& resource, Operation operation, const Value& object,
                                        const Value* old, std::span<const Value> quotas,
                                        std::span<const LimitedResource> limited, UnixTime now);

}  // namespace holdfast::admission::quota
