#include "api/decode.h"

#include <functional>

#include <gtest/gtest.h>

#include "api/pod_template.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace api {
namespace {

using base::Json;

constexpr std::string_view kTemplate = "{spec: {containers: [{name: tensorflow, image: a}]}}";

// A job named a with this spec, in flow style.
std::string WithSpec(const std::string& spec, const std::string& version = "kubeflow.org/v1") {
  return "apiVersion: " + version + "\nkind: TFJob\nmetadata: {name: a}\nspec: {" + spec + "}\n";
}

// A job of one worker, with more in its spec or in the worker.
std::string OneWorker(const std::string& spec = "", const std::string& worker = "") {
  return WithSpec((spec.empty() ? "" : spec + ", ") + "tfReplicaSpecs: {Worker: {" +
                  (worker.empty() ? "" : worker + ", ") + "template: " + std::string(kTemplate) +
                  "}}");
}

std::string WithContainers(const std::string& containers) {
  return WithSpec("tfReplicaSpecs: {Worker: {template: {spec: {containers: " + containers + "}}}}");
}

// The errors without their positions, one a line.
std::string Errors(std::string_view text) {
  std::string out;
  for (const FieldError& error : DecodeJob(text).errors) {
    if (!out.empty()) out += "\n";
    out += error.path + ": " + error.detail;
  }
  return out;
}

Job Good(std::string_view text) {
  const Decoded decoded = DecodeJob(text);
  EXPECT_EQ(Describe(decoded.errors, "good.yaml"), "") << text;
  return decoded.job;
}

std::string PortsOf(const Job& job, Role role) {
  const Json* container = TensorFlowContainer(job.spec.replicas.at(role).pod_template);
  return container ? base::CompactJson(*base::Find(*container, "ports")) : "none";
}

// Defaults, as training-operator v1.9 has them.

TEST(Defaults, FillWhatAnAuthorLeavesOut) {
  const Job job = Good(OneWorker());
  EXPECT_EQ(job.metadata.name_space, "default");
  EXPECT_EQ(job.spec.run_policy, RunPolicy());
  EXPECT_EQ(job.spec.run_policy.clean_pod_policy, CleanPodPolicy::kNone);
  EXPECT_EQ(job.spec.success_policy, SuccessPolicy::kDefault);
  EXPECT_FALSE(job.spec.enable_dynamic_worker);
  EXPECT_EQ(job.extensions, Extensions());
  const ReplicaSpec& worker = job.spec.replicas.at(Role::kWorker);
  EXPECT_EQ(worker.replicas, 1);
  EXPECT_EQ(worker.restart_policy, RestartPolicy::kNever);
  EXPECT_EQ(worker.port, 2222);
  EXPECT_EQ(PortsOf(job, Role::kWorker), R"([{"name":"tfjob-port","containerPort":2222}])");
}

TEST(Defaults, AppendThePortAfterOtherPorts) {
  const Job job = Good(WithContainers(
      "[{name: tensorflow, image: a, ports: [{name: customPort, containerPort: 1234}]}]"));
  EXPECT_EQ(PortsOf(job, Role::kWorker), R"([{"name":"customPort","containerPort":1234},)"
                                         R"({"name":"tfjob-port","containerPort":2222}])");
}

TEST(Defaults, KeepAPortThatIsNamed) {
  const Job job = Good(WithContainers(
      "[{name: tensorflow, image: a, ports: [{name: tfjob-port, containerPort: 3333}]}]"));
  EXPECT_EQ(PortsOf(job, Role::kWorker), R"([{"name":"tfjob-port","containerPort":3333}])");
  EXPECT_EQ(job.spec.replicas.at(Role::kWorker).port, 3333);
}

TEST(Defaults, PutThePortIntoTheTensorFlowContainerOnly) {
  const Job job = Good(WithContainers("[{name: side, image: b}, {name: tensorflow, image: a}]"));
  EXPECT_EQ(
      base::CompactJson(job.spec.replicas.at(Role::kWorker).pod_template),
      R"({"spec":{"containers":[{"name":"side","image":"b"},{"name":"tensorflow","image":"a",)"
      R"("ports":[{"name":"tfjob-port","containerPort":2222}]}]}})");
}

TEST(AddPort, TakesTheFirstContainerWhenNoneIsNamedTensorFlow) {
  Json pod = *base::ParseJson(R"({"spec":{"containers":[{"name":"x"},{"name":"y"}]}})");
  AddPort(pod, 2222);
  EXPECT_EQ(base::CompactJson(pod),
            R"({"spec":{"containers":[{"name":"x","ports":[{"name":"tfjob-port",)"
            R"("containerPort":2222}]},{"name":"y"}]}})");
}

TEST(AddPort, LeavesATemplateWithoutContainersAlone) {
  for (const char* text : {"null", "{}", "[]", R"({"spec":null})", R"({"spec":{"containers":[]}})",
                           R"({"spec":{"containers":{}}})", R"({"spec":{"containers":[1]}})"}) {
    Json pod = *base::ParseJson(text);
    AddPort(pod, 2222);
    EXPECT_EQ(base::CompactJson(pod), text);
    EXPECT_EQ(PortOf(pod), 2222);
    EXPECT_EQ(TensorFlowContainer(pod), nullptr);
  }
}

TEST(Defaults, KnowReplicaTypesInAnyLetterCase) {
  const Job job = Good(WithSpec("tfReplicaSpecs: {WORKER: {template: " + std::string(kTemplate) +
                                "}, ps: {template: " + std::string(kTemplate) +
                                "}, cHief: {template: " + std::string(kTemplate) + "}}"));
  EXPECT_EQ(ReplicasOf(job.spec, Role::kWorker), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kPs), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kChief), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kEvaluator), 0);
}

