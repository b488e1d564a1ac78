// The Lease that identifies an API server to others: kube-system/apiserver-<hash of the host name>, as in
// kube-apiserver (gate APIServerIdentity).
//
// Created right after startup without blocking it, and renewed while the server runs. Not created later, because
// clients that count revisions would see one that they did not cause.
//
// Servers that share an etcd must accept each other's service account tokens. Each names the key it signs with in its
// Lease, and warns about others whose key it does not know.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "api/api.h"
#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::server {

// "apiserver-wlv32tlttr4jl3gtroqexyxapa"
std::string identity_of(const std::string& hostname);

class IdentityLease {
 public:
  struct SigningKeys {
    std::string own;                                   // The id of the key that signs; empty if it is not known.
    std::function<bool(std::string_view id)> accepts;  // Whether tokens signed with this key are.
  };
  // `advertised` is where other API servers reach this one, such as "192.0.2.2:6443".
  IdentityLease(api::Api& api, net::EventLoop& loop, std::string hostname, std::string advertised, SigningKeys keys);

  void start();
  Task<void> close(Executor& executor);

 private:
  Task<void> keep();
  Task<void> renew();
  Task<void> check_others();

  const own_calls::OwnCalls calls_;
  TaskGroup tasks_;
  const std::string hostname_, advertised_;
  const std::string name_, holder_;
  const SigningKeys keys_;
  std::set<std::string, std::less<>> reported_;  // Ids of keys.
};

}  // namespace holdfast::server
