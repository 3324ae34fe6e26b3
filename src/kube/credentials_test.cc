#include "kube/credentials.h"

#include <gtest/gtest.h>

#include "io/files.h"
#include "io/testing/temp_dir.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
constexpr base::Time kStart{1'794'779'400s};

TEST(Credentials, ATokenAndAPasswordBecomeAHeader) {
  EXPECT_EQ(Credentials({.token = "abc"}).authorization(), "Bearer abc");
  EXPECT_EQ(Credentials({.username = "u", .password = "p"}).authorization(), "Basic dTpw");
  EXPECT_EQ(Credentials({}).authorization(), "");
}

TEST(Credentials, ATokenFileIsReadAgainEachMinute) {
  const io::testing::TempDir dir;
  const std::string file = dir.Write("token", "one\n");
  Credentials credentials({.token_file = file});
  ASSERT_TRUE(credentials.Refresh(kStart));
  EXPECT_EQ(credentials.authorization(), "Bearer one");
  dir.Write("token", "two");
  ASSERT_TRUE(credentials.Refresh(kStart + 59s));
  EXPECT_EQ(credentials.authorization(), "Bearer one");
  ASSERT_TRUE(credentials.Refresh(kStart + 60s));
  EXPECT_EQ(credentials.authorization(), "Bearer two");
}

TEST(Credentials, AFileThatVanishesLeavesTheOldToken) {
  const io::testing::TempDir dir;
  const std::string file = dir.Write("token", "one");
  Credentials credentials({.token_file = file});
  ASSERT_TRUE(credentials.Refresh(kStart));
  ASSERT_TRUE(io::RemoveTree(file));
  EXPECT_TRUE(credentials.Refresh(kStart + 1h));
  EXPECT_EQ(credentials.authorization(), "Bearer one");
}

TEST(Credentials, AFileThatHoldsNoTokenIsAnErrorThatDoesNotShowIt) {
  const io::testing::TempDir dir;
  for (const char* text : {"", "\n", "canary one", "canary\r\nX: y", "canary\x80"}) {
    Credentials credentials({.token_file = dir.Write("token", text)});
    const auto refreshed = credentials.Refresh(kStart);
    ASSERT_FALSE(refreshed);
    EXPECT_FALSE(refreshed.error().text().contains("canary"));
  }
}

TEST(Credentials, AreRenewedWhenTheFileHasOthers) {
  const io::testing::TempDir dir;
  Credentials credentials({.token_file = dir.Write("token", "one")});
  ASSERT_TRUE(credentials.Refresh(kStart));
  const uint64_t first = credentials.generation();
  EXPECT_FALSE(credentials.Renew(first, kStart + 20s));
  dir.Write("token", "two");
  EXPECT_FALSE(credentials.Renew(first, kStart + 25s));
  EXPECT_TRUE(credentials.Renew(first, kStart + 30s));
  EXPECT_TRUE(credentials.Renew(first, kStart + 31s));  // another request of the same time
  EXPECT_FALSE(Credentials({.token = "abc"}).Renew(1, kStart));
}

TEST(Credentials, APluginIsAskedAgainWhenWhatItSaidExpires) {
  const io::testing::TempDir dir;
  const std::string script = "echo x >> " + dir.path() + "/runs; n=$(wc -l < " + dir.path() +
                             "/runs); echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t'"
                             "$n'\",\"expirationTimestamp\":\"" +
                             base::FormatTime(kStart + 1h) + "\"}}'";
  Credentials credentials(
      {.exec = ExecPlugin{.command = "sh", .program = "/bin/sh", .args = {"-c", script}}});
  ASSERT_TRUE(credentials.Refresh(kStart));
  ASSERT_TRUE(credentials.Refresh(kStart + 59min));
  EXPECT_EQ(credentials.authorization(), "Bearer t1");
  ASSERT_TRUE(credentials.Refresh(kStart + 1h));
  EXPECT_EQ(credentials.authorization(), "Bearer t2");
  ASSERT_TRUE(credentials.Refresh(kStart + 1h + 1s));  // says the same again: not asked at once
  EXPECT_EQ(credentials.authorization(), "Bearer t2");
}

}  // namespace
}  // namespace kube