TEST(Defaults, TakeNullForAbsent) {
  EXPECT_EQ(Good(OneWorker("runPolicy: , successPolicy: ~", "replicas: null, restartPolicy: ")),
            Good(OneWorker()));
  EXPECT_EQ(Good(OneWorker("runPolicy: {cleanPodPolicy: , suspend: ~, schedulingPolicy: }")),
            Good(OneWorker()));
}

// Rules V1-V8 of training-operator v1.9's webhook, and what it lets through to go wrong later.

TEST(Rules, AreToldByPath) {
  const std::string workers = "spec.tfReplicaSpecs.Worker";
  const std::string name =
      "metadata.name: must be lower-case letters, digits and '-', start with a letter and not end "
      "with '-', not ";
  const std::string job = OneWorker();
  const auto named = [&](const std::string& text) {
    return job.substr(0, job.find("{name: a}")) + "{name: " + text + "}" +
           job.substr(job.find("{name: a}") + 9);
  };
  const std::vector<std::pair<std::string, std::string>> table = {
      // V1
      {named("1a"), name + "\"1a\""},
      {named("a.b"), name + "\"a.b\""},
      {named("a-"), name + "\"a-\""},
      {named("Ab"), name + "\"Ab\""},
      {named("''"), "metadata.name: is required"},
      {named("12"), "metadata.name: must be text, not the number 12; put it in quotes"},
      // V2
      {OneWorker("runPolicy: {managedBy: me}"),
       "spec.runPolicy.managedBy: must be kubeflow.org/training-operator or "
       "kueue.x-k8s.io/multikueue, not \"me\""},
      {OneWorker("runPolicy: {managedBy: ''}"), "spec.runPolicy.managedBy: must not be empty"},
      {OneWorker("runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"), ""},
      // V4
      {WithSpec(""), "spec.tfReplicaSpecs: is required"},
      {WithSpec("tfReplicaSpecs: "), "spec.tfReplicaSpecs: is required"},
      {WithSpec("tfReplicaSpecs: {}"), ""},
      // V5
      {WithContainers("[]"),
       workers + ".template.spec.containers: must have a container named tensorflow"},
      {WithContainers("null"),
       workers + ".template.spec.containers: is required: a container named tensorflow"},
      {WithSpec("tfReplicaSpecs: {Worker: }"),
       workers + ".template: is required, with a container named tensorflow"},
      {WithSpec("tfReplicaSpecs: {Worker: {template: {}}}"),
       workers + ".template.spec: is required, with a container named tensorflow"},
      // V6
      {WithContainers("[{name: tensorflow}]"),
       workers + ".template.spec.containers[0].image: is required"},
      {WithContainers("[{name: tensorflow, image: ''}]"),
       workers + ".template.spec.containers[0].image: must not be empty"},
      {WithContainers("[{name: tensorflow, image: a}, {name: b}]"),
       workers + ".template.spec.containers[1].image: is required"},
      // V7
      {WithContainers("[{name: main, image: a}, {image: b}]"),
       workers + ".template.spec.containers: must have a container named tensorflow, has \"main\", "
                 "one without a name"},
      // V8
      {WithSpec("tfReplicaSpecs: {chief: {template: " + std::string(kTemplate) +
                "}, Master: {template: " + std::string(kTemplate) + "}}"),
       "spec.tfReplicaSpecs: must not have both Chief and Master: they are the same role"},
      // Accepted upstream, and then wrong.
      {WithSpec("tfReplicaSpecs: {Foo: {}}"),
       "spec.tfReplicaSpecs.Foo: unknown replica type, expected one of: Chief, Evaluator, Master, "
       "PS, Worker"},
      {WithSpec("tfReplicaSpecs: {Workers: {}}"),
       "spec.tfReplicaSpecs.Workers: unknown replica type, did you mean Worker?"},
      {OneWorker("", "replicas: 0"), ""},
      {OneWorker("", "replicas: 10000"), ""},
      {OneWorker("", "replicas: 10001"),
       workers + ".replicas: must be between 0 and 10000, not 10001"},
      {OneWorker("", "replicas: -1"), workers + ".replicas: must be between 0 and 10000, not -1"},
      {OneWorker("", "replicas: 2.0"), ""},
      {OneWorker("", "replicas: 2.5"),
       workers + ".replicas: must be a whole number, not the number 2.5"},
      {OneWorker("", "replicas: '2'"), workers + ".replicas: must be a whole number, not \"2\""},
      {OneWorker("", "replicas: 1e300"),
       workers + ".replicas: must be at most 2147483647, not 1e+300"},
      {OneWorker("", "replicas: 18446744073709551615"),
       workers + ".replicas: must be at most 2147483647, not 18446744073709551615"},
      {OneWorker("", "replicas: -9223372036854775808"),
       workers + ".replicas: must be at least -2147483647, not -9223372036854775808"},
      {WithSpec("tfReplicaSpecs: {Chief: {replicas: 3, template: " + std::string(kTemplate) + "}}"),
       ""},
      {OneWorker("", "restartPolicy: Foo"),
       workers + ".restartPolicy: must be Never, OnFailure, Always or ExitCode, not \"Foo\""},
      {OneWorker("runPolicy: {cleanPodPolicy: Foo}"),
       "spec.runPolicy.cleanPodPolicy: must be None, Running or All, not \"Foo\""},
      {OneWorker("runPolicy: {cleanPodPolicy: ''}"),
       "spec.runPolicy.cleanPodPolicy: must be None, Running or All, not \"\""},
      {OneWorker("successPolicy: Foo"), "spec.successPolicy: must be AllWorkers, not \"Foo\""},
      {OneWorker("successPolicy: ''"), ""},
      {OneWorker("runPolicy: {activeDeadlineSeconds: -1}"),
       "spec.runPolicy.activeDeadlineSeconds: must be at least 0, not -1"},
      {OneWorker("runPolicy: {backoffLimit: -1}"),
       "spec.runPolicy.backoffLimit: must be at least 0, not -1"},
      {OneWorker("runPolicy: {ttlSecondsAfterFinished: -1}"),
       "spec.runPolicy.ttlSecondsAfterFinished: must be at least 0, not -1"},
      {WithContainers("[{name: tensorflow, image: a, ports: [{containerPort: 0}]}]"),
       workers + ".template.spec.containers[0].ports[0].containerPort: must be between 1 and "
                 "65535, not 0"},
      {WithContainers(
           "[{name: tensorflow, image: a, ports: [{containerPort: 1}, {containerPort: 2, "
           "protocol: UDP}]}]"),
       ""},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(Errors(text), expected) << text;
}

TEST(Rules, CountTheLongestReplicaNameNotTheJobName) {
  const auto named = [](size_t length, const std::string& worker) {
    std::string text = OneWorker("", worker);
    return text.replace(text.find("{name: a}"), 9, "{name: " + std::string(length, 'a') + "}");
  };
  EXPECT_EQ(Errors(named(54, "replicas: 10")), "");
  EXPECT_EQ(Errors(named(55, "replicas: 10")),
            "metadata.name: must have at most 54 characters, not 55: replica names such as "
            "NAME-worker-9 may have 63");
  EXPECT_NE(Errors(named(54, "replicas: 11")), "");
  EXPECT_EQ(Errors(named(63, "replicas: 0")), "");
  EXPECT_NE(Errors(named(64, "replicas: 0")), "");
}

TEST(Rules, LeaveRoomForTheEndOfAGeneratedName) {
  const auto generated = [](size_t length) {
    std::string text = OneWorker();
    return text.replace(text.find("{name: a}"), 9,
                        "{generateName: " + std::string(length - 1, 'a') + "-}");
  };
  EXPECT_EQ(Errors(generated(49)), "");
  EXPECT_EQ(Errors(generated(50)),
            "metadata.generateName: must have at most 49 characters, not 50: replica names such as "
            "NAME-worker-0 may have 63");
}

TEST(Rules, RefuseAReplicaTypeGivenTwice) {
  EXPECT_EQ(Errors(WithSpec("tfReplicaSpecs: {worker: {template: " + std::string(kTemplate) +
                            "}, Worker: {template: " + std::string(kTemplate) + "}}")),
            "spec.tfReplicaSpecs.Worker: is given twice, also as worker");
}

TEST(Rules, HoldForAJobThatCameFromNoManifest) {
  Job job;
  job.metadata.name = "Mnist";
  job.spec.replicas[Role::kWorker].replicas = -1;
  job.spec.replicas[Role::kWorker].port = 0;
  std::vector<std::string> paths;
  for (const FieldError& error : Validate(job)) paths.push_back(error.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"metadata.name", "spec.tfReplicaSpecs.Worker.replicas",
                                             "spec.tfReplicaSpecs.Worker"}));
}

