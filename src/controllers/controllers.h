// What kube-controller-manager does in a cluster and an operator's tests expect of a standalone server:
// namespaces are emptied and furnished, what lost its owners is collected.
//
// Each has kube-controller-manager's name for it. All of them pause while someone holds the Lease
// kube-system/kube-controller-manager: then a real one is running. They use the API as any client would, as
// system:apiserver, and follow the watch caches; nothing is polled but what waits for others.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/api.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/task.h"
#include "net/net.h"
#include "tokens/tokens.h"

namespace holdfast::controllers {

// Every name that Options::controllers may hold.
std::span<const std::string_view> names();

struct Options {
  // "*" (all), "none", names, and "-name" for all but that. The first that says something of a controller counts, as in
  // kube-controller-manager.
  std::vector<std::string> controllers = {"*"};
  std::string root_ca_pem = {};            // What root-ca-certificate-publisher publishes.
  const tokens::Signer* signer = nullptr;  // Of serviceaccount-token, which without one does nothing. Outlives them.
};

// An error names what is not a controller.
Result<Unit> check(const Options& options);

// Runs on one loop. `api`, `loop` and `clock` outlive it.
class Controllers {
 public:
  Controllers(api::Api& api, net::EventLoop& loop, const Clock& clock, Options options);
  ~Controllers();

  void start();
  // Ends what start() began. The API must still answer.
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
