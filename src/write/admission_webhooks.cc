#include "write/admission_webhooks.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/log.h"
#include "base/text.h"
#include "call/call.h"
#include "codec/codec.h"
#include "codec/typed.h"
#include "custom/conversions.h"
#include "custom/custom_objects.h"
#include "patch/patch.h"
#include "schema/schema.h"
#include "write/body.h"
#include "write/write.h"

namespace holdfast::write {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::string_view kUserAgent = "kube-apiserver-admission";

// What webhooks are never asked about: a broken one must not keep anybody from mending it.
bool is_exempt(const types::Resource& resource) {
  constexpr std::string_view kKinds[] = {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
                                         "ValidatingAdmissionPolicy",      "ValidatingAdmissionPolicyBinding",
                                         "MutatingAdmissionPolicy",        "MutatingAdmissionPolicyBinding"};
  return resource.group == kGroup && std::find(std::begin(kKinds), std::end(kKinds), resource.kind) != std::end(kKinds);
}

webhook::Operation operation_of(AdmissionOperation operation) {
  switch (operation) {
    case AdmissionOperation::Create:
      return webhook::Operation::Create;
    case AdmissionOperation::Update:
      return webhook::Operation::Update;
    case AdmissionOperation::Delete:
      return webhook::Operation::Delete;
    case AdmissionOperation::Connect:
      break;
  }
  return webhook::Operation::Connect;
}

webhook::GroupVersionResource resource_of(const types::Resource& resource) {
  return {resource.group, resource.version, resource.plural};
}

// The kind that the body of a request has: of a subresource of its own kind that one.
webhook::GroupVersionKind kind_of(const call::Call& call, const types::Resource& resource) {
  if (call.subresource != nullptr && !call.subresource->kind.empty() && call.subresource->kind != resource.kind) {
    const bool own = call.subresource->version.empty();
    return {own ? resource.group : call.subresource->group, own ? resource.version : call.subresource->version,
            call.subresource->kind};
  }
  return {resource.group, resource.version, resource.kind};
}
bool has_own_kind(const call::Call& call) {
  return kind_of(call, *call.served->resource).kind != call.served->resource->kind;
}

// The object and what was there before, in the version in which they were shown last.
struct Versioned {
  const resource::Served* served = nullptr;
  Value object, old;
};

Task<Result<Unit>> show_as(call::Call& call, Versioned& versioned, const resource::Served& wanted) {
  if (versioned.served == &wanted) co_return Unit{};
  if (!has_own_kind(call)) {
    for (Value* value : {&versioned.object, &versioned.old}) {
      if (value->is_null()) continue;
      Result<Value> converted =
          co_await custom::convert_object(call, *versioned.served->resource, *wanted.resource, *value);
      if (!converted) co_return internal(converted.error().message);
      *value = *converted;
    }
  }
  versioned.served = &wanted;
  co_return Unit{};
}

// What a patched tree is as an object of its kind, with the defaults that the patch may have called for.
struct Patched {
  Value object;
  bool changed = false;
};
Result<Patched> apply_answer(call::Call& call, const Versioned& before, std::string_view hook,
                             const std::string& json) {
  Arena& arena = call.arena;
  Result<Value> patch = codec::decode_json(arena, arena.copy(json));
  if (!patch || (!patch->is_list() && !patch->is_null())) {
    return webhook::call_failed(hook, "received undecodable patch in webhook response: " +
                                          (patch ? std::string("it is no list") : patch.error().message));
  }
  if (patch->is_null() || patch->items().empty()) return Patched{before.object, false};
  if (before.object.is_null()) {
    return internal("admission webhook " + go_quote(hook) +
                    " attempted to modify the object, which is not supported for this operation");
  }
  Result<Value> patched = patch::apply_json_patch(arena, before.object, *patch);
  if (!patched) return internal(patched.error().message);
  const Gates& gates = call.settings.gates;
  Value object = *patched;
  if (has_own_kind(call) || !before.served->custom) {
    const types::Type& type = has_own_kind(call) ? *expected_of(call).type : *before.served->resource->type;
    Result<Value> typed = codec::to_typed(arena, type, object, {.gates = &gates});
    if (!typed) return internal(typed.error().message);
    object = *typed;
  } else {
    Result<Value> typed = custom::with_typed_metadata(arena, *before.served->version, object, gates);
    if (!typed) return internal(typed.error().message);
    object = schema::prune(arena, before.served->version->schema->root(), *typed);
  }
  Patched result;
  result.changed = !equal(object, before.object);
  if (!has_own_kind(call)) {
    Draft draft(arena, object);
    before.served->object_rules->set_defaults(arena, draft.root());
    object = draft.value();
  }
  result.object = object;
  return result;
}

// One call, from the question to the answer.
struct Outcome {
  std::optional<webhook::AdmissionAnswer> answer;
  std::optional<Error> failure;  // 500, unless the webhook's failures are ignored.
  std::optional<Error> refusal;  // Whatever its policy is ...
  std::string reason;            // ... with a reason in the webhook's words.
};

Task<Outcome> ask(call::Call& call, webhook::Caller& caller, const webhook::Hook& hook, const AdmissionRequest& request,
                  const Versioned& versioned, bool mutating) {
  Outcome outcome;
  if (request.dry_run && hook.has_side_effects) {
    outcome.refusal = bad_request("admission webhook " + go_quote(hook.name) + " does not support dry run");
    co_return outcome;
  }
  if (hook.review_version == webhook::ReviewVersion::None) {
    outcome.failure = webhook::call_failed(
        hook.name,
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)");
    co_return outcome;
  }
  webhook::AdmissionQuestion question{.uid = resource::new_uid(),
                                      .kind = kind_of(call, *versioned.served->resource),
                                      .request_kind = kind_of(call, *call.served->resource),
                                      .resource = resource_of(*versioned.served->resource),
                                      .request_resource = resource_of(*call.served->resource),
                                      .subresource = request.subresource,
                                      .name = request.name,
                                      .ns = request.ns,
                                      .operation = operation_of(request.operation),
                                      .user = request.user,
                                      .object = versioned.object,
                                      .old = versioned.old,
                                      .options = request.options,
                                      .sorted = versioned.served->custom && !has_own_kind(call),
                                      .dry_run = request.dry_run};
  Result<std::string> body =
      co_await caller.post(call.request.loop(), hook.client, webhook::admission_review(question, hook.review_version),
                           hook.timeout, kUserAgent, call.outgoing());
  if (!body && call.outgoing()->cancelled()) {
    // Nobody waits any more, and what no webhook has judged is not written, whatever its failurePolicy is.
    outcome.refusal = Error{Reason::Timeout, "Timeout: request did not complete within requested timeout"};
    co_return outcome;
  }
  if (!body) {
    outcome.failure = webhook::call_failed(hook.name, "failed to call webhook: " + body.error().message);
    co_return outcome;
  }
  Result<webhook::AdmissionAnswer> answer =
      webhook::read_admission_answer(call.arena, call.arena.copy(*body), question.uid, mutating, hook.review_version);
  if (!answer) {
    outcome.failure = webhook::call_failed(hook.name, answer.error().message);
    co_return outcome;
  }
  for (const std::string& warning : answer->warnings) call.warnings.add(warning);
  for (const auto& [key, value] : answer->audit_annotations) record_annotation(call, hook.name + "/" + key, value);
  if (!answer->allowed) {
    webhook::Refusal refusal = webhook::denied_by(hook.name, answer->status);
    outcome.refusal = std::move(refusal.error);
    outcome.reason = std::move(refusal.reason);
  }
  outcome.answer = std::move(*answer);
  co_return outcome;
}

// A validating webhook among others that are asked at the same time.
struct Asked {
  const webhook::Hook* hook = nullptr;
  Versioned versioned;
  Outcome outcome;
};
Task<void> ask_one(call::Call& call, webhook::Caller& caller, const AdmissionRequest& request, Asked& asked) {
  try {
    asked.outcome = co_await ask(call, caller, *asked.hook, request, asked.versioned, false);
  } catch (...) {
    // The webhook's failurePolicy decides, as for every other failure of its call.
    report_failed_task("call of a validating webhook", std::current_exception());
    asked.outcome.failure = webhook::call_failed(asked.hook->name, "an exception was thrown");
  }
}

// What keeps a write from going on; nothing: it goes on.
std::optional<Error> verdict(call::Call& call, const webhook::Hook& hook, Outcome& outcome) {
  if (outcome.refusal) {
    call.reason = std::move(outcome.reason);
    return std::move(outcome.refusal);
  }
  if (!outcome.failure) return std::nullopt;
  log::warning(hook.ignores_failure ? "a webhook failed and is ignored" : "a webhook failed, and the request with it",
               {{"configuration", hook.configuration}, {"why", outcome.failure->message}});
  if (hook.ignores_failure) return std::nullopt;
  return std::move(outcome.failure);
}

// What the audit log says of a call to a mutating webhook: whether it changed the object, and how. A round is once
// through all webhooks, an index a webhook's place among all of them.
struct Note {
  call::Call& call;
  const webhook::Hook& hook;
  std::string place;

