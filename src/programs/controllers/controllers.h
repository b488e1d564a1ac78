// The parts of kube-controller-manager that operators and their tests expect from a standalone server: namespace
// lifecycle, garbage collection, quotas and the like.
//
// Each has kube-controller-manager's name. All of them pause while the Lease kube-system/kube-controller-manager is
// held, because then a real one is running. They use the API like any client, as system:apiserver, and watch the
// caches; they only poll while waiting for other parties. The status of FlowSchemas, which kube-apiserver maintains
// itself, is always maintained.
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

// All valid names in Options::controllers.
std::span<const std::string_view> names();

struct Options {
  // "*" (all), "none", names, and "-name" to exclude one. As in kube-controller-manager, the first matching entry wins.
  std::vector<std::string> controllers = {"*"};
  std::string root_ca_pem = {};  // Published by root-ca-certificate-publisher.
  // For serviceaccount-token, which is disabled without it. Must outlive the controllers.
  const tokens::Signer* signer = nullptr;
};

// Errors name the unknown controllers.
Result<Unit> check(const Options& options);

// Runs on one loop. `api`, `loop` and `clock` must outlive it.
class Controllers {
 public:
  Controllers(api::Api& api, net::EventLoop& loop, const Clock& clock, Options options);
  ~Controllers();

  void start();
  // Stops the controllers. The API must still be running.
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
