// Random numbers that depend on a seed, a trial and a purpose, and on nothing else: what a trial
// draws is the same whoever ran before it, on any number of slots, before and after a crash.
//
// SplitMix64 (Steele, Lea, Flood 2014); the distributions are ours, since those of the standard
// library differ between libraries.
#pragma once

#include <cmath>
#include <cstdint>

namespace sweep {

class Rng {
 public:
  Rng(uint64_t seed, uint64_t trial, uint64_t purpose = 0)
      : state_(Mixed(Mixed(Mixed(seed) + trial) ^ (purpose * 0x9e3779b97f4a7c15ULL))) {}

  uint64_t Next() { return Mixed(state_ += 0x9e3779b97f4a7c15ULL); }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Below `count`; the bias is below 2^-40 for any count that occurs here.
  uint64_t Below(uint64_t count) {
    return static_cast<uint64_t>(Uniform() * static_cast<double>(count));
  }
  double Normal() {
    return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(6.283185307179586 * Uniform());
  }

 private:
  static uint64_t Mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace sweep
