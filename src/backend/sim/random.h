// The only source of chance in a simulated life: the same seed gives the same life.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace backend::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  // SplitMix64.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int32_t Below(int32_t n) {
    return n <= 1 ? 0 : static_cast<int32_t>(Next() % static_cast<uint64_t>(n));
  }
  bool Chance(int32_t percent) { return Below(100) < percent; }
  base::Duration Between(base::Duration from, base::Duration to) {
    return from + base::Duration(static_cast<int64_t>(
                      Next() % static_cast<uint64_t>((to - from).count() + 1)));
  }

 private:
  uint64_t state_;
};

}  // namespace backend::sim
