// trainyard_embed of cmake/folders.cmake.
#include <gtest/gtest.h>

#include "embedded_oddities.h"

TEST(Embed, KeepsEveryByte) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  EXPECT_EQ(embedded_oddities::kEveryByteBin, every);
}

TEST(Embed, KeepsNothing) { EXPECT_EQ(embedded_oddities::kEmptyTxt, ""); }
