#include "backend/local/replica.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/local/gpus.h"
#include "base/json.h"
#include "base/strings.h"
#include "core/dialect.h"
#include "core/elastic.h"
#include "core/tf_config.h"

namespace backend::local {
namespace {

using api::ReplicaId;
using base::Json;
using base::Result;

std::vector<std::string> StringsAt(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  const Json* list = base::Find(object, key);
  if (!list || !list->is_array()) return out;
  for (const Json& item : list->get_array()) {
    if (item.is_string()) out.emplace_back(item.get_string());
  }
  return out;
}

const std::string* Lookup(const EnvList& env, std::string_view name) {
  const auto it =
      std::find_if(env.rbegin(), env.rend(), [&](const auto& e) { return e.first == name; });
  return it == env.rend() ? nullptr : &it->second;
}

// $(NAME) of a known variable is replaced, $$(NAME) is a literal $(NAME), anything else stays: as
// Kubernetes.
std::string Expand(std::string_view text, const EnvList& env) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && text.substr(i).starts_with("$$(")) {
      out += '$';
      ++i;
    } else if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '(') {
      const size_t end = text.find(')', i);
      const std::string* value =
          end == std::string_view::npos ? nullptr : Lookup(env, text.substr(i + 2, end - i - 2));
      if (value) {
        out += *value;
        i = end;
        continue;
      }
      out += '$';
    } else {
      out += text[i];
    }
  }
  return out;
}

// The fields of a pod that a process on this machine has, too.
std::string FieldRef(const std::string& path, const api::Job& job, ReplicaId id) {
  if (path == "metadata.name") return core::ReplicaName(job, id);
  if (path == "metadata.namespace") return job.metadata.name_space;
  if (path == "status.podIP" || path == "status.hostIP") return "127.0.0.1";
  return "";
}

void AddTemplateEnv(const Json& container, const api::Job& job, ReplicaId id, EnvList& env) {
  const Json* list = base::Find(container, "env");
  if (!list || !list->is_array()) return;
  for (const Json& entry : list->get_array()) {
    const std::string name = base::StringOr(entry, "name");
    if (name.empty()) continue;
    std::string value = Expand(base::StringOr(entry, "value"), env);
    if (const Json* from = base::Find(entry, "valueFrom")) {
      const Json* field = base::Find(*from, "fieldRef");
      value = field ? FieldRef(base::StringOr(*field, "fieldPath"), job, id) : "";
      if (value.empty())
        continue;  // a Secret or ConfigMap of a cluster is not here: left unset, not set empty
    }
    env.emplace_back(name, value);
  }
}

EnvList OwnEnv(const ReplicaContext& context, ReplicaId id, int32_t attempt) {
  const api::Job& job = context.job;
  return {
      {"WORKER_NUMBER", std::to_string(id.index)},
      {"TOT_WORKERS", std::to_string(api::ReplicasOf(job.spec, api::Role::kWorker))},
      {"TRAINYARD_JOB", job.metadata.name},
      {"TRAINYARD_ROLE", std::string(api::LowerName(id.role))},
      {"TRAINYARD_INDEX", std::to_string(id.index)},
      {"TRAINYARD_ATTEMPT", std::to_string(attempt)},
      {"TRAINYARD_COMMAND_FILE", context.dir.File("code/command")},
      {"TRAINYARD_OUTPUT_DIR", context.run.output},
      {"TRAINYARD_CHECKPOINT_DIR", context.dir.File("checkpoints")},
      {"TRAINYARD_LOG_DIR", context.dir.File("tensorboard")},
      {"PYTHONUNBUFFERED", "1"},
      {"PYTHONFAULTHANDLER", "1"},
  };
}

void AddElastic(const ReplicaContext& context, ReplicaId id, int32_t attempt, EnvList& env) {
  if (!context.job.extensions.elastic) return;
  const std::string master = fmt::format("127.0.0.1:{}", context.run.master_port);
  for (auto& variable : core::ElasticEnvironment(context.job, id, attempt, master))
    env.push_back(std::move(variable));
  env.emplace_back("MY_POD_IP", "127.0.0.1");
}

}  // namespace

std::vector<ReplicaId> ReplicasInOrder(const api::JobSpec& spec) {
  std::vector<ReplicaId> out;
  for (const auto& [role, replica] : spec.replicas) {
    for (int32_t i = 0; i < replica.replicas; ++i) out.push_back({role, i});
  }
  return out;
}

