#include "write/admission_policies.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "cel/cel.h"
#include "codec/codec.h"
#include "custom/conversions.h"
#include "expressions/expressions.h"
#include "write/admission_inputs.h"

namespace holdfast::write {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

// Policies never apply to policies, so that a broken one can be fixed, nor to reviews, on which parts of the cluster
// depend.
bool is_exempt(const types::Resource& resource) {
  if (resource.group == "authentication.k8s.io" || resource.group == "authorization.k8s.io") return true;
  constexpr std::string_view kPlurals[] = {"validatingadmissionpolicies", "validatingadmissionpolicybindings",
                                           "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"};
  return resource.group == kGroup &&
         std::find(std::begin(kPlurals), std::end(kPlurals), resource.plural) != std::end(kPlurals);
}

// Other resources that serve the same built-in objects. Custom resources have none.
std::vector<policy::Index::Alias> aliases_of(const resource::Registry::Snapshot& registry) {
  std::vector<policy::Index::Alias> aliases;
  for (const resource::Served& a : registry.all()) {
    if (a.custom || a.storage == nullptr) continue;
    for (const resource::Served& b : registry.all()) {
      if (b.storage != a.storage) continue;
      if (a.resource->group == b.resource->group && a.resource->plural == b.resource->plural) continue;
      aliases.push_back({{a.resource->group, a.resource->plural}, {b.resource->group, b.resource->plural}});
    }
  }
  return aliases;
}

cache::Selector selector_of(const Value& selector) {
  cache::Selector made;
  for (const Member& label : selector.members_at("matchLabels")) {
    made.labels.push_back({std::string(label.key),
                           cache::LabelRequirement::Operator::In,
                           {std::string(label.value.is_string() ? label.value.as_string() : std::string_view{})}});
  }
  for (const Value& expression : selector.items_at("matchExpressions")) {
    cache::LabelRequirement requirement;
    requirement.key = expression.text_at("key");
    const std::string_view op = expression.text_at("operator");
    requirement.op = op == "In"       ? cache::LabelRequirement::Operator::In
                     : op == "NotIn"  ? cache::LabelRequirement::Operator::NotIn
                     : op == "Exists" ? cache::LabelRequirement::Operator::Exists
                                      : cache::LabelRequirement::Operator::Absent;
    for (const Value& value : expression.items_at("values")) {
      if (value.is_string()) requirement.values.emplace_back(value.as_string());
    }
    made.labels.push_back(std::move(requirement));
  }
  return made;
}

// Why a policy or binding cannot be evaluated; handled according to its failurePolicy.
Error configuration_error(std::string why) { return Error{Reason::Invalid, std::move(why)}; }

// A param converted to the version of its paramKind.
Task<Result<Value>> read_param(call::Call& call, const resource::Served& served, const cache::Entry& entry) {
  const store::Blob body = entry.body();
  Result<Value> tree = served.storage->codec().tree(call.arena, call.arena.copy(*body));
  if (!tree) co_return tree.take_error();
  const types::Resource& from = served.object_rules->version_of(*tree, *served.stored);
  if (&from == served.resource) co_return *tree;
  co_return co_await custom::with_conversions(call, [&](resource::MissingConversions& missing) {
    return served.object_rules->convert(call.arena, from, *served.resource, *tree, &missing);
  });
}

// The params to evaluate a policy with under a binding; null if it has none. Like Kubernetes' CollectParams.
Task<Result<std::vector<Value>>> params_of(call::Call& call, const policy::Policy& policy,
                                           const policy::Binding& binding, std::string_view request_ns) {
  if (!policy.param_kind || !binding.param) co_return std::vector<Value>{Value::null()};
  const policy::ParamKind& kind = *policy.param_kind;
  const resource::Served* served = call.registry->find_kind(kind.group(), kind.version(), kind.kind);
  assert(served != nullptr);  // Checked by the caller.
  std::string_view ns;
  if (served->resource->namespaced) {
    ns = binding.param->ns.empty() ? request_ns : std::string_view(binding.param->ns);
    if (ns.empty()) {
      co_return configuration_error(
          "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
    }
  } else if (!binding.param->ns.empty()) {
    co_return configuration_error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  resource::Storage& storage = *served->storage;
  std::vector<cache::EntryRef> entries;
  if (!binding.param->name.empty()) {
    Result<cache::Cache::Latest> latest =
        co_await storage.cache().latest(storage.short_key(ns, binding.param->name), call.executor());
    if (!latest) co_return latest.take_error();
    if (latest->entry) entries.push_back(std::move(latest->entry));
  } else {
    Result<cache::Snapshot> snapshot = co_await storage.cache().consistent(call.executor());
    if (!snapshot) co_return snapshot.take_error();
    entries = snapshot->list({storage.scope(ns), selector_of(binding.param->selector)}).entries;
  }
  if (entries.empty() && binding.param->denies_missing) {
    co_return configuration_error("no params found for policy binding with `Deny` parameterNotFoundAction");
  }
  std::vector<Value> params;
  for (const cache::EntryRef& entry : entries) {
    Result<Value> param = co_await read_param(call, *served, *entry);
    if (!param) co_return param.take_error();
    params.push_back(*param);
  }
  co_return params;
}

// One request as seen by policies: in each version that one of them matches, converted and described once.
class SeenRequest {
 public:
  SeenRequest(call::Call& call, const AdmissionRequest& request, const KnownObjects& known,
              const auth::Authorizer& authorizer)
      : call_(call), request_(request), matcher_(call, request, known), authorizer_(authorizer, *request.user) {}

  // The version in which the request matches; null if it does not.
  const resource::Served* matched(const policy::Match& match) {
    if (!matcher_.selects_namespace(match.namespace_selector)) return nullptr;
    if (!webhook::selects_object(match.object_selector, request_.object, request_.old)) return nullptr;
    if (!match.excluded.empty() && matcher_.version(match.excluded, match.equivalent) != nullptr) return nullptr;
    if (match.rules.empty()) return call_.served;
    return matcher_.version(match.rules, match.equivalent);
  }

  // 404 if the namespace does not exist.
  Result<Unit> find_namespace() {
    const types::Resource& resource = *call_.served->resource;
    const bool is_namespace = resource.group.empty() && resource.kind == "Namespace";
    if (request_.ns.empty() || is_namespace) return Unit{};
    const Value& found = matcher_.namespace_object();
    if (found.is_null()) return not_found({"", "namespaces"}, request_.ns);
    namespace_ = found;
    if (const Value* metadata = found.find("metadata"); metadata != nullptr && metadata->has("ownerReferences")) {
      namespace_ =
          with_member(call_.arena, found, "metadata", without_member(call_.arena, *metadata, "ownerReferences"));
    }
    return Unit{};
  }

  // In the version of `served`. Valid as long as this object and `param`.
  Task<Result<policy::Subject>> subject(const resource::Served& served, const Value& param) {
    auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& one) { return one.object.served == &served; });
    if (seen == seen_.end()) {
      Versioned versioned{call_.served, request_.object, request_.old};
      Result<Unit> shown = co_await show_as(call_, versioned, served);
      if (!shown) co_return shown.take_error();
      const types::Resource& asked = *call_.served->resource;
      const Value request = request_value(call_, request_, *served.resource, *served.resource);
      seen_.push_back({versioned, request,
                       &served == call_.served ? request : request_value(call_, request_, *served.resource, asked)});
      seen = std::prev(seen_.end());
    }
    policy::Subject subject;
    subject.inputs.object = cel::Val::data(seen->object.object);
    subject.inputs.old_object = cel::Val::data(seen->object.old);
    subject.inputs.request = cel::Val::data(seen->request);
    subject.inputs.namespace_object = cel::Val::data(namespace_);
    subject.inputs.params = cel::Val::data(param);
    subject.inputs.authorizer = &authorizer_;
    subject.inputs.resource = request_resource(call_, request_);
    subject.original_request = cel::Val::data(seen->original_request);
    co_return subject;
  }

  // The name of the object in admission errors; it may not have been generated yet.
  std::string shown_name() const {
    if (!request_.name.empty()) return std::string(request_.name);
    if (const std::string_view base = request_.object.text_at("metadata", "generateName"); !base.empty()) {
      return std::string(base);
    }
    return "Unknown";
  }

 private:
  struct Seen {
    Versioned object;
    Value request, original_request;
  };

  call::Call& call_;
  const AdmissionRequest& request_;
  RequestMatcher matcher_;
  RequestAuthorizer authorizer_;
  Value namespace_;
  std::deque<Seen> seen_;  // Expressions hold references to these.
};

// Why the params of a policy cannot be found; nullopt if they can.
std::optional<std::string> param_kind_problem(const call::Call& call, const policy::Policy& policy) {
  if (!policy.param_kind) return std::nullopt;
  const policy::ParamKind& kind = *policy.param_kind;
  const resource::Served* served = call.registry->find_kind(kind.group(), kind.version(), kind.kind);
  if (served != nullptr && served->storage != nullptr) return std::nullopt;
  return "failed to find resource referenced by paramKind: '" + go_kind_text(kind.api_version, kind.kind) + "'";
}

// The field manager for the object being mutated. Null if its kind only exists as a subresource of other groups (Scale,
// Eviction, TokenRequest), because Kubernetes looks up types among the resources of the kind's own group.
const ownership::FieldManager* fields_of(const call::Call& call, const resource::Served& served) {
  const resource::Served* typed = &served;
  if (has_own_kind(call)) {
    const webhook::GroupVersionKind kind = kind_of(call, *served.resource);
    typed = call.registry->find_kind(kind.group, kind.version, kind.kind);
  }
  return typed == nullptr || typed->managers == nullptr ? nullptr : &typed->managers->at(kinds::Endpoint::Main);
}

// A MutatingAdmissionPolicy under one of its bindings, with one param.
struct Invocation {
  const policy::Policy* policy = nullptr;
  const policy::Binding* binding = nullptr;
  const resource::Served* served = nullptr;
  Value param;

