#include "cli/cluster_plan.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "base/env_file.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "cli/kept_output.h"
#include "cli/pod_python.h"
#include "core/dialect.h"
#include "io/files.h"

namespace cli {
namespace {

using base::ArrayAt;
using base::Invalid;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::ObjectAt;
using base::Result;

constexpr std::string_view kCommandFile = ".trainyard-command";

JsonObject Variable(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

// A pod that every cluster admits, Pod Security "restricted" included.
JsonObject PlainPod(Json container) {
  JsonObject& inner = container.get_object();
  inner["securityContext"] =
      JsonObject{{"allowPrivilegeEscalation", false},
                 {"capabilities", JsonObject{{"drop", JsonArray{Json("ALL")}}}}};
  // That user has no home of its own.
  ArrayAt(inner, "env").push_back(Variable("HOME", "/tmp"));
  return {
      {"containers", JsonArray{std::move(container)}},
      {"securityContext", JsonObject{{"runAsNonRoot", true},
                                     {"runAsUser", kOutputUser},
                                     {"runAsGroup", kOutputUser},
                                     {"fsGroup", kOutputUser},
                                     {"seccompProfile", JsonObject{{"type", "RuntimeDefault"}}}}},
      // A Python that is process 1 does not heed SIGTERM, and would spend its grace.
      {"shareProcessNamespace", true}};
}

// Where a container of a template that the user gave takes over what ours says.
JsonObject Merged(JsonObject theirs, const JsonObject& ours) {
  for (const auto& [key, value] : ours) {
    if (key == "image" && theirs.contains("image")) continue;
    if (key == "env" || key == "ports" || key == "volumeMounts") {
      for (const Json& entry : value.get_array()) ArrayAt(theirs, key).push_back(entry);
    } else if (key == "resources") {
      for (const auto& [kind, amounts] : value.get_object()) {
        for (const auto& [name, amount] : amounts.get_object())
          ObjectAt(ObjectAt(theirs, key), kind)[name] = amount;
      }
    } else {
      theirs[key] = value;
    }
  }
  theirs["name"] = api::kContainerName;
  return theirs;
}

// The template of a Pod, or of anything that has a pod spec.
Result<JsonObject> ReadPodFile(const std::string& path) {
  const std::string text = TRY_AS("--pod-file", io::ReadFile(path, 1 << 20));
  const auto read = base::ReadYaml(text);
  if (!read) return Invalid(fmt::format("--pod-file {}:{}", path, read.error().Text()));
  const Json object = base::ToJson(*read);
  const Json* spec = base::Find(object, "spec");
  const Json* containers = spec ? base::Find(*spec, "containers") : nullptr;
  if (!containers || !containers->is_array() || containers->get_array().empty() ||
      !containers->get_array().front().is_object()) {
    return Invalid(
        fmt::format("--pod-file {}: no Pod: spec.containers must have one at least", path));
  }
  JsonObject out{{"spec", *spec}};
  JsonObject metadata;
  if (const Json* theirs = base::Find(object, "metadata")) {
    for (const char* key : {"labels", "annotations"}) {
      if (const Json* value = base::Find(*theirs, key)) metadata[key] = *value;
    }
  }
  if (!metadata.empty()) out["metadata"] = std::move(metadata);
  return out;
}

// The container that trains: the one of that name, or else the first.
size_t TrainingContainer(const JsonArray& containers) {
  const auto it = std::ranges::find_if(containers, [](const Json& container) {
    return base::StringOr(container, "name") == api::kContainerName;
  });
  return it == containers.end() ? 0 : static_cast<size_t>(it - containers.begin());
}

// Puts the script's container of one role into a pod.
Json Shaped(Json container, const std::optional<JsonObject>& pod_file) {
  if (!pod_file) return JsonObject{{"spec", PlainPod(std::move(container))}};
  JsonObject out = *pod_file;
  JsonArray& containers = ArrayAt(ObjectAt(out, "spec"), "containers");
  Json& theirs = containers[TrainingContainer(containers)];
  theirs = Merged(theirs.get_object(), container.get_object());
  return out;
}

Result<> ShapeScript(const Args& args, ClusterPlan& out) {
  Plan& plan = out.plan;
  std::optional<JsonObject> pod_file;
  if (args.Has("pod-file")) pod_file = TRY(ReadPodFile(args.Get("pod-file")));
  const std::string entry =
      fmt::format("{}/{}", kCodeMount,
                  plan.code_dir.empty() ? io::BaseName(plan.run.script)
                                        : std::filesystem::path(plan.run.script)
                                              .lexically_relative(plan.code_dir)
                                              .string());
  for (auto& [role, spec] : plan.job.spec.replicas) {
    Json container = *api::TensorFlowContainer(spec.pod_template);
    JsonObject& inner = container.get_object();
    if (args.Has("image")) inner["image"] = args.Get("image");
    inner["command"] =
        plan.command_text.empty()
            ? JsonArray{Json("python3"), Json(entry)}
            : JsonArray{Json("bash"), Json("-e"),
                        Json(fmt::format("{}/{}", kCodeMount, kCommandFile)), Json(entry)};
    if (!out.code.empty())
      inner["volumeMounts"] =
          JsonArray{JsonObject{{"name", "trainyard-code"}, {"mountPath", kCodeMount}}};
    spec.pod_template = Shaped(std::move(container), pod_file);
    if (pod_file && args.Has("image")) {
      JsonArray& containers =
          ArrayAt(ObjectAt(spec.pod_template.get_object(), "spec"), "containers");
      containers[TrainingContainer(containers)].get_object()["image"] = args.Get("image");
    }
    out.image = base::StringOr(*api::TensorFlowContainer(spec.pod_template), "image");
  }
  return {};
}

Result<Code> CodeOf(const Plan& plan) {
  Code out;
  if (!plan.code_dir.empty()) {
    out = TRY(PackDirectory(plan.code_dir));
  } else {
    out[io::BaseName(plan.run.script)] = plan.script_text;
  }
  if (!plan.command_text.empty()) out[std::string(kCommandFile)] = plan.command_text;
  size_t bytes = 0;
  for (const auto& [path, content] : out) bytes += content.size();
  if (bytes > kMostCode) {
    return Invalid(fmt::format(
        "{} has {} bytes, more than the {} that a ConfigMap takes: put data elsewhere, or make an "
        "image: trainyard package DIR -t IMAGE",
        plan.run.script, bytes, kMostCode));
  }
  return out;
}

// Every container that trains gets these, after what its template says.
void AddTo(Json& pod_template, const JsonArray& env, const JsonArray& secrets,
           const JsonArray& mounts, const JsonArray& volumes) {
  JsonObject& spec = ObjectAt(pod_template.get_object(), "spec");
  JsonArray& containers = ArrayAt(spec, "containers");
  JsonObject& container = containers[TrainingContainer(containers)].get_object();
  const auto append = [](JsonObject& to, std::string_view key, const JsonArray& entries) {
    if (entries.empty()) return;
    for (const Json& entry : entries) ArrayAt(to, key).push_back(entry);
  };
  append(container, "env", env);
  append(container, "envFrom", secrets);
  append(container, "volumeMounts", mounts);
  append(spec, "volumes", volumes);
}

struct OutputParts {
  JsonArray env, mounts, volumes;
  std::string annotation;
};

OutputParts OutputOf(const ClusterPlan& plan, const std::string& name) {
  OutputParts out;
  const OutputWish& wish = plan.output;
  if (!plan.wants_output) return out;
  if (wish.kind == OutputWish::Kind::kUrl) {
    const std::string base = wish.url + "/" + name;
    out.env = {Variable("TRAINYARD_OUTPUT_DIR", base + "/output"),
               Variable("TRAINYARD_CHECKPOINT_DIR", base + "/checkpoints"),
               Variable("TRAINYARD_LOG_DIR", base + "/tensorboard")};
    out.annotation = base;
    return out;
  }
  out.env = {Variable("TRAINYARD_OUTPUT_DIR", kOutputMount),
             Variable("TRAINYARD_CHECKPOINT_DIR", kCheckpointMount),
             Variable("TRAINYARD_LOG_DIR", kLogMount)};
  std::string path;
  JsonObject volume{{"name", "trainyard-output"}};
  if (wish.kind == OutputWish::Kind::kNone) {
    volume["emptyDir"] = JsonObject();
  } else {
    const std::string claim = plan.makes_claim ? name + "-output" : wish.claim;
    path = plan.makes_claim ? "" : wish.path.empty() ? name : wish.path;
    volume["persistentVolumeClaim"] = JsonObject{{"claimName", claim}};
    out.annotation = path.empty() ? claim : claim + "/" + path;
  }
  out.volumes.push_back(std::move(volume));
  for (std::string_view mount : {kOutputMount, kCheckpointMount, kLogMount}) {
    const std::string part(mount.substr(mount.rfind('/') + 1));
    out.mounts.push_back(JsonObject{{"name", "trainyard-output"},
                                    {"mountPath", mount},
                                    {"subPath", path.empty() ? part : path + "/" + part}});
  }
  return out;
}

// Only such a script pays for the hook with its image's PYTHONPATH, which the pod's replaces.
bool ImportsHooks(const Code& code) {
  return std::ranges::any_of(
      code, [](const auto& file) { return file.second.contains("elasticai_api.tensorflow"); });
}

// Kubernetes puts an earlier variable of that name, such as the env file's, in place of $(...).
void AddPythonPath(Json& pod_template) {
  constexpr std::string_view kName = "PYTHONPATH";
  JsonObject& spec = ObjectAt(pod_template.get_object(), "spec");
  JsonArray& containers = ArrayAt(spec, "containers");
  JsonArray& env = ArrayAt(containers[TrainingContainer(containers)].get_object(), "env");
  const bool given = std::ranges::any_of(
      env, [&](const Json& entry) { return base::StringOr(entry, "name") == kName; });
  env.push_back(Variable(kName, fmt::format("{}{}", kPythonMount, given ? ":$(PYTHONPATH)" : "")));
}

}  // namespace

Result<ClusterPlan> MakeClusterPlan(const Args& args) {
  for (const char* flag : {"python", "port", "hang-restart"}) {
    if (args.Has(flag))
      return Invalid(fmt::format("--{} is for this machine, not for clusters", flag));
  }
  ClusterPlan out{.plan = TRY(ReadPlan(args))};
  const bool script = !args.Has("file");
  if (script) {
    auto code = CodeOf(out.plan);
    if (code) {
      out.code = *std::move(code);
    } else if (!args.Has("image") || out.plan.code_dir.empty()) {
      return std::unexpected(code.error());
    } else {  // as `package` makes it
      out.plan.warnings.push_back(
          fmt::format("{} is more than a ConfigMap takes: the copy in the image, below {}, is run",
                      out.plan.code_dir, kCodeMount));
    }
    TRY(ShapeScript(args, out));
    out.plan.job.extensions.end_leftovers = true;
  } else {
    for (const char* flag : {"image", "pod-file"}) {
      if (args.Has(flag))
        return Invalid(fmt::format("--{} is for scripts: with -f, say it in the manifest", flag));
    }
  }
  if (!out.plan.env_text.empty()) out.env = TRY(base::ParseEnvFile(out.plan.env_text));
  out.wants_output = script || args.Has("output");
  if (args.Has("output")) out.output = TRY(ParseOutput(args.Get("output")));
  out.makes_claim = out.wants_output && out.output.kind == OutputWish::Kind::kNew;
  int64_t replicas = 0;
  for (const auto& [role, spec] : out.plan.job.spec.replicas) replicas += spec.replicas;
  out.shared = replicas > 1;
  JsonArray secrets;
  for (const std::string& name : args.All("secret"))
    secrets.push_back(JsonObject{{"secretRef", JsonObject{{"name", name}}}});
  for (auto& [role, spec] : out.plan.job.spec.replicas)
    AddTo(spec.pod_template, {}, secrets, {}, {});
  TRY(CheckJob(out.plan));
  return out;
}

ClusterObjects ObjectsOf(const ClusterPlan& plan, const std::string& name,
                         const std::string& name_space) {
  ClusterObjects out;
  out.first = plan.plan.others;
  api::Job job = plan.plan.job;
  job.metadata.name = name;
  job.metadata.name_space = name_space;
  job.metadata.generate_name.clear();
  OutputParts output = OutputOf(plan, name);
  job.extensions.output = output.annotation;
  JsonArray volumes = std::move(output.volumes);
  if (!plan.code.empty()) {
    out.first.push_back(CodeConfigMap(name + "-code", name_space, plan.code));
    volumes.push_back(CodeVolume(name + "-code", plan.code));
  }
  JsonArray env = std::move(output.env);
  if (!plan.env.empty()) {
    out.first.push_back(EnvSecret(name + "-env", name_space, plan.env));
    for (const auto& [key, value] : plan.env) {
      env.push_back(JsonObject{
          {"name", key},
          {"valueFrom",
           JsonObject{{"secretKeyRef", JsonObject{{"name", name + "-env"}, {"key", key}}}}}});
    }
  }
  if (plan.makes_claim)
    out.first.push_back(OutputClaim(name + "-output", name_space, plan.output, plan.shared));
  const bool with_python = core::UsesClient(job) && ImportsHooks(plan.code);
  if (with_python) {
    volumes.push_back(PythonVolume());
    output.mounts.push_back(PythonVolumeMount());
  }
  for (auto& [role, spec] : job.spec.replicas) {
    AddTo(spec.pod_template, env, {}, output.mounts, volumes);
    if (!with_python) continue;
    AnnotateWithPython(spec.pod_template.get_object());
    AddPythonPath(spec.pod_template);
  }
  out.job = api::EncodeJob(job);
  return out;
}

}  // namespace cli
