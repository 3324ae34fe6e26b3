// What is refused before a cluster hears of it.
#include <gtest/gtest.h>

#include "cli/tf_spawner.h"

namespace cli {
namespace {

Spawn Tagged(const std::string& tag) { return {.tag = tag}; }

std::string Refusal(const Spawn& spawn) {
  auto good = CheckSpawn(spawn);
  return good ? "" : good.error().text();
}

TEST(TfSpawnerTemplate, WhatIsNoneIsRefusedWithItsPlace) {
  const auto refusal = [](std::string_view text) {
    auto pod = ReadPodFile(text, "a.yaml");
    return pod ? "" : pod.error().text();
  };
  EXPECT_EQ(refusal("kind: Deployment"), "a.yaml: must be a Pod");
  EXPECT_EQ(refusal(""), "a.yaml: must be a Pod");
  EXPECT_EQ(refusal("a: [").substr(0, 9), "a.yaml:2:");
  EXPECT_EQ(refusal("spec: {}"), "a.yaml: spec.containers: must be a list with a container");
  EXPECT_EQ(refusal("spec: {containers: [1]}"), "a.yaml: spec.containers: must be a list of maps");
  EXPECT_EQ(refusal("spec: {containers: [{env: 1}]}"),
            "a.yaml: spec.containers: env: must be a list");
  EXPECT_EQ(refusal("{metadata: {labels: 1}, spec: {containers: [{}]}}"),
            "a.yaml: metadata.labels: must be a map");
}

TEST(TfSpawnerCheck, TagsThatNameNoServiceAreRefused) {
  for (const char* tag : {"", "a,b", "a b", "-a", "a-", "a/b", "ä"}) {
    EXPECT_FALSE(CheckTag(tag)) << tag;
    EXPECT_NE(Refusal(Tagged(tag)), "") << tag;
  }
  for (const char* tag : {"A", "1a", "a_b", "a.b"}) {
    EXPECT_TRUE(CheckTag(tag)) << tag;  // TF-Spawner has made such
    EXPECT_NE(Refusal(Tagged(tag)), "") << tag;
  }
}

TEST(TfSpawnerCheck, NamesThatGetTooLongAreRefused) {
  Spawn spawn = Tagged(std::string(55, 'a'));
  EXPECT_EQ(Refusal(spawn), "");
  spawn.workers = 11;
  EXPECT_EQ(Refusal(spawn).substr(0, 38), "--tag: must have at most 54 characters");
}

TEST(TfSpawnerCheck, AScriptThatNoConfigMapHoldsIsRefused) {
  Spawn spawn;
  spawn.script = std::string(1 << 20, '#');
  EXPECT_EQ(Refusal(spawn), "");
  spawn.command = "#";
  EXPECT_NE(Refusal(spawn).find("1 MiB that a ConfigMap holds: put its modules"),
            std::string::npos);
}

}  // namespace
}  // namespace cli
