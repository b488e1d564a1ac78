// The embedded controller of namespaces: empties those that are being deleted and lets them go, and gives each the
// service account `default` and the ConfigMap kube-root-ca.crt.
#pragma once

#include <memory>
#include <string>

#include "api/api.h"
#include "base/task.h"
#include "controllers/pause.h"
#include "net/net.h"
#include "own_calls/own_calls.h"

namespace holdfast::controllers {

struct NamespaceControllerOptions {
  bool deletes_content = true;         // Controller "namespace".
  bool makes_service_accounts = true;  // "serviceaccount".
  bool publishes_root_ca = true;       // "root-ca-certificate-publisher".
  std::string root_ca_pem;
};

// Runs on one loop. Follows the namespaces by watch; nothing polls but the wait for objects that hold themselves.
class NamespaceController {
 public:
  NamespaceController(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls, Pause& pause,
                      NamespaceControllerOptions options);
  ~NamespaceController();

  void start();
  // Ends what start() began. The API must still answer.
  Task<void> close(Executor& executor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::controllers
