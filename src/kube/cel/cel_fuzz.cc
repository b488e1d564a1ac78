// Parser, checker, estimate and evaluator: they must not crash, and the cost limit must hold for any expression.
#include <cassert>
#include <cstdint>
#include <string_view>

#include "cel/cel.h"
#include "codec/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace holdfast;
  static Arena object_arena;
  static const Value kObject = *codec::decode_json(
      object_arena, R"({"a":{"b":1,"c":[1,2.5,"x",null]},"s":"text","m":{"k":"v"},"l":[{"n":1},{"n":2}],"t":true})");
  static const auto kEnvironment = [] {
    cel::Environment::Options options;
    options.variables = {{"o", cel::dyn_type()}, {"s", cel::string_type()}, {"n", cel::int_type()}};
    options.mutation = true;
    return cel::Environment::make(std::move(options));
  }();
  if (size > 4096) return 0;
  const cel::Environment::Compiled compiled = kEnvironment->compile({reinterpret_cast<const char*>(data), size});
  if (compiled.program == nullptr) {
    assert(!compiled.error.text.empty());
    return 0;
  }
  Arena arena;
  cel::Bindings bindings(*kEnvironment);
  bindings.set(0, cel::Val::data(kObject));
  bindings.set(1, cel::Val::string("some text"));
  bindings.set(2, cel::Val::integer(7));
  const cel::Outcome outcome = compiled.program->evaluate(bindings, arena, 10'000);
  if (outcome.cost > 10'000) assert(outcome.value.is_error() && outcome.value.text() == cel::kCostLimitExceeded);
  (void)outcome.value.shown();
  return 0;
}
