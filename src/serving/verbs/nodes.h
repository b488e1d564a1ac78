// Calls to kubelets, which this server does not make.
#pragma once

#include <string>

#include "call/call.h"

namespace holdfast::verbs {

// Why the kubelet of a node cannot be called: looks up its address like kube-apiserver, whose error for a node that
// does not exist names the resource `asked`; this server connects to none of those that exist.
Task<Error> node_error(call::Call& call, std::string node, GroupResource asked);

}  // namespace holdfast::verbs
