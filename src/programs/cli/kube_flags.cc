#include "cli/kube_flags.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "base/strings.h"
#include "discovery/discovery.h"

namespace holdfast::cli {
namespace {

constexpr bool kBoolean = true, kValue = false;

// A flag of kube-apiserver v1.36 that `serve` does not have. Accepted with kube-apiserver's default, or with a value
// that asks for what this server does anyway (at most two are needed); any other value is rejected, because it would
// have no effect.
struct Fixed {
  std::string_view name;
  bool boolean;
  std::string_view accepted[2] = {};
};
constexpr Fixed kFixed[] = {
    {"admission-control", kValue},
    {"aggregator-reject-forwarding-redirect", kBoolean, {"true"}},
    {"allow-metric-labels", kValue},
    {"allow-metric-labels-manifest", kValue},
    {"audit-log-batch-buffer-size", kValue, {"10000"}},
    {"audit-log-batch-max-size", kValue, {"1"}},
    {"audit-log-batch-max-wait", kValue},
    {"audit-log-batch-throttle-burst", kValue},
    {"audit-log-batch-throttle-enable", kBoolean, {"false"}},
    {"audit-log-batch-throttle-qps", kValue},
    {"audit-log-compress", kBoolean, {"false"}},
    {"audit-log-format", kValue, {"json"}},
    {"audit-log-mode", kValue, {"blocking"}},
    {"audit-log-truncate-enabled", kBoolean, {"false"}},
    {"audit-log-truncate-max-batch-size", kValue, {"10485760"}},
    {"audit-log-truncate-max-event-size", kValue, {"102400"}},
    {"audit-log-version", kValue, {"audit.k8s.io/v1"}},
    {"audit-webhook-batch-buffer-size", kValue},
    {"audit-webhook-batch-max-size", kValue},
    {"audit-webhook-batch-max-wait", kValue},
    {"audit-webhook-batch-throttle-burst", kValue},
    {"audit-webhook-batch-throttle-enable", kBoolean, {"true"}},
    {"audit-webhook-batch-throttle-qps", kValue},
    {"audit-webhook-config-file", kValue},
    {"audit-webhook-initial-backoff", kValue},
    {"audit-webhook-mode", kValue, {"batch"}},
    {"audit-webhook-truncate-enabled", kBoolean, {"false"}},
    {"audit-webhook-truncate-max-batch-size", kValue},
    {"audit-webhook-truncate-max-event-size", kValue},
    {"audit-webhook-version", kValue, {"audit.k8s.io/v1"}},
    {"authentication-config", kValue},
    {"authentication-token-webhook-cache-ttl", kValue, {"2m0s", "2m"}},
    {"authentication-token-webhook-config-file", kValue},
    {"authentication-token-webhook-version", kValue, {"v1beta1"}},
    {"authorization-webhook-cache-authorized-ttl", kValue, {"5m0s", "5m"}},
    {"authorization-webhook-cache-unauthorized-ttl", kValue, {"30s"}},
    {"authorization-webhook-config-file", kValue},
    {"authorization-webhook-version", kValue, {"v1beta1"}},
    {"contention-profiling", kBoolean, {"false"}},
    {"coordinated-leadership-lease-duration", kValue, {"15s"}},
    {"coordinated-leadership-renew-deadline", kValue, {"10s"}},
    {"coordinated-leadership-retry-period", kValue, {"2s"}},
    {"debug-socket-path", kValue},
    {"default-not-ready-toleration-seconds", kValue, {"300"}},
    {"default-unreachable-toleration-seconds", kValue, {"300"}},
    {"default-watch-cache-size", kValue, {"100"}},
    {"delete-collection-workers", kValue, {"1"}},
    {"disable-http2-serving", kBoolean, {"false"}},
    {"disabled-metrics", kValue},
    {"egress-selector-config-file", kValue},
    {"emulated-version", kValue, {"1.36", "kube=1.36"}},
    {"emulation-forward-compatible", kBoolean, {"false"}},
    {"enable-garbage-collector", kBoolean, {"true"}},
    {"enable-logs-handler", kBoolean, {"true", "false"}},
    {"encryption-provider-config", kValue},
    {"encryption-provider-config-automatic-reload", kBoolean, {"false"}},
    {"kubelet-port", kValue, {"10250"}},
    {"kubelet-read-only-port", kValue, {"10255"}},
    {"kubernetes-service-node-port", kValue, {"0"}},
    {"log-flush-frequency", kValue, {"5s"}},
    {"log-text-info-buffer-size", kValue, {"0"}},
    {"log-text-split-stream", kBoolean, {"false"}},
    {"max-connection-bytes-per-sec", kValue, {"0"}},
    {"min-compatibility-version", kValue, {"1.35", "kube=1.35"}},
    {"oidc-ca-file", kValue},
    {"oidc-client-id", kValue},
    {"oidc-groups-claim", kValue},
    {"oidc-groups-prefix", kValue},
    {"oidc-issuer-url", kValue},
    {"oidc-required-claim", kValue},
    {"oidc-signing-algs", kValue, {"RS256"}},
    {"oidc-username-claim", kValue, {"sub"}},
    {"oidc-username-prefix", kValue},
    {"permit-address-sharing", kBoolean, {"false"}},
    {"permit-port-sharing", kBoolean, {"false"}},
    {"profiling", kBoolean, {"true", "false"}},
    {"runtime-config-emulation-forward-compatible", kBoolean, {"false"}},
    {"service-account-lookup", kBoolean, {"true"}},
    {"show-hidden-metrics-for-version", kValue},
    {"shutdown-watch-termination-grace-period", kValue, {"0s", "0"}},
    {"storage-backend", kValue, {"etcd3"}},
    {"storage-initialization-timeout", kValue, {"1m0s", "1m"}},
    {"tls-curve-preferences", kValue},
    {"tracing-config-file", kValue},
    {"vmodule", kValue},
    {"watch-cache-sizes", kValue},
};

// A flag for kube-apiserver internals that does not affect responses. Accepted, and logged as having no effect.
struct Internal {
  std::string_view name;
  bool boolean;
  std::string_view why;
};
constexpr Internal kInternal[] = {
    {"enable-priority-and-fairness", kBoolean, "priority and fairness is always enabled"},
    {"etcd-count-metric-poll-period", kValue, "objects are counted when metrics are scraped"},
    {"etcd-db-metric-poll-interval", kValue, "the store is queried when metrics are scraped"},
    {"etcd-healthcheck-timeout", kValue, "health follows the requests to etcd"},
    {"etcd-readycheck-timeout", kValue, "health follows the requests to etcd"},
    {"lease-reuse-duration-seconds", kValue, "leases in etcd are shared by the events of a minute"},
    {"peer-advertise-ip", kValue, "requests are not passed on to other servers"},
    {"peer-advertise-port", kValue, "requests are not passed on to other servers"},
    {"peer-ca-file", kValue, "requests are not passed on to other servers"},
    {"storage-media-type", kValue, "objects are stored as Protobuf; other encodings can be read"},
};

// Boolean flags of `serve`, which need no value.
bool is_serve_boolean(std::string_view name) {
  return name == "allow-privileged" || name == "anonymous-auth" || name == "enable-aggregator-routing" ||
         name == "enable-bootstrap-token-auth" || name == "service-account-extend-token-expiration" ||
         name == "shutdown-send-retry-after" || name == "watch-cache";
}

const Fixed* find_fixed(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFixed), std::end(kFixed), [&](const Fixed& f) { return f.name == name; });
  return found == std::end(kFixed) ? nullptr : found;
}