TEST(UnknownFields, AreErrorsInOurPartAndNameTheNearest) {
  EXPECT_EQ(Errors(OneWorker("runPolicy: {cleanPodPolcy: All}")),
            "spec.runPolicy.cleanPodPolcy: unknown field, did you mean cleanPodPolicy?");
  EXPECT_EQ(Errors(OneWorker("", "replica: 2")),
            "spec.tfReplicaSpecs.Worker.replica: unknown field, did you mean replicas?");
  EXPECT_EQ(Errors(OneWorker("", "banana: 2")),
            "spec.tfReplicaSpecs.Worker.banana: unknown field, expected one of: replicas, "
            "restartPolicy, template");
}

TEST(UnknownFields, ThatMostLikelyMeantARequiredOneAreTheOnlyError) {
  EXPECT_EQ(Errors(WithSpec("ReplicaSpecs: []")),
            "spec.ReplicaSpecs: unknown field, did you mean tfReplicaSpecs?");
}

TEST(UnknownFields, OfPodTemplatesPassThroughInOrder) {
  const Job job = Good(OneWorker());
  const std::string containers =
      R"([{"zeta":1,"name":"tensorflow","image":"a","alpha":[1.5,null,{"x":9007199254740993}],)"
      R"("ports":[{"name":"tfjob-port","containerPort":2222}]}])";
  EXPECT_EQ(base::CompactJson(
                Good(WithContainers(containers)).spec.replicas.at(Role::kWorker).pod_template),
            R"({"spec":{"containers":)" + containers + "}}");
}

