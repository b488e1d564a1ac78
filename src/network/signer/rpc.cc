#include "signer/rpc.h"

#include <iterator>
#include <optional>

#include "base/strings.h"
#include "base/text.h"
#include "base/varint.h"

namespace holdfast::signer {
namespace {

// By number, as grpc-go prints them.
constexpr std::string_view kCodes[] = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

constexpr size_t kFrameHeadBytes = 5;

Failure failure_of(size_t code, std::string_view why) {
  return {kCodes[code], "rpc error: code = " + std::string(kCodes[code]) + " desc = " + std::string(why)};
}

// The meaning of a response that is not gRPC, by its HTTP status (doc/http-grpc-status-mapping.md of grpc/grpc).
size_t code_of_http(int status) {
  constexpr size_t kPermissionDenied = 7, kUnimplemented = 12, kUnauthenticated = 16;
  switch (status) {
    case 400:
      return static_cast<size_t>(Code::Internal);
    case 401:
      return kUnauthenticated;
    case 403:
      return kPermissionDenied;
    case 404:
      return kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return static_cast<size_t>(Code::Unavailable);
    default:
      return static_cast<size_t>(Code::Unknown);
  }
}

bool is_grpc(std::string_view content_type) {
  constexpr std::string_view kType = "application/grpc";
  if (!content_type.starts_with(kType)) return false;
  content_type.remove_prefix(kType.size());
  return content_type.empty() || content_type[0] == '+' || content_type[0] == ';';
}

using Fields = std::vector<std::pair<std::string, std::string>>;

const std::string* find(const Fields& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

// nullopt if the server reports success.
std::optional<Failure> status_failure(const net::ClientResponse& response) {
  // A response without a message has only one block of headers.
  const Fields& fields = response.body.empty() && response.trailers.empty() ? response.headers : response.trailers;
  const std::string* status = find(fields, "grpc-status");
  if (status == nullptr) return rpc_failure(Code::Internal, "server closed the stream without sending trailers");
  const std::optional<uint32_t> code = parse_number<uint32_t>(*status);
  if (!code) return rpc_failure(Code::Unknown, "transport: malformed grpc-status: " + go_quote(*status));
  if (*code == 0) return std::nullopt;
  const std::string* message = find(fields, "grpc-message");
  std::string why = message == nullptr ? "" : net::percent_decode(*message).value_or(*message);
  if (*code < std::size(kCodes)) return failure_of(*code, why);
  return rpc_failure(Code::Unknown, "code " + std::to_string(*code) + ": " + why);
}

}  // namespace

Failure rpc_failure(Code code, std::string_view why) { return failure_of(static_cast<size_t>(code), why); }

Failure unacceptable(std::string why) { return {kNotGrpc, std::move(why)}; }

Failure in_context(std::string_view doing, Failure failure) {
  failure.message = std::string(doing) + ": " + failure.message;
  return failure;
}

std::string framed(std::string_view message) {
  std::string frame(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(message.size() >> shift));
  frame += message;
  return frame;
}

Outcome<std::string> message_of(const net::ClientResponse& response) {
  if (const std::string_view type = response.header("content-type"); response.status != 200 || !is_grpc(type)) {
    return failure_of(code_of_http(response.status),
                      "unexpected HTTP status code received from server: " + std::to_string(response.status) +
                          "; transport: received unexpected content-type " + go_quote(type));
  }
  if (std::optional<Failure> failure = status_failure(response)) return std::move(*failure);
  if (response.body.empty()) {
    return rpc_failure(Code::Internal,
                       "cardinality violation: received no response message from non-server-streaming RPC");
  }
  ByteReader reader(response.body);
  const uint8_t compressed = reader.byte();
  const std::string_view size_bytes = reader.bytes(kFrameHeadBytes - 1);
  if (!reader.ok()) return rpc_failure(Code::Internal, "unexpected EOF");
  if (compressed != 0) {
    return rpc_failure(Code::Internal, "grpc: Decompressor is not installed for grpc-encoding " +
                                           go_quote(response.header("grpc-encoding")));
  }
  uint32_t size = 0;
  for (const char byte : size_bytes) size = size << 8 | static_cast<uint8_t>(byte);
  const std::string_view message = reader.bytes(size);
  if (!reader.ok()) return rpc_failure(Code::Internal, "unexpected EOF");
  if (!reader.rest().empty()) {
    return rpc_failure(
        Code::Internal,
        "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message");
  }
  return std::string(message);
}

}  // namespace holdfast::signer
