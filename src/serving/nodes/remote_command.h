// exec and attach for clients that use WebSockets, on kubelets that know SPDY only. Private to the module.
#pragma once

#include <string>

#include "nodes/nodes.h"

namespace holdfast::nodes {

// Responds with a WebSocket of v5.channel.k8s.io and connects it to the streams of the command at the kubelet
// (apiserver/pkg/util/proxy/streamtranslator.go). `path` includes the query.
Task<void> translate_remote_command(call::Call& call, const Nodes& nodes, Destination to, std::string path,
                                    Streams streams);

}  // namespace holdfast::nodes
