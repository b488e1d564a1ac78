// FieldProtections: which fields only certain writers may set, unset, take or release, which names of managers they
// alone may use, and who may force.
//
// They are decided on what a write would store, after the merge and admission, so that no verb, subresource or patch
// type gets around them. Like policies, they are as fresh as the watch cache, and a write of one returns once the cache
// has it. Private to the module.
//
//   FieldProtections --index by resource--> those that may match --namespace, labels--> fields that changed --> who may
//
// Threading: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "call/call.h"
#include "write/write.h"

namespace holdfast::write {

class FieldProtections {
 public:
  // `registry` must outlive it. Without the resource (gate OwnershipAPI), nothing is protected.
  explicit FieldProtections(const resource::Registry& registry);
  ~FieldProtections();

  // The protections that may concern a write: kept from here on, whatever happens to them. Null if there are none.
  struct Matching;
  using MatchingRef = std::shared_ptr<const Matching>;
  // ServiceUnavailable, or an error that names a protection that cannot be read: it might have denied the write.
  Result<MatchingRef> matching(const call::Call& call) const;

  // A write of `stored`, which is `next` in the stored version; `live` is null for a create. 403 names the protection,
  // the fields and who may write them. Warnings and annotations of the audit event are added to the call.
  Result<Unit> check(call::Call& call, const MatchingRef& matching, const request::WriteOptions& options,
                     const Value& stored, const NextObject& next, const LiveObject* live) const;
  // A deletion.
  Result<Unit> check_delete(call::Call& call, const MatchingRef& matching, const LiveObject& live) const;

 private:
  struct Index;
  Result<std::shared_ptr<const Index>> current() const;

  resource::Storage* const storage_;  // Null if nothing is protected.
  mutable std::mutex mutex_;          // Held while an index is built.
  mutable std::atomic<std::shared_ptr<const Index>> index_;
};

// Whether a write of this resource changes protections.
bool is_field_protection(const types::Resource& resource);

}  // namespace holdfast::write
