#include "cli/tf_spawner.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "io/files.h"
#include "templates.h"

namespace cli {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

Json Template(std::string_view yaml) {
  auto pod = ReadPodFile(yaml, "pod.yaml");
  EXPECT_TRUE(pod) << pod.error().text();
  return pod.value_or(Json());
}

constexpr std::string_view kPlain = "spec: {containers: [{name: tensorflow}]}";

Spawn Plain() { return {.script = "print(1)\n", .pod = Template(kPlain)}; }

Spawn Tagged(const std::string& tag) {
  Spawn spawn = Plain();
  spawn.tag = tag;
  return spawn;
}

std::vector<std::string> NamesOf(const Spawn& spawn) {
  std::vector<std::string> out;
  for (const Piece& piece : PiecesOf(spawn)) {
    out.push_back(std::string(piece.resource) + "/" +
                  base::StringOr(*base::Find(piece.object, "metadata"), "name"));
  }
  return out;
}

// The n-th object of a kind.
Json Made(const Spawn& spawn, std::string_view resource, int n = 0) {
  for (const Piece& piece : PiecesOf(spawn)) {
    if (piece.resource == resource && n-- == 0) return piece.object;
  }
  ADD_FAILURE() << "not made: " << resource;
  return {};
}

Json PodSpec(const Spawn& spawn, int worker = 0) {
  return *base::Find(Made(spawn, "pods", worker), "spec");
}

Json Container(const Spawn& spawn, int worker = 0, size_t which = 0) {
  return base::Find(PodSpec(spawn, worker), "containers")->get_array().at(which);
}

// The variable as the container has it, null if it has none, a list if it has several.
Json Variable(const Json& container, std::string_view name) {
  JsonArray found;
  for (const Json& variable : base::Find(container, "env")->get_array()) {
    if (base::StringOr(variable, "name") == name) found.push_back(variable);
  }
  return found.empty() ? Json() : found.size() == 1 ? found[0] : Json(found);
}

std::string ValueOf(const Json& container, std::string_view name) {
  return base::StringOr(Variable(container, name), "value");
}

TEST(TfSpawner, MakesTheObjectsOfTfSpawnerUnderTheDefaultTag) {
  EXPECT_EQ(NamesOf(Plain()),
            (std::vector<std::string>{"configmaps/script", "services/worker0", "services/worker1",
                                      "pods/worker0", "pods/worker1"}));
}

TEST(TfSpawner, LabelsEverythingWithTheTag) {
  Spawn spawn = Tagged("x");
  spawn.env = {{"A", "1"}};
  for (const Piece& piece : PiecesOf(spawn)) {
    const Json* labels = base::Find(*base::Find(piece.object, "metadata"), "labels");
    EXPECT_EQ(base::StringOr(*labels, "training_attempt"), "x") << piece.kind;
  }
  EXPECT_EQ(SelectorOf("x"), "training_attempt=x");
}

TEST(TfSpawner, TellsEachWorkerWhoTheOthersAre) {
  Spawn spawn = Tagged("x");
  spawn.port = 2000;
  const Json container = Container(spawn, 1);
  EXPECT_EQ(ValueOf(container, "TF_CONFIG"),
            R"({"cluster":{"worker":["x-worker0:2000","x-worker1:2000"]},)"
            R"("task":{"type":"worker","index":1}})");
  EXPECT_EQ(ValueOf(container, "WORKER_NUMBER"), "1");
  EXPECT_EQ(ValueOf(container, "TOT_WORKERS"), "2");
}

TEST(TfSpawner, TellsAWorkerAloneToo) {
  Spawn spawn = Plain();
  spawn.workers = 1;
  EXPECT_EQ(ValueOf(Container(spawn), "TF_CONFIG"),
            R"({"cluster":{"worker":["worker0:1999"]},"task":{"type":"worker","index":0}})");
}

TEST(TfSpawner, RunsTheScriptOfTheConfigMap) {
  const Json spec = PodSpec(Plain()), container = Container(Plain());
  EXPECT_EQ(*base::Find(container, "command"),
            (JsonArray{Json("python"), Json("/script/training-script.py")}));
  EXPECT_EQ(base::CompactJson(*base::Find(container, "volumeMounts")),
            R"([{"name":"script","mountPath":"/script","readOnly":true}])");
  EXPECT_EQ(base::CompactJson(*base::Find(spec, "volumes")),
            R"([{"name":"script","configMap":{"name":"script"}}])");
  EXPECT_EQ(base::StringOr(spec, "restartPolicy"), "Never");
}

TEST(TfSpawner, CarriesTheScriptByteForByte) {
  Spawn spawn = Plain();
  spawn.script = "print('ä')\r\n\t\x01 $(HOME) %s\n\n";
  EXPECT_EQ(base::StringOr(*base::Find(Made(spawn, "configmaps"), "data"), "training-script.py"),
            spawn.script);
}

TEST(TfSpawner, CarriesAScriptThatIsNotUtf8) {
  Spawn spawn = Plain();
  spawn.script = "# -*- coding: latin-1 -*-\nprint('\xe4')\n";
  const Json made = Made(spawn, "configmaps");
  EXPECT_EQ(base::Find(made, "data"), nullptr);
  EXPECT_EQ(
      base::DecodeBase64(base::StringOr(*base::Find(made, "binaryData"), "training-script.py")),
      spawn.script);
}

// -- what TF-Spawner does wrong, by the numbers of docs/tf-spawner.md

TEST(TfSpawnerRepaired, TwoTagsShareNoName) {
  Spawn first = Plain(), second = Tagged("x");
  first.env = second.env = {{"A", "1"}};
  std::vector<std::string> names = NamesOf(first);
  for (const std::string& name : NamesOf(second)) {
    EXPECT_EQ(std::ranges::count(names, name), 0) << name;
  }
  EXPECT_EQ(NamesOf(second).front(), "configmaps/x-script");
  EXPECT_EQ(base::CompactJson(*base::Find(PodSpec(second), "volumes")),
            R"([{"name":"script","configMap":{"name":"x-script"}}])");
}

TEST(TfSpawnerRepaired, ACommandIsRunAsItIsWritten) {
  Spawn spawn = Plain();
  spawn.command =
      "# a comment first\nif true; then\n  python \\\n  /script/training-script.py\nfi\n";
  spawn.pod = Template("spec: {containers: [{name: a, command: [sh], args: [x]}]}");
  EXPECT_EQ(base::StringOr(*base::Find(Made(spawn, "configmaps"), "data"), "command.sh"),
            *spawn.command);
  const Json container = Container(spawn);
  EXPECT_EQ(*base::Find(container, "command"),
            (JsonArray{Json("/bin/bash"), Json("-e"), Json("/script/command.sh")}));
  EXPECT_EQ(base::Find(container, "args"), nullptr);
}

TEST(TfSpawnerRepaired, TheTemplatesImageAndVariablesAreKept) {
  Spawn spawn = Plain();
  spawn.pod = Template(
      "spec: {containers: [{name: tensorflow, image: mine:1, env: [{name: A, value: $(TF_CONFIG)}, "
      "{name: TOT_WORKERS, value: '9'}]}]}");
  const Json container = Container(spawn);
  EXPECT_EQ(base::StringOr(container, "image"), "mine:1");
  EXPECT_EQ(ValueOf(container, "A"), "$(TF_CONFIG)");
  EXPECT_EQ(ValueOf(container, "TOT_WORKERS"), "9");
  // It may refer to what comes before it.
  EXPECT_EQ(base::StringOr(base::Find(container, "env")->get_array().front(), "name"), "TF_CONFIG");

  spawn.image = "other:2";
  EXPECT_EQ(base::StringOr(Container(spawn), "image"), "other:2");
}

TEST(TfSpawnerRepaired, OtherContainersAreLeftAlone) {
  Spawn spawn = Plain();
  spawn.image = "other:2";
  spawn.pod = Template("spec: {containers: [{name: proxy, image: p:1}, {name: tensorflow}]}");
  EXPECT_EQ(base::CompactJson(Container(spawn, 0, 0)), R"({"name":"proxy","image":"p:1"})");
  EXPECT_EQ(base::StringOr(Container(spawn, 0, 1), "image"), "other:2");
}

TEST(TfSpawnerRepaired, AServiceLeadsToThePodsOfItsTagOnly) {
  const Json spec = *base::Find(Made(Tagged("x"), "services", 1), "spec");
  EXPECT_EQ(base::CompactJson(*base::Find(spec, "selector")),
            R"({"app":"worker1","training_attempt":"x"})");
  EXPECT_EQ(base::CompactJson(*base::Find(spec, "ports")),
            R"([{"protocol":"TCP","port":1999,"targetPort":1999}])");
  const Json pod = Made(Tagged("x"), "pods", 1);
  EXPECT_EQ(base::CompactJson(*base::Find(*base::Find(pod, "metadata"), "labels")),
            R"({"app":"worker1","training_attempt":"x"})");
}

TEST(TfSpawnerRepaired, ServicesComeBeforePods) {
  const auto pieces = PiecesOf(Plain());
  const auto first_pod = std::ranges::find(pieces, "pods", &Piece::resource);
  EXPECT_EQ(std::find_if(first_pod, pieces.end(),
                         [](const Piece& piece) { return piece.resource == "services"; }),
            pieces.end());
}

TEST(TfSpawnerRepaired, CredentialsAreNotInPods) {
  Spawn spawn = Tagged("x");
  spawn.env = {{"AWS_SECRET_ACCESS_KEY", "hunter2"}, {"TF_CONFIG", ""}};
  spawn.pod = Template(
      "spec: {containers: [{name: a, env: [{name: AWS_SECRET_ACCESS_KEY, value: none}]}]}");
  const Json secret = Made(spawn, "secrets"), container = Container(spawn);
  EXPECT_EQ(base::StringOr(*base::Find(secret, "data"), "AWS_SECRET_ACCESS_KEY"),
            base::EncodeBase64("hunter2"));
  for (const Piece& piece : PiecesOf(spawn)) {
    EXPECT_EQ(base::CompactJson(piece.object).find("hunter2"), std::string::npos) << piece.kind;
  }
  // And they win over the template's, and over ours.
  EXPECT_EQ(base::CompactJson(Variable(container, "AWS_SECRET_ACCESS_KEY")),
            R"({"name":"AWS_SECRET_ACCESS_KEY","valueFrom":{"secretKeyRef":)"
            R"({"name":"x-script-env","key":"AWS_SECRET_ACCESS_KEY"}}})");
  EXPECT_NE(base::Find(Variable(container, "TF_CONFIG"), "valueFrom"), nullptr);
}

// -- templates

TEST(TfSpawnerTemplate, OursIsPodYaml) {
  EXPECT_EQ(templates::kPodYaml, *io::ReadFile("pod.yaml"));
  Spawn spawn = Plain();
  spawn.pod = Template(templates::kPodYaml);
  EXPECT_EQ(ValueOf(Container(spawn), "PYTHONUNBUFFERED"), "1");
  EXPECT_EQ(Template(*io::ReadFile("pod-gpu.yaml")).is_object(), true);
}

TEST(TfSpawnerTemplate, OneOfTfSpawnerIsTaken) {
  Spawn spawn = Tagged("x");
  spawn.pod = Template(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: other, labels: {app: APP, a: "
      "b}}\n"
      "spec:\n  containers:\n  - name: tensorflow\n    env:\n    command: [python, "
      "/script/training-script.py]\n"
      "    volumeMounts: [{name: script, mountPath: /script}]\n"
      "  volumes: [{name: script, configMap: {name: script, defaultMode: 0755}}, {name: data, "
      "emptyDir: {}}]\n");
  const Json pod = Made(spawn, "pods");
  EXPECT_EQ(base::CompactJson(*base::Find(pod, "metadata")),
            R"({"name":"x-worker0","labels":{"app":"worker0","a":"b","training_attempt":"x"}})");
  EXPECT_EQ(base::CompactJson(*base::Find(PodSpec(spawn), "volumes")),
            R"([{"name":"script","configMap":{"name":"x-script","defaultMode":493}},)"
            R"({"name":"data","emptyDir":{}}])");
  EXPECT_EQ(base::CompactJson(*base::Find(Container(spawn), "volumeMounts")),
            R"([{"name":"script","mountPath":"/script"}])");
  EXPECT_EQ(base::StringOr(Container(spawn), "image"), "tensorflow/tensorflow:2.15.0");
}

TEST(SetOwner, NamesTheOwnerAsTheServerHasIt) {
  Json object = JsonObject{{"metadata", JsonObject{{"name", "a"}}}};
  SetOwner(object, JsonObject{{"apiVersion", "v1"},
                              {"kind", "ConfigMap"},
                              {"metadata", JsonObject{{"name", "script"}, {"uid", "7"}}}});
  EXPECT_EQ(base::CompactJson(object),
            R"({"metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",)"
            R"("name":"script","uid":"7"}]}})");
}

}  // namespace
}  // namespace cli
