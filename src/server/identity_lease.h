// The Lease by which an API server is known beside others: kube-system/apiserver-<hash of the host's name>, as
// kube-apiserver keeps it (gate APIServerIdentity).
//
// Created shortly after the start, because nothing depends on it, and renewed while the server runs.
#pragma once

#include <chrono>
#include <string>

#include "api/api.h"
#include "base/task.h"
#include "net/net.h"

namespace holdfast::server {

// "apiserver-wlv32tlttr4jl3gtroqexyxapa"
std::string identity_of(const std::string& hostname);

class IdentityLease {
 public:
  // `advertised`: where other API servers reach this one, "192.0.2.2:6443".
  IdentityLease(api::Api& api, net::EventLoop& loop, std::string hostname, std::string advertised);

  void start();
  Task<void> close();

 private:
  void renew_in(std::chrono::milliseconds delay);
  Task<void> renew();

  api::Api& api_;
  net::EventLoop& loop_;
  const std::string hostname_, advertised_;
  const std::string name_, holder_;
  // Owned by the loop.
  bool closing_ = false, renewing_ = false;
  net::EventLoop::TimerId timer_ = 0;
};

}  // namespace holdfast::server
