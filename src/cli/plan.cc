#include "cli/plan.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/decode.h"
#include "api/extensions.h"
#include "backend/local/gpus.h"
#include "backend/local/limits.h"
#include "backend/local/replica.h"
#include "base/duration.h"
#include "base/env_file.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "cli/client_check.h"
#include "cli/code_files.h"
#include "cli/manifest.h"
#include "cli/python.h"
#include "core/dialect.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using api::Role;
using base::Invalid;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int64_t kMostReplicas = 1000;  // of one role, on one machine
constexpr int64_t kBackoffLimit = 3;
// What a cluster would run the script in; on this machine it is named and not used.
constexpr std::string_view kImage = "tensorflow/tensorflow:2.15.0";

constexpr std::array kPolicies = {api::RestartPolicy::kNever, api::RestartPolicy::kOnFailure,
                                  api::RestartPolicy::kAlways, api::RestartPolicy::kExitCode};
constexpr std::array kScopes = {api::RestartScope::kAuto, api::RestartScope::kReplica,
                                api::RestartScope::kJob};

// The value of a flag that is one of a few words.
template <typename T, size_t n>
Result<T> Choice(const Args& args, std::string_view flag, const std::array<T, n>& choices) {
  std::vector<std::string> names;
  for (T choice : choices) names.emplace_back(api::Name(choice));
  const std::string chosen = TRY(args.OneOf(flag, "", names));
  return choices[static_cast<size_t>(std::ranges::find(names, chosen) - names.begin())];
}

// "My Script.py" -> "my-script"
std::string NameFrom(const std::string& path) {
  std::string stem = io::BaseName(path);
  stem = stem.substr(0, stem.rfind('.'));
  std::string name;
  for (char c : base::Lower(stem)) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (good) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.empty() || name[0] < 'a') name = "job-" + name;
  name = name.substr(0, 40);
  while (name.ends_with('-')) name.pop_back();
  return name;
}

// Whether a container runs `python` or `python3` by that name alone, and so the job's Python.
bool UsesPython(const api::Job& job) {
  return std::ranges::any_of(job.spec.replicas, [](const auto& entry) {
    const base::Json* container = api::TensorFlowContainer(entry.second.pod_template);
    const base::Json* command = container ? base::Find(*container, "command") : nullptr;
    if (!command || !command->is_array() || command->get_array().empty()) return false;
    const base::Json& program = command->get_array().front();
    return program == base::Json("python") || program == base::Json("python3");
  });
}

Result<std::string> ReadUserFile(const std::string& what, const std::string& path, size_t limit) {
  auto text = io::ReadFile(path, limit);
  if (text) return text;
  return Invalid(fmt::format("{}: {}", what, text.error().text()));
}

Result<JsonObject> Limits(const Args& args) {
  JsonObject limits;
  if (args.Has("worker-memory")) {
    const int64_t bytes = TRY_AS("--worker-memory", base::ParseMemory(args.Get("worker-memory")));
    if (bytes < (1 << 20)) return Invalid("--worker-memory: less than 1Mi runs nothing");
    limits["memory"] = std::to_string(bytes);
  }
  if (args.Has("worker-cpu")) {
    const int64_t millis = TRY_AS("--worker-cpu", base::ParseMilliQuantity(args.Get("worker-cpu")));
    if (millis < 10) return Invalid("--worker-cpu: must be at least 0.01");
    limits["cpu"] = fmt::format("{}m", millis);
  }
  if (const int64_t gpus = TRY(args.Number("gpus", 0, 0, 1000)); gpus > 0)
    limits["nvidia.com/gpu"] = gpus;
  return limits;
}

