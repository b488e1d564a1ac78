// AdmissionReview requests and responses (k8s.io/apiserver, webhook/request/admissionreview.go).
#include "base/api_error.h"
#include "base/api_version.h"
#include "base/base64.h"
#include "base/text.h"
#include "codec/codec.h"
#include "webhook/webhook.h"

namespace holdfast::webhook {
namespace {

Value object_value(Arena& arena, const Value& object, bool sorted) {
  if (!sorted || object.is_null()) return object;
  return Value::raw(arena.copy(codec::encode_json_sorted(object)));
}

Error broken(std::string why) { return internal_error("received invalid webhook response: " + std::move(why)); }

}  // namespace

Value kind_value(Arena& arena, const GroupVersionKind& kind) {
  MapBuilder map(arena);
  map.add("group", Value::string(kind.group));
  map.add("version", Value::string(kind.version));
  map.add("kind", Value::string(kind.kind));
  return map.build();
}

Value resource_value(Arena& arena, const GroupVersionResource& resource) {
  MapBuilder map(arena);
  map.add("group", Value::string(resource.group));
  map.add("version", Value::string(resource.version));
  map.add("resource", Value::string(resource.resource));
  return map.build();
}

Value extra_value(Arena& arena, const auth::UserInfo& user) {
  MapBuilder extra(arena);
  for (const auto& [key, values] : user.extra) {
    ListBuilder list(arena);
    for (const std::string& value : values) list.add(Value::string(value));
    extra.add(key, list.build());
  }
  return extra.build();
}

Value user_value(Arena& arena, const auth::UserInfo& user) {
  MapBuilder map(arena);
  if (!user.name.empty()) map.add("username", Value::string(user.name));
  if (!user.uid.empty()) map.add("uid", Value::string(user.uid));
  if (!user.groups.empty()) {
    ListBuilder groups(arena);
    for (const std::string& group : user.groups) groups.add(Value::string(group));
    map.add("groups", groups.build());
  }
  if (!user.extra.empty()) map.add("extra", extra_value(arena, user));
  return map.build();
}

std::string admission_review(const AdmissionReviewRequest& question, ReviewVersion version) {
  Arena arena;
  MapBuilder request(arena);
  const auto add_text = [&](std::string_view key, std::string_view text) {
    if (!text.empty()) request.add(key, Value::string(text));
  };
  request.add("uid", Value::string(question.uid));
  request.add("kind", kind_value(arena, question.kind));
  request.add("resource", resource_value(arena, question.resource));
  add_text("subResource", question.subresource);
  request.add("requestKind", kind_value(arena, question.request_kind));
  request.add("requestResource", resource_value(arena, question.request_resource));
  add_text("requestSubResource", question.subresource);
  add_text("name", question.name);
  add_text("namespace", question.ns);
  request.add("operation", Value::string(to_string(question.operation)));
  request.add("userInfo", user_value(arena, *question.user));
  request.add("object", object_value(arena, question.object, question.sorted));
  request.add("oldObject", object_value(arena, question.old, question.sorted));
  request.add("dryRun", Value::boolean(question.dry_run));
  request.add("options", question.options);
  MapBuilder review(arena);
  review.add("kind", Value::string("AdmissionReview"));
  review.add("apiVersion",
             Value::string(version == ReviewVersion::V1 ? "admission.k8s.io/v1" : "admission.k8s.io/v1beta1"));
  review.add("request", request.build());
  std::string body = codec::encode_json(review.build());
  body += '\n';
  return body;
}

Result<AdmissionReviewResponse> parse_admission_response(Arena& arena, std::string_view body, std::string_view uid,
                                                         bool mutating, ReviewVersion version) {
  Result<Value> review = codec::decode_json(arena, body);
  if (!review) {
    return internal_error("failed to call webhook: couldn't get version/kind; json parse error: " +
                          review.error().message);
  }
  const Value* response = review->find("response");
  if (response == nullptr || !response->is_map()) return broken("webhook response was absent");
  AdmissionReviewResponse answer;
  std::optional<std::string> patch = base64_decode(response->text_at("patch"));
  if (!patch) return internal_error("failed to call webhook: illegal base64 data in response.patch");
  const Value* type = response->find("patchType");
  const bool has_type = type != nullptr && !type->is_null();
  if (version == ReviewVersion::V1) {
    if (const std::string_view said = response->text_at("uid"); said != uid) {
      return broken("expected response.uid=" + go_quote(uid) + ", got " + go_quote(said));
    }
    if (review->text_at("apiVersion") != "admission.k8s.io/v1" || review->text_at("kind") != "AdmissionReview") {
      return broken("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got " +
                    go_kind_text(review->text_at("apiVersion"), review->text_at("kind")));
    }
    if (!mutating && !patch->empty()) return broken("validating webhook may not return response.patch");
    if (!mutating && has_type) return broken("validating webhook may not return response.patchType");
    if (!patch->empty() && !has_type) return broken("webhook returned response.patch but not response.patchType");
    if (patch->empty() && has_type) return broken("webhook returned response.patchType but not response.patch");
    if (has_type && type->is_string() && type->as_string().empty()) {
      return broken("webhook returned invalid response.patchType of \"\"");
    }
    if (has_type && response->text_at("patchType") != "JSONPatch") {
      return internal_error("unsupported patch type " + go_quote(response->text_at("patchType")));
    }
  }
  const Value* allowed = response->find("allowed");
  answer.allowed = allowed != nullptr && allowed->is_bool() && allowed->as_bool();
  if (mutating) answer.patch = std::move(*patch);
  if (const Value* status = response->find("status"); status != nullptr && status->is_map()) answer.status = *status;
  for (const Member& annotation : response->members_at("auditAnnotations")) {
    if (!annotation.value.is_string()) continue;
    answer.audit_annotations.emplace_back(annotation.key, annotation.value.as_string());
  }
  for (const Value& warning : response->items_at("warnings")) {
    if (warning.is_string()) answer.warnings.emplace_back(warning.as_string());
  }
  return answer;
}

WebhookDenial denied_by(std::string_view hook, const Value& status) {
  Error error{Reason::Unknown, "admission webhook " + go_quote(hook) + " denied the request"};
  const std::string_view message = status.text_at("message"), reason = status.text_at("reason");
  if (!message.empty()) {
    error.message += ": " + std::string(message);
  } else if (!reason.empty()) {
    error.message += ": " + std::string(reason);
  } else {
    error.message += " without explanation";
  }
  error.code = static_cast<int32_t>(std::max<int64_t>(status.int_at_or(0, "code"), 400));
  if (error.code > 599) error.code = 500;
  if (const Value* details = status.find("details"); details != nullptr && details->is_map()) {
    error.details = ErrorDetails{std::string(details->text_at("name")), std::string(details->text_at("group")),
                                 std::string(details->text_at("kind")), std::string(details->text_at("uid"))};
    for (const Value& cause : details->items_at("causes")) {
      error.causes.push_back({std::string(cause.text_at("reason")), std::string(cause.text_at("message")),
                              std::string(cause.text_at("field"))});
    }
    error.retry_after_seconds = static_cast<int32_t>(details->int_at_or(0, "retryAfterSeconds"));
  }
  return {std::move(error), std::string(reason)};
}

Error call_failed(std::string_view hook, std::string_view why) {
  return internal("failed calling webhook " + go_quote(hook) + ": " + std::string(why));
}

}  // namespace holdfast::webhook
