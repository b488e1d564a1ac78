#include "store/store.h"

#include <algorithm>

namespace holdfast::store {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Invalid:
      return "invalid";
    case ErrorKind::Compacted:
      return "compacted";
    case ErrorKind::FutureRevision:
      return "future revision";
    case ErrorKind::TooLarge:
      return "too large";
    case ErrorKind::Unavailable:
      return "unavailable";
    case ErrorKind::Timeout:
      return "timeout";
    case ErrorKind::Corrupt:
      return "corrupt";
    case ErrorKind::Closed:
      return "closed";
    case ErrorKind::LeaseGone:
      return "lease gone";
    case ErrorKind::Internal:
      return "internal";
  }
  return "internal";
}

Error to_api_error(StoreError error) {
  if (!error.public_message.empty()) error.message = std::move(error.public_message);
  switch (error.kind) {
    case ErrorKind::Invalid:
      return {Reason::BadRequest, std::move(error.message)};
    case ErrorKind::Compacted:
      return {Reason::Expired, std::move(error.message)};
    case ErrorKind::FutureRevision: {
      Error future{Reason::Timeout, std::move(error.message)};
      future.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
      future.retry_after_seconds = 1;
      return future;
    }
    case ErrorKind::TooLarge:
      return {Reason::RequestEntityTooLarge, std::move(error.message)};
    case ErrorKind::Unavailable:
    case ErrorKind::Closed: {
      // kube-apiserver responds with ServerTimeout if etcd is unreachable; retry after 2 s.
      Error unreachable{Reason::ServerTimeout, std::move(error.message)};
      unreachable.retry_after_seconds = 2;
      return unreachable;
    }
    case ErrorKind::Timeout:
      return {Reason::Timeout, std::move(error.message)};
    case ErrorKind::Corrupt:
    case ErrorKind::LeaseGone:
    case ErrorKind::Internal:
      break;
  }
  return {Reason::InternalError, std::move(error.message)};
}

std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

}  // namespace holdfast::store