Result<Plan> FromScript(const Args& args) {
  Plan plan;
  std::string script = args.operand(0);
  if (io::IsDirectory(script)) {
    plan.code_dir = io::AbsolutePath(script);
    script = TRY(ScriptIn(script));
  }
  plan.script_text = TRY(ReadUserFile("script", script, 16 << 20));
  plan.run.script = io::AbsolutePath(script);
  plan.base_name = NameFrom(plan.code_dir.empty() ? script : plan.code_dir);

  api::Job& job = plan.job;
  if (args.Has("elastic")) {
    job.extensions.elastic = api::ParseElastic(args.Get("elastic"));
    if (!job.extensions.elastic) {
      return Invalid(fmt::format("--elastic {}: must be MIN:MAX, as 1:4", args.Get("elastic")));
    }
  }
  const auto& elastic = job.extensions.elastic;
  const int64_t workers = TRY(args.Number("workers", elastic ? elastic->max : 2, 1, kMostReplicas));
  if (elastic && (workers < elastic->min || workers > elastic->max)) {
    return Invalid(fmt::format("-w {}: --elastic {} allows from {} to {} workers", workers,
                               args.Get("elastic"), elastic->min, elastic->max));
  }
  const int64_t ps = TRY(args.Number("ps", 0, 0, kMostReplicas));
  const api::RestartPolicy restart =
      args.Has("restart") ? TRY(Choice(args, "restart", kPolicies)) : api::RestartPolicy::kExitCode;
  std::map<Role, int64_t> counts = {{Role::kWorker, workers}};
  if (ps > 0) counts[Role::kPs] = ps;
  // ParameterServerStrategy has a coordinator, which is the chief.
  if (args.Has("chief") || ps > 0) counts[Role::kChief] = 1;
  if (args.Has("evaluator")) counts[Role::kEvaluator] = 1;

  JsonArray command = {base::Json("python3"), base::Json(plan.run.script)};
  if (args.Has("command")) {
    plan.command_text = TRY(ReadUserFile("--command", args.Get("command"), 1 << 20));
    command = {base::Json("bash"), base::Json("-e"), base::Json("$(TRAINYARD_COMMAND_FILE)"),
               base::Json(plan.run.script)};
  }
  JsonArray words;
  for (const std::string& word : args.rest()) words.emplace_back(word);
  const JsonObject limits = TRY(Limits(args));
  for (const auto& [role, count] : counts) {
    JsonObject container = {{"name", api::kContainerName}, {"image", kImage}, {"command", command}};
    if (!words.empty()) container["args"] = words;
    if (!limits.empty() && role != Role::kPs)
      container["resources"] = JsonObject{{"limits", limits}};
    container["ports"] =
        JsonArray{JsonObject{{"name", api::kPortName}, {"containerPort", api::kDefaultPort}}};
    job.spec.replicas[role] = {
        .replicas = static_cast<int32_t>(count),
        .restart_policy = restart,
        .pod_template =
            JsonObject{{"spec", JsonObject{{"containers", JsonArray{std::move(container)}}}}}};
  }
  job.spec.run_policy.backoff_limit =
      static_cast<int32_t>(TRY(args.Number("backoff-limit", kBackoffLimit, 0, 1'000'000)));
  return plan;
}

Result<Plan> FromManifest(const Args& args) {
  for (const char* flag : {"workers", "elastic", "ps", "chief", "evaluator", "command", "restart",
                           "worker-memory", "worker-cpu", "gpus"}) {
    if (args.Has(flag))
      return Invalid(fmt::format("--{} is for scripts: with -f, say it in the manifest", flag));
  }
  if (!args.rest().empty())
    return Invalid("arguments after -- are for scripts: with -f, say them in the manifest");
  const std::string text = TRY(ReadUserFile("-f", args.Get("file"), 1 << 20));
  api::Manifest manifest = TRY(ManifestFrom(text, args));
  Plan plan{.job = std::move(manifest.job),
            .others = std::move(manifest.others),
            .warnings = std::move(manifest.warnings)};
  if (!manifest.says_namespace) plan.job.metadata.name_space.clear();
  plan.base_name = plan.job.metadata.name.empty() ? NameFrom(plan.job.metadata.generate_name)
                                                  : plan.job.metadata.name;
  if (args.Has("backoff-limit")) {
    plan.job.spec.run_policy.backoff_limit =
        static_cast<int32_t>(TRY(args.Number("backoff-limit", kBackoffLimit, 0, 1'000'000)));
  }
  return plan;
}

}  // namespace

