#include "server/health.h"

#include <algorithm>

#include "base/text.h"

namespace holdfast::server {

namespace {

// kube-apiserver's post-start hooks, which end-to-end tests and operators look for. Here they all stand for the same
// work: the bootstrap objects and the caches.
constexpr std::string_view kStartHooks[] = {
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
};

constexpr std::string_view kEndpoints[] = {"healthz", "livez", "readyz"};

}  // namespace

Health::Health(Probes probes) {
  checks_ = {{"ping", true, true, nullptr},
             {"log", true, true, nullptr},
             {"loopback-serving-certificate", true, false, nullptr},
             {"etcd", true, true, probes.store},
             {"etcd-readiness", false, true, probes.store_writes ? probes.store_writes : probes.store}};
  for (size_t i = 0; i < probes.other_stores.size(); ++i) {
    const std::string number = std::to_string(i);
    checks_.push_back({"etcd-override-" + number, true, true, probes.other_stores[i], "etcd"});
    checks_.push_back({"etcd-override-readiness-" + number, false, true, probes.other_stores[i], "etcd-readiness"});
  }
  checks_.push_back({"informer-sync", false, true, probes.started});
  for (std::string_view hook : kStartHooks) {
    if (!probes.alive) {
      checks_.push_back({std::string(hook), true, true, probes.started});
    } else {
      checks_.push_back({std::string(hook), true, false, probes.alive});
      checks_.push_back({std::string(hook), false, true, probes.started});
    }
  }
  checks_.push_back({"shutdown", false, true, probes.shutdown});
}

std::optional<Health::Answer> Health::answer(std::string_view path, const request::Query& query) const {
  if (!path.starts_with('/')) return std::nullopt;
  const std::string_view rest = path.substr(1);
  const size_t slash = rest.find('/');
  const std::string_view endpoint = rest.substr(0, slash);
  if (std::find(std::begin(kEndpoints), std::end(kEndpoints), endpoint) == std::end(kEndpoints)) return std::nullopt;
  const bool ready = endpoint == "readyz";
  auto belongs = [&](const Check& check) { return ready ? check.ready : check.live; };

  if (slash != std::string_view::npos) {
    const std::string_view name = rest.substr(slash + 1);
    for (const Check& check : checks_) {
      if (!belongs(check) || check.name != name) continue;
      std::optional<std::string> wrong = check.probe ? check.probe() : std::nullopt;
      if (!wrong) return Answer{200, "ok"};
      return Answer{500, "internal server error: " + *wrong + "\n"};
    }
    return std::nullopt;
  }

  const bool verbose = query.has("verbose");
  const std::vector<std::string> excluded = query.all("exclude");
  std::vector<std::string> unknown = excluded;
  bool failed = false;
  std::string lines;
  for (const Check& check : checks_) {
    if (!belongs(check)) continue;
    const auto excludes = [&check](const std::string& name) { return name == check.name || name == check.group; };
    if (std::any_of(excluded.begin(), excluded.end(), excludes)) {
      std::erase_if(unknown, excludes);
      lines += "[+]" + check.name + " excluded: ok\n";
    } else if (check.probe && check.probe()) {
      failed = true;
      lines += "[-]" + check.name + " failed: reason withheld\n";
    } else {
      lines += "[+]" + check.name + " ok\n";
    }
  }
  if (!unknown.empty()) {
    std::sort(unknown.begin(), unknown.end());
    lines += "warn: some health checks cannot be excluded: no matches for ";
    for (size_t i = 0; i < unknown.size(); ++i) lines += (i == 0 ? "" : ",") + go_quote(unknown[i]);
    lines += "\n";
  }
  if (failed) return Answer{500, lines + std::string(endpoint) + " check failed\n"};
  if (!verbose) return Answer{200, "ok"};
  return Answer{200, lines + std::string(endpoint) + " check passed\n"};
}

std::string Health::metrics() const {
  std::string out =
      "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n"
      "# TYPE kubernetes_healthcheck gauge\n";
  std::vector<std::string> lines;
  for (const std::string_view endpoint : kEndpoints) {
    for (const Check& check : checks_) {
      if (endpoint == "readyz" ? !check.ready : !check.live) continue;
      const bool well = !check.probe || !check.probe();
      lines.push_back("kubernetes_healthcheck{name=\"" + check.name + "\",type=\"" + std::string(endpoint) + "\"} " +
                      (well ? "1" : "0") + "\n");
    }
  }
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) out += line;
  return out;
}

std::vector<std::string> Health::paths() const {
  std::vector<std::string> all;
  for (std::string_view endpoint : kEndpoints) {
    all.push_back("/" + std::string(endpoint));
    for (const Check& check : checks_) {
      if (endpoint == "readyz" ? check.ready : check.live)
        all.push_back("/" + std::string(endpoint) + "/" + check.name);
    }
  }
  return all;
}

}  // namespace holdfast::server
