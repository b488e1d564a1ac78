// Leader election: among several processes, the holder of a Lease is the leader.
//
// Only local time is used, never the holder's clock: a Lease is considered free when it has not changed for its
// duration while we watched it. A leader that has not renewed for `renew_deadline` steps down before another can take
// over.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "client/api.h"

namespace holdfast::client {

struct LeaderOptions {
  std::string space = "default", name;
  std::string identity;  // Unique among the candidates.
  std::chrono::milliseconds lease_duration{15'000};
  std::chrono::milliseconds renew_deadline{10'000};
  std::chrono::milliseconds retry_period{2'000};
};

class LeaderElection {
 public:
  // Both callbacks run on the client's loop. `client` must outlive the election.
  LeaderElection(Client& client, LeaderOptions options, std::function<void()> on_leading,
                 std::function<void()> on_lost);
  ~LeaderElection();  // Calls stop().
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  void start();
  // Releases the Lease, so that the next leader need not wait. Must not be called on the loop.
  void stop();
  bool leading() const;
  std::string holder() const;  // The last known holder.

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::client
