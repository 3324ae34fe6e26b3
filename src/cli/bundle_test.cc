#include "cli/bundle.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

using base::CompactJson;
using base::Json;

const Json& At(const Json& object, std::string_view key) { return *base::Find(object, key); }

TEST(Bundle, TextAndBytesTravelAsTheyAre) {
  const Code code = {{"main.py", "print('naïve')\n"}, {"deep/data.bin", std::string("\0\xff", 2)}};
  const Json map = CodeConfigMap("j-code", "n", code);
  EXPECT_EQ(CompactJson(At(map, "data")), R"({"file-1":"print('naïve')\n"})");
  EXPECT_EQ(CompactJson(At(map, "binaryData")), R"({"file-0":"AP8="})");
  EXPECT_EQ(CompactJson(At(At(CodeVolume("j-code", code), "configMap"), "items")),
            R"([{"key":"file-0","path":"deep/data.bin"},{"key":"file-1","path":"main.py"}])");
}

TEST(Bundle, ValuesOfAnEnvFileAreInASecret) {
  const Json secret = EnvSecret("j-env", "n", {{"TOKEN", "hunter2"}});
  EXPECT_EQ(base::StringOr(secret, "kind"), "Secret");
  EXPECT_EQ(CompactJson(At(secret, "data")), R"({"TOKEN":"aHVudGVyMg=="})");
}

TEST(Output, IsAClaimANewOneAUrlOrNone) {
  const auto claim = ParseOutput("models/mnist/1");
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->kind, OutputWish::Kind::kClaim);
  EXPECT_EQ(claim->claim, "models");
  EXPECT_EQ(claim->path, "mnist/1");
  const auto fresh = ParseOutput("new:20Gi:fast");
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->kind, OutputWish::Kind::kNew);
  EXPECT_EQ(fresh->size, "20Gi");
  EXPECT_EQ(fresh->storage_class, "fast");
  EXPECT_EQ(ParseOutput("s3://bucket/x/")->url, "s3://bucket/x");
  EXPECT_EQ(ParseOutput("none")->kind, OutputWish::Kind::kNone);
}

TEST(Output, RefusesWhatIsNotOnTheCluster) {
  for (const char* text : {"", "/tmp/out", "./out", "claim/../other", "new:much", "new:1Gi:a:b"})
    EXPECT_FALSE(ParseOutput(text)) << text;
}

TEST(Output, AClaimOfSeveralReplicasIsShared) {
  const auto modes = [](bool shared) {
    return CompactJson(At(At(OutputClaim("j", "n", {}, shared), "spec"), "accessModes"));
  };
  EXPECT_EQ(modes(true), R"(["ReadWriteMany"])");
  EXPECT_EQ(modes(false), R"(["ReadWriteOnce"])");
}

}  // namespace
}  // namespace cli
