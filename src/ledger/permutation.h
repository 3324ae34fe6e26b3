// The order of the shards, or of the records, of an epoch: a bijection of [0, n) that is computed,
// not stored, and is a pure function of (seed, epoch, n).
//
// A Feistel network over the smallest even number of bits that holds n, walked along its cycle
// until it lands in [0, n): less than four steps on average. It is for shuffling, not for secrecy.
#pragma once

#include <array>
#include <cstdint>

namespace ledger {

class Permutation {
 public:
  // n is at least 1.
  Permutation(uint64_t seed, uint64_t epoch, int64_t n);

  int64_t operator()(int64_t i) const;  // 0 <= i < n
  int64_t Inverse(int64_t value) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Round(int round, uint64_t half) const;

  uint64_t n_;
  int half_bits_;
  uint64_t half_mask_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace ledger