TEST(Texts, ThatYamlTakesForSomethingElseAreToldWhereKubernetesWouldRefuse) {
  EXPECT_EQ(Errors(WithContainers("[{name: tensorflow, image: a, args: [--verbose, yes, 017]}]")),
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0].args[1]: must be text, not the "
            "boolean true; put it in quotes\n"
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0].args[2]: must be text, not the "
            "number 15; put it in quotes");
}

TEST(Texts, OfEnvironmentVariablesAreNeverShown) {
  EXPECT_EQ(
      Errors(WithContainers("[{name: tensorflow, image: a, env: [{name: PIN, value: 12345}]}]")),
      "spec.tfReplicaSpecs.Worker.template.spec.containers[0].env[0].value: must be text; put "
      "it in quotes");
}

// Annotations.

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
      {"wait-for-evaluator", "'1'", "must be \"true\" or \"false\", not \"1\""},
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
  EXPECT_EQ(Good(base::WriteYaml(EncodeJob(job))).extensions, job.extensions);
}

// Older spellings.

TEST(OlderSpellings, AreNamed) {
  const std::string map = "tfReplicaSpecs: {Worker: {template: " + std::string(kTemplate) + "}}";
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  EXPECT_EQ(DecodeJob(WithSpec(map)).spelling, "v1");
  EXPECT_EQ(DecodeJob(WithSpec("backoffLimit: 1, " + map)).spelling, "v1 (top-level policies)");
  EXPECT_EQ(DecodeJob(WithSpec("backoffLimit: 1, " + map, "kubeflow.org/v1beta2")).spelling,
            "v1beta2 (top-level policies)");
  EXPECT_EQ(DecodeJob(WithSpec(map, "kubeflow.org/v1beta1")).spelling, "v1beta1");
  EXPECT_EQ(DecodeJob(WithSpec(map, "kubeflow.org/v1alpha2")).spelling, "v1alpha2");
  EXPECT_EQ(DecodeJob(WithSpec(list, "kubeflow.org/v1alpha1")).spelling, "v1alpha1 (list form)");
  EXPECT_EQ(DecodeJob(WithSpec(list, "mlkube.io/v1beta1")).spelling,
            "mlkube.io/v1beta1 (list form)");
}