std::vector<ReplicaId> WithPorts(const api::Job& job) {
  api::JobSpec spec = job.spec;
  if (api::ReplicasOf(spec, api::Role::kPs) > 0) {
    spec.replicas[api::Role::kWorker].replicas = core::MostWorkers(job);
  }
  return ReplicasInOrder(spec);
}

std::vector<Mount> MountsOf(const Json& pod_template) {
  std::vector<Mount> out;
  const Json& volumes = base::At(base::At(pod_template, "spec"), "volumes");
  const Json* container = api::TensorFlowContainer(pod_template);
  const Json* mounts = container ? base::Find(*container, "volumeMounts") : nullptr;
  if (!volumes.is_array() || !mounts || !mounts->is_array()) return out;
  for (const Json& mount : mounts->get_array()) {
    for (const Json& volume : volumes.get_array()) {
      const std::string path = base::StringOr(base::At(volume, "hostPath"), "path");
      if (path.empty() || base::StringOr(volume, "name") != base::StringOr(mount, "name")) continue;
      const std::string below = base::StringOr(mount, "subPath");
      out.push_back(
          {below.empty() ? path : path + "/" + below, base::StringOr(mount, "mountPath")});
    }
  }
  return out;
}

Result<Command> CommandOf(const ReplicaContext& context, ReplicaId id, int32_t attempt) {
  const api::Job& job = context.job;
  const Json& pod_template = job.spec.replicas.at(id.role).pod_template;
  const Json* container = api::TensorFlowContainer(pod_template);
  if (!container) return base::Invalid("no container named tensorflow");
  Command out;
  if (job.extensions.dialect == api::Dialect::kElasticDl) out.mounts = MountsOf(pod_template);
  out.added = OwnEnv(context, id, attempt);
  AddElastic(context, id, attempt, out.added);
  AddTemplateEnv(*container, job, id, out.added);
  const bool own_gpus = Lookup(out.added, kVisibleGpus) != nullptr;
  const auto address = [&](ReplicaId other) {
    return fmt::format("127.0.0.1:{}", context.ports.at(other));
  };
  if (auto config = core::TfConfig(job, id, address)) out.added.emplace_back("TF_CONFIG", *config);
  out.added.insert(out.added.end(), context.env_file.begin(), context.env_file.end());
  if (const auto it = context.gpus.find(id); it != context.gpus.end() && !own_gpus)
    out.added.emplace_back(kVisibleGpus, it->second);

  const std::string& script = context.script;
  for (const char* part : {"command", "args"}) {
    for (const std::string& word : StringsAt(*container, part)) {
      out.argv.push_back(!script.empty() && word == context.run.script ? script
                                                                       : Expand(word, out.added));
    }
  }
  std::vector<std::string> path;
  if (core::UsesClient(job)) path.push_back(context.dir.File("python"));
  if (script != context.run.script) path.push_back(io::DirName(context.run.script));
  if (!path.empty()) {
    const std::string* given = Lookup(out.added, "PYTHONPATH");
    const auto inherited = ValueIn(context.environment, "PYTHONPATH");
    if (given || inherited) path.push_back(given ? *given : *inherited);
    std::erase(path, "");
    out.added.emplace_back("PYTHONPATH", base::Join(path, ":"));
  }
  if (StringsAt(*container, "command").empty()) {
    return base::Invalid(
        fmt::format("spec.tfReplicaSpecs.{}.template.spec.containers: the container named "
                    "tensorflow has no command, and on this "
                    "machine there is no image to take one from",
                    api::Name(id.role)));
  }
  if (out.argv[0] == "python" || out.argv[0] == "python3") out.argv[0] = context.run.python;
  const std::string wanted = base::StringOr(*container, "workingDir");
  out.directory = !wanted.empty() && io::IsDirectory(wanted) ? wanted : context.run.directory;
  return out;
}

std::optional<std::string> ValueIn(const std::vector<std::string>& environment,
                                   std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::vector<std::string> FullEnvironment(const std::vector<std::string>& inherited,
                                         const EnvList& added) {
  std::map<std::string, std::string> env;
  for (const std::string& entry : inherited) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) env[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  env.erase("TF_CONFIG");
  for (const auto& [name, value] : added) env[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

}  // namespace backend::local
