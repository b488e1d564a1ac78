// What every kind of connection to a node does around a response. Private to the module.
#pragma once

#include <memory>

#include "call/call.h"
#include "forward/forward.h"
#include "net/net.h"

namespace holdfast::nodes {

// Until the head of the other server's response has arrived, which may be long after the request was sent, the request
// ends when the client disconnects or this server shuts down.
inline std::shared_ptr<net::Cancellation> cancelled_with(call::Call& call) {
  auto cancellation = std::make_shared<net::Cancellation>();
  call.response.on_interrupt([cancellation](net::Interrupt) { cancellation->cancel(); });
  return cancellation;
}

// Ends the other server's response with the client or this server. `stream` must live as long as the handler.
inline void end_together(call::Call& call, net::ClientStream& stream) {
  call.response.on_interrupt([&call, &stream](net::Interrupt why) {
    stream.cancel();
    // For what has been received already; a client that does not read it must not delay the shutdown.
    if (why == net::Interrupt::Draining) call.response.set_deadline(net::Millis(1000));
  });
}

// Begins a response that lasts. False if the client is gone.
inline bool start_stream(call::Call& call, int status, net::ClientStream& stream) {
  if (call.recording != nullptr && call.recording->on_stream) call.recording->on_stream(status);
  if (!call.response.start(status)) return false;
  end_together(call, stream);
  return true;
}

// Begins a tunnel with the other server's response, and runs it.
Task<void> pass_upgrade(call::Call& call, net::ClientStream& stream);
// Kubernetes writes a response that refuses an upgrade to the client as it is, and closes the connection.
Task<void> pass_refusal(call::Call& call, net::ClientStream& stream);

// The error of an upgraded connection that could not be made.
Error upgrade_error(const net::CallError& error);
// The error of a response that is neither an upgrade nor a refusal.
Error not_upgraded(int status);

// Adds the client's address to the header X-Forwarded-For.
void append_forwarded_for(forward::Headers& headers, const net::Request& request);

}  // namespace holdfast::nodes
