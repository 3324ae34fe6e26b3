// The check of the checks: every planted bug is found, and without a bug nothing is.
#include "core/planted_bugs.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "backend/sim/life.h"

namespace {

constexpr uint64_t kMostLives = 10'000;

// The number of lives it took, or nothing.
std::optional<uint64_t> LivesToFind(int bug, uint64_t most, std::string& finding) {
  core::planted_bug = bug;
  for (uint64_t seed = 1; seed <= most; ++seed) {
    finding = backend::sim::Life(seed).finding;
    if (!finding.empty()) return seed;
  }
  return std::nullopt;
}

TEST(PlantedBugs, AreAllFound) {
  for (int bug = 1; bug < static_cast<int>(core::Planted::kCount); ++bug) {
    std::string finding;
    const auto lives = LivesToFind(bug, kMostLives, finding);
    EXPECT_TRUE(lives) << "bug " << bug << " (core/planted_bugs.h) is not found";
    if (lives) fmt::print("bug {:2}: {:5} lives: {}\n", bug, *lives, finding);
  }
}

TEST(PlantedBugs, NothingIsFoundWithoutOne) {
  std::string finding;
  EXPECT_EQ(LivesToFind(0, kMostLives, finding), std::nullopt) << finding;
}

}  // namespace
