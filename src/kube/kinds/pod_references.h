// The Secrets and ConfigMaps that a pod needs on its node.
#pragma once

#include <functional>
#include <string_view>

#include "value/value.h"

namespace holdfast::kinds {

// Calls `see` with each name that is not empty, as often as the pod refers to it. Matches VisitPodSecretNames and
// VisitPodConfigmapNames in pkg/api/v1/pod/util.go.
void visit_secrets(const Value& pod, const std::function<void(std::string_view name)>& see);
void visit_config_maps(const Value& pod, const std::function<void(std::string_view name)>& see);

}  // namespace holdfast::kinds