const Internal* find_internal(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kInternal), std::end(kInternal), [&](const Internal& f) { return f.name == name; });
  return found == std::end(kInternal) ? nullptr : found;
}

Result<Unit> check_fixed(const Fixed& flag, std::string_view value) {
  // The default of flags that name a file, a list or an address is the empty value.
  if (value == flag.accepted[0] || (!flag.accepted[1].empty() && value == flag.accepted[1])) return Unit{};
  std::string message = "--" + std::string(flag.name) + "=" + std::string(value) + " is not supported by Holdfast";
  if (!flag.accepted[0].empty()) message += "; only " + std::string(flag.accepted[0]) + " is";
  return bad_request(std::move(message));
}

Result<Unit> check_runtime_config(std::string_view entries) {
  std::vector<std::string> all;
  for (const std::string_view entry : split(entries, ',')) all.emplace_back(entry);
  Result<discovery::RuntimeConfig> config = discovery::RuntimeConfig::parse(all);
  if (!config) return config.take_error();
  return Unit{};
}

}  // namespace

Result<std::vector<std::string>> translate_kube_flags(const std::vector<std::string>& arguments,
                                                      const std::function<bool(std::string_view name)>& serve_has) {
  std::vector<std::string> translated;
  std::vector<std::string> problems;  // All of them, so that a manifest is corrected in one pass.
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    if (argument == "-h" || argument == "--help" || argument == "--version") {
      translated.emplace_back(argument == "-h" ? "--help" : argument);
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
    if (name == "logging-format") name = "log-format";
    const Fixed* fixed = find_fixed(name);
    const Internal* internal = find_internal(name);
    const bool boolean = fixed != nullptr      ? fixed->boolean
                         : internal != nullptr ? internal->boolean
                                               : is_serve_boolean(name);
    if (serve_has(name)) fixed = nullptr;
    if (fixed == nullptr && internal == nullptr && !serve_has(name)) {
      problems.push_back("unknown flag: --" + name);
      // Whether it takes a value is not known; what follows is one if it is not a flag.
      if (!has_value && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-')) ++i;
      continue;
    }
    if (!has_value && boolean) value = "true";
    if (!has_value && !boolean) {
      if (i + 1 == arguments.size()) return bad_request("flag needs an argument: --" + name);
      value = arguments[++i];
    }
    if (internal != nullptr) {
      log::warning("a flag has no effect", {{"flag", "--" + name + "=" + value}, {"why", internal->why}});
      continue;
    }
    if (fixed != nullptr) {
      Result<Unit> checked = check_fixed(*fixed, value);
      if (!checked) problems.push_back(checked.error().message);
      continue;
    }
    if (name == "runtime-config") {
      Result<Unit> checked = check_runtime_config(value);
      if (!checked) problems.push_back(checked.error().message);
    }
    translated.push_back("--" + name + "=" + value);
  }
  if (!problems.empty()) return bad_request(join(problems, "\n"));
  return translated;
}

}  // namespace holdfast::cli
