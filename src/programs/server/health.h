// /healthz, /livez and /readyz: named checks, in kube-apiserver's output format.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "request/request.h"

namespace holdfast::server {

class Health {
 public:
  // Returns the problem, or nullopt if healthy. Called on any thread; must not block.
  using Probe = std::function<std::optional<std::string>()>;

  struct Probes {
    Probe store;                           // Whether the store responds.
    Probe store_writes;                    // Whether it also takes writes, for readiness; `store` if empty.
    Probe started;                         // Whether startup is complete.
    Probe alive;                           // Likewise, for liveness; `started` if empty.
    Probe shutdown;                        // Whether the server is not shutting down.
    std::vector<Probe> other_stores = {};  // Like `store`, for the etcds of --etcd-servers-overrides.
  };
  explicit Health(Probes probes);

  struct Answer {
    int status;
    std::string body;
  };
  // `path` is /healthz, /livez or /readyz, optionally followed by the name of a check; nullopt if the check does not
  // exist.
  std::optional<Answer> answer(std::string_view path, const request::Query& query) const;
  std::vector<std::string> paths() const;  // All paths supported by answer().
  std::string metrics() const;             // Each check as a gauge, in the text format of Prometheus.

 private:
  struct Check {
    std::string name;
    bool live, ready;        // healthz has the same checks as livez.
    Probe probe;             // Empty for a check that passes if the process responds at all.
    std::string group = {};  // Also excluded by this name.
  };
  std::vector<Check> checks_;
};

}  // namespace holdfast::server
