#include "cli/trial_job.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

std::string Output(const std::string& said, int64_t life = 1) {
  return OutputOnCluster({.name = "nine", .output = said}, "004-lr=0.1", life);
}

TEST(TrialOutput, OnAClaimThatIsSharedEveryTrialHasAFolder) {
  EXPECT_EQ(Output("nfs"), "nfs/nine/004-lr=0.1");
  EXPECT_EQ(Output("nfs/of/ours/"), "nfs/of/ours/nine/004-lr=0.1");
}

TEST(TrialOutput, ATrialThatBeginsAgainFindsNothingOfItsFirstLife) {
  EXPECT_EQ(Output("nfs", 2), "nfs/nine/004-lr=0.1.2");
  EXPECT_EQ(Output("s3://bucket/a", 2), "s3://bucket/a/2");
}

TEST(TrialOutput, OtherwiseItIsAsRunHasIt) {
  for (const char* said : {"", "new", "new:1Gi:fast", "none", "s3://bucket/a"})
    EXPECT_EQ(Output(said), said);
  EXPECT_EQ(Output("new", 2), "new");  // whose claim went with it
}

}  // namespace
}  // namespace cli
