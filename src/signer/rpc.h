// Unary gRPC: the frame around a message, and what the response to a call says. Private to the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/net.h"

namespace holdfast::signer {

// The codes that this side of a call produces; a server may answer with any other.
enum class Code : uint8_t {
  Canceled = 1,
  Unknown = 2,
  DeadlineExceeded = 4,
  ResourceExhausted = 8,
  Internal = 13,
  Unavailable = 14,
};

// Why a call, or what was to be done with its answer, failed.
struct Failure {
  std::string_view code;  // For metrics: the gRPC code, or kNotGrpc.
  std::string message;    // In the words of kube-apiserver.
};
inline constexpr std::string_view kNotGrpc = "unknown-non-grpc";

template <class T>
using Outcome = Result<T, Failure>;

// rpc error: code = Unavailable desc = <why>
Failure rpc_failure(Code code, std::string_view why);
// The call succeeded, but its answer is not acceptable.
Failure unacceptable(std::string why);
// The same failure, with what was being done in front.
Failure in_context(std::string_view doing, Failure failure);

// A message as it is sent: a byte that says whether it is compressed, four of its length, itself.
std::string framed(std::string_view message);

// The only message of a response, or the status that the server gave instead of one. No response of any server, gRPC or
// not, is taken for a message that it is not.
Outcome<std::string> message_of(const net::ClientResponse& response);

}  // namespace holdfast::signer
