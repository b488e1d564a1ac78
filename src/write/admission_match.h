// What policies and webhooks have in common: which requests concern them, in which version they see the object, and the
// second round of mutating admission. Private to the module.
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

webhook::Operation operation_of(AdmissionOperation operation);
webhook::GroupVersionResource resource_of(const types::Resource& resource);
// The kind that the body of a request has: of a subresource of its own kind that one.
webhook::GroupVersionKind kind_of(const call::Call& call, const types::Resource& resource);
bool has_own_kind(const call::Call& call);

// What a write remembers between the two rounds of mutating admission (k8s.io/apiserver, reinvocationcontext.go).
struct Reinvocation {
  bool again = false;   // This is the second round.
  bool wanted = false;  // Something changed the object: one is needed.

  // Of policies, and of webhooks.
  struct Invoked {
    std::set<std::string, std::less<>> invoked;   // Those that want to see later changes ...
    std::set<std::string, std::less<>> eligible;  // ... and those of them that missed one.
    Value last_output;                            // To see what others changed since.

    void note_change() {
      eligible.insert(invoked.begin(), invoked.end());
      invoked.clear();
    }
  };
  Invoked policies, webhooks;
};

// The object and what was there before, in the version in which they were shown last.
struct Versioned {
  const resource::Served* served = nullptr;
  Value object, old;
};
Task<Result<Unit>> show_as(call::Call& call, Versioned& versioned, const resource::Served& wanted);

// An object that a patch was applied to, as an object of its kind, with the defaults that the patch may have called
// for.
struct Patched {
  Value object;
  bool changed = false;
};
// `strict`: unknown fields are an error.
Result<Patched> take_patched(call::Call& call, const Versioned& before, const Value& patched, bool strict = false);

// Compares one request with the rules and selectors of policies and webhooks. What they need beside the request is
// looked up once, when the first one asks.
class RequestMatcher {
 public:
  // All outlive it.
  RequestMatcher(call::Call& call, const AdmissionRequest& request, const KnownObjects& known)
      : call_(call), request_(request), known_(known) {}

  // The version of the resource in which one of the rules matches, if `equivalent` any version; null: none does.
  const resource::Served* version(std::span<const webhook::Rule> rules, bool equivalent);
  // Only requests in a namespace, or about one, can be exempted by it.
  bool selects_namespace(const Value& selector);
  // The namespace of the request; null: it has none. Its managedFields are not in it.
  const Value& namespace_object();

 private:
  bool matches(const webhook::Rule& rule, const types::Resource& resource) const;
  bool is_namespaces() const { return call_.served->resource->plural == "namespaces"; }

  call::Call& call_;
  const AdmissionRequest& request_;
  const KnownObjects& known_;
  std::optional<std::vector<const resource::Served*>> siblings_;  // Other versions and names of the same objects.
  std::optional<Value> namespace_;
};

}  // namespace holdfast::write
