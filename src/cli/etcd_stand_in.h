// The program under the name `etcd`: what test frameworks start beside kube-apiserver. It answers health checks and
// tells a kube-apiserver of our own where to keep its embedded store; the data itself never passes through here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Runs until SIGTERM or SIGINT; the exit code.
int run_etcd(const std::vector<std::string>& arguments);

struct StandIn {
  std::string data_dir;  // Of the etcd.
  bool fsync = true;     // False: --unsafe-no-fsync.
};
// What listens at `url`, if it is run_etcd; nothing for a real etcd, or nobody.
std::optional<StandIn> find_stand_in(const std::string& url);

}  // namespace holdfast::cli
