// The error type of all modules, and Result<T>, which holds either a value or such an error.
//
// Expected failures (clients, network, disk) are returned. A violated invariant of our own code is an assert, which
// stays enabled in release builds.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {

// The API's reasons (metav1.StatusReason). Only render/ knows their HTTP codes.
enum class Reason : uint8_t {
  BadRequest,
  Unauthorized,
  Forbidden,
  NotFound,
  AlreadyExists,
  Conflict,
  Gone,
  Expired,
  Invalid,
  ServerTimeout,
  Timeout,
  TooManyRequests,
  MethodNotAllowed,
  NotAcceptable,
  RequestEntityTooLarge,
  UnsupportedMediaType,
  ServiceUnavailable,
  InternalError,
  StoreReadError,  // A stored value cannot be decoded; "StorageReadError" to clients.
  Unknown,         // An error without a reason: returned as 500 with an empty reason.
};

// One field of an Invalid, or one owner of an apply Conflict.
struct Cause {
  std::string type;     // metav1.CauseType: FieldValueRequired, FieldManagerConflict, ...
  std::string message;  // Without the field.
  std::string field;    // Path as shown to users: spec.containers[0].name
  bool operator==(const Cause&) const = default;
};

// What the error is about (metav1.StatusDetails). `kind` is the plural of the resource, or the Kind where Kubernetes
// uses that.
struct ErrorDetails {
  std::string name, group, kind, uid;
  bool operator==(const ErrorDetails&) const = default;
};

struct Error {
  Reason reason = Reason::InternalError;
  std::string message;  // Names what failed: key, field path, byte offset, revision.
  std::vector<Cause> causes = {};
  int32_t retry_after_seconds = 0;
  std::optional<ErrorDetails> details = {};  // Present but empty is visible to clients: "details": {}.
  int32_t code = 0;                          // If above 0, overrides the HTTP code of the reason (webhooks choose one).
  std::string continue_token = {};           // For expired lists: where to continue at the latest revision.
};

inline Error bad_request(std::string message) { return {Reason::BadRequest, std::move(message)}; }
inline Error internal_error(std::string message) { return {Reason::InternalError, std::move(message)}; }

// The value of a Result that only reports success.
struct Unit {
  bool operator==(const Unit&) const = default;
};

// E is Error, except in modules whose callers must distinguish failures that the API's reasons cannot express (store).
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  bool ok() const { return state_.index() == 0; }

  T& operator*() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& operator*() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& operator*() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

  const E& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  E take_error() {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, E> state_;
};

}  // namespace holdfast
