// Amounts of resources by name, and the resource requirements of pods. Private to the module.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "codec/quantity.h"
#include "value/value.h"

namespace holdfast::admission {

using Amounts = std::map<std::string, codec::Quantity, std::less<>>;

// Zero if the value is not a quantity.
codec::Quantity quantity_of(const Value* value);
Amounts amounts_in(const Value& holder, std::string_view member);
// The amounts in holder.resources; `list` is "requests" or "limits".
Amounts amounts_of(const Value& holder, std::string_view list);

void add(Amounts& to, const Amounts& more);
void keep_larger(Amounts& to, const Amounts& other);

// The requirements of a whole pod (`list` is "requests" or "limits"): the sum of its containers, or its largest init
// container plus the sidecars before it; pod-level resources take precedence. With PodView::Running, the actual
// resources of its containers are used where they are larger, since a resize may be in progress.
enum class PodView : uint8_t { Spec, Running };
Amounts pod_amounts(const Value& pod, std::string_view list, PodView view = PodView::Spec);

}  // namespace holdfast::admission