  Note(call::Call& about, const webhook::Hook& asked, bool again, size_t index)
      : call(about),
        hook(asked),
        place("webhook.admission.k8s.io/round_" + std::to_string(again ? 1 : 0) + "_index_" + std::to_string(index)) {}

  void mutated(bool changed) const {
    if (call.recording == nullptr) return;
    MapBuilder value(call.arena);
    value.add("configuration", Value::string(hook.configuration));
    value.add("webhook", Value::string(hook.name));
    value.add("mutated", Value::boolean(changed));
    record_annotation(call, "mutation." + place, codec::encode_json(value.build()));
  }
  // Bodies are for who records them.
  void patch(std::string_view json) const {
    if (call.recording == nullptr || !call.recording->wants_request) return;
    Result<Value> tree = codec::decode_json(call.arena, call.arena.copy(json));
    if (!tree) return;
    MapBuilder value(call.arena);
    value.add("configuration", Value::string(hook.configuration));
    value.add("webhook", Value::string(hook.name));
    value.add("patch", *tree);
    value.add("patchType", Value::string("JSONPatch"));
    record_annotation(call, "patch." + place, codec::encode_json(value.build()));
  }
  void failed_open() const { record_annotation(call, "failed-open.mutation." + place, hook.name); }
};

// The labels that namespace selectors look at. Looked up once a write, and only when a selector asks.
class NamespaceLabels {
 public:
  NamespaceLabels(call::Call& call, const AdmissionRequest& request, const KnownObjects& ns)
      : call_(call), request_(request), ns_(ns) {}

