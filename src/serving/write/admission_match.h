// Shared by policies and webhooks: which requests match, the version in which they see the object, and reinvocation in
// mutating admission. Private to the module.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "call/call.h"
#include "webhook/webhook.h"
#include "write/admission_request.h"
#include "write/plugins.h"

namespace holdfast::write {

webhook::GroupVersionResource resource_of(const types::Resource& resource);
// The kind of a request's body: that of the resource, or that of a subresource with its own kind.
webhook::GroupVersionKind kind_of(const call::Call& call, const types::Resource& resource);
bool has_own_kind(const call::Call& call);

// State kept between the two rounds of mutating admission (k8s.io/apiserver, reinvocationcontext.go).
struct Reinvocation {
  bool again = false;   // This is the second round.
  bool wanted = false;  // The object was changed: a second round is needed.

  // One for policies, one for webhooks.
  struct Invoked {
    std::set<std::string, std::less<>> invoked;   // Those with a reinvocation policy that were called ...
    std::set<std::string, std::less<>> eligible;  // ... and those of them that missed a later change.
    Value last_output;                            // For detecting changes made by others.

    void note_change() {
      eligible.insert(invoked.begin(), invoked.end());
      invoked.clear();
    }
  };
  Invoked policies, webhooks;
};

// The new and the old object, in the version in which they were last shown.
struct Versioned {
  const resource::Served* served = nullptr;
  Value object, old;
};
Task<Result<Unit>> show_as(call::Call& call, Versioned& versioned, const resource::Served& wanted);

// A patched object, converted back to its kind, with defaults for what the patch added.
struct Patched {
  Value object;
  bool changed = false;
};
// With `strict`, unknown fields are an error.
Result<Patched> take_patched(call::Call& call, const Versioned& before, const Value& patched, bool strict = false);

// Matches one request against the rules and selectors of policies and webhooks. Data needed besides the request is
// looked up once, on first use.
class RequestMatcher {
 public:
  // All arguments must outlive it.
  RequestMatcher(call::Call& call, const AdmissionRequest& request, const KnownObjects& known)
      : call_(call), request_(request), known_(known) {}

  // The version of the resource that one of the rules matches (with `equivalent`, any version); null if none does.
  const resource::Served* version(std::span<const webhook::Rule> rules, bool equivalent);
  // Requests that are neither in nor about a namespace always match.
  bool selects_namespace(const Value& selector);
  // The namespace of the request, without managedFields; null if it has none.
  const Value& namespace_object();

 private:
  bool matches(const webhook::Rule& rule, const types::Resource& resource) const;
  bool is_namespaces() const { return call_.served->resource->plural == "namespaces"; }

  call::Call& call_;
  const AdmissionRequest& request_;
  const KnownObjects& known_;
  std::optional<std::vector<const resource::Served*>> siblings_;  // The same objects under other versions and names.
  std::optional<Value> namespace_;
};

}  // namespace holdfast::write
