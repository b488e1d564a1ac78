#include "nodes/web_socket_client.h"

#include "net/drained.h"

namespace holdfast::nodes {

bool WebSocketClient::accept(std::string_view protocol) {
  const net::Request& request = call_.request;
  const std::string_view key = request.headers.get("sec-websocket-key");
  if (request.method != "GET" || key.empty() || request.headers.get("sec-websocket-version") != "13") {
    call_.response.set_header("content-type", "text/plain; charset=utf-8");
    (void)call_.response.send(400, net::Body("not a WebSocket of version 13\n"));
    return false;
  }
  if (call_.recording != nullptr && call_.recording->on_stream) call_.recording->on_stream(101);
  call_.response.set_header("upgrade", "websocket");
  call_.response.set_header("sec-websocket-accept", net::websocket_accept_of(key));
  if (!protocol.empty()) call_.response.set_header("sec-websocket-protocol", protocol);
  return call_.response.start(101).ok();
}

Task<std::optional<net::WebSocketMessages::Message>> WebSocketClient::next() {
  while (true) {
    std::optional<net::WebSocketMessages::Message> message = messages_.next();
    send_replies();
    if (message) co_return message;
    if (messages_.ended() || finished_) co_return std::nullopt;
    Result<std::string> piece = co_await call_.request.read_some();
    if (!piece || piece->empty()) co_return std::nullopt;
    messages_.receive(*piece);
  }
}

Task<bool> WebSocketClient::send(std::string_view payload) {
  if (finished_ || messages_.ended()) co_return false;
  Result<Unit> written = co_await call_.response.write(net::Bytes(net::websocket_message(payload, false)));
  co_return written.ok();
}

void WebSocketClient::finish() {
  if (std::exchange(finished_, true)) return;
  if (!messages_.ended()) (void)call_.response.write(net::Bytes(net::websocket_close(1000)));
  call_.response.end();
  call_.request.stop_reading();
}

// Not awaited, because the other coroutine may be waiting to send. A client that does not read gets no replies, so that
// they cannot pile up.
void WebSocketClient::send_replies() {
  std::string replies = messages_.take_replies();
  if (replies.empty() || finished_ || !net::drained(call_.response).await_ready()) return;
  (void)call_.response.write(net::Bytes(std::move(replies)));
}

}  // namespace holdfast::nodes