  // Null: there are none.
  const Value* get() {
    if (!looked_) {
      looked_ = true;
      find();
    }
    return labels_;
  }
  // Only requests in a namespace, or about one, can be exempted by it.
  bool applies() const { return !call_.ns().empty() || is_namespaces(); }

 private:
  bool is_namespaces() const { return call_.served->resource->plural == "namespaces"; }
  void find() {
    if (is_namespaces()) {
      const bool written = request_.subresource.empty() && request_.object.is_map();
      labels_ = (written ? request_.object : request_.old).get("metadata", "labels");
      return;
    }
    if (!ns_.ns) return;
    const store::Blob body = ns_.ns->body();
    Result<Value> tree =
        call_.registry->storage_of("", "namespaces")->codec().tree(call_.arena, call_.arena.copy(*body));
    if (!tree) return;
    tree_ = *tree;
    labels_ = tree_.get("metadata", "labels");
  }

  call::Call& call_;
  const AdmissionRequest& request_;
  const KnownObjects& ns_;
  bool looked_ = false;
  Value tree_;
  const Value* labels_ = nullptr;
};

bool any_rule(const webhook::Hook& hook, const AdmissionRequest& request, const types::Resource& resource) {
  return std::any_of(hook.rules.begin(), hook.rules.end(), [&](const webhook::Rule& rule) {
    return rule.matches(operation_of(request.operation), resource_of(resource), request.subresource, request.ns);
  });
}

// The version in which this webhook wants to be asked; null: it does not.
// Its matchConditions would be looked at last, here; without CEL every request meets them (docs/differences.md).
const resource::Served* concerned(call::Call& call, const webhook::Hook& hook, const AdmissionRequest& request,
                                  const Value& object, const Value& old, NamespaceLabels& labels) {
  const resource::Served* found = nullptr;
  if (any_rule(hook, request, *call.served->resource)) {
    found = call.served;
  } else if (hook.matches_equivalent && call.served->storage != nullptr) {
    // The same objects under other names. Earlier rules count first.
    for (const webhook::Rule& rule : hook.rules) {
      for (const resource::Served& other : call.registry->all()) {
        if (other.resource == call.served->resource || other.storage != call.served->storage) continue;
        if (!rule.matches(operation_of(request.operation), resource_of(*other.resource), request.subresource,
                          request.ns)) {
          continue;
        }
        found = &other;
        break;
      }
      if (found != nullptr) break;
    }
  }
  if (found == nullptr) return nullptr;
  if (!webhook::selects_object(hook, object, old)) return nullptr;
  if (labels.applies() && !webhook::selects_all(hook.namespace_selector) &&
      !webhook::selects_namespace(hook, labels.get())) {
    return nullptr;
  }
  return found;
}

}  // namespace