  std::string key() const {
    return policy->name + "/" + binding->name + "/" + std::string(param.text_at("metadata", "namespace")) + "/" +
           std::string(param.text_at("metadata", "name"));
  }
};

// Failures of MutatingAdmissionPolicies that do not ignore failures.
struct MutationProblems {
  std::vector<std::string> messages;
  bool invalid = false;  // The first failure is from an evaluation.

  void add(const policy::Policy& policy, const policy::Binding* binding, const std::string& why, bool evaluation) {
    if (policy.ignores_failure) return;
    if (messages.empty()) invalid = evaluation;
    messages.push_back(binding == nullptr ? "policy " + go_quote(policy.name) + " denied request: " + why
                                          : "policy '" + policy.name + "' with binding '" + binding->name +
                                                "' denied request: " + why);
  }
  // Kubernetes changes the text and the reason of a Forbidden, but not its code.
  Error error(GroupResource resource, std::string_view name) const {
    Error error = forbidden(resource, name, {});
    error.message = messages.front();
    if (invalid) {
      error.reason = Reason::Invalid;
      error.code = 403;
    }
    for (const std::string& message : messages) error.causes.push_back({{}, message, {}});
    return error;
  }
};

// The first denial is returned to the client.
struct Denial {
  std::string message;
  std::string reason;  // Empty for Invalid.
};

Reason denial_reason(std::string_view reason) {
  if (reason == "Unauthorized") return Reason::Unauthorized;
  if (reason == "Forbidden") return Reason::Forbidden;
  if (reason == "RequestEntityTooLarge") return Reason::RequestEntityTooLarge;
  return Reason::Invalid;
}

void audit_failure(call::Call& call, const policy::Binding& binding, const policy::Failure& failure) {
  if (call.recording == nullptr) return;
  MapBuilder value(call.arena);
  value.add("message", Value::string(failure.message));
  value.add("policy", Value::string(binding.policy));
  value.add("binding", Value::string(binding.name));
  value.add("expressionIndex", Value::integer(static_cast<int64_t>(failure.validation)));
  ListBuilder actions(call.arena);
  for (const std::string& action : binding.actions) actions.add(Value::string(action));
  value.add("validationActions", actions.build());
  const Value list[] = {value.build()};
  record_annotation(call, "validation.policy.admission.k8s.io/validation_failure",
                    codec::encode_json(Value::list(list)));
}

// Audit annotations of one policy. Bindings may provide several values for a key.
class AuditAnnotations {
 public:
  void add(const std::string& key, const std::string& value) {
    std::vector<std::string>& values = values_[key];
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  void publish(call::Call& call, const std::string& policy) const {
    for (const auto& [key, values] : values_) {
      record_annotation(call, policy + "/" + key, join(values, ", "));
    }
  }

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

// Applies one mutation to the current object. BadRequest is handled according to the policy's failurePolicy.
Result<Value> mutate_once(call::Call& call, const policy::Policy& policy, const policy::Mutation& mutation,
                          const policy::Subject& subject, const Versioned& now) {
  expressions::Activation activation(call.arena, policy.scope(), policy.programs().variables, subject.inputs);
  int64_t budget = cel::kRuntimeBudget;
  // An apply configuration is merged without managedFields, whose field sets are text here, not trees.
  const bool by_apply = mutation.kind == policy::Mutation::Kind::ApplyConfiguration;
  const Value* metadata = now.object.find("metadata");
  const Value* managed = metadata == nullptr ? nullptr : metadata->find("managedFields");
  const bool apart = by_apply && managed != nullptr;
  const Value object =
      apart ? with_member(call.arena, now.object, "metadata", without_member(call.arena, *metadata, "managedFields"))
            : now.object;
  Result<Value> mutated =
      policy::apply_mutation(call.arena, mutation, activation, budget, object, fields_of(call, *now.served));
  if (!mutated) return bad_request(mutated.error().message);
  if (const Value* after = apart ? mutated->find("metadata") : nullptr) {
    mutated = with_member(call.arena, *mutated, "metadata", with_member(call.arena, *after, "managedFields", *managed));
  }
  Result<Patched> taken = take_patched(call, now, *mutated, !by_apply);
  if (!taken) return taken.take_error();
  return taken->object;
}

template <class Definition>
using ByEntry = std::unordered_map<const cache::Entry*, std::shared_ptr<const Definition>>;

// The policy or binding of an entry: the one that was read from it before, or a new one; null if it cannot be decoded.
template <class Definition>
std::shared_ptr<const Definition> read(const resource::Storage& storage, const cache::Entry& entry,
                                       const ByEntry<Definition>* known) {
  if (known != nullptr) {
    if (const auto found = known->find(&entry); found != known->end()) return found->second;
  }
  auto arena = std::make_unique<Arena>();
  const store::Blob body = entry.body();
  const Result<Value> tree = storage.codec().tree(*arena, arena->copy(*body));
  if (!tree) return nullptr;
  return std::make_shared<Definition>(std::move(arena), *tree);
}

}  // namespace

// The cached objects, and the index built from them.
struct AdmissionPolicies::Known {
  cache::Snapshot policies, bindings;
  ByEntry<policy::Policy> read_policies;
  ByEntry<policy::Binding> read_bindings;
  IndexRef index;
};

AdmissionPolicies::AdmissionPolicies(const resource::Registry& registry, const auth::Authorizer& authorizer,
                                     std::span<const std::string> disabled, MetricRegistry& metrics)
    : authorizer_(authorizer), metrics_(metrics) {
  const resource::Registry::SnapshotRef resources = registry.snapshot();
  aliases_ = aliases_of(*resources);
  const auto is_off = [&](std::string_view plugin) {
    return std::find(disabled.begin(), disabled.end(), plugin) != disabled.end();
  };
  const auto follow = [&](Side side, std::string_view policies, std::string_view bindings) {
    Source& source = sources_[static_cast<size_t>(side)];
    source.policies = resources->storage_of(kGroup, policies);
    source.bindings = resources->storage_of(kGroup, bindings);
  };
  if (!is_off("MutatingAdmissionPolicy")) {
    follow(Side::Mutating, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings");
  }
  if (!is_off("ValidatingAdmissionPolicy")) {
    follow(Side::Validating, "validatingadmissionpolicies", "validatingadmissionpolicybindings");
  }
}

AdmissionPolicies::~AdmissionPolicies() = default;

std::shared_ptr<const AdmissionPolicies::Known> AdmissionPolicies::renew(const Source& source, cache::Snapshot policies,
                                                                         cache::Snapshot bindings) const {
  const std::shared_ptr<const Known> before = source.known.load();
  auto made = std::make_shared<Known>();
  std::vector<policy::PolicyRef> all_policies;
  std::vector<policy::BindingRef> all_bindings;
  std::unordered_map<std::string_view, const policy::PolicyRef*, KeyHash> by_uid;
  if (before != nullptr) {
    for (const auto& [entry, policy] : before->read_policies) by_uid.emplace(policy->uid, &policy);
  }
  for (const cache::EntryRef& entry : policies.list({}).entries) {
    policy::PolicyRef policy =
        read<policy::Policy>(*source.policies, *entry, before == nullptr ? nullptr : &before->read_policies);
    if (policy == nullptr) continue;
    // A status-only change keeps the compiled policy.
    const auto found = by_uid.find(policy->uid);
    if (found != by_uid.end() && (*found->second)->generation == policy->generation) policy = *found->second;
    made->read_policies.emplace(entry.get(), policy);
    all_policies.push_back(std::move(policy));
  }
  for (const cache::EntryRef& entry : bindings.list({}).entries) {
    policy::BindingRef binding =
        read<policy::Binding>(*source.bindings, *entry, before == nullptr ? nullptr : &before->read_bindings);
    if (binding == nullptr) continue;
    made->read_bindings.emplace(entry.get(), binding);
    all_bindings.push_back(std::move(binding));
  }
  made->index = policy::Index::build(std::move(all_policies), std::move(all_bindings), aliases_);
  made->policies = std::move(policies);
  made->bindings = std::move(bindings);
  return made;
}

Result<AdmissionPolicies::IndexRef> AdmissionPolicies::current(Side side) const {
  const Source& source = sources_[static_cast<size_t>(side)];
  if (source.policies == nullptr) return IndexRef{};
  std::optional<cache::Snapshot> policies, bindings;
  const auto look = [&]() -> Result<Unit> {
    Result<cache::Snapshot> first = source.policies->cache().snapshot();
    if (!first) return first.take_error();
    Result<cache::Snapshot> second = source.bindings->cache().snapshot();
    if (!second) return second.take_error();
    policies = std::move(*first);
    bindings = std::move(*second);
    // A policy or binding that cannot be decoded might have denied the request.
    for (const auto& [storage, snapshot] : {std::pair{source.policies, &*policies}, {source.bindings, &*bindings}}) {
      if (!snapshot->has_unreadable()) continue;
      const cache::ListPage page = snapshot->list({});
      if (!page.unreadable.empty()) {
        return corrupt_object(storage->key(page.unreadable.front().key), page.unreadable.front().why);
      }
    }
    return Unit{};
  };
  const auto is_current = [&](const std::shared_ptr<const Known>& known) {
    return known != nullptr && known->policies.same_objects(*policies) && known->bindings.same_objects(*bindings);
  };
  Result<Unit> looked = look();
  if (!looked) return looked.take_error();
  if (policies->count() == 0 || bindings->count() == 0) return IndexRef{};
  std::shared_ptr<const Known> known = source.known.load();
  if (is_current(known)) return known->index;
  const std::lock_guard lock(source.mutex);
  // Another thread may have published a newer one.
  looked = look();
  if (!looked) return looked.take_error();
  known = source.known.load();
  if (is_current(known)) return known->index;
  known = renew(source, std::move(*policies), std::move(*bindings));
  source.known.store(known);
  return known->index;
}

bool AdmissionPolicies::handles(Side side, const call::Call& call, AdmissionOperation operation) const {
  const Result<IndexRef> index = current(side);
  if (!index) return true;  // The request will be rejected.
  return *index != nullptr && (*index)->has_any(operation, call.group_resource());
}

bool AdmissionPolicies::handles(const call::Call& call, AdmissionOperation operation) const {
  if (is_exempt(*call.served->resource)) return false;
  return handles(Side::Validating, call, operation) ||
         (operation != AdmissionOperation::Delete && handles(Side::Mutating, call, operation));
}

Task<Result<Value>> AdmissionPolicies::mutate(call::Call& call, const AdmissionRequest& request,
                                              const KnownObjects& known, Reinvocation& reinvocation) const {
  if (is_exempt(*call.served->resource) || request.operation == AdmissionOperation::Delete) co_return request.object;
  const Result<IndexRef> index = current(Side::Mutating);
  SeenRequest seen(call, request, known, authorizer_);
  if (!index) co_return index.error();
  if (*index == nullptr) co_return request.object;

  // Which policies are invoked depends on the original object.
  MutationProblems problems;
  std::vector<Invocation> invocations;
  for (const policy::Index::Bound* bound : (*index)->find(request.operation, call.group_resource())) {
    const policy::Policy& policy = *bound->policy;
    const resource::Served* served = seen.matched(*policy.match);
    if (served == nullptr) continue;
    if (const std::optional<std::string> problem = param_kind_problem(call, policy)) {
      problems.add(policy, nullptr, "failed to configure policy: " + *problem, false);
      continue;
    }
    for (const policy::BindingRef& binding : bound->bindings) {
      if (binding->match && seen.matched(*binding->match) == nullptr) continue;
      Result<std::vector<Value>> params = co_await params_of(call, policy, *binding, request.ns);
      if (!params) {
        problems.add(policy, binding.get(), "failed to configure binding: " + params.error().message, false);
        continue;
      }
      for (const Value& param : *params) invocations.push_back({&policy, binding.get(), served, param});
    }
  }

  Versioned now{call.served, request.object, request.old};
  if (!invocations.empty()) {
    if (reinvocation.again && !equal(reinvocation.policies.last_output, request.object)) {
      reinvocation.policies.note_change();
    }
    Result<Unit> found = seen.find_namespace();
    if (!found) co_return found.take_error();
    bool patched = false;
    for (const Invocation& invocation : invocations) {
      Result<Unit> shown = co_await show_as(call, now, *invocation.served);
      if (!shown) co_return shown.take_error();
      Result<policy::Subject> subject = co_await seen.subject(*invocation.served, invocation.param);
      if (!subject) co_return subject.take_error();
      subject->inputs.object = cel::Val::data(now.object);
      subject->inputs.old_object = cel::Val::data(now.old);
      const expressions::Matched matched = policy::check_match_conditions(call.arena, *invocation.policy, *subject);
      if (!matched.problem.empty()) problems.add(*invocation.policy, invocation.binding, matched.problem, true);
      if (!matched.matches) continue;
      const std::string key = invocation.key();
      if (reinvocation.again && !reinvocation.policies.eligible.contains(key)) continue;
      const Value before = now.object;
      for (const policy::Mutation& mutation : invocation.policy->programs().mutations) {
        if (now.object.is_null()) break;
        const auto begin = std::chrono::steady_clock::now();
        Result<Value> mutated = mutate_once(call, *invocation.policy, mutation, *subject, now);
        metrics_.mutated(invocation.policy->name, invocation.binding->name,
                         mutated ? std::string_view{} : mutated.error().message,
                         std::chrono::steady_clock::now() - begin);
        if (!mutated) {
          if (mutated.error().reason != Reason::BadRequest) co_return mutated.take_error();
          problems.add(*invocation.policy, invocation.binding, mutated.error().message, true);
          continue;
        }
        now.object = *mutated;
        patched = true;
      }
      if (!equal(before, now.object)) {
        reinvocation.policies.note_change();
        reinvocation.wanted = true;
      }
      if (invocation.policy->reinvokes) reinvocation.policies.invoked.insert(key);
    }
    // Matches upstream: any patch, even one that changes nothing, triggers reinvocation.
    if (patched) {
      reinvocation.policies.note_change();
      reinvocation.wanted = true;
    }
    Result<Unit> back = co_await show_as(call, now, *call.served);
    if (!back) co_return back.take_error();
    reinvocation.policies.last_output = now.object;
  }
  if (!problems.messages.empty()) co_return problems.error(call.group_resource(), seen.shown_name());
  co_return now.object;
}

Task<Result<Unit>> AdmissionPolicies::validate(call::Call& call, const AdmissionRequest& request,
                                               const KnownObjects& known) const {
  if (is_exempt(*call.served->resource)) co_return Unit{};
  const Result<IndexRef> index = current(Side::Validating);
  SeenRequest seen(call, request, known, authorizer_);
  if (!index) co_return index.error();
  if (*index == nullptr) co_return Unit{};
  std::optional<Denial> denial;
  const auto deny = [&](const policy::Policy& policy, const policy::Binding* binding, const std::string& message,
                        std::string_view reason) {
    if (denial) return;
    std::string with = binding == nullptr ? "" : " with binding '" + binding->name + "'";
    denial = Denial{"ValidatingAdmissionPolicy '" + policy.name + "'" + with + " denied request: " + message,
                    std::string(reason)};
  };
  for (const policy::Index::Bound* bound : (*index)->find(request.operation, call.group_resource())) {
    const policy::Policy& policy = *bound->policy;
    const resource::Served* served = seen.matched(*policy.match);
    if (served == nullptr) continue;
    if (const std::optional<std::string> problem = param_kind_problem(call, policy)) {
      if (!policy.ignores_failure) deny(policy, nullptr, "failed to configure policy: " + *problem, {});
      continue;
    }
    AuditAnnotations annotations;
    for (const policy::BindingRef& binding : bound->bindings) {
      if (binding->match && seen.matched(*binding->match) == nullptr) continue;
      const auto misconfigured = [&](const std::string& why) {
        if (!policy.ignores_failure) deny(policy, binding.get(), "failed to configure binding: " + why, {});
      };
      Result<std::vector<Value>> params = co_await params_of(call, policy, *binding, request.ns);
      if (!params) {
        misconfigured(params.error().message);
        continue;
      }
      Result<Unit> found = seen.find_namespace();
      if (!found) co_return found.take_error();
      for (const Value& param : *params) {
        Result<policy::Subject> subject = co_await seen.subject(*served, param);
        if (!subject) {
          misconfigured("failed to convert object version: " + subject.error().message);
          break;
        }
        const policy::Verdict verdict = policy::judge(call.arena, policy, *subject);
        for (const policy::Failure& failure : verdict.failures) {
          for (const std::string& action : binding->actions) {
            if (action == "Deny") deny(policy, binding.get(), failure.message, failure.reason);
            if (action == "Audit") audit_failure(call, *binding, failure);
            metrics_.validated(policy.name, binding->name, failure.message, to_lower(action), failure.took);
            if (action == "Warn") {
              call.warnings.add("Validation failed for ValidatingAdmissionPolicy '" + policy.name + "' with binding '" +
                                binding->name + "': " + failure.message);
            }
          }
        }
        for (const policy::Failure& ignored : verdict.ignored) {
          metrics_.validated(policy.name, binding->name, ignored.message, "allow", ignored.took);
        }
        for (const auto& [key, value] : verdict.annotations) annotations.add(key, value);
        for (const std::string& problem : verdict.annotation_problems) {
          deny(policy, binding.get(), problem, {});
          metrics_.validated(policy.name, binding->name, problem, "deny", {});
        }
      }
    }
    annotations.publish(call, policy.name);
  }
  if (!denial) co_return Unit{};
  Error error = forbidden(call.group_resource(), seen.shown_name(), denial->message);
  error.reason = denial_reason(denial->reason);
  error.causes.push_back({{}, denial->message, {}});
  co_return error;
}

}  // namespace holdfast::write
