#include "api/manifest.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "api/sample_manifests.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace api {
namespace {

const std::string kConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}";
const std::string kService = "{apiVersion: v1, kind: Service, metadata: {name: board}}";

// A TFJob of one worker, on one line.
std::string OneLineJob(const std::string& name) {
  return "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: '" + name +
         "'}, spec: {tfReplicaSpecs: {Worker: {template: " + std::string(kTemplate) + "}}}}";
}

std::string List(const std::string& items) {
  return "{apiVersion: v1, kind: List, items: [" + items + "]}";
}

std::string Template(const std::string& parameters, const std::string& objects) {
  return "{apiVersion: v1, kind: Template, parameters: [" + parameters + "], objects: [" + objects +
         "]}";
}

Manifest Read(const std::string& text, const Values& given = {}) {
  return ReadManifest(text, given, [](size_t) { return size_t{0}; });
}

std::string ErrorsOf(const std::string& text, const Values& given = {}) {
  return Describe(Read(text, given).errors, "m");
}

// "a with ConfigMap, Service", or the errors.
std::string Told(const std::string& text, const Values& given = {}) {
  const Manifest manifest = Read(text, given);
  if (!manifest.errors.empty()) return Describe(manifest.errors, "m");
  std::vector<std::string> kinds;
  for (const base::Json& other : manifest.others) kinds.push_back(base::StringOr(other, "kind"));
  return manifest.job.metadata.name + " with " + base::Join(kinds, ", ");
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Manifest, MayBeTheJobAlone) {
  const Manifest manifest = Read(OneWorker());
  EXPECT_EQ(manifest.errors, std::vector<FieldError>());
  EXPECT_EQ(manifest.job, Good(OneWorker()));
  EXPECT_EQ(manifest.others, std::vector<base::Json>());
}

TEST(Manifest, MayHaveSeveralDocuments) {
  EXPECT_EQ(Told(kConfigMap + "\n---\n" + OneLineJob("a") + "\n---\n---\n" + kService),
            "a with ConfigMap, Service");
}

TEST(Manifest, MayBeAList) {
  EXPECT_EQ(Told(List(OneLineJob("a"))), "a with ");
  EXPECT_EQ(Told(List(kService + ", " + OneLineJob("a") + ", " + kConfigMap)),
            "a with Service, ConfigMap");
}

TEST(Manifest, MayBeJson) {
  EXPECT_EQ(Told(R"({"apiVersion":"v1","kind":"List","items":[{"apiVersion":"batch/v1",)"
                 R"("kind":"Job","metadata":{"name":"a"},"spec":{"template":{"spec":)"
                 R"({"restartPolicy":"Never","containers":[{"name":"x","image":"b"}]}}}}]})"),
            "a with ");
}

TEST(Manifest, MayBeATemplate) {
  const std::string text = Template("{name: X, value: a}", kService + ", " + OneLineJob("${X}"));
  EXPECT_EQ(Told(text), "a with Service");
  EXPECT_EQ(Told(text, {{"X", "b"}}), "b with Service");
}

TEST(Manifest, MayHaveListsAndTemplatesInEachOther) {
  EXPECT_EQ(
      Told(List(List(kService) + ", " + Template("{name: X, value: a}", List(OneLineJob("${X}")))) +
           "\n---\n" + kConfigMap),
      "a with Service, ConfigMap");
}

TEST(Manifest, KeepsTheOthersAsTheyAre) {
  EXPECT_EQ(Read(OneLineJob("a") + "\n---\n{apiVersion: v1, kind: X, z: 1, a: [b, null]}").others,
            std::vector<base::Json>{
                base::ParseJson(R"({"apiVersion":"v1","kind":"X","z":1,"a":["b",null]})").value()});
}

TEST(Manifest, SaysWhetherANamespaceWasWritten) {
  EXPECT_FALSE(Read(OneWorker()).says_namespace);
  EXPECT_EQ(Read(OneWorker()).job.metadata.name_space, "default");
  const std::string text =
      "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a, "
      "namespace: default}, spec: {tfReplicaSpecs: {Worker: {template: " +
      std::string(kTemplate) + "}}}}";
  EXPECT_TRUE(Read(text).says_namespace);
}

TEST(Manifest, WithoutAJobIsRefusedWithTheKindsItHas) {
  EXPECT_EQ(ErrorsOf(List(kService + ", " + kConfigMap + ", " + kService)),
            "m: holds no TFJob and no Job, only Service, ConfigMap\n");
  EXPECT_EQ(ErrorsOf(""), "m: the manifest is empty\n");
  EXPECT_EQ(ErrorsOf(List("")), "m: the manifest is empty\n");
  EXPECT_EQ(ErrorsOf(kService),
            "m:1:14: apiVersion: must be kubeflow.org/v1 (or an older version of TFJob), not "
            "\"v1\"\n"
            "m:1:24: kind: must be TFJob, not \"Service\"\n");
}

