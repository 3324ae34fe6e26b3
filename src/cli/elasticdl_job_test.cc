#include "cli/elasticdl_job.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "backend/cluster/config_map_jobs.h"
#include "core/tf_config.h"

namespace cli {
namespace {

using api::Role;
using base::At;
using base::Json;
using Words = std::vector<std::string>;

EdlArgs Args(Words words) {
  words.insert(words.begin(), {"--job_name=iris", "--image_name=m:1", "--job_command=python a.py"});
  const auto train = std::ranges::find(EdlCommands(), "train", &EdlCommand::name);
  auto args = ParseEdl(*train, words);
  EXPECT_TRUE(args) << args.error().text();
  return *args;
}

EdlJob Made(const Words& words) {
  auto job = MakeEdlJob(Args(words));
  EXPECT_TRUE(job) << job.error().text();
  return *job;
}

std::string Refusal(const Words& words) {
  auto job = MakeEdlJob(Args(words));
  return job ? "" : job.error().text();
}

const Json& Template(const EdlJob& job, Role role) {
  return job.job.spec.replicas.at(role).pod_template;
}
const Json& Container(const EdlJob& job, Role role) {
  return *api::TensorFlowContainer(Template(job, role));
}

// The command of the tutorial, its data directory named.
const Words kTutorial = {"--image_name=elasticdl:1.0.0",
                         "--worker_image=elasticdl:iris_estimator",
                         "--ps_image=elasticdl:iris_ps",
                         "--job_command=python -m model_zoo.iris.dnn_estimator",
                         "--master_resource_request=cpu=0.2,memory=1024Mi",
                         "--master_resource_limit=cpu=1,memory=2048Mi",
                         "--num_ps=1",
                         "--ps_resource_request=cpu=0.2,memory=1024Mi",
                         "--ps_resource_limit=cpu=1,memory=2048Mi",
                         "--num_workers=1",
                         "--worker_resource_request=cpu=0.3,memory=1024Mi",
                         "--worker_resource_limit=cpu=1,memory=2048Mi",
                         "--chief_resource_request=cpu=0.3,memory=1024Mi",
                         "--chief_resource_limit=cpu=1,memory=2048Mi",
                         "--num_evaluator=1",
                         "--evaluator_resource_request=cpu=0.3,memory=1024Mi",
                         "--evaluator_resource_limit=cpu=1,memory=2048Mi",
                         "--job_name=test-iris-estimator",
                         "--image_pull_policy=Never",
                         "--distribution_strategy=ParameterServerStrategy",
                         "--need_tf_config=true",
                         "--volume=host_path=/home/me/data,mount_path=/data"};

TEST(EdlJob, OfTheTutorialIsWhatItsListingShows) {
  const EdlJob made = Made(kTutorial);
  const api::Job& job = made.job;
  EXPECT_EQ(job.metadata.name, "test-iris-estimator");
  for (Role role : {Role::kChief, Role::kWorker, Role::kPs, Role::kEvaluator})
    EXPECT_EQ(api::ReplicasOf(job.spec, role), 1);
  EXPECT_EQ(job.extensions.dialect, api::Dialect::kElasticDl);
  EXPECT_EQ(job.extensions.elastic, (api::Elastic{1, 1}));
  EXPECT_EQ(
      base::CompactJson(Template(made, Role::kChief)),
      R"({"spec":{"containers":[{"name":"tensorflow","image":"elasticdl:iris_estimator","imagePullPolicy":"Never",)"
      R"("command":["/bin/bash","-c","set -o pipefail;python -m model_zoo.iris.dnn_estimator"],)"
      R"("ports":[{"name":"tfjob-port","containerPort":3333}],)"
      R"("resources":{"requests":{"cpu":"0.3","memory":"1024Mi"},"limits":{"cpu":"1","memory":"2048Mi"}},)"
      R"("volumeMounts":[{"name":"volume-0","mountPath":"/data"}]}],)"
      R"("volumes":[{"name":"volume-0","hostPath":{"path":"/home/me/data"}}]}})");
  EXPECT_EQ(base::StringOr(Container(made, Role::kPs), "image"), "elasticdl:iris_ps");
  EXPECT_EQ(job.spec.replicas.at(Role::kPs).port, 2222);
  const auto address = [](api::ReplicaId id) { return api::ToString(id); };
  EXPECT_EQ(
      core::TfConfig(job, {Role::kEvaluator, 0}, address),
      R"({"cluster":{"chief":["chief-0"],"ps":["ps-0"],"worker":["worker-0"]},"task":{"type":"evaluator","index":0}})");
}

TEST(EdlJob, HasAChiefOnlyForTensorFlowsParameterServers) {
  EXPECT_EQ(api::ReplicasOf(Made({"--num_ps=1"}).job.spec, Role::kChief), 0);
  EXPECT_EQ(api::ReplicasOf(Made({"--need_tf_config"}).job.spec, Role::kChief), 0);
  EXPECT_EQ(api::ReplicasOf(Made({"--num_ps=1", "--need_tf_config"}).job.spec, Role::kChief), 1);
}

TEST(EdlJob, GivesATfConfigOnlyWhenAsked) {
  EXPECT_FALSE(Made({}).job.extensions.tf_config);
  EXPECT_TRUE(Made({"--need_tf_config"}).job.extensions.tf_config);
}

TEST(EdlJob, IsElasticUnlessNobodyHandsOutTheData) {
  EXPECT_EQ(Made({"--num_workers=5"}).job.extensions.elastic, (api::Elastic{1, 5}));
  EXPECT_EQ(Made({"--need_task_manager=false"}).job.extensions.elastic, std::nullopt);
}

TEST(EdlJob, LimitsAreWhatIsRequestedUnlessSaid) {
  EXPECT_EQ(base::CompactJson(At(Container(Made({}), Role::kWorker), "resources")),
            R"({"requests":{"cpu":"1","memory":"4096Mi"},"limits":{"cpu":"1","memory":"4096Mi"}})");
}

TEST(EdlJob, RestartsAsElasticDlRelaunches) {
  const auto policies = [](const Words& words) {
    const api::Job job =
        Made([&] {
          Words all = {"--num_ps=1", "--need_tf_config", "--num_workers=2", "--num_evaluators=1"};
          all.insert(all.end(), words.begin(), words.end());
          return all;
        }())
            .job;
    return std::tuple(job.spec.replicas.at(Role::kWorker).restart_policy,
                      job.spec.replicas.at(Role::kPs).restart_policy,
                      job.spec.run_policy.backoff_limit);
  };
  using enum api::RestartPolicy;
  EXPECT_EQ(policies({}), std::tuple(kOnFailure, kNever, 4));  // chief, two workers, evaluator
  EXPECT_EQ(policies({"--relaunch_on_worker_failure=3"}), std::tuple(kOnFailure, kNever, 12));
  EXPECT_EQ(policies({"--relaunch_on_worker_failure=0"}), std::tuple(kNever, kNever, 0));
  EXPECT_EQ(policies({"--aux_params=disable_relaunch=True"}), std::tuple(kNever, kNever, 0));
  EXPECT_EQ(policies({"--ps_is_critical=false"}), std::tuple(kOnFailure, kOnFailure, 4));
  EXPECT_EQ(policies({"--restart_policy=Always"}), std::tuple(kAlways, kAlways, std::nullopt));
}

TEST(EdlJob, ListsClaimsFirstAndEachSourceOnce) {
  const EdlJob made = Made(
      {"--volume=host_path=/h,mount_path=/a;claim_name=c,mount_path=/b;host_path=/h,mount_path=/d,"
       "sub_path=s"});
  EXPECT_EQ(
      base::CompactJson(At(At(Template(made, Role::kWorker), "spec"), "volumes")),
      R"([{"name":"volume-0","persistentVolumeClaim":{"claimName":"c"}},{"name":"volume-1","hostPath":{"path":"/h"}}])");
  EXPECT_EQ(
      base::CompactJson(At(Container(made, Role::kWorker), "volumeMounts")),
      R"([{"name":"volume-0","mountPath":"/b"},{"name":"volume-1","mountPath":"/a"},{"name":"volume-1","mountPath":"/d","subPath":"s"}])");
}

TEST(EdlJob, HasPrioritiesByRoleAndByWorker) {
  const EdlJob made = Made({"--num_workers=4", "--worker_pod_priority=0.5", "--num_evaluators=1",
                            "--evaluator_pod_priority=gold", "--master_pod_priority=silver"});
  EXPECT_EQ(made.job.extensions.high_priority, (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(base::StringOr(At(Template(made, Role::kEvaluator), "spec"), "priorityClassName"),
            "gold");
  EXPECT_EQ(made.master.priority_class, "silver");
  EXPECT_EQ(Made({}).job.extensions.high_priority, std::nullopt);
}

TEST(EdlJob, ThatCannotBeIsRefused) {
  const std::vector<std::pair<Words, std::string>> table = {
      {{"--job_command= "}, "--job_command is required: what every replica is to run"},
      {{"--worker_resource_request=cpu=1,tpu=1"},
       "--worker_resource_request: tpu is not in the allowed list of resource types: memory, disk, "
       "ephemeral-storage, cpu, gpu"},
      {{"--volume=mount_path=/a"},
       "--volume: a volume has a claim_name or a host_path, and not both"},
      {{"--envs=a"}, "--envs: no '=' in it: must be like A=1,B=2"},
      {{"--worker_pod_priority=high=0.5"},
       "--worker_pod_priority: must be high, low, or which part of the workers is high, from 0 to "
       "1 "
       "like 0.5, not 'high=0.5'"},
      {{"--cluster_spec_json=[]"}, "--cluster_spec_json: neither a JSON object nor base64 of one"},
      {{"--num_workers=0"}, "--num_workers: must be a whole number from 1 to 1000, not '0'"},
      {{"--need_pod_manager"},
       "--need_pod_manager=false: there would be nobody to start the replicas"},
      {{"--cluster_spec=a.py"},
       "--cluster_spec: a Python file is not run here: say the same with --cluster_spec_json"},
      {{"--job_name=" + std::string(48, 'a')},
       "--job_name: elasticdl-" + std::string(48, 'a') +
           "-master has 65 characters, and a name may have 63"},
  };
  for (const auto& [words, expected] : table) EXPECT_EQ(Refusal(words), expected);
  EXPECT_TRUE(Refusal({"--job_name=Iris"}).starts_with("--job_name: "));
  EXPECT_TRUE(
      Refusal({"--distribution_strategy=AllreduceStrategy"}).starts_with("--distribution_"));
  EXPECT_TRUE(
      Refusal({"--need_elasticdl_job_service"}).starts_with("--need_elasticdl_job_service"));
}

TEST(EdlObjects, AreTheJobAndItsMasterUnderElasticDlsNames) {
  Words words = kTutorial;
  words.push_back(R"(--cluster_spec_json={"master_pod_spec":{"labels":{"team":"a"}}})");
  const std::vector<Json> objects = EdlObjects(Made(words));
  ASSERT_EQ(objects.size(), 3u);
  const Json job = backend::cluster::JobFromConfigMap(objects[0]);
  EXPECT_EQ(base::StringOr(At(job, "metadata"), "name"), "test-iris-estimator");
  EXPECT_EQ(base::StringOr(At(At(job, "metadata"), "annotations"), "trainyard.dev/dialect"),
            "ElasticDL");
  const std::string labels =
      R"({"app":"elasticdl","elasticdl-job-name":"test-iris-estimator","elasticdl-replica-type":"edl-master","elasticdl-replica-index":"0")";
  EXPECT_EQ(base::CompactJson(At(At(objects[1], "spec"), "selector")), labels + "}");
  const Json& pod = objects[2];
  EXPECT_EQ(base::StringOr(At(pod, "metadata"), "name"), "elasticdl-test-iris-estimator-master");
  EXPECT_EQ(base::CompactJson(At(At(pod, "metadata"), "labels")), labels + R"(,"team":"a"})");
  EXPECT_EQ(base::StringOr(At(pod, "spec"), "restartPolicy"), "OnFailure");
  const Json& container = At(At(pod, "spec"), "containers").get_array().front();
  EXPECT_EQ(
      base::CompactJson(At(container, "args")),
      R"(["master","test-iris-estimator","--namespace=default","--ledger=/var/lib/trainyard"])");
  EXPECT_EQ(
      base::CompactJson(At(container, "resources")),
      R"({"requests":{"cpu":"0.2","memory":"1024Mi"},"limits":{"cpu":"1","memory":"2048Mi"}})");
}

}  // namespace
}  // namespace cli
