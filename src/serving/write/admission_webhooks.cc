#include "write/admission_webhooks.h"

#include <algorithm>

#include "base/api_error.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/text.h"
#include "call/call.h"
#include "codec/codec.h"
#include "patch/patch.h"
#include "render/status.h"
#include "write/admission_inputs.h"
#include "write/write.h"

namespace holdfast::write {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::string_view kUserAgent = "kube-apiserver-admission";

// Webhooks are never called for these, so that a broken configuration can be fixed.
bool is_exempt(const types::Resource& resource) {
  constexpr std::string_view kKinds[] = {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
                                         "ValidatingAdmissionPolicy",      "ValidatingAdmissionPolicyBinding",
                                         "MutatingAdmissionPolicy",        "MutatingAdmissionPolicyBinding"};
  return resource.group == kGroup && std::find(std::begin(kKinds), std::end(kKinds), resource.kind) != std::end(kKinds);
}

// Applies a webhook's patch to the object.
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
  const Value bare = without_declared_options(call, *patched, "admission webhook " + go_quote(hook));
  return take_patched(call, before, bare);
}

// The result of one call.
struct Outcome {
  std::optional<webhook::AdmissionReviewResponse> answer;
  std::optional<Error> failure;  // 500, unless failures of the webhook are ignored.
  std::optional<Error> refusal;  // Independent of its failurePolicy ...
  std::string reason;            // ... with a reason specified by the webhook.
};

// The timeout of a webhook is limited to the remaining time of its request (?timeout=), in seconds, rounded up.
std::chrono::seconds time_for(const call::Call& call, const webhook::Hook& hook) {
  const Result<int64_t> asked = parse_go_duration(call.query.get("timeout"));
  if (!asked || *asked <= 0) return hook.timeout;
  constexpr int64_t kSecond = 1'000'000'000;
  const UnixTime now = call.clock.now(), begun = call.view.now;
  const int64_t spent = std::max<int64_t>(0, (now.seconds - begun.seconds) * kSecond + now.nanos - begun.nanos);
  const int64_t left = std::max<int64_t>(1, *asked - spent);
  return std::min(hook.timeout, std::chrono::seconds((left - 1) / kSecond + 1));
}

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
  webhook::AdmissionReviewRequest question{.uid = random_uuid(),
                                           .kind = kind_of(call, *versioned.served->resource),
                                           .request_kind = kind_of(call, *call.served->resource),
                                           .resource = resource_of(*versioned.served->resource),
                                           .request_resource = resource_of(*call.served->resource),
                                           .subresource = request.subresource,
                                           .name = request.name,
                                           .ns = request.ns,
                                           .operation = request.operation,
                                           .user = request.user,
                                           .object = versioned.object,
                                           .old = versioned.old,
                                           .options = request.options,
                                           .sorted = versioned.served->custom && !has_own_kind(call),
                                           .dry_run = request.dry_run};
  Result<std::string> body =
      co_await caller.post(call.request.loop(), hook.client, webhook::admission_review(question, hook.review_version),
                           time_for(call, hook), kUserAgent, call.outgoing());
  if (!body && call.outgoing()->cancelled()) {
    // The request has ended. A write that was not reviewed by every webhook is never stored, regardless of
    // failurePolicy.
    outcome.refusal = Error{Reason::Timeout, "Timeout: request did not complete within requested timeout"};
    co_return outcome;
  }
  if (!body) {
    outcome.failure = webhook::call_failed(hook.name, "failed to call webhook: " + body.error().message);
    co_return outcome;
  }
  Result<webhook::AdmissionReviewResponse> answer = webhook::parse_admission_response(
      call.arena, call.arena.copy(*body), question.uid, mutating, hook.review_version);
  if (!answer) {
    outcome.failure = webhook::call_failed(hook.name, answer.error().message);
    co_return outcome;
  }
  for (const std::string& warning : answer->warnings) call.warnings.add(warning);
  for (const auto& [key, value] : answer->audit_annotations) record_annotation(call, hook.name + "/" + key, value);
  if (!answer->allowed) {
    webhook::WebhookDenial refusal = webhook::denied_by(hook.name, answer->status);
    outcome.refusal = std::move(refusal.error);
    outcome.reason = std::move(refusal.reason);
  }
  outcome.answer = std::move(*answer);
  co_return outcome;
}

