#include "forward/forward.h"

#include <algorithm>

#include "auth/auth.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/task_group.h"

namespace holdfast::forward {
namespace {

// Kubernetes removes what identifies the user to the server as soon as the user is known.
bool is_credential(std::string_view name) {
  return name == "authorization" || name.starts_with("x-remote-") || name.starts_with("impersonate-");
}

// The subprotocols without the one that is a token.
std::string without_token(std::string_view protocols) {
  std::string kept;
  for (const std::string_view part : split(protocols, ',')) {
    const std::string_view protocol = trim(part);
    if (protocol.starts_with(auth::kWebSocketToken)) continue;
    if (!kept.empty()) kept += ", ";
    kept += protocol;
  }
  return kept;
}

// When one direction of a tunnel ends, so does the other.
Task<void> client_to_server(net::Request& request, net::ClientStream& stream) {
  while (true) {
    Result<std::string> piece = co_await request.read_some();
    if (!piece || piece->empty()) break;
    net::CallResult<Unit> sent = co_await stream.write(*piece);
    if (!sent) break;
  }
  stream.cancel();
}

Task<void> server_to_client(net::Request& request, net::Response& response, net::ClientStream& stream) {
  while (true) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece || piece->empty()) break;
    Result<Unit> written = co_await response.write(net::Bytes(std::move(*piece)));
    if (!written) break;
  }
  response.end();
  request.stop_reading();
}

}  // namespace

bool is_hop_by_hop(std::string_view name) {
  constexpr std::string_view kNames[] = {"connection",
                                         "keep-alive",
                                         "proxy-authenticate",
                                         "proxy-authorization",
                                         "proxy-connection",
                                         "te",
                                         "trailer",
                                         "transfer-encoding",
                                         "upgrade"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Headers headers_to_forward(const net::Request& request) {
  Headers headers;
  for (const net::Header& header : request.headers.items()) {
    if (is_hop_by_hop(header.name) || is_credential(header.name) || header.name == "host" ||
        header.name == "content-length") {
      continue;
    }
    std::string value(header.value);
    if (header.name == "sec-websocket-protocol") {
      value = without_token(value);
      if (value.empty()) continue;
    }
    headers.emplace_back(header.name, std::move(value));
  }
  return headers;
}

std::string_view upgrade_of(const net::Request& request) {
  if (request.protocol != net::Protocol::Http11) return {};
  for (const std::string_view header : request.headers.all("connection")) {
    for (const std::string_view token : split(header, ',')) {
      if (equals_ignoring_case(trim(token), "upgrade")) return request.headers.get("upgrade");
    }
  }
  return {};
}

Task<Result<std::string>> read_body(net::Request& request, Reservation& memory) {
  std::string body;
  while (true) {
    Result<std::string> piece = co_await request.read_some();
    if (!piece) co_return piece.take_error();
    if (piece->empty()) co_return body;
    if (body.size() + piece->size() > limits::kProxiedBodyBytes) {
      co_return Error{Reason::RequestEntityTooLarge, "Request body is larger than the limit of " +
                                                         std::to_string(limits::kProxiedBodyBytes) + " bytes"};
    }
    memory.grow(2 * piece->size());  // The outgoing request contains it once more.
    body += *piece;
  }
}

void copy_head(const net::ClientResponse& head, net::Response& response) {
  for (const auto& [name, value] : head.headers) {
    if (is_hop_by_hop(name) || name == "content-length" || name == "date" || name == "audit-id") continue;
    if (name == "cache-control" || name == "content-type") {
      response.set_header(name, value);
    } else {
      response.add_header(name, value);
    }
  }
}

Task<void> send_rest(net::Response& response, net::ClientStream& stream) {
  while (true) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece) co_return response.abort();
    if (piece->empty()) break;
    Result<Unit> written = co_await response.write(net::Bytes(std::move(*piece)));
    if (!written) co_return;
  }
  response.end();
}

Task<void> run_tunnel(net::Request& request, net::Response& response, net::ClientStream& stream) {
  std::vector<Task<void>> both;
  both.push_back(client_to_server(request, stream));
  both.push_back(server_to_client(request, response, stream));
  co_await when_all(request.loop(), std::move(both));
}

}  // namespace holdfast::forward
