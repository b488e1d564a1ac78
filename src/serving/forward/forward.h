// Passing a request on to another server and its response back: what API aggregation and connections to nodes share.
//
// Backpressure: neither direction reads further than the other side has taken, so a peer that does not read keeps only
// the queues of the two connections.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/reservation.h"
#include "base/task.h"
#include "net/net.h"

namespace holdfast::forward {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Whether a header concerns a single connection.
bool is_hop_by_hop(std::string_view name);

// The headers of a request for another server: without those of the connection, the Host, and what the client
// authenticated itself with.
Headers headers_to_forward(const net::Request& request);

// The protocol in the Upgrade header of a request; empty if it does not ask for one.
std::string_view upgrade_of(const net::Request& request);

// Reads the whole body. Counts what arrives, so that unfinished uploads are limited too. 413.
Task<Result<std::string>> read_body(net::Request& request, Reservation& memory);

// Copies the response head of another server into ours.
void copy_head(const net::ClientResponse& head, net::Response& response);

// Sends the rest of a response, whose head has been started. One that ends early is aborted.
Task<void> send_rest(net::Response& response, net::ClientStream& stream);

// Both directions of a tunnel, until one ends. The response has been started with 101.
Task<void> run_tunnel(net::Request& request, net::Response& response, net::ClientStream& stream);

}  // namespace holdfast::forward