// The webhooks of all configurations of one side. Immutable.
struct AdmissionWebhooks::HookSet {
  Arena arena;
  std::vector<cache::EntryRef> entries;  // What it was made from.
  std::vector<webhook::Hook> hooks;
  std::optional<Error> problem;  // A configuration cannot be read.
};

bool is_webhook_configuration(const types::Resource& resource) {
  return resource.group == kGroup && resource.plural.ends_with("webhookconfigurations");
}

AdmissionWebhooks::AdmissionWebhooks(resource::Storage& mutating, resource::Storage& validating,
                                     webhook::Caller& caller, std::span<const std::string> disabled)
    : storages_{&mutating, &validating}, caller_(caller) {
  for (const std::string& name : disabled) {
    if (name == "MutatingAdmissionWebhook") storages_[0] = nullptr;
    if (name == "ValidatingAdmissionWebhook") storages_[1] = nullptr;
  }
}

AdmissionWebhooks::HookSetRef AdmissionWebhooks::current(Side side) const {
  resource::Storage* storage = storages_[static_cast<size_t>(side)];
  if (storage == nullptr) return nullptr;
  Result<cache::Snapshot> snapshot = storage->cache().snapshot();
  if (!snapshot || (snapshot->count() == 0 && !snapshot->has_unreadable())) return nullptr;
  cache::ListPage page = snapshot->list({});
  if (!page.unreadable.empty()) {
    // Nobody knows what it would have refused.
    auto broken = std::make_shared<HookSet>();
    broken->problem = corrupt_object(storage->key(page.unreadable.front().key), page.unreadable.front().why);
    return broken;
  }
  std::vector<cache::EntryRef>& entries = page.entries;
  const std::lock_guard lock(mutex_);
  HookSetRef& known = known_[static_cast<size_t>(side)];
  if (known != nullptr && known->entries == entries) return known;
  auto made = std::make_shared<HookSet>();
  for (const cache::EntryRef& entry : entries) {
    const store::Blob body = entry->body();
    Result<Value> tree = storage->codec().tree(made->arena, made->arena.copy(*body));
    if (!tree) continue;
    for (webhook::Hook& hook : webhook::hooks_of(*tree)) made->hooks.push_back(std::move(hook));
  }
  made->entries = std::move(entries);
  known = made;
  return known;
}

