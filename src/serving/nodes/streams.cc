// Streams between clients and kubelets: logs, and the upgraded connections of exec, attach and port-forward.
#include <algorithm>

#include "base/api_error.h"
#include "base/base64.h"
#include "base/strings.h"
#include "base/task_group.h"
#include "base/text.h"
#include "base/url.h"
#include "forward/forward.h"
#include "nodes/nodes.h"
#include "nodes/opening.h"
#include "nodes/remote_command.h"
#include "nodes/web_socket_client.h"

namespace holdfast::nodes {
namespace {

// --- Logs ------------------------------------------------------------------------------------------------------------

// As much of a kubelet's error as Kubernetes reads.
constexpr size_t kErrorBytes = 50'000;

Task<std::string> read_error(net::ClientStream& stream) {
  std::string text;
  while (text.size() < kErrorBytes) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece || piece->empty()) break;
    text += *piece;
  }
  if (text.size() > kErrorBytes) text.resize(kErrorBytes);
  co_return text;
}

struct Meaning {
  Reason reason;
  std::string message;
};

// NewGenericServerResponse of apimachinery/pkg/api/errors.
Meaning meaning_of(int code, const std::string& text) {
  switch (code) {
    case 409:
      return {Reason::Conflict, "the server reported a conflict"};
    case 404:
      return {Reason::NotFound, "the server could not find the requested resource"};
    case 401:
      return {Reason::Unauthorized, "the server has asked for the client to provide credentials"};
    case 403:
      return {Reason::Forbidden, text};
    case 406:
      if (!text.empty() && text != "unknown") return {Reason::NotAcceptable, text};
      return {Reason::NotAcceptable, "the server was unable to respond with a content type that the client supports"};
    case 415:
      return {Reason::UnsupportedMediaType, text};
    case 405:
      return {Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"};
    case 422:
      return {Reason::Invalid, "the server rejected our request due to an error in our request"};
    case 503:
      return {Reason::ServiceUnavailable, "the server is currently unable to handle the request"};
    case 504:
      return {Reason::Timeout,
              "the server was unable to return a response in the time allotted, but may still be processing the "
              "request"};
    case 429:
      return {Reason::TooManyRequests, "the server has received too many requests and has asked us to try again later"};
    default:
      if (code >= 500) {
        return {Reason::InternalError,
                "an error on the server (" + go_quote(text) + ") has prevented the request from succeeding"};
      }
      return {Reason::Unknown, "the server responded with the status code " + std::to_string(code) +
                                   " but did not return more information"};
  }
}

// GenericHttpResponseChecker of apiserver/pkg/registry/generic/rest.
Error log_error(int code, const std::string& text, std::string_view pod) {
  if (code == 500) return internal(text);
  if (code == 400) return bad_request(text);
  Meaning meaning = meaning_of(code, text);
  Error error{meaning.reason, meaning.message + " ( pods/log " + std::string(pod) + ")"};
  error.code = code;
  error.details = ErrorDetails{.name = std::string(pod), .group = {}, .kind = "pods/log", .uid = {}};
  return error;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The subprotocols in which a WebSocket can receive a log, and whether they are base64 text
// (NewDefaultReaderProtocols of streaming/pkg/httpstream/wsstream).
struct LogProtocol {
  std::string_view name;
  bool base64;
};
constexpr LogProtocol kLogProtocols[] = {{"binary.k8s.io", false}, {"base64.binary.k8s.io", true}};

// The first requested protocol that is known; without a request, binary messages. nullopt if none is known.
std::optional<LogProtocol> choose_log_protocol(const net::Request& request) {
  const std::vector<std::string_view> headers = request.headers.all("sec-websocket-protocol");
  if (headers.empty()) return LogProtocol{"", false};
  for (const std::string_view header : headers) {
    for (const std::string_view part : split(header, ',')) {
      for (const LogProtocol& known : kLogProtocols) {
        if (trim(part) == known.name) return known;
      }
    }
  }
  return std::nullopt;
}

Task<void> send_messages(net::Response& response, net::ClientStream& stream, bool base64) {
  while (true) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece) co_return response.abort();
    if (piece->empty()) break;
    const std::string message = net::websocket_message(base64 ? base64_encode(*piece) : *piece, base64);
    Result<Unit> written = co_await response.write(net::Bytes(message));
    if (!written) co_return;
  }
  response.end();
}

}  // namespace

