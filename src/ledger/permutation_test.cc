#include "ledger/permutation.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace ledger {
namespace {

std::vector<int64_t> Order(uint64_t seed, uint64_t epoch, int64_t n) {
  const Permutation permutation(seed, epoch, n);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) order.push_back(permutation(i));
  return order;
}

TEST(Permutation, IsABijectionWithAnInverseForEverySize) {
  for (int64_t n = 1; n <= 300; ++n) {
    const Permutation permutation(9, 3, n);
    std::vector<bool> seen(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = permutation(i);
      ASSERT_TRUE(value >= 0 && value < n);
      ASSERT_FALSE(seen[static_cast<size_t>(value)]) << n;
      seen[static_cast<size_t>(value)] = true;
      ASSERT_EQ(permutation.Inverse(value), i);
    }
  }
}

TEST(Permutation, HasAnInverseForTheLargestSizes) {
  for (const int64_t n : {int64_t{10'000'000'000}, (int64_t{1} << 60), (int64_t{1} << 60) - 1}) {
    const Permutation permutation(1, 1, n);
    for (int64_t i = 0; i < 1000; ++i) {
      const int64_t at = n / 1000 * i;
      ASSERT_LT(permutation(at), n);
      ASSERT_EQ(permutation.Inverse(permutation(at)), at);
    }
  }
}

// A log is replayed by later versions: this order is part of its format.
TEST(Permutation, IsTheSameInEveryVersion) {
  EXPECT_EQ(Order(42, 1, 10), (std::vector<int64_t>{4, 9, 3, 8, 5, 0, 7, 6, 2, 1}));
}

TEST(Permutation, DiffersByEpochAndBySeed) {
  EXPECT_NE(Order(1, 1, 100), Order(1, 2, 100));
  EXPECT_NE(Order(1, 1, 100), Order(2, 1, 100));
  EXPECT_NE(Order(0, 1, 100), Order(1, 0, 100));
}

// Chi squared over 10,000 seeds. By chance it is 81 (9 x 9 degrees of freedom), give or take 13.
TEST(Permutation, PutsEachValueAtEachPlaceEquallyOften) {
  constexpr int64_t n = 10;
  std::vector<std::vector<int>> counts(n, std::vector<int>(n));
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    const auto order = Order(seed, 1, n);
    for (size_t i = 0; i < n; ++i) ++counts[i][static_cast<size_t>(order[i])];
  }
  double chi = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi += (count - 1000.0) * (count - 1000.0) / 1000;
  }
  EXPECT_LT(chi, 81 + 5 * 13);
}

}  // namespace
}  // namespace ledger
