// Any text as a quantity or a duration: never a crash; what is printed reads back as the same value.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "codec/codec.h"

using namespace holdfast;         // NOLINT
using namespace holdfast::codec;  // NOLINT

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto quantity = Quantity::parse(text)) {
    const std::string canonical = quantity->canonical();
    const auto again = Quantity::parse(canonical);
    check(again.ok());
    // Beyond exa a decimal quantity prints without its suffix, in Kubernetes too.
    const bool too_large =
        quantity->format() != Quantity::Format::DecimalExponent && *quantity >= *Quantity::parse("1000E");
    const bool too_small = *quantity <= *Quantity::parse("-1000E");
    if (!too_large && !too_small) check(*again == *quantity);
    check(!(*quantity + *quantity < *quantity) || quantity->sign() < 0);
    check((*quantity - *quantity).is_zero());
  }
  if (const auto duration = parse_duration(text)) check(parse_duration(duration_text(*duration)) == duration);
  return 0;
}
