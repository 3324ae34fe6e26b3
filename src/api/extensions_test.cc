#include "api/extensions.h"

#include <gtest/gtest.h>

#include "api/sample_manifests.h"
#include "base/yaml.h"

namespace api {
namespace {

std::string Annotated(const std::string& key, const std::string& value) {
  std::string text = OneWorker("", "replicas: 2");
  return text.replace(text.find("{name: a}"), 9,
                      "{name: a, annotations: {" + key + ": " + value + "}}");
}

TEST(Annotations, AreReadIntoExtensions) {
  const auto extensions = [](const std::string& key, const std::string& value) {
    return Good(Annotated("trainyard.dev/" + key, value)).extensions;
  };
  EXPECT_EQ(extensions("restart-scope", "Job").restart_scope, RestartScope::kJob);
  EXPECT_EQ(extensions("elastic", "'1:4'").elastic, (Elastic{1, 4}));
  EXPECT_EQ(extensions("start-deadline", "'90'").start_deadline, std::chrono::seconds(90));
  EXPECT_EQ(extensions("start-deadline", "10m").start_deadline, std::chrono::minutes(10));
  EXPECT_TRUE(extensions("wait-for-evaluator", "'true'").wait_for_evaluator);
  EXPECT_TRUE(extensions("end-leftovers", "'true'").end_leftovers);
  EXPECT_EQ(extensions("dialect", "ElasticDL").dialect, Dialect::kElasticDl);
  EXPECT_FALSE(extensions("tf-config", "'false'").tf_config);
  EXPECT_EQ(extensions("high-priority", "'0,3'").high_priority, (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(extensions("high-priority", "''").high_priority, std::vector<int32_t>());
  EXPECT_FALSE(extensions("evaluator-in-cluster", "'false'").evaluator_in_cluster);
  EXPECT_EQ(Good(Annotated("example.com/any", "thing")).extensions, Extensions());
}

TEST(Annotations, ThatAreWrongAreTold) {
  const std::string path = "metadata.annotations[trainyard.dev/";
  const std::vector<std::tuple<std::string, std::string, std::string>> table = {
      {"restart-scope", "Gang", "must be Auto, Replica or Job, not \"Gang\""},
      {"elastic", "'4'", "must be MIN:MAX workers, 1 <= MIN <= MAX <= 10000, not \"4\""},
      {"elastic", "'0:4'", "must be MIN:MAX workers, 1 <= MIN <= MAX <= 10000, not \"0:4\""},
      {"elastic", "'1:20000'",
       "must be MIN:MAX workers, 1 <= MIN <= MAX <= 10000, not \"1:20000\""},
      {"start-deadline", "'-1s'", "must not be negative: \"-1s\""},
      {"life", "'-1'", "must be a number from 0 to 1000000000, not \"-1\""},
      {"wait-for-evaluator", "'1'", "must be \"true\" or \"false\", not \"1\""},
      {"dialect", "TFSpawner", "must be TFJob or ElasticDL, not \"TFSpawner\""},
      {"high-priority", "'1,x'", "must be numbers of workers like 0,3, not \"1,x\""},
      {"wait-for-evaluater", "'true'",
       "unknown annotation, did you mean trainyard.dev/wait-for-evaluator?"},
  };
  for (const auto& [key, value, expected] : table) {
    EXPECT_EQ(Errors(Annotated("trainyard.dev/" + key, value)), path + key + "]: " + expected);
  }
}

// Found by fuzzing: null was taken for no annotation, but written as an empty one.
TEST(Annotations, OfNullAreEmptyTexts) {
  EXPECT_EQ(Errors(Annotated("trainyard.dev/restart-scope", "")),
            "metadata.annotations[trainyard.dev/restart-scope]: must be Auto, Replica or Job, not "
            "\"\"");
  EXPECT_EQ(Good(Annotated("example.com/any", "")).metadata.annotations,
            (std::map<std::string, std::string>{{"example.com/any", ""}}));
}

TEST(Annotations, SetByFlagsAreWrittenIntoTheObject) {
  Job job = Good(OneWorker("", "replicas: 2"));
  job.extensions.elastic = Elastic{1, 8};
  job.extensions.start_deadline = std::chrono::milliseconds(1500);
  job.extensions.restart_scope = RestartScope::kReplica;
  job.extensions.evaluator_in_cluster = false;
  job.extensions.stopped_by = "ann";
  job.extensions.life = 2;
  job.extensions.output = "models/mnist";
  EXPECT_EQ(Good(base::WriteYaml(EncodeJob(job))).extensions, job.extensions);
  Job again = Good(base::WriteYaml(EncodeJob(job)));
  again.extensions.stopped_by = "";
  EXPECT_EQ(Good(base::WriteYaml(EncodeJob(again))).extensions, again.extensions);
}

}  // namespace
}  // namespace api
