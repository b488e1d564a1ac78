// Connections to kubelets, pods and the endpoints of services, made for clients: logs, exec, attach, port-forward,
// proxy.
//
//   log, exec, attach, port-forward, proxy of a node's kubelet   TLS with a client certificate
//   proxy of pods, services, and other ports of nodes            HTTP or TLS without credentials
//
// Every connection serves one request, so none is ever shared between users. Data is passed on as fast as the slower
// side takes it. Requests hold no seat; they end when the client disconnects, and when the server shuts down.
//
// Errors are those of kube-apiserver (pkg/registry/core/pod/strategy.go, pkg/kubelet/client/kubelet_client.go,
// apimachinery/pkg/util/proxy/upgradeaware.go).
//
// Threading: any thread until a connection is opened, which happens on the loop of the request.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/task.h"
#include "call/call.h"
#include "net/net.h"

namespace holdfast::nodes {

// What kubelets are shown and verified by.
struct KubeletCredentials {
  std::optional<net::Identity> identity;  // Client certificate; none if absent.
  std::string ca_pem;                     // Kubelets are not verified if empty.
};

struct Options {
  // Types of addresses in a Node's status, by preference.
  std::vector<std::string> address_types = {"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"};
  std::chrono::milliseconds connect_timeout{5000};
  // The current ones; they change when their files do. Any thread.
  std::function<std::shared_ptr<const KubeletCredentials>()> credentials = [] {
    return std::make_shared<const KubeletCredentials>();
  };
};

struct Kubelet {
  std::string host;
  int64_t port = 10250;
  bool takes_websockets = false;  // It declares the feature ExtendWebSocketsToKubelet.
};

// A server, and how to connect to it.
struct Destination {
  bool tls = true;
  std::string host;
  int64_t port = 0;
  bool with_credentials = false;  // Those for kubelets. Otherwise none, and the server is not verified.
  bool skip_verification = false;
  std::string address;  // Connects to this address, which was checked, rather than looking up the host. May be empty.
};

class Nodes {
 public:
  explicit Nodes(Options options) : options_(std::move(options)) {}

  // The kubelet of a node, by the node's status. The 404 for a node that does not exist names the resource `asked`.
  Task<Result<Kubelet>> kubelet(call::Call& call, std::string node, GroupResource asked) const;
  static Destination to(const Kubelet& kubelet) {
    return {.host = kubelet.host, .port = kubelet.port, .with_credentials = true};
  }
  // The destination with its address, if all addresses of the host are global unicast: neither loopback nor link-local.
  // 400. On the loop.
  Task<Result<Destination>> checked(call::Call& call, Destination to) const;
  // Sends the request and waits for the response's head. On the loop.
  Task<net::CallResult<net::ClientStream>> open(net::EventLoop& loop, Destination to, net::ClientRequest request) const;

 private:
  const Options options_;
};

// Whether Kubernetes connects to this address for a proxy request.
bool is_global_unicast(std::string_view address);

// "name", "name:port" or "scheme:name:port"; nullopt for anything else. The scheme is empty, http or https.
struct SchemeNamePort {
  std::string_view scheme, name, port;
};
std::optional<SchemeNamePort> split_scheme_name_port(std::string_view id);

// --- Each of these responds to the request, on its loop. ---

// Streams the log at `path` (with its query) as text. `pod` names it in errors.
Task<void> stream_log(call::Call& call, const Nodes& nodes, Kubelet kubelet, std::string path, bool skip_verification);

// Passes the request on, with any method, to `path` ("/a/b", not encoded; empty if the request had none), and the
// response back, with links and redirects rewritten to lead through this server.
Task<void> proxy(call::Call& call, const Nodes& nodes, Destination to, std::string path);

// exec, attach, port-forward: an upgraded connection to the kubelet at `path` (with its query).
struct Streams {
  bool port_forward = false;
  bool in = false, out = false, error = false, tty = false;
};
Task<void> connect_streams(call::Call& call, const Nodes& nodes, Kubelet kubelet, std::string path, Streams streams);

}  // namespace holdfast::nodes