// The same, counted.
Task<Outcome> ask_counted(call::Call& call, webhook::Caller& caller, const webhook::Hook& hook,
                          const AdmissionRequest& request, const Versioned& versioned, bool mutating,
                          AdmissionMetrics& metrics) {
  const auto begun = std::chrono::steady_clock::now();
  Outcome outcome = co_await ask(call, caller, hook, request, versioned, mutating);
  const AdmissionMetrics::Call asked{hook.name, webhook::to_string(request.operation),
                                     mutating ? "admit" : "validating"};
  const AdmissionMetrics::Result result = outcome.refusal   ? AdmissionMetrics::Result::Denied
                                          : outcome.failure ? AdmissionMetrics::Result::Failed
                                                            : AdmissionMetrics::Result::Allowed;
  const int code = outcome.refusal ? render::http_code(*outcome.refusal) : 0;
  metrics.webhook_called(asked, result, code, std::chrono::steady_clock::now() - begun);
  if (result == AdmissionMetrics::Result::Failed && hook.ignores_failure) metrics.failed_open(asked);
  co_return outcome;
}

// One of the validating webhooks called concurrently.
struct Asked {
  const webhook::Hook* hook = nullptr;
  Versioned versioned;
  Outcome outcome;
};
Task<void> ask_one(call::Call& call, webhook::Caller& caller, const AdmissionRequest& request, Asked& asked,
                   AdmissionMetrics& metrics) {
  try {
    asked.outcome = co_await ask_counted(call, caller, *asked.hook, request, asked.versioned, false, metrics);
  } catch (...) {
    // Handled according to the webhook's failurePolicy, like any other failure of the call.
    report_failed_task("call of a validating webhook", std::current_exception());
    asked.outcome.failure = webhook::call_failed(asked.hook->name, "an exception was thrown");
  }
}

// Why the write is denied; nullopt if it is not.
std::optional<Error> verdict(call::Call& call, const webhook::Hook& hook, Outcome& outcome) {
  if (outcome.refusal) {
    call.reason = std::move(outcome.reason);
    return std::move(outcome.refusal);
  }
  if (!outcome.failure) return std::nullopt;
  log::warning(
      hook.ignores_failure ? "a webhook failed; the failure is ignored" : "a webhook failed; the request is rejected",
      {{"configuration", hook.configuration}, {"why", outcome.failure->message}});
  if (hook.ignores_failure) return std::nullopt;
  return std::move(outcome.failure);
}

// Audit annotations for a call of a mutating webhook: whether and how it changed the object. A round is one pass
// through all webhooks; the index is the webhook's position among them.
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
  // The patch is only recorded at an audit level that includes bodies.
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

// Whether the request meets the webhook's matchConditions. 403 if they cannot be evaluated.
Result<bool> check_match_conditions(call::Call& call, const webhook::Hook& hook, const AdmissionRequest& request,
                                    const Versioned& versioned, const auth::Authorizer& authorizer) {
  if (hook.conditions.empty()) return true;
  RequestAuthorizer decides(authorizer, *request.user);
  const Value described = request_value(call, request, *versioned.served->resource, *call.served->resource);
  expressions::Inputs inputs;
  inputs.object = cel::Val::data(versioned.object);
  inputs.old_object = cel::Val::data(versioned.old);
  inputs.request = cel::Val::data(described);
  inputs.authorizer = &decides;
  inputs.resource = request_resource(call, request);
  expressions::Activation activation(call.arena, {}, {}, inputs);
  expressions::Matched matched = expressions::match(hook.conditions, activation, hook.ignores_failure);
  if (!matched.problem.empty()) return forbidden(call.group_resource(), request.name, matched.problem);
  return matched.matches;
}

// The version in which to call this webhook, if it matches; null otherwise.
const resource::Served* concerned(const webhook::Hook& hook, RequestMatcher& matcher, const Value& object,
                                  const Value& old) {
  const resource::Served* found = matcher.version(hook.rules, hook.matches_equivalent);
  if (found == nullptr || !webhook::selects_object(hook.object_selector, object, old)) return nullptr;
  return matcher.selects_namespace(hook.namespace_selector) ? found : nullptr;
}

}  // namespace

// All webhooks of one side. Immutable.
struct AdmissionWebhooks::HookSet {
  Arena arena;
  cache::Snapshot derived_from;
  std::vector<webhook::Hook> hooks;
  std::optional<Error> problem;  // A configuration cannot be decoded.
};

bool is_admission_configuration(const types::Resource& resource) { return resource.group == kGroup; }

