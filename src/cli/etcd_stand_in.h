// The program run as `etcd`, which test frameworks start beside kube-apiserver. It answers health checks and tells our
// own kube-apiserver where to keep its embedded store; no data passes through it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Runs until SIGTERM or SIGINT; returns the exit code.
int run_etcd(const std::vector<std::string>& arguments);

struct StandIn {
  std::string data_dir;  // Of the etcd.
  bool fsync = true;     // False: --unsafe-no-fsync.
};
// Asks the server at `url` where its store is; nothing if that is a real etcd or nothing listens.
std::optional<StandIn> find_stand_in(const std::string& url);

}  // namespace holdfast::cli
