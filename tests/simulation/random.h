// Random choices that are the same for the same seed on every machine (unlike std's distributions).
#pragma once

#include <cassert>
#include <cstdint>
#include <random>
#include <span>

namespace holdfast::simulation {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t number() { return engine_(); }
  uint64_t below(uint64_t end) {
    assert(end > 0);
    return engine_() % end;
  }
  bool percent(int chance) { return below(100) < static_cast<uint64_t>(chance); }
  template <class Items>
  const auto& one_of(const Items& items) {
    return *(std::begin(items) + static_cast<std::ptrdiff_t>(below(std::size(items))));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace holdfast::simulation
