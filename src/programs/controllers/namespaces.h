// The embedded namespace controller: deletes the content of terminating namespaces and finalizes them, and creates the
// service account `default` and the ConfigMap kube-root-ca.crt in each.
#pragma once

#include <memory>
#include <string>

#include "api/api.h"
#include "base/task.h"
#include "controllers/standby.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

struct NamespaceControllerOptions {
  bool deletes_content = true;         // Controller "namespace".
  bool makes_service_accounts = true;  // "serviceaccount".
  bool publishes_root_ca = true;       // "root-ca-certificate-publisher".
  std::string root_ca_pem;
};

// Runs on one loop. Watches namespaces; only polls while waiting for objects with finalizers.
class NamespaceController {
 public:
  NamespaceController(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Standby& standby,
                      NamespaceControllerOptions options);
  ~NamespaceController();

  void start();
  // Stops the controller. The API must still be running.
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
