#include "cli/kube_flags.h"

#include <algorithm>
#include <span>

namespace holdfast::cli {
namespace {

// The flags of kube-apiserver v1.36 that need no value.
constexpr std::string_view kBooleans[] = {
    "aggregator-reject-forwarding-redirect",
    "allow-privileged",
    "anonymous-auth",
    "audit-log-batch-throttle-enable",
    "audit-log-compress",
    "audit-log-truncate-enabled",
    "audit-webhook-batch-throttle-enable",
    "audit-webhook-truncate-enabled",
    "contention-profiling",
    "disable-http2-serving",
    "emulation-forward-compatible",
    "enable-aggregator-routing",
    "enable-bootstrap-token-auth",
    "enable-garbage-collector",
    "enable-logs-handler",
    "enable-priority-and-fairness",
    "encryption-provider-config-automatic-reload",
    "log-text-split-stream",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "runtime-config-emulation-forward-compatible",
    "service-account-extend-token-expiration",
    "service-account-lookup",
    "shutdown-send-retry-after",
    "watch-cache",
};

// Those with a value that `serve` need not have.
constexpr std::string_view kValued[] = {
    "admission-control",
    "admission-control-config-file",
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "api-audiences",
    "audit-log-batch-buffer-size",
    "audit-log-batch-max-size",
    "audit-log-batch-max-wait",
    "audit-log-batch-throttle-burst",
    "audit-log-batch-throttle-qps",
    "audit-log-format",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "audit-log-mode",
    "audit-log-path",
    "audit-log-truncate-max-batch-size",
    "audit-log-truncate-max-event-size",
    "audit-log-version",
    "audit-policy-file",
    "audit-webhook-batch-buffer-size",
    "audit-webhook-batch-max-size",
    "audit-webhook-batch-max-wait",
    "audit-webhook-batch-throttle-burst",
    "audit-webhook-batch-throttle-qps",
    "audit-webhook-config-file",
    "audit-webhook-initial-backoff",
    "audit-webhook-mode",
    "audit-webhook-truncate-max-batch-size",
    "audit-webhook-truncate-max-event-size",
    "audit-webhook-version",
    "authentication-config",
    "authentication-token-webhook-cache-ttl",
    "authentication-token-webhook-config-file",
    "authentication-token-webhook-version",
    "authorization-config",
    "authorization-policy-file",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "coordinated-leadership-lease-duration",
    "coordinated-leadership-renew-deadline",
    "coordinated-leadership-retry-period",
    "cors-allowed-origins",
    "debug-socket-path",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "delete-collection-workers",
    "disabled-metrics",
    "egress-selector-config-file",
    "emulated-version",
    "encryption-provider-config",
    "endpoint-reconciler-type",
    "etcd-compaction-interval",
    "etcd-count-metric-poll-period",
    "etcd-db-metric-poll-interval",
    "etcd-healthcheck-timeout",
    "etcd-readycheck-timeout",
    "etcd-servers-overrides",
    "external-hostname",
    "goaway-chance",
    "http2-max-streams-per-connection",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "kubelet-preferred-address-types",
    "kubelet-timeout",
    "kubernetes-service-node-port",
    "lease-reuse-duration-seconds",
    "livez-grace-period",
    "log-flush-frequency",
    "log-text-info-buffer-size",
    "logging-format",
    "max-connection-bytes-per-sec",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "min-compatibility-version",
    "min-request-timeout",
    "oidc-ca-file",
    "oidc-client-id",
    "oidc-groups-claim",
    "oidc-groups-prefix",
    "oidc-issuer-url",
    "oidc-required-claim",
    "oidc-signing-algs",
    "oidc-username-claim",
    "oidc-username-prefix",
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "request-timeout",
    "runtime-config",
    "service-account-jwks-uri",
    "service-account-max-token-expiration",
    "service-account-signing-endpoint",
    "service-node-port-range",
    "show-hidden-metrics-for-version",
    "shutdown-delay-duration",
    "shutdown-watch-termination-grace-period",
    "storage-backend",
    "storage-initialization-timeout",
    "storage-media-type",
    "strict-transport-security-directives",
    "tls-curve-preferences",
    "tracing-config-file",
    "vmodule",
    "watch-cache-sizes",
};

bool listed(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Node restricts kubelets beside RBAC, which decides alone here (docs/differences.md); a stock command line names both.
std::string without_node_mode(std::string_view modes) {
  std::string left;
  while (!modes.empty()) {
    const size_t comma = std::min(modes.find(','), modes.size());
    const std::string_view mode = modes.substr(0, comma);
    modes.remove_prefix(std::min(comma + 1, modes.size()));
    if (mode == "Node") continue;
    left.append(left.empty() ? "" : ",").append(mode);
  }
  return left.empty() ? "RBAC" : left;
}

}  // namespace

Result<KubeFlags> translate_kube_flags(const std::vector<std::string>& arguments,
                                       const std::function<bool(std::string_view name)>& serve_has) {
  KubeFlags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    if (argument == "-h" || argument == "--help" || argument == "--version") {
      flags.arguments.emplace_back(argument == "-h" ? "--help" : argument);
      continue;
    }
    std::string name, value;
    bool has_value = false;
    if (argument.starts_with("-v") && !argument.starts_with("--")) {  // -v2, -v=2, -v 2
      name = "v";
      value = argument.substr(argument.starts_with("-v=") ? 3 : 2);
      has_value = !value.empty();
    } else if (argument.starts_with("--")) {
      argument.remove_prefix(2);
      const size_t equals = argument.find('=');
      has_value = equals != std::string_view::npos;
      name = argument.substr(0, equals);
      std::replace(name.begin(), name.end(), '_', '-');
      if (has_value) value = argument.substr(equals + 1);
    } else {
      return bad_request("unknown command \"" + arguments[i] + "\" for \"kube-apiserver\"");
    }
    const bool boolean = listed(kBooleans, name);
    const bool known = serve_has(name);
    if (!known && !boolean && !listed(kValued, name)) return bad_request("unknown flag: --" + name);
    if (!has_value && boolean) value = "true";
    if (!has_value && !boolean) {
      if (i + 1 == arguments.size()) return bad_request("flag needs an argument: --" + name);
      value = arguments[++i];
    }
    if (!known) {
      flags.ignored.push_back(name);
      continue;
    }
    if (name == "authorization-mode") value = without_node_mode(value);
    flags.arguments.push_back("--" + name + "=" + value);
  }
  return flags;
}

}  // namespace holdfast::cli
