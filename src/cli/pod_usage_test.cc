#include "cli/pod_usage.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(PodUsage, OfBothKindsOfCgroups) {
  const auto second =
      ReadCgroupFiles("usage_usec 1500000\nuser_usec 1000000\nnr_periods 0\n4096\n");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->cpu_micros, 1'500'000);
  EXPECT_EQ(second->memory, 4096);
  const auto first = ReadCgroupFiles("1500000000\n4096\n");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cpu_micros, 1'500'000);
  EXPECT_EQ(first->memory, 4096);
}

TEST(PodUsage, WhatIsNeitherIsNothing) {
  for (const char* text : {"", "usage_usec 5\n", "1\n", "1\n2\n3\n", "usage_usec x\n1\n", "<html>"})
    EXPECT_FALSE(ReadCgroupFiles(text)) << text;
}

}  // namespace
}  // namespace cli