TEST(OlderSpellings, ListFormBecomesTheMap) {
  const Job job =
      Good(WithSpec("replicaSpecs: [{tfPort: 3333, template: {spec: {restartPolicy: "
                    "OnFailure, containers: [{name: tensorflow, image: a}]}}}, "
                    "{tfReplicaType: worker, replicas: 2, template: " +
                        std::string(kTemplate) + "}]",
                    "tensorflow.org/v1alpha1"));
  EXPECT_EQ(ReplicasOf(job.spec, Role::kMaster), 1);
  EXPECT_EQ(ReplicasOf(job.spec, Role::kWorker), 2);
  const ReplicaSpec& master = job.spec.replicas.at(Role::kMaster);
  EXPECT_EQ(master.restart_policy, RestartPolicy::kOnFailure);
  EXPECT_EQ(master.port, 3333);
  EXPECT_EQ(base::CompactJson(master.pod_template),
            R"({"spec":{"containers":[{"name":"tensorflow","image":"a",)"
            R"("ports":[{"name":"tfjob-port","containerPort":3333}]}]}})");
}

TEST(OlderSpellings, ImageAndSchedulerOfTheJobFillThoseOfThePods) {
  const Job job =
      Good(WithSpec("tfImage: x, schedulerName: s, replicaSpecs: [{template: {spec: "
                    "{containers: [{name: tensorflow}]}}}]",
                    "kubeflow.org/v1alpha1"));
  const Json& pod = job.spec.replicas.at(Role::kMaster).pod_template;
  EXPECT_EQ(base::StringOr(*TensorFlowContainer(pod), "image"), "x");
  EXPECT_EQ(base::StringOr(*base::Find(pod, "spec"), "schedulerName"), "s");
}

TEST(OlderSpellings, AreCleanedUpAsTheyWereThen) {
  const std::string map = "tfReplicaSpecs: {Worker: {template: " + std::string(kTemplate) + "}}";
  const std::string list = "replicaSpecs: [{template: " + std::string(kTemplate) + "}]";
  const auto policy = [](const std::string& text) {
    return Good(text).spec.run_policy.clean_pod_policy;
  };
  EXPECT_EQ(policy(WithSpec(map, "kubeflow.org/v1beta1")), CleanPodPolicy::kRunning);
  EXPECT_EQ(policy(WithSpec(list, "kubeflow.org/v1alpha1")), CleanPodPolicy::kRunning);
  EXPECT_EQ(policy(WithSpec("cleanPodPolicy: None, " + map, "kubeflow.org/v1beta1")),
            CleanPodPolicy::kNone);
  EXPECT_EQ(policy(WithSpec(map)), CleanPodPolicy::kNone);
}

