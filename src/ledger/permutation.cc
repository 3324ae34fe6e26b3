#include "ledger/permutation.h"

#include <bit>
#include <utility>

#include "base/result.h"

namespace ledger {
namespace {

// The finalizer of SplitMix64: each bit of the input reaches each bit of the output.
constexpr uint64_t Mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

}  // namespace

Permutation::Permutation(uint64_t seed, uint64_t epoch, int64_t n) : n_(static_cast<uint64_t>(n)) {
  CHECK(n >= 1);
  const auto bits = static_cast<int>(std::bit_width(n_ - 1));
  half_bits_ = bits < 2 ? 1 : (bits + 1) / 2;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
  uint64_t state = Mixed(seed + kGolden) ^ Mixed(epoch * kGolden + 1);
  for (uint64_t& key : keys_) key = Mixed(state += kGolden);
}

uint64_t Permutation::Round(int round, uint64_t half) const {
  return Mixed(half * kGolden + keys_[static_cast<size_t>(round)]) & half_mask_;
}

int64_t Permutation::operator()(int64_t i) const {
  auto value = static_cast<uint64_t>(i);
  CHECK(value < n_);
  do {
    uint64_t left = value >> half_bits_;
    uint64_t right = value & half_mask_;
    for (int round = 0; round < kRounds; ++round) {
      left ^= Round(round, right);
      std::swap(left, right);
    }
    value = left << half_bits_ | right;
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

int64_t Permutation::Inverse(int64_t of) const {
  auto value = static_cast<uint64_t>(of);
  CHECK(value < n_);
  do {
    uint64_t left = value >> half_bits_;
    uint64_t right = value & half_mask_;
    for (int round = kRounds; round-- > 0;) {
      std::swap(left, right);
      left ^= Round(round, right);
    }
    value = left << half_bits_ | right;
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

}  // namespace ledger
