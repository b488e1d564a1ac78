// Amounts of resources by name, and what a pod asks for. Private to the module.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "codec/quantity.h"
#include "value/value.h"

namespace holdfast::admission {

using Amounts = std::map<std::string, codec::Quantity, std::less<>>;

// Zero if it is not a quantity.
codec::Quantity quantity_of(const Value* value);
Amounts amounts_in(const Value& holder, std::string_view member);
// Of holder.resources: "requests" or "limits".
Amounts amounts_of(const Value& holder, std::string_view list);

void add(Amounts& to, const Amounts& more);
void keep_larger(Amounts& to, const Amounts& other);

// What a whole pod asks for (`list`: "requests" or "limits"): its containers together, or its largest init container
// with the sidecars before it; what is said of the pod as a whole wins.
// With `running`, what its containers have at this moment counts where it is more: a resize may be in progress.
enum class PodView : uint8_t { Spec, Running };
Amounts pod_amounts(const Value& pod, std::string_view list, PodView view = PodView::Spec);

}  // namespace holdfast::admission