TEST(OlderSpellings, TerminationPolicyMayNameTheReplicaThatV1Takes) {
  const auto job = [](const std::string& chief, const std::string& type) {
    return WithSpec("terminationPolicy: {chief: " + chief + "}, replicaSpecs: [{tfReplicaType: " +
                        type + ", template: " + std::string(kTemplate) + "}]",
                    "kubeflow.org/v1alpha1");
  };
  EXPECT_EQ(Errors(job("{replicaName: MASTER, replicaIndex: 0}", "MASTER")), "");
  EXPECT_EQ(Errors(job("{replicaName: WORKER, replicaIndex: 0}", "WORKER")), "");
  EXPECT_NE(Errors(job("{replicaName: WORKER, replicaIndex: 1}", "WORKER")), "");
  EXPECT_NE(Errors(job("{replicaName: MASTER}", "WORKER")), "");
  EXPECT_NE(Errors(job("{replicaName: PS}", "PS")), "");
}

TEST(Warnings, TellWhatIsOverriddenMovedOrIgnored) {
  const std::string pod =
      "{spec: {restartPolicy: Always, containers: [{name: tensorflow, image: a}]}}";
  EXPECT_EQ(
      DecodeJob(WithSpec("tfReplicaSpecs: {Worker: {template: " + pod + "}}")).warnings,
      std::vector<std::string>{
          "4:67: spec.tfReplicaSpecs.Worker.template.spec.restartPolicy: is overridden by the "
          "replica's restartPolicy, Never"});
  EXPECT_EQ(
      DecodeJob(OneWorker("backoffLimit: 3")).warnings,
      std::vector<std::string>{
          "4:22: spec.backoffLimit: is read as spec.runPolicy.backoffLimit, where v1 has it"});
  EXPECT_EQ(DecodeJob(WithSpec("tensorboard: {logDir: x}, replicaSpecs: [{template: " + pod + "}]",
                               "kubeflow.org/v1alpha1"))
                .warnings,
            std::vector<std::string>{
                "4:21: spec.tensorboard: is ignored: TensorBoard runs beside a job, not in it"});
  EXPECT_EQ(DecodeJob(WithSpec("tfReplicaSpecs: {}")).warnings,
            std::vector<std::string>{
                "4:24: spec.tfReplicaSpecs: asks for no replicas: nothing will run"});
  EXPECT_EQ(DecodeJob(OneWorker("runPolicy: {schedulingPolicy: {minAvailable: 10}}")).warnings,
            std::vector<std::string>{
                "4:53: spec.runPolicy.schedulingPolicy.minAvailable: is 10, more than all "
                "replicas (1): a gang scheduler would wait for ever"});
}

// Hostile input.

// Every value of a good manifest is replaced by every wrong kind of value, one at a time.
void ReplaceEach(const Json& value, const std::function<void(const Json&)>& use,
                 const std::function<Json(const Json&)>& around) {
  static const std::vector<Json> kWrong = {nullptr,
                                           true,
                                           -1,
                                           1e300,
                                           "x",
                                           "",
                                           base::JsonArray{},
                                           base::JsonObject{},
                                           base::JsonArray{nullptr},
                                           base::JsonArray{base::JsonArray{}},
                                           base::JsonObject{{"", nullptr}}};
  for (const Json& wrong : kWrong) use(around(wrong));
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      ReplaceEach(member, use, [&](const Json& inner) {
        base::JsonObject copy = *object;
        copy[key] = inner;
        return around(copy);
      });
    }
  } else if (const auto* array = value.if_array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      ReplaceEach((*array)[i], use, [&](const Json& inner) {
        base::JsonArray copy = *array;
        copy[i] = inner;
        return around(copy);
      });
    }
  }
}