TEST(Manifest, WithSeveralJobsIsRefusedWithTheirNames) {
  EXPECT_EQ(ErrorsOf(OneLineJob("a") + "\n---\n{apiVersion: batch/v1, kind: Job, metadata: {name: "
                                       "b}}"),
            "m: holds 2 jobs (a, b): run them one at a time\n");
  std::string many;
  for (int i = 0; i < 24; ++i) many += OneLineJob("j" + std::to_string(i)) + ", ";
  EXPECT_EQ(ErrorsOf(List(many)),
            "m: holds 24 jobs (j0, j1, j2, j3, j4, j5, j6, j7, j8, j9, j10, j11, j12, j13, j14, "
            "j15, j16, j17, j18, j19 and 4 more): run them one at a time\n");
}

TEST(Manifest, IsToldOfObjectsThatAreNone) {
  EXPECT_EQ(ErrorsOf(OneLineJob("a") + "\n---\n[]\n---\n{kind: X}\n---\n{apiVersion: v1, kind: 3}"),
            "m:3:1: must be a map, not a list\n"
            "m:5:1: apiVersion: is required, as text\n"
            "m:7:1: kind: is required, as text\n");
  EXPECT_EQ(ErrorsOf(List("null, " + OneLineJob("a"))), "m:1:38: must be a map, not null\n");
  EXPECT_EQ(ErrorsOf("{apiVersion: v1, kind: List, items: {}}"),
            "m:1:37: items: must be a list, not a map\n");
}

TEST(Manifest, HasTheErrorsOfItsJobWhereTheyAreWritten) {
  EXPECT_EQ(ErrorsOf("apiVersion: v1\nkind: Template\nparameters: [{name: X}]\nobjects:\n"
                     "- apiVersion: kubeflow.org/v1\n  kind: TFJob\n  metadata: {name: a}\n"
                     "  spec:\n    tfReplicaSpecs:\n      Worker:\n        replicas: ${{X}}\n"
                     "        template: " +
                         std::string(kTemplate) + "\n",
                     {{"X", "two"}}),
            "m:11:19: spec.tfReplicaSpecs.Worker.replicas: must be a whole number, not \"two\"\n");
}

TEST(Manifest, WithoutATemplateTakesNoParameters) {
  EXPECT_EQ(ErrorsOf(OneWorker(), {{"A", "b"}}),
            "m: --param is for a Template, and there is none\n");
}

TEST(Manifest, SharesParametersAmongItsTemplates) {
  const std::string text =
      Template("{name: A}", kService) + "\n---\n" + Template("{name: B}", OneLineJob("${B}"));
  EXPECT_EQ(Told(text, {{"A", "x"}, {"B", "b"}}), "b with Service");
  EXPECT_EQ(ErrorsOf(text, {{"OTHER", "x"}}),
            "m: --param OTHER: the template has no such parameter, expected one of: A, B\n");
}

TEST(Manifest, OfTemplatesThatHoldThemselvesComesToAnEnd) {
  const std::string self = R"({"apiVersion":"v1","kind":"Template","parameters":[{"name":"X"}],)"
                           R"("objects":["${{X}}","${{X}}"]})";
  const std::string errors = ErrorsOf(self, {{"X", self}});
  EXPECT_TRUE(errors.contains("Lists and Templates are nested deeper than 8 levels")) << errors;
}

TEST(Manifest, IsBoundedAsAJobIs) {
  EXPECT_EQ(ErrorsOf(std::string(70, '[')), "m:1:65: nested deeper than 64 levels\n");
  EXPECT_EQ(ErrorsOf(std::string(2 << 20, 'x')), "m:1:1: larger than 1 MiB\n");
  std::string aliases = "a: &a [x]\nb: [";
  for (int i = 0; i < 65; ++i) aliases += "*a ,";
  EXPECT_TRUE(ErrorsOf(aliases + "]").contains("more than 64 aliases"));
}

// TRAINYARD_WRITE_GOLDEN=1 writes the expected file anew.
TEST(Manifest, OfTheExampleBecomesExactlyThisJob) {
  const Manifest manifest =
      Read(ReadFile("examples/tfjob-template.yaml"), {{"JOB_NAME", "mnist-1"},
                                                      {"IMAGE_NAME", "registry.example/training:7"},
                                                      {"WORKERS", "3"},
                                                      {"TRAIN_STEPS", "500"}});
  EXPECT_EQ(Describe(manifest.errors, "m"), "");
  EXPECT_EQ(manifest.warnings, std::vector<std::string>());
  const std::string golden = std::string(TESTDATA) + "/templates/tfjob-template.rendered.yaml";
  const std::string written = base::WriteYaml(EncodeJob(manifest.job));
  if (std::getenv("TRAINYARD_WRITE_GOLDEN")) std::ofstream(golden) << written;
  EXPECT_EQ(written, ReadFile(golden));
}

}  // namespace
}  // namespace api