Result<Plan> ReadPlan(const Args& args) {
  const bool manifest = args.Has("file");
  if (manifest && !args.operands().empty()) return Invalid("give a script or -f FILE, not both");
  if (!manifest && args.operands().empty())
    return Invalid("which script? usage: trainyard run SCRIPT [-w N] [-- ARGS]");
  if (!manifest && args.Has("param")) return Invalid("--param is for a template: give it with -f");
  Plan plan = manifest ? TRY(FromManifest(args)) : TRY(FromScript(args));
  if (args.Has("deadline")) {
    const base::Duration deadline = TRY_AS("--deadline", base::ParseDuration(args.Get("deadline")));
    if (deadline < std::chrono::seconds(1)) return Invalid("--deadline: must be at least 1s");
    plan.job.spec.run_policy.active_deadline_seconds =
        std::chrono::ceil<std::chrono::seconds>(deadline).count();
  }
  if (args.Has("restart-scope")) {
    plan.job.extensions.restart_scope = TRY(Choice(args, "restart-scope", kScopes));
  }
  if (args.Has("env-file")) {
    plan.env_text = TRY(ReadUserFile("--env-file", args.Get("env-file"), 1 << 20));
    TRY_AS("--env-file " + args.Get("env-file"), base::ParseEnvFile(plan.env_text));
  }
  if (args.Has("namespace")) plan.job.metadata.name_space = args.Get("namespace");
  if (args.Has("name")) {
    plan.job.metadata.name = args.Get("name");
    if (plan.job.metadata.name.empty()) return Invalid("metadata.name: --name must not be empty");
  }
  // Wishes of a job that was kept elsewhere are none for this one.
  plan.job.extensions.stopped_by.clear();
  plan.job.extensions.life = 0;
  return plan;
}

Result<> CheckRunsHere(const Plan& plan) {
  const auto replicas = backend::local::ReplicasInOrder(plan.job.spec);
  const bool any_driver = std::ranges::any_of(replicas, [](api::ReplicaId id) {
    return id.role == Role::kChief || id.role == Role::kMaster || id.role == Role::kWorker;
  });
  if (!any_driver)
    return Invalid(
        "spec.tfReplicaSpecs: no chief, master or worker replica: there is nothing to train");
  backend::local::EnvList env_file;
  for (auto& [name, value] : TRY(base::ParseEnvFile(plan.env_text)))
    env_file.emplace_back(name, value);
  std::vector<std::string> checked;
  for (const auto& [role, spec] : plan.job.spec.replicas) {
    if (spec.replicas > kMostReplicas) {
      return Invalid(fmt::format(
          "spec.tfReplicaSpecs.{}.replicas: {} are more than the {} that one machine may run",
          api::Name(role), spec.replicas, kMostReplicas));
    }
    TRY_AS(fmt::format("spec.tfReplicaSpecs.{}", api::Name(role)),
           backend::local::LimitsOf(spec.pod_template));
    if (spec.replicas == 0) continue;
    std::map<api::ReplicaId, int32_t> ports;
    for (api::ReplicaId id : backend::local::WithPorts(plan.job)) ports[id] = 1;
    backend::local::JobDir nowhere("/nonexistent");
    const auto command = TRY(backend::local::CommandOf(
        {plan.job, nowhere, plan.run, ports, env_file, {}, io::Environment()}, {role, 0}, 0));
    // Replicas run the same program, as a rule.
    if (core::UsesClient(plan.job) && command.argv != checked) TRY(CheckClient(command));
    checked = command.argv;
  }
  return {};
}

