#include "nodes/nodes.h"

#include "base/api_error.h"
#include "base/ip.h"
#include "base/strings.h"
#include "base/url.h"
#include "codec/codec.h"
#include "net/lookup.h"

namespace holdfast::nodes {
namespace {

constexpr int64_t kKubeletPort = 10250;

// The port of the kubelet as it reports it.
int64_t port_of(const Value& node) {
  const int64_t port = node.int_at_or(0, "status", "daemonEndpoints", "kubeletEndpoint", "Port");
  return port > 0 ? port : kKubeletPort;
}

std::string known_addresses(const Value& node) {
  return join(node.items_at("status", "addresses"), " ", [](const Value& address) {
    return "{" + std::string(address.text_at("type")) + " " + std::string(address.text_at("address")) + "}";
  });
}

}  // namespace

Task<Result<Kubelet>> Nodes::kubelet(call::Call& call, std::string node, GroupResource asked) const {
  const resource::Served* nodes = call.registry->find("", "v1", "nodes");
  Result<cache::Cache::Latest> latest =
      co_await nodes->storage->cache().latest(nodes->storage->short_key("", node), call.executor());
  if (!latest) co_return latest.take_error();
  if (!latest->entry) co_return not_found(asked, node);
  const store::Blob body = latest->entry->body();
  Arena arena;
  Result<Value> tree = nodes->storage->codec().tree(arena, *body);
  if (!tree) co_return tree.take_error();
  Kubelet found{.port = port_of(*tree)};
  for (const Value& feature : tree->items_at("status", "declaredFeatures")) {
    if (feature.is_string() && feature.as_string() == "ExtendWebSocketsToKubelet") found.takes_websockets = true;
  }
  for (const std::string& type : options_.address_types) {
    for (const Value& address : tree->items_at("status", "addresses")) {
      if (address.text_at("type") != type) continue;
      found.host = address.text_at("address");
      co_return found;
    }
  }
  co_return untyped("no preferred addresses found; known addresses: [" + known_addresses(*tree) + "]");
}

Task<Result<Destination>> Nodes::checked(call::Call& call, Destination to) const {
  constexpr std::string_view kDial = "dial tcp: ";
  net::CallResult<std::vector<std::string>> addresses =
      co_await net::addresses_of(call.request.loop(), to.host, options_.connect_timeout, call.outgoing());
  if (!addresses) {
    std::string_view why = addresses.error().message;
    if (why.starts_with(kDial)) why.remove_prefix(kDial.size());
    co_return bad_request(std::string(why));
  }
  for (const std::string& address : *addresses) {
    if (!is_global_unicast(address)) co_return bad_request("address not allowed");
  }
  if (addresses->empty()) co_return bad_request("no addresses for hostname");
  to.address = addresses->front();
  co_return to;
}

Task<net::CallResult<net::ClientStream>> Nodes::open(net::EventLoop& loop, Destination to,
                                                     net::ClientRequest request) const {
  if (to.port < 0 || to.port > UINT16_MAX) {
    co_return net::CallError(
        {Reason::ServiceUnavailable, "dial tcp: address " + std::to_string(to.port) + ": invalid port"},
        net::CallError::Progress::NotConnected);
  }
  net::ClientOptions options;
  options.host = to.address.empty() ? to.host : to.address;
  options.server_name = to.host;
  options.port = static_cast<uint16_t>(to.port);
  options.tls = to.tls;
  options.connect_timeout = options_.connect_timeout;
  options.max_idle_connections = 0;
  options.insecure = true;
  if (to.with_credentials) {
    const std::shared_ptr<const KubeletCredentials> credentials = options_.credentials();
    options.identity = credentials->identity;
    options.ca_pem = credentials->ca_pem;
    options.insecure = to.skip_verification || credentials->ca_pem.empty();
  }
  net::Client client(loop, std::move(options));
  co_return co_await client.open(std::move(request));
}

bool is_global_unicast(std::string_view address) {
  const std::optional<IpAddress> ip = IpAddress::parse(address);
  if (!ip || ip->is_unspecified() || ip->is_loopback() || ip->is_link_local_unicast()) return false;
  if (ip->v6) return ip->bytes[0] != 0xff;
  const bool multicast = (ip->bytes[0] & 0xf0) == 0xe0;
  const bool broadcast = ip->bytes[0] == 255 && ip->bytes[1] == 255 && ip->bytes[2] == 255 && ip->bytes[3] == 255;
  return !multicast && !broadcast;
}

std::optional<SchemeNamePort> split_scheme_name_port(std::string_view id) {
  const std::vector<std::string_view> parts = split(id, ':');
  SchemeNamePort found;
  switch (parts.size()) {
    case 1:
      found.name = parts[0];
      break;
    case 2:
      found.name = parts[0];
      found.port = parts[1];
      break;
    case 3:
      found = {.scheme = parts[0], .name = parts[1], .port = parts[2]};
      break;
    default:
      return std::nullopt;
  }
  const bool known = found.scheme.empty() || found.scheme == "http" || found.scheme == "https";
  if (found.name.empty() || !known) return std::nullopt;
  return found;
}

}  // namespace holdfast::nodes
