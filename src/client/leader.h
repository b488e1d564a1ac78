// Leader election: of several processes, the one that holds a Lease leads.
//
// Time is only ever measured here, never compared with the holder's clock: a Lease is free when it has not changed for
// its duration while we looked. A leader that could not renew for `renew_deadline` stops being one before another can
// begin.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "client/api.h"

namespace holdfast::client {

struct LeaderOptions {
  std::string space = "default", name;
  std::string identity;  // Of this process among the others.
  std::chrono::milliseconds lease_duration{15'000};
  std::chrono::milliseconds renew_deadline{10'000};
  std::chrono::milliseconds retry_period{2'000};
};

class LeaderElection {
 public:
  // Both are called on the client's loop. The client must outlive it.
  LeaderElection(Client& client, LeaderOptions options, std::function<void()> on_leading,
                 std::function<void()> on_lost);
  ~LeaderElection();  // stop()
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  void start();
  // Gives up the Lease, so that the next leader need not wait. Not on the loop.
  void stop();
  bool leading() const;
  std::string holder() const;  // The last known holder.

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
