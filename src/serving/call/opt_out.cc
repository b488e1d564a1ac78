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

bool opted_out(const Call& call) { return !call.view.accepted.opt_out_kind.empty() && call.served != nullptr; }

}  // namespace

void count_opt_out(Call& call, uint64_t bytes) {
  if (!opted_out(call)) return;
  const request::Accepted& accepted = call.view.accepted;
  const types::Resource& resource = *call.served->resource;
  const std::string_view client = client_family(call.request.headers.get("user-agent"));
  call.opt_outs
      .with({to_string(call.info.verb), media_type(accepted.format).substr(12), accepted.opt_out_kind, resource.group,
             resource.plural, client})
      .add();
  call.opt_out_bytes.with({resource.group, resource.plural, client}).add(bytes);
}

Counter* opt_out_bytes(Call& call) {
  if (!opted_out(call)) return nullptr;
  const types::Resource& resource = *call.served->resource;
  return &call.opt_out_bytes.with(
      {resource.group, resource.plural, client_family(call.request.headers.get("user-agent"))});
}

uint64_t field_set_bytes(const ownership::Owners& owners) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < owners.count(); ++i) bytes += owners.fields_v1_bytes(i);
  return bytes;
}

uint64_t field_set_bytes(std::span<const ownership::ManagedEntry> entries) {
  uint64_t bytes = 0;
  for (const ownership::ManagedEntry& entry : entries) bytes += entry.fields ? entry.fields->size() : 0;
  return bytes;
}

}  // namespace holdfast::call
