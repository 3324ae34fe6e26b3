#include "kube/exec_plugin.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "io/files.h"
#include "io/testing/temp_dir.h"

namespace kube {
namespace {

using namespace std::chrono_literals;

constexpr const char* kVersion = "client.authentication.k8s.io/v1";

base::Result<> MayRun(ExecPlugin plugin, const std::string& allowed = "") {
  if (plugin.api_version.empty()) plugin.api_version = kVersion;
  return Allow(plugin, "/home/x/.kube", allowed);
}

TEST(ExecPlugin, OnlyKnownProgramsMayRun) {
  for (const char* command : {"sh", "bash", "python3", "/bin/sh", "kubectl", "../aws", "env"}) {
    const auto may = MayRun({.command = command});
    ASSERT_FALSE(may) << command;
    EXPECT_TRUE(may.error().text().contains("TRAINYARD_EXEC_PLUGINS=")) << may.error().text();
  }
}

TEST(ExecPlugin, AKnownProgramThatIsMissingIsNamed) {
  const auto may = MayRun({.command = "aws-iam-authenticator"});
  ASSERT_FALSE(may);
  EXPECT_EQ(may.error().text(),
            "the program aws-iam-authenticator is not on PATH: install it, then try again");
}

TEST(ExecPlugin, TheUsersWordAllowsAnyProgram) {
  EXPECT_TRUE(MayRun({.command = "sh"}, "x, sh"));
  EXPECT_TRUE(MayRun({.command = "/bin/sh"}, "/bin/sh"));
  EXPECT_FALSE(MayRun({.command = "/bin/bash"}, "/bin/sh"));
}

TEST(ExecPlugin, APathIsNotTheKnownProgramOfThatName) {
  const io::testing::TempDir dir;
  const std::string impostor = dir.Write("sh", "#!/bin/sh\n", 0755);
  EXPECT_FALSE(MayRun({.command = impostor}, "sh"));
  EXPECT_TRUE(MayRun({.command = io::FindProgram("sh")}, "sh"));
}

TEST(ExecPlugin, ItsEnvironmentMayNotChangeWhatIsRun) {
  for (const char* entry :
       {"LD_PRELOAD=/tmp/x.so", "PATH=/tmp", "PYTHONPATH=/tmp", "=x", "AWS_CONFIG_FILE=/tmp/x"}) {
    const auto may = MayRun({.command = "sh", .env = {entry}}, "sh");
    ASSERT_FALSE(may) << entry;
    EXPECT_FALSE(may.error().text().contains("/tmp"));
  }
  EXPECT_TRUE(MayRun({.command = "sh", .env = {"AWS_PROFILE=x"}}, "sh"));
}

TEST(ExecPlugin, OldVersionsOfTheProtocolAreRefused) {
  EXPECT_FALSE(
      MayRun({.command = "sh", .api_version = "client.authentication.k8s.io/v1alpha1"}, "sh"));
  EXPECT_TRUE(
      MayRun({.command = "sh", .api_version = "client.authentication.k8s.io/v1beta1"}, "sh"));
}

Access Running(const std::string& script) {
  return {.server = "https://h",
          .exec = ExecPlugin{.command = "sh",
                             .program = "/bin/sh",
                             .args = {"-c", script},
                             .env = {"X=y"},
                             .api_version = kVersion,
                             .wants_cluster = true}};
}

TEST(ExecPlugin, WhatItPrintsIsTheCredential) {
  const auto credential =
      RunExecPlugin(Running(R"(echo '{"kind":"ExecCredential","status":{"token":"'$X'",)"
                            R"("expirationTimestamp":"2030-01-01T00:00:00Z"}}')"),
                    20s);
  ASSERT_TRUE(credential) << credential.error().text();
  EXPECT_EQ(credential->token, "y");
  EXPECT_EQ(credential->expires, base::ParseTime("2030-01-01T00:00:00Z"));
}

TEST(ExecPlugin, IsToldWhatItIsFor) {
  const io::testing::TempDir dir;
  const auto ran =
      RunExecPlugin(Running("printf %s \"$KUBERNETES_EXEC_INFO\" > " + dir.path() + "/info"), 20s);
  EXPECT_FALSE(ran);
  const auto info = base::ParseJson(io::ReadFile(dir.path() + "/info").value());
  EXPECT_EQ(*info, base::ParseJson(R"({"apiVersion":"client.authentication.k8s.io/v1",
      "kind":"ExecCredential","spec":{"interactive":false,"cluster":{"server":"https://h"}}})"));
}

TEST(ExecPlugin, ItsFailureIsTold) {
  EXPECT_EQ(RunExecPlugin(Running("exit 7"), 20s).error().text(),
            "exec plugin sh: it ended with status 7: log in again with it, or run it by hand to "
            "see why");
  EXPECT_EQ(RunExecPlugin(Running("exec sleep 1000"), 100ms).error().text(),
            "exec plugin sh: it did not end within 0.1 s");
}

TEST(ExecPlugin, WhatItPrintsIsNotShown) {
  for (const char* printed : {"", "canary", "{\"kind\":\"canary\"}", "[\"canary\"]",
                              R"({"kind":"ExecCredential","status":{}})",
                              R"({"kind":"ExecCredential","status":{"token":["canary"]}})",
                              R"({"kind":"ExecCredential","status":{"clientKeyData":"canary"}})",
                              R"({"kind":"ExecCredential","status":{"token":"canary",)"
                              R"("expirationTimestamp":"canary"}})"}) {
    const auto credential = ReadExecCredential(printed);
    ASSERT_FALSE(credential) << printed;
    EXPECT_FALSE(credential.error().text().contains("canary"));
  }
}

}  // namespace
}  // namespace kube
