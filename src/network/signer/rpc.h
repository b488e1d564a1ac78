// Unary gRPC: framing of messages, and the outcome of a call. Private to the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/net.h"

namespace holdfast::signer {

// The codes that the client side produces; servers may return others.
enum class Code : uint8_t {
  Canceled = 1,
  Unknown = 2,
  DeadlineExceeded = 4,
  ResourceExhausted = 8,
  Internal = 13,
  Unavailable = 14,
};

// Why a call, or the processing of its response, failed.
struct Failure {
  std::string_view code;  // For metrics: the gRPC code, or kNotGrpc.
  std::string message;    // In the words of kube-apiserver.
};
inline constexpr std::string_view kNotGrpc = "unknown-non-grpc";

template <class T>
using Outcome = Result<T, Failure>;

// rpc error: code = Unavailable desc = <why>
Failure rpc_failure(Code code, std::string_view why);
// The call succeeded, but its response is not acceptable.
Failure unacceptable(std::string why);
// The failure, prefixed with what was being done.
Failure in_context(std::string_view doing, Failure failure);

// A message as sent: one byte for the compression flag, four for the length, then the message.
std::string framed(std::string_view message);

// The single message of a response, or the error status. Responses that are not gRPC are never taken for messages.
Outcome<std::string> message_of(const net::ClientResponse& response);

}  // namespace holdfast::signer
