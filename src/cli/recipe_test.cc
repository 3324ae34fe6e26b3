#include "cli/recipe.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(Recipe, CodeAndScript) {
  EXPECT_EQ(Dockerfile({.script = "train.py"}),
            "FROM tensorflow/tensorflow:2.15.0\n"
            "COPY --chown=1000:1000 . /trainyard/code\n"
            "WORKDIR /trainyard/code\n"
            "ENV HOME=/tmp PYTHONUNBUFFERED=1\n"
            "USER 1000:1000\n"
            "ENTRYPOINT [\"python3\",\"/trainyard/code/train.py\"]\n");
}

TEST(Recipe, RequirementsAreInstalledBeforeTheCodeIsCopied) {
  const std::string text = Dockerfile({.base = "a:1", .script = "main.py", .requirements = true});
  EXPECT_TRUE(
      text.starts_with("FROM a:1\n"
                       "COPY requirements.txt /trainyard/requirements.txt\n"
                       "RUN [\"python3\",\"-m\",\"pip\","))
      << text;
  EXPECT_LT(text.find("RUN"), text.find("COPY --chown"));
}

TEST(Recipe, TheNameOfAScriptIsNotRead) {
  EXPECT_NE(Dockerfile({.script = "a \"b\" $c.py"}).find("/trainyard/code/a \\\"b\\\" $c.py\"]"),
            std::string::npos);
}

TEST(ZooRecipe, OfTheMasterIsTheModelsAndNothingToInstall) {
  EXPECT_EQ(ZooDockerfile({.base = "trainyard:latest", .python = false, .model_zoo = "zoo"}),
            "# Written by elasticdl zoo init.\n"
            "FROM trainyard:latest\n"
            "COPY [\"zoo\",\"/model_zoo\"]\n");
}

TEST(ZooRecipe, OfABaseWithPythonInstallsTheClientOrWheels) {
  EXPECT_EQ(
      ZooDockerfile({.base = "python:3.9", .index = "https://i/simple", .requirements = true}),
      "# Written by elasticdl zoo init.\n"
      "FROM python:3.9\n"
      "RUN [\"python3\",\"-m\",\"pip\",\"install\",\"--no-cache-dir\","
      "\"--extra-index-url=https://i/simple\",\"elasticai_api\",\"packaging\",\"grpcio\"]\n"
      "COPY [\"./requirements.txt\",\"/model_zoo/requirements.txt\"]\n"
      "RUN [\"python3\",\"-m\",\"pip\",\"install\",\"--no-cache-dir\","
      "\"--extra-index-url=https://i/simple\",\"-r\",\"/model_zoo/requirements.txt\"]\n"
      "RUN [\"python3\",\"-c\",\"import elasticai_api.common.data_shard_service\"]\n"
      "COPY [\".\",\"/model_zoo\"]\n"
      "ENV PYTHONPATH=/ PYTHONUNBUFFERED=1\n");
  const std::string wheels = ZooDockerfile(
      {.base = "a", .wheels = {"w/a.whl"}, .model_zoo = "z", .cluster_spec = "c/spec.py"});
  EXPECT_NE(wheels.find("COPY [\"w/a.whl\",\"/wheels/a.whl\"]\n"), std::string::npos) << wheels;
  EXPECT_NE(wheels.find("\"/wheels/a.whl\"]\nCOPY [\"z\""), std::string::npos) << wheels;
  EXPECT_NE(wheels.find("COPY [\"c/spec.py\",\"/cluster_spec/spec.py\"]\n"), std::string::npos);
}

TEST(Recipe, AnImageHasAName) {
  for (const char* good : {"a", "mnist:1", "registry.example:5000/team/mnist@sha256:0a"})
    EXPECT_TRUE(CheckImageName("-t", good)) << good;
  for (const char* bad : {"", "--push", "a b", "a\nRUN x", ":1"})
    EXPECT_FALSE(CheckImageName("-t", bad)) << bad;
  EXPECT_EQ(CheckImageName("-t", "a b").error().text(),
            "-t: must be an image's name, like registry.example/team/mnist:1, not 'a b'");
}

}  // namespace
}  // namespace cli
