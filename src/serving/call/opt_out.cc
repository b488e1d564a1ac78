#include "call/opt_out.h"

#include <string_view>

namespace holdfast::call {
namespace {

// The kind of program that sends this User-Agent: one of few, because it becomes a label of metrics.
std::string_view client_family(std::string_view user_agent) {
  if (user_agent.empty()) return "none";
  const std::string_view product = user_agent.substr(0, user_agent.find('/'));
  for (const std::string_view known : {"kubectl", "holdfast", "kubelet", "kube-controller-manager", "kube-scheduler",
                                       "kube-proxy", "kube-apiserver", "curl"}) {
    if (product == known) return known;
  }
  if (product == "Helm") return "helm";
  // NAME/VERSION (OS/ARCHITECTURE) kubernetes/COMMIT, with any name.
  if (user_agent.find(" kubernetes/") != std::string_view::npos || product == "Go-http-client") return "go";
  if (user_agent.ends_with("/python") || product == "python-requests" || product == "Python-urllib") return "python";
  if (product == "Kubernetes Java Client" || product == "fabric8-kubernetes-client") return "java";
  if (product == "Mozilla") return "browser";
  return "other";
}

}  // namespace

void count_opt_out(Call& call) {
  const request::Accepted& accepted = call.view.accepted;
  if (accepted.opt_out_kind.empty() || call.served == nullptr) return;
  const types::Resource& resource = *call.served->resource;
  call.opt_outs
      .with({to_string(call.info.verb), media_type(accepted.format).substr(12), accepted.opt_out_kind, resource.group,
             resource.plural, client_family(call.request.headers.get("user-agent"))})
      .add();
}

}  // namespace holdfast::call
