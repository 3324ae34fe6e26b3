#include "io/certificate.h"

#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/testing/certificates.h"

namespace io {
namespace {

TEST(Certificate, TellsFromWhenToWhenItIsValid) {
  using std::chrono::days, std::chrono::abs;
  const testing::Authority authority;
  const auto validity =
      ValidityOf(authority.Issue({.valid_from_days = -10, .valid_days = 30}).certificate);
  ASSERT_TRUE(validity);
  EXPECT_LT(abs(validity->from - (Now() - days(10))), std::chrono::minutes(5));
  EXPECT_LT(abs(validity->to - (Now() + days(20))), std::chrono::minutes(5));
}

TEST(Certificate, WhatIsNoneIsAnError) {
  for (const std::string text : {"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n"}) {
    EXPECT_FALSE(ValidityOf(text));
  }
}

}  // namespace
}  // namespace io
