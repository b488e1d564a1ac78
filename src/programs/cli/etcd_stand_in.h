// The program running as `etcd`, which test frameworks start next to kube-apiserver. It answers health checks and tells
// our kube-apiserver where to keep its embedded store; no data passes through it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Runs until SIGTERM or SIGINT; returns the exit code.
int run_etcd(const std::vector<std::string>& arguments);

struct StandIn {
  std::string data_dir;  // --data-dir of the stand-in.
  bool fsync = true;     // False with --unsafe-no-fsync.
};
// Asks the server at `url` for its store; nullopt if it is a real etcd or unreachable.
std::optional<StandIn> find_stand_in(const std::string& url);

}  // namespace holdfast::cli