Task<void> stream_log(call::Call& call, const Nodes& nodes, Kubelet kubelet, std::string path, bool skip_verification) {
  Destination to = Nodes::to(kubelet);
  to.skip_verification = skip_verification;
  net::ClientRequest request;
  request.target = path;
  request.headers = {{"User-Agent", "Go-http-client/1.1"}, {"Accept-Encoding", "identity"}};
  request.cancellation = cancelled_with(call);
  net::CallResult<net::ClientStream> opened = co_await nodes.open(call.request.loop(), to, std::move(request));
  const std::string url = "https://" + host_port(kubelet.host, kubelet.port) + path;
  if (!opened) co_return respond_error(call, untyped("Get " + go_quote(url) + ": " + opened.error().message));
  net::ClientStream stream = std::move(*opened);
  const int status = stream.head().status;
  if (const std::string_view elsewhere = stream.head().header("location"); is_redirect(status) && !elsewhere.empty()) {
    co_return respond_error(call, untyped("Get " + go_quote(elsewhere) + ": redirects forbidden"));
  }
  if (status < 200 || status > 206) {
    end_together(call, stream);
    const std::string text = co_await read_error(stream);
    call.response.on_interrupt({});
    co_return respond_error(call, log_error(status, text, call.info.name));
  }
  if (net::is_websocket_request(call.request)) {
    const std::optional<LogProtocol> protocol = choose_log_protocol(call.request);
    if (!protocol) co_return (void) call.response.send(403);
    if (!protocol->name.empty()) call.response.set_header("sec-websocket-protocol", protocol->name);
    if (!start_stream(call, 101, stream)) co_return;
    co_return co_await send_messages(call.response, stream, protocol->base64);
  }
  for (const std::string& warning : call.warnings.headers()) call.response.add_header("warning", warning);
  call.response.set_header("content-type", "text/plain");
  call.response.set_header("cache-control", "no-cache, private");
  if (!start_stream(call, 200, stream)) co_return;
  co_await forward::send_rest(call.response, stream);
}

// --- exec, attach, port-forward --------------------------------------------------------------------------------------

namespace {

// Protocols offered by a WebSocket, without a bearer token.
std::vector<std::string> offered_protocols(const net::Request& request) {
  std::vector<std::string> offered;
  for (const std::string_view header : request.headers.all("sec-websocket-protocol")) {
    for (const std::string_view part : split(header, ',')) {
      const std::string_view protocol = trim(part);
      if (!protocol.empty()) offered.emplace_back(protocol);
    }
  }
  return offered;
}

constexpr std::string_view kTunnelPrefix = "SPDY/3.1+", kTunnelSuffix = ".k8s.io";

// The protocols to be tunnelled, as SPDY knows them.
std::vector<std::string> tunnelled_protocols(const net::Request& request) {
  std::vector<std::string> protocols;
  for (const std::string& offered : offered_protocols(request)) {
    if (offered.starts_with(kTunnelPrefix) && offered.ends_with(kTunnelSuffix)) {
      protocols.push_back(offered.substr(kTunnelPrefix.size()));
    }
  }
  return protocols;
}

// The SPDY connection of a port-forward within messages of a WebSocket.
Task<void> messages_to_kubelet(WebSocketClient& client, net::ClientStream& stream) {
  while (std::optional<net::WebSocketMessages::Message> message = co_await client.next()) {
    if (message->text) break;
    net::CallResult<Unit> sent = co_await stream.write(message->payload);
    if (!sent) break;
  }
  stream.cancel();
}

Task<void> kubelet_to_messages(WebSocketClient& client, net::ClientStream& stream) {
  while (true) {
    net::CallResult<std::string> piece = co_await stream.read_some();
    if (!piece || piece->empty()) break;
    if (!co_await client.send(*piece)) break;
  }
  client.finish();
}

Task<void> tunnel_port_forward(call::Call& call, net::ClientStream& stream) {
  const bool spdy = equals_ignoring_case(stream.head().header("upgrade"), "spdy/3.1");
  if (!spdy) {
    call.response.set_header("content-type", "text/plain; charset=utf-8");
    co_return (void) call.response.send(500, net::Body("unable to upgrade: missing upgrade headers in response\n"));
  }
  std::string protocol;
  if (const std::string_view chosen = trim(stream.head().header("x-stream-protocol-version")); !chosen.empty()) {
    protocol = std::string(kTunnelPrefix) + std::string(chosen);
  }
  WebSocketClient client(call);
  if (!client.accept(protocol)) co_return;
  end_together(call, stream);
  std::vector<Task<void>> both;
  both.push_back(messages_to_kubelet(client, stream));
  both.push_back(kubelet_to_messages(client, stream));
  co_await when_all(call.request.loop(), std::move(both));
}

}  // namespace