TEST(HostileManifests, OfWrongTypesAreAnsweredWithAnErrorOrAJobThatReadsBack) {
  const std::vector<std::string> manifests = {
      OneWorker("successPolicy: AllWorkers, runPolicy: {cleanPodPolicy: All, suspend: true, "
                "backoffLimit: 1, schedulingPolicy: {minAvailable: 1, minResources: {cpu: 1}}}",
                "replicas: 2, restartPolicy: Always"),
      WithSpec("tfImage: x, schedulerName: s, terminationPolicy: {chief: {replicaName: MASTER, "
               "replicaIndex: 0}}, replicaSpecs: [{tfReplicaType: MASTER, tfPort: 1, replicas: 1, "
               "template: {spec: {restartPolicy: Never, containers: [{name: tensorflow, args: [a], "
               "env: [{name: a, value: b}], ports: [{name: tfjob-port, containerPort: 1}]}]}}}]",
               "kubeflow.org/v1alpha1"),
      WithSpec(
          "cleanPodPolicy: All, tfReplicaSpecs: {Ps: {template: " + std::string(kTemplate) + "}}",
          "kubeflow.org/v1beta1"),
  };
  int tried = 0;
  for (const std::string& text : manifests) {
    ReplaceEach(
        base::ToJson(*base::ReadYaml(text)),
        [&](const Json& changed) {
          ++tried;
          const std::string yaml = base::WriteYaml(changed);
          const Decoded decoded = DecodeJob(yaml);
          if (!decoded.errors.empty()) return;
          EXPECT_EQ(Good(base::WriteYaml(EncodeJob(decoded.job))), decoded.job) << yaml;
        },
        [](const Json& inner) { return inner; });
  }
  EXPECT_GT(tried, 500);
}

TEST(HostileManifests, WithWrongTypesGiveOneErrorEach) {
  EXPECT_EQ(Errors("[]"), ": must be a map, not a list");
  EXPECT_EQ(Errors("7"), ": must be a map, not the number 7");
  EXPECT_EQ(Errors(""), ": the manifest is empty");
  EXPECT_EQ(Errors("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\nspec: []\n"),
            "spec: must be a map, not a list");
  EXPECT_EQ(
      Errors("apiVersion: [a]\nkind: {b: c}\nmetadata: {name: a}\nspec: {tfReplicaSpecs: {}}\n"),
      "apiVersion: must be text, not a list\nkind: must be text, not a map");
  EXPECT_EQ(Errors(WithContainers("[[]]")),
            "spec.tfReplicaSpecs.Worker.template.spec.containers[0]: must be a map, not a list");
  EXPECT_EQ(Errors(WithSpec("tfReplicaSpecs: {Worker: 3}")),
            "spec.tfReplicaSpecs.Worker: must be a map, not the number 3");
}

TEST(HostileManifests, CannotForgeLinesOfTheErrorText) {
  const std::string told =
      Describe(DecodeJob(OneWorker("\"a\\nb.yaml:1:1: all is well\": 1")).errors, "x.yaml");
  EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  const std::string duplicate =
      Describe(DecodeJob("\"a\\nb\": 1\n\"a\\nb\": 2\n").errors, "x.yaml");
  EXPECT_EQ(std::ranges::count(duplicate, '\n'), 1) << duplicate;
}

TEST(HostileManifests, CannotFillTheScreenWithOneValue) {
  EXPECT_LT(Errors(OneWorker("successPolicy: " + std::string(100'000, 'x'))).size(), 300u);
  EXPECT_LT(Errors(OneWorker(std::string(900, 'x') + ": 1")).size(), 300u);
}

TEST(Describe, PutsFilePlaceAndPathBeforeEachError) {
  EXPECT_EQ(Describe({{"spec.x", 14, 9, "must be at least 0, not -1"}, {"", 0, 0, "empty"}},
                     "mnist.yaml"),
            "mnist.yaml:14:9: spec.x: must be at least 0, not -1\nmnist.yaml: empty\n");
}

TEST(DecodeJobObject, ReadsWhatTheApiServerSends) {
  const Json object = *base::ParseJson(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","uid":"u","generation":3,
      "managedFields":[{}],"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"tfReplicaSpecs":{}},
      "status":{"conditions":[]}})");
  const Decoded decoded = DecodeJobObject(object);
  EXPECT_TRUE(decoded.errors.empty());
  EXPECT_EQ(decoded.job.metadata.uid, "u");
}

}  // namespace
}  // namespace api
