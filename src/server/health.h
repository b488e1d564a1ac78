// /healthz, /livez and /readyz: named checks, printed as kube-apiserver prints them.
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
  // Returns the problem, or nothing if healthy. Called on any thread; must not block.
  using Probe = std::function<std::optional<std::string>()>;

  struct Probes {
    Probe store;                           // Can the store be read and written.
    Probe started;                         // Is everything that is done once at start done.
    Probe shutdown;                        // Is the server staying.
    std::vector<Probe> other_stores = {};  // As `store`, for the etcds of --etcd-servers-overrides.
  };
  explicit Health(Probes probes);

  struct Answer {
    int status;
    std::string body;
  };
  // `path` is /healthz, /livez or /readyz, or one of them and a check's name; nothing if there is no such check.
  std::optional<Answer> answer(std::string_view path, const request::Query& query) const;
  std::vector<std::string> paths() const;  // All that answer() knows.
  std::string metrics() const;             // Each check as a gauge, in the text format of Prometheus.

 private:
  struct Check {
    std::string name;
    bool live, ready;        // healthz has the checks of livez.
    Probe probe;             // None: it is well if the process answers at all.
    std::string group = {};  // Excluded with the check of this name.
  };
  std::vector<Check> checks_;
};

}  // namespace holdfast::server