namespace {

// Our Python package would make a local folder named "s3:".
Result<> CheckCheckpointDir(const std::string& where, const std::string& value) {
  if (value.find("://") == std::string::npos) return {};
  return Invalid(fmt::format(
      "{}TRAINYARD_CHECKPOINT_DIR={}: object stores are not supported here; give a directory, on a "
      "cluster one of a volume (--storage)",
      where, value));
}

Result<> CheckCheckpointDirs(const Plan& plan) {
  constexpr const char* kName = "TRAINYARD_CHECKPOINT_DIR";
  if (const char* own = std::getenv(kName)) TRY(CheckCheckpointDir("", own));
  const auto variables = TRY(base::ParseEnvFile(plan.env_text));
  if (const auto it = variables.find(kName); it != variables.end())
    TRY(CheckCheckpointDir("--env-file: ", it->second));
  for (const auto& [role, spec] : plan.job.spec.replicas) {
    const base::Json* pod = base::Find(spec.pod_template, "spec");
    const base::Json* containers = pod ? base::Find(*pod, "containers") : nullptr;
    if (!containers || !containers->is_array()) continue;
    for (const base::Json& container : containers->get_array()) {
      const base::Json* env = base::Find(container, "env");
      if (!env || !env->is_array()) continue;
      for (const base::Json& variable : env->get_array()) {
        if (base::StringOr(variable, "name") != kName) continue;
        TRY(CheckCheckpointDir(fmt::format("spec.tfReplicaSpecs.{}: env: ", api::Name(role)),
                               base::StringOr(variable, "value")));
      }
    }
  }
  return {};
}

}  // namespace

Result<> CheckJob(const Plan& plan) {
  TRY(CheckCheckpointDirs(plan));
  api::Job checked = plan.job;
  if (checked.metadata.name.empty()) checked.metadata.name = plan.base_name + "-999999";
  if (auto errors = api::Validate(checked); !errors.empty()) {
    return Invalid(errors.front().path + ": " + errors.front().detail);
  }
  return {};
}

Result<Plan> MakePlan(const Args& args) {
  for (const char* flag : {"image", "pod-file", "secret"}) {
    if (args.Has(flag)) return Invalid(fmt::format("--{} is for clusters: see --on", flag));
  }
  if (args.Has("gpus") && backend::local::GpusIn(std::nullopt).empty())
    return Invalid("--gpus: this machine has no NVIDIA GPU: leave it out to train on the CPU");
  Plan plan = TRY(ReadPlan(args));
  // A manifest may leave it open, which means restarts without end.
  auto& limit = plan.job.spec.run_policy.backoff_limit;
  if (!limit) limit = kBackoffLimit;
  if (plan.job.metadata.name_space.empty()) plan.job.metadata.name_space = "default";
  if (!plan.others.empty()) plan.warnings.push_back(NotMadeHere(plan.others));
  auto python = ChoosePython(args);
  if (!python && (args.Has("python") || UsesPython(plan.job)))
    return std::unexpected(python.error());
  plan.run.python = python.value_or("");
  char directory[4096];
  if (!getcwd(directory, sizeof directory)) return base::FromErrno("current directory", errno);
  plan.run.directory = directory;
  plan.run.first_port = static_cast<int32_t>(TRY(args.Number("port", 0, 1, 65535)));
  if (args.Has("output")) plan.run.output = io::AbsolutePath(args.Get("output"));
  if (args.Has("hang-restart")) {
    const base::Duration hang =
        TRY_AS("--hang-restart", base::ParseDuration(args.Get("hang-restart")));
    if (hang < std::chrono::seconds(1)) return Invalid("--hang-restart: must be at least 1s");
    plan.run.hang_seconds = std::chrono::ceil<std::chrono::seconds>(hang).count();
  }
  TRY(CheckJob(plan));
  TRY(CheckRunsHere(plan));
  const bool speaks_of_tensorflow = plan.script_text.find("tensorflow") != std::string::npos ||
                                    plan.script_text.find("keras") != std::string::npos;
  if (speaks_of_tensorflow && plan.command_text.empty()) TRY(FindTensorFlow(plan.run.python));
  return plan;
}

}  // namespace cli