bool AdmissionWebhooks::handles(const call::Call& call) const {
  if (is_exempt(*call.served->resource)) return false;
  return current(Side::Mutating) != nullptr || current(Side::Validating) != nullptr;
}

Task<Result<Value>> AdmissionWebhooks::mutate(call::Call& call, const AdmissionRequest& request, const KnownObjects& ns,
                                              Reinvocation& reinvocation) {
  const HookSetRef set = current(Side::Mutating);
  if (set == nullptr) co_return request.object;
  if (set->problem) co_return *set->problem;
  if (reinvocation.again && !equal(reinvocation.last_output, request.object)) reinvocation.note_change();
  co_await return_to_loop(call);
  NamespaceLabels labels(call, request, ns);
  Versioned versioned{call.served, request.object, request.old};
  for (size_t index = 0; index < set->hooks.size(); ++index) {
    const webhook::Hook& hook = set->hooks[index];
    const resource::Served* wanted = concerned(call, hook, request, versioned.object, versioned.old, labels);
    if (wanted == nullptr) continue;
    if (reinvocation.again && !reinvocation.eligible.contains(hook.id)) continue;
    const Note note(call, hook, reinvocation.again, index);
    bool changed = false;
    Result<Unit> shown = co_await show_as(call, versioned, *wanted);
    if (!shown) co_return shown.take_error();
    Outcome outcome = co_await ask(call, caller_, hook, request, versioned, true);
    if (!outcome.failure && !outcome.refusal && !outcome.answer->patch.empty()) {
      Result<Patched> patched = apply_answer(call, versioned, hook.name, outcome.answer->patch);
      if (patched) {
        versioned.object = patched->object;
        changed = patched->changed;
        note.patch(outcome.answer->patch);
        if (patched->changed) {
          reinvocation.note_change();
          reinvocation.wanted = true;
        }
      } else {
        outcome.refusal = patched.take_error();
      }
    }
    note.mutated(changed);
    if (outcome.failure && !outcome.refusal && hook.ignores_failure) note.failed_open();
    if (hook.reinvokes) reinvocation.invoked.insert(hook.id);
    if (std::optional<Error> error = verdict(call, hook, outcome)) co_return std::move(*error);
  }
  Result<Unit> back = co_await show_as(call, versioned, *call.served);
  if (!back) co_return back.take_error();
  reinvocation.last_output = versioned.object;
  co_return versioned.object;
}

Task<Result<Unit>> AdmissionWebhooks::validate(call::Call& call, const AdmissionRequest& request,
                                               const KnownObjects& ns) {
  const HookSetRef set = current(Side::Validating);
  if (set == nullptr) co_return Unit{};
  if (set->problem) co_return *set->problem;
  co_await return_to_loop(call);
  NamespaceLabels labels(call, request, ns);
  std::vector<Asked> asked;
  for (const webhook::Hook& hook : set->hooks) {
    const resource::Served* wanted = concerned(call, hook, request, request.object, request.old, labels);
    if (wanted == nullptr) continue;
    Asked one{&hook, {call.served, request.object, request.old}, {}};
    Result<Unit> shown = co_await show_as(call, one.versioned, *wanted);
    if (!shown) co_return shown.take_error();
    asked.push_back(std::move(one));
  }
  if (asked.empty()) co_return Unit{};
  std::vector<Task<void>> calls;
  calls.reserve(asked.size());
  for (Asked& one : asked) calls.push_back(ask_one(call, caller_, request, one));
  co_await when_all(call.executor(), std::move(calls));
  for (size_t i = 0; i < asked.size(); ++i) {
    Asked& one = asked[i];
    if (one.outcome.failure && !one.outcome.refusal && one.hook->ignores_failure) {
      record_annotation(call, "failed-open.validating.webhook.admission.k8s.io/round_0_index_" + std::to_string(i),
                        one.hook->name);
    }
    if (std::optional<Error> error = verdict(call, *one.hook, one.outcome)) co_return std::move(*error);
  }
  co_return Unit{};
}

}  // namespace holdfast::write
