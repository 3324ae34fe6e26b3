#include "cli/elasticdl_job.h"

#include <algorithm>

#include <fmt/core.h>

#include "api/decode.h"
#include "base/strings.h"
#include "cli/recipe.h"
#include "core/dialect.h"

namespace cli {
namespace {

using api::Role;
using base::Invalid;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int32_t kMostReplicas = 1000;  // of a role
constexpr size_t kMostName = 63;         // characters of a service's name

// What every role needs, read once.
struct Shared {
  JsonArray env, mounts, volumes;
  std::string command, pull_policy;
};

Result<JsonObject> Resources(const EdlArgs& args, std::string_view who) {
  const auto read = [&](std::string_view kind) -> Result<JsonObject> {
    const std::string option = fmt::format("{}_resource_{}", who, kind);
    const std::string text = args.Get(option);
    if (text.empty()) return JsonObject();
    return TRY_AS("--" + option, ParseEdlResources(text));
  };
  const JsonObject requests = TRY(read("request"));
  JsonObject limits = TRY(read("limit"));
  if (limits.empty()) limits = requests;
  JsonObject out;
  if (!requests.empty()) out["requests"] = requests;
  if (!limits.empty()) out["limits"] = limits;
  return out;
}

// A claim or path that is named twice is one volume with two mounts. Claims come first.
void AddVolumes(const std::vector<EdlVolume>& volumes, Shared& shared) {
  std::vector<std::pair<bool, std::string>> sources;  // whether it is a claim, and which
  for (const bool claims : {true, false}) {
    for (const EdlVolume& volume : volumes) {
      if (volume.claim_name.empty() == claims) continue;
      const std::pair<bool, std::string> source{claims,
                                                claims ? volume.claim_name : volume.host_path};
      const auto known = std::ranges::find(sources, source);
      const std::string name = fmt::format("volume-{}", known - sources.begin());
      if (known == sources.end()) {
        sources.push_back(source);
        JsonObject object{{"name", name}};
        if (claims) {
          object["persistentVolumeClaim"] = JsonObject{{"claimName", volume.claim_name}};
        } else {
          JsonObject path{{"path", volume.host_path}};
          if (!volume.type.empty()) path["type"] = volume.type;
          object["hostPath"] = std::move(path);
        }
        shared.volumes.push_back(std::move(object));
      }
      JsonObject mount{{"name", name}, {"mountPath", volume.mount_path}};
      if (!volume.sub_path.empty()) mount["subPath"] = volume.sub_path;
      shared.mounts.push_back(std::move(mount));
    }
  }
}

JsonObject Template(const Shared& shared, const std::string& image, const JsonObject& resources,
                    const std::string& priority, Role role) {
  JsonObject container{
      {"name", api::kContainerName},
      {"image", image},
      {"imagePullPolicy", shared.pull_policy},
      {"command",
       JsonArray{Json("/bin/bash"), Json("-c"), Json("set -o pipefail;" + shared.command)}},
      {"ports", JsonArray{JsonObject{{"name", api::kPortName},
                                     {"containerPort", core::ElasticDlPort(role)}}}}};
  if (!resources.empty()) container["resources"] = resources;
  if (!shared.env.empty()) container["env"] = shared.env;
  if (!shared.mounts.empty()) container["volumeMounts"] = shared.mounts;
  JsonObject spec{{"containers", JsonArray{std::move(container)}}};
  if (!shared.volumes.empty()) spec["volumes"] = shared.volumes;
  if (!priority.empty()) spec["priorityClassName"] = priority;
  return {{"spec", std::move(spec)}};
}

struct Counts {
  int32_t workers = 0, ps = 0, evaluators = 0;
  bool chief = false;

