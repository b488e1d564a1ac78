// 100,000 pods as in a real cluster, generated from one exemplar: many pods per app, identical except for pod-specific
// values (name, uid, IP, node, container IDs, times).
//
// Homogeneous: every app is the exemplar under another name. Mixed: each app has its own random environment variables,
// annotations, labels, and two to five managers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ownership/pool.h"

namespace holdfast::bench {

class Workload {
 public:
  struct Options {
    size_t pods = 100000;
    size_t apps = 200;
    bool mixed = false;
    // Converts the template of an app to another stored form. Pod-specific values must keep their length.
    std::function<std::string(std::string)> store_as = nullptr;
  };
  // `exemplar`: a pod as YAML or JSON.
  static Result<Workload> make(const std::string& exemplar, const Options& options);
  ~Workload();
  Workload(Workload&&) noexcept;
  Workload& operator=(Workload&&) noexcept;

  size_t pods() const;
  // "namespace/name", ascending with `i`.
  std::string key(size_t i) const;
  // As kube-apiserver stores it: Protobuf in its envelope, managedFields inside.
  std::string stored(size_t i) const;
  // The managedFields of pod `i`; strings are valid until the next call on this thread.
  std::vector<ownership::ManagedEntry> managed(size_t i) const;

 private:
  struct App;
  explicit Workload(Options options);
  Options options_;
  std::vector<std::unique_ptr<App>> apps_;
};

}  // namespace holdfast::bench
