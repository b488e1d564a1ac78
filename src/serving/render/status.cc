#include "render/status.h"

namespace holdfast::render {
namespace {

struct ReasonInfo {
  std::string_view name;
  int code;
};

ReasonInfo info_of(Reason reason) {
  switch (reason) {
    case Reason::BadRequest:
      return {"BadRequest", 400};
    case Reason::Unauthorized:
      return {"Unauthorized", 401};
    case Reason::Forbidden:
      return {"Forbidden", 403};
    case Reason::NotFound:
      return {"NotFound", 404};
    case Reason::AlreadyExists:
      return {"AlreadyExists", 409};
    case Reason::Conflict:
      return {"Conflict", 409};
    case Reason::Gone:
      return {"Gone", 410};
    case Reason::Expired:
      return {"Expired", 410};
    case Reason::Invalid:
      return {"Invalid", 422};
    case Reason::ServerTimeout:
      return {"ServerTimeout", 500};
    case Reason::Timeout:
      return {"Timeout", 504};
    case Reason::TooManyRequests:
      return {"TooManyRequests", 429};
    case Reason::MethodNotAllowed:
      return {"MethodNotAllowed", 405};
    case Reason::NotAcceptable:
      return {"NotAcceptable", 406};
    case Reason::RequestEntityTooLarge:
      return {"RequestEntityTooLarge", 413};
    case Reason::UnsupportedMediaType:
      return {"UnsupportedMediaType", 415};
    case Reason::ServiceUnavailable:
      return {"ServiceUnavailable", 503};
    case Reason::InternalError:
      return {"InternalError", 500};
    case Reason::StoreReadError:
      return {"StorageReadError", 500};
    case Reason::Unknown:
      break;
  }
  return {"", 500};
}

void add_text(Arena& arena, MapBuilder& map, std::string_view key, std::string_view text) {
  if (!text.empty()) map.add(key, Value::string(arena, text));
}

Value details_of(Arena& arena, const ErrorDetails& about, const std::vector<Cause>& causes, int32_t retry_after) {
  MapBuilder details(arena);
  add_text(arena, details, "name", about.name);
  add_text(arena, details, "group", about.group);
  add_text(arena, details, "kind", about.kind);
  add_text(arena, details, "uid", about.uid);
  if (!causes.empty()) {
    ListBuilder list(arena);
    for (const Cause& cause : causes) {
      MapBuilder item(arena);
      add_text(arena, item, "reason", cause.type);
      add_text(arena, item, "message", cause.message);
      add_text(arena, item, "field", cause.field);
      list.add(item.build());
    }
    details.add("causes", list.build());
  }
  if (retry_after > 0) details.add("retryAfterSeconds", Value::integer(retry_after));
  return details.build();
}

}  // namespace

int http_code(const Error& error) { return error.code > 0 ? error.code : info_of(error.reason).code; }

Value status_of(Arena& arena, const Error& error, std::string_view reason) {
  constexpr std::string_view kInternalPrefix = "Internal error occurred: ";
  std::string message = error.message;
  std::vector<Cause> causes = error.causes;
  if (error.reason == Reason::InternalError && causes.empty()) {  // Not created by internal(), which adds a cause.
    causes.push_back({"", message, ""});
    message.insert(0, kInternalPrefix);
  }
  MapBuilder status(arena);
  status.add("kind", Value::string("Status"));
  status.add("apiVersion", Value::string("v1"));
  MapBuilder metadata(arena);
  add_text(arena, metadata, "continue", error.continue_token);
  status.add("metadata", metadata.build());
  status.add("status", Value::string("Failure"));
  add_text(arena, status, "message", message);
  add_text(arena, status, "reason", reason.empty() ? info_of(error.reason).name : reason);
  if (error.details || !causes.empty() || error.retry_after_seconds > 0) {
    status.add("details", details_of(arena, error.details.value_or(ErrorDetails{}), causes, error.retry_after_seconds));
  }
  status.add("code", Value::integer(http_code(error)));
  return status.build();
}

Value success_status(Arena& arena) {
  MapBuilder status(arena);
  status.add("kind", Value::string("Status"));
  status.add("apiVersion", Value::string("v1"));
  status.add("metadata", Value::empty_map());
  status.add("status", Value::string("Success"));
  return status.build();
}

Value deleted_status(Arena& arena, std::string_view group, std::string_view plural, std::string_view name,
                     std::string_view uid) {
  return with_member(
      arena, success_status(arena), "details",
      details_of(arena, {std::string(name), std::string(group), std::string(plural), std::string(uid)}, {}, 0));
}

Value unread_deleted_status(Arena& arena, std::string_view kind, std::string_view name) {
  return with_member(arena, deleted_status(arena, {}, kind, name, {}), "code", Value::integer(200));
}

Error route_not_found() {
  Error error{Reason::NotFound, "the server could not find the requested resource"};
  error.details.emplace();
  return error;
}

Error route_method_not_allowed() {
  Error error{Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"};
  error.details.emplace();
  return error;
}

}  // namespace holdfast::render
