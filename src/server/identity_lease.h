// The Lease by which an API server is known beside others: kube-system/apiserver-<hash of the host's name>, as
// kube-apiserver keeps it (gate APIServerIdentity).
//
// Created when the server has started, without anybody waiting for it, and renewed while it runs. Not later: who counts
// revisions would see one that nobody has asked for.
#pragma once

#include <chrono>
#include <string>

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
  // `advertised`: where other API servers reach this one, "192.0.2.2:6443".
  IdentityLease(api::Api& api, net::EventLoop& loop, std::string hostname, std::string advertised);

  void start();
  Task<void> close(Executor& executor);

 private:
  Task<void> keep();
  Task<void> renew();

  const own_calls::OwnCalls calls_;
  TaskGroup tasks_;
  const std::string hostname_, advertised_;
  const std::string name_, holder_;
};

}  // namespace holdfast::server
