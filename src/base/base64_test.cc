#include "base/base64.h"

#include <random>

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Base64, IsAsInTheRfc) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : cases) {
    EXPECT_EQ(EncodeBase64(plain), encoded);
    EXPECT_EQ(DecodeBase64(encoded), plain);
  }
}

TEST(Base64, WhatWasEncodedDecodesToTheSame) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (auto n = random() % 50; n > 0; --n) bytes += static_cast<char>(random());
    ASSERT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
  }
}

TEST(Base64, SkipsLineBreaks) { EXPECT_EQ(DecodeBase64("Zm9v\r\nYg=\n=\n"), "foob"); }

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zm8==", "=", "==", "====", "Zm9v=", "Z===",
                           "Zg==Zg==", "Zm 9v", "Zm9-", "Zm9v\x80", "Zm9v===="}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

}  // namespace
}  // namespace base