  // How many may be started again.
  int32_t Relaunched() const { return workers + evaluators + (chief ? 1 : 0); }
};

Result<Counts> CountsOf(const EdlArgs& args) {
  Counts out;
  out.workers = TRY(args.Number("num_workers", 1, kMostReplicas));
  out.ps = TRY(args.Number("num_ps_pods", 0, kMostReplicas));
  out.evaluators = TRY(args.Number("num_evaluators", 0, kMostReplicas));
  // As 1.0.0 does for TensorFlow's parameter servers: somebody must coordinate.
  out.chief = out.ps > 0 && args.IsTrue("need_tf_config");
  return out;
}

// What there is in ElasticDL, and not here.
Result<> CheckSupported(const EdlArgs& args) {
  if (args.IsTrue("need_elasticdl_job_service")) {
    return Invalid(
        "--need_elasticdl_job_service: ElasticDL's own training loop is not here: give the command "
        "of your training with --job_command");
  }
  if (base::Trim(args.Get("job_command")).empty())
    return Invalid("--job_command is required: what every replica is to run");
  if (args.Get("distribution_strategy") == "AllreduceStrategy") {
    return Invalid(
        "--distribution_strategy=AllreduceStrategy: ElasticDL's AllReduce, over Horovod, is not "
        "here: use ParameterServerStrategy, or MultiWorkerMirroredStrategy with trainyard run");
  }
  if (!args.IsTrue("need_pod_manager"))
    return Invalid("--need_pod_manager=false: there would be nobody to start the replicas");
  if (!args.Get("cluster_spec").empty()) {
    return Invalid(
        "--cluster_spec: a Python file is not run here: say the same with --cluster_spec_json");
  }
  return {};
}

Result<> CheckNames(const api::Job& job) {
  std::string longest = core::MasterName(job);
  for (const auto& [role, spec] : job.spec.replicas) {
    const std::string name = core::ReplicaName(job, {role, spec.replicas - 1});
    if (name.size() > longest.size()) longest = name;
  }
  if (longest.size() > kMostName) {
    return Invalid(fmt::format("--job_name: {} has {} characters, and a name may have {}", longest,
                               longest.size(), kMostName));
  }
  for (const api::FieldError& error : api::Validate(job)) {
    if (error.path == "metadata.name") return Invalid("--job_name: " + error.detail);
    return Invalid(error.path + ": " + error.detail);
  }
  return {};
}

// As there: workers, chief and evaluators are started again so many times each; a parameter server
// is not. Kills do not count.
Result<> SetRestarts(const EdlArgs& args, const Counts& counts, api::Job& job) {
  const int32_t times = TRY_AS("--aux_params", DisablesRelaunch(args.Get("aux_params")))
                            ? 0
                            : TRY(args.Number("relaunch_on_worker_failure", 0, 1'000'000));
  const std::string policy = args.Get("restart_policy");
  for (auto& [role, spec] : job.spec.replicas) {
    const bool relaunched = times > 0 && (role != Role::kPs || !args.IsTrue("ps_is_critical"));
    spec.restart_policy = policy == "Always"                    ? api::RestartPolicy::kAlways
                          : policy == "OnFailure" || relaunched ? api::RestartPolicy::kOnFailure
                                                                : api::RestartPolicy::kNever;
  }
  // Theirs without a limit are the kubelet's.
  if (policy == "Never") {
    job.spec.run_policy.backoff_limit =
        static_cast<int32_t>(std::min<int64_t>(int64_t{times} * counts.Relaunched(), 1'000'000));
  }
  return {};
}

Result<Shared> SharedOf(const EdlArgs& args, const std::vector<EdlVolume>& volumes) {
  Shared out{.command = args.Get("job_command"), .pull_policy = args.Get("image_pull_policy")};
  for (const auto& [name, value] : TRY_AS("--envs", ParseEdlEnvs(args.Get("envs"))))
    out.env.push_back(JsonObject{{"name", name}, {"value", value}});
  AddVolumes(volumes, out);
  return out;
}

Result<> AddRole(const EdlArgs& args, const Shared& shared, const EdlClusterSpec& changes,
                 Role role, int32_t count, api::Job& job) {
  if (count == 0) return {};
  const std::string who(api::LowerName(role));
  const std::string own = args.Get(role == Role::kPs ? "ps_image" : "worker_image");
  const std::string priority = role == Role::kWorker ? "" : args.Get(who + "_pod_priority");
  std::string image = own.empty() ? args.Get("image_name") : own;
  if (image.empty()) image = kBaseImage;  // on this machine it is named and not used
  JsonObject pod = Template(shared, image, TRY(Resources(args, who)), priority, role);
  changes.ChangePod(who, pod);
  job.spec.replicas[role] = {
      .replicas = count, .pod_template = std::move(pod), .port = core::ElasticDlPort(role)};
  return {};
}

Result<> SetPriorities(const EdlArgs& args, int32_t workers, api::Job& job) {
  const std::vector<std::string> each =
      TRY_AS("--worker_pod_priority", ParseEdlPriority(args.Get("worker_pod_priority"), workers));
  if (each.front().empty()) return {};
  std::vector<int32_t> high;
  for (int32_t i = 0; i < workers; ++i) {
    if (each[static_cast<size_t>(i)] == "high") high.push_back(i);
  }
  job.extensions.high_priority = std::move(high);
  return {};
}

}  // namespace

Result<EdlJob> MakeEdlJob(const EdlArgs& args) {
  TRY(CheckSupported(args));
  EdlJob out;
  const Counts counts = TRY(CountsOf(args));
  out.volumes = TRY_AS("--volume", ParseEdlVolumes(args.Get("volume")));
  out.changes = TRY_AS("--cluster_spec_json", EdlClusterSpec::Parse(args.Get("cluster_spec_json")));
  const Shared shared = TRY(SharedOf(args, out.volumes));

  api::Job& job = out.job;
  job.metadata.name = args.Get("job_name");
  job.metadata.name_space = args.Get("namespace");
  job.extensions.dialect = api::Dialect::kElasticDl;
  job.extensions.tf_config = args.IsTrue("need_tf_config");
  job.extensions.end_leftovers = true;
  job.extensions.restart_scope = api::RestartScope::kReplica;
  if (args.IsTrue("need_task_manager")) job.extensions.elastic = api::Elastic{1, counts.workers};
  TRY(AddRole(args, shared, out.changes, Role::kPs, counts.ps, job));
  TRY(AddRole(args, shared, out.changes, Role::kChief, counts.chief ? 1 : 0, job));
  TRY(AddRole(args, shared, out.changes, Role::kWorker, counts.workers, job));
  TRY(AddRole(args, shared, out.changes, Role::kEvaluator, counts.evaluators, job));
  TRY(SetRestarts(args, counts, job));
  TRY(SetPriorities(args, counts.workers, job));

  const JsonObject resources = TRY(Resources(args, "master"));
  out.master = {.image = args.Get("image_name"),
                .image_pull_policy = shared.pull_policy,
                .priority_class = args.Get("master_pod_priority")};
  if (const Json* requests = resources.if_contains("requests"))
    out.master.requests = requests->get_object();
  if (const Json* limits = resources.if_contains("limits"))
    out.master.limits = limits->get_object();
  TRY(CheckNames(job));
  return out;
}

std::vector<std::string> GivenForClusters(const EdlArgs& args) {
  std::vector<std::string> out;
  for (const char* option :
       {"image_name", "worker_image", "ps_image", "image_pull_policy", "master_resource_request",
        "master_resource_limit", "master_pod_priority", "ps_pod_priority", "chief_pod_priority",
        "evaluator_pod_priority", "worker_pod_priority", "cluster_spec_json"}) {
    if (args.Given(option)) out.push_back(fmt::format("--{}", option));
  }
  return out;
}

}  // namespace cli
