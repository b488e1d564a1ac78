// Arbitrary text as a quantity or a duration: never crashes; printed values parse to the same value.
#include <cassert>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "codec/codec.h"

using namespace holdfast;         // NOLINT
using namespace holdfast::codec;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto quantity = Quantity::parse(text)) {
    const std::string canonical = quantity->canonical();
    const auto again = Quantity::parse(canonical);
    assert(again.ok());
    // Beyond exa, a decimal quantity is printed without its suffix, like in Kubernetes.
    const bool too_large =
        quantity->format() != Quantity::Format::DecimalExponent && *quantity >= *Quantity::parse("1000E");
    const bool too_small = *quantity <= *Quantity::parse("-1000E");
    if (!too_large && !too_small) assert(*again == *quantity);
    assert(!(*quantity + *quantity < *quantity) || quantity->sign() < 0);
    assert((*quantity - *quantity).is_zero());
  }
  if (const Result<int64_t> duration = parse_go_duration(text)) {
    assert(*parse_go_duration(format_go_duration(std::chrono::nanoseconds(*duration))) == *duration);
  }
  return 0;
}
