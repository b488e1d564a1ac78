// Quantities in objects, already validated by the codec. Private to the module.
#pragma once

#include <string_view>

#include "codec/quantity.h"
#include "value/value.h"

namespace holdfast::kinds {

using codec::Quantity;

// Zero if the value is absent or not a quantity.
inline Quantity quantity_of(const Value* value) {
  if (value == nullptr || !value->is_string()) return {};
  Result<Quantity> quantity = Quantity::parse(value->as_string());
  return quantity ? *std::move(quantity) : Quantity();
}

}  // namespace holdfast::kinds