Task<void> pass_refusal(call::Call& call, net::ClientStream& stream) {
  forward::copy_head(stream.head(), call.response);
  call.response.close_connection_after();
  if (!start_stream(call, stream.head().status, stream)) co_return;
  co_await forward::send_rest(call.response, stream);
}

Error not_upgraded(int status) { return untyped("invalid upgrade response: status code " + std::to_string(status)); }

Error upgrade_error(const net::CallError& error) {
  using Progress = net::CallError::Progress;
  const bool in_handshake =
      error.message.starts_with("tls: ") || (error.message == "EOF" && error.progress == Progress::Unknown);
  if (error.progress == Progress::NotConnected || in_handshake) {
    return untyped("error dialing backend: " + error.message);
  }
  return untyped(error.message == "EOF" ? "unexpected EOF" : error.message);
}

Task<void> connect_streams(call::Call& call, const Nodes& nodes, Kubelet kubelet, std::string path, Streams streams) {
  const std::string_view upgrade = forward::upgrade_of(call.request);
  if (upgrade.empty()) co_return respond_error(call, bad_request("Upgrade request required"));
  net::ClientRequest request;
  request.method = call.request.method;
  request.target = std::move(path);
  request.upgrade = upgrade;
  request.headers = forward::headers_to_forward(call.request);
  request.headers.emplace_back("Host", call.request.authority);
  append_forwarded_for(request.headers, call.request);

  // WebSockets in the newest protocols become SPDY, unless the kubelet says that it takes them.
  bool tunnel = false;
  if (net::is_websocket_request(call.request) && !kubelet.takes_websockets) {
    const std::vector<std::string> offered = offered_protocols(call.request);
    if (!streams.port_forward && std::find(offered.begin(), offered.end(), "v5.channel.k8s.io") != offered.end()) {
      co_return co_await translate_remote_command(call, nodes, Nodes::to(kubelet), std::move(request.target), streams);
    }
    if (const std::vector<std::string> protocols = tunnelled_protocols(call.request);
        streams.port_forward && !protocols.empty()) {
      tunnel = true;
      request.method = "POST";
      request.upgrade = "SPDY/3.1";
      std::erase_if(request.headers, [](const auto& header) {
        return header.first.starts_with("sec-websocket-") || header.first == "x-stream-protocol-version";
      });
      for (const std::string& protocol : protocols) request.headers.emplace_back("X-Stream-Protocol-Version", protocol);
    }
  }

  request.cancellation = cancelled_with(call);
  net::CallResult<net::ClientStream> opened =
      co_await nodes.open(call.request.loop(), Nodes::to(kubelet), std::move(request));
  if (!opened) co_return respond_error(call, upgrade_error(opened.error()));
  net::ClientStream stream = std::move(*opened);
  const int status = stream.head().status;
  if (status != 101 && status < 400) co_return respond_error(call, not_upgraded(status));
  if (status != 101) co_return co_await pass_refusal(call, stream);
  if (tunnel) co_return co_await tunnel_port_forward(call, stream);
  co_await pass_upgrade(call, stream);
}

Task<void> pass_upgrade(call::Call& call, net::ClientStream& stream) {
  forward::copy_head(stream.head(), call.response);
  call.response.set_header("upgrade", stream.head().header("upgrade"));
  if (!start_stream(call, 101, stream)) co_return;
  co_await forward::run_tunnel(call.request, call.response, stream);
}

void append_forwarded_for(forward::Headers& headers, const net::Request& request) {
  std::string clients;
  std::erase_if(headers, [&](const auto& header) {
    if (header.first != "x-forwarded-for") return false;
    clients += header.second + ", ";
    return true;
  });
  const std::string_view peer = request.peer->address;
  clients += without_brackets(peer.substr(0, peer.rfind(':')));
  headers.emplace_back("X-Forwarded-For", std::move(clients));
}

}  // namespace holdfast::nodes