AdmissionWebhooks::AdmissionWebhooks(resource::Storage& mutating, resource::Storage& validating,
                                     webhook::Caller& caller, const auth::Authorizer& authorizer,
                                     const WebhookCredentials& credentials, std::span<const std::string> disabled,
                                     AdmissionMetrics& metrics)
    : storages_{&mutating, &validating},
      credentials_{credentials.mutating, credentials.validating},
      caller_(caller),
      authorizer_(authorizer),
      metrics_(metrics) {
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
  const std::lock_guard lock(mutex_);
  HookSetRef& known = known_[static_cast<size_t>(side)];
  if (known != nullptr && known->derived_from.same_objects(*snapshot)) return known;
  auto made = std::make_shared<HookSet>();
  const cache::ListPage page = snapshot->list({});
  // It might have denied the request.
  if (!page.unreadable.empty()) {
    made->problem = corrupt_object(storage->key(page.unreadable.front().key), page.unreadable.front().why);
  }
  for (const cache::EntryRef& entry : page.entries) {
    const store::Blob body = entry->body();
    Result<Value> tree = storage->codec().tree(made->arena, made->arena.copy(*body));
    if (!tree) continue;
    for (webhook::Hook& hook : webhook::hooks_of(*tree)) {
      hook.client.credentials = credentials_[static_cast<size_t>(side)];
      made->hooks.push_back(std::move(hook));
    }
  }
  made->derived_from = std::move(*snapshot);
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
  if (reinvocation.again && !equal(reinvocation.webhooks.last_output, request.object)) {
    reinvocation.webhooks.note_change();
  }
  co_await return_to_loop(call);
  RequestMatcher matcher(call, request, ns);
  Versioned versioned{call.served, request.object, request.old};
  for (size_t index = 0; index < set->hooks.size(); ++index) {
    const webhook::Hook& hook = set->hooks[index];
    const resource::Served* wanted = concerned(hook, matcher, versioned.object, versioned.old);
    if (wanted == nullptr) continue;
    Result<Unit> shown = co_await show_as(call, versioned, *wanted);
    if (!shown) co_return shown.take_error();
    const Result<bool> met = check_match_conditions(call, hook, request, versioned, authorizer_);
    if (!met) co_return met.error();
    if (!*met) continue;
    if (reinvocation.again && !reinvocation.webhooks.eligible.contains(hook.id)) continue;
    const Note note(call, hook, reinvocation.again, index);
    bool changed = false;
    Outcome outcome = co_await ask_counted(call, caller_, hook, request, versioned, true, metrics_);
    if (!outcome.failure && !outcome.refusal && !outcome.answer->patch.empty()) {
      Result<Patched> patched = apply_answer(call, versioned, hook.name, outcome.answer->patch);
      if (patched) {
        versioned.object = patched->object;
        changed = patched->changed;
        note.patch(outcome.answer->patch);
        if (patched->changed) {
          reinvocation.webhooks.note_change();
          reinvocation.wanted = true;
        }
      } else {
        outcome.refusal = patched.take_error();
      }
    }
    note.mutated(changed);
    if (outcome.failure && !outcome.refusal && hook.ignores_failure) note.failed_open();
    if (hook.reinvokes) reinvocation.webhooks.invoked.insert(hook.id);
    if (std::optional<Error> error = verdict(call, hook, outcome)) co_return std::move(*error);
  }
  Result<Unit> back = co_await show_as(call, versioned, *call.served);
  if (!back) co_return back.take_error();
  reinvocation.webhooks.last_output = versioned.object;
  co_return versioned.object;
}

Task<Result<Unit>> AdmissionWebhooks::validate(call::Call& call, const AdmissionRequest& request,
                                               const KnownObjects& ns) {
  const HookSetRef set = current(Side::Validating);
  if (set == nullptr) co_return Unit{};
  if (set->problem) co_return *set->problem;
  co_await return_to_loop(call);
  RequestMatcher matcher(call, request, ns);
  std::vector<Asked> asked;
  for (const webhook::Hook& hook : set->hooks) {
    const resource::Served* wanted = concerned(hook, matcher, request.object, request.old);
    if (wanted == nullptr) continue;
    Asked one{&hook, {call.served, request.object, request.old}, {}};
    Result<Unit> shown = co_await show_as(call, one.versioned, *wanted);
    if (!shown) co_return shown.take_error();
    const Result<bool> met = check_match_conditions(call, hook, request, one.versioned, authorizer_);
    if (!met) co_return met.error();
    if (*met) asked.push_back(std::move(one));
  }
  if (asked.empty()) co_return Unit{};
  std::vector<Task<void>> calls;
  calls.reserve(asked.size());
  for (Asked& one : asked) calls.push_back(ask_one(call, caller_, request, one, metrics_));
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
