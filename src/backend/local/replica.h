// What a replica's process is given on this machine: command, environment, directory.
//
// The pod template's container runs without its image: command and arguments as written, with
// $(NAME) replaced as Kubernetes does; a bare `python` or `python3` means the job's Python.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tfjob.h"
#include "backend/local/job_dir.h"
#include "base/json.h"
#include "base/result.h"

namespace backend::local {

using EnvList = std::vector<std::pair<std::string, std::string>>;

struct ReplicaContext {
  const api::Job& job;
  const JobDir& dir;
  const RunFile& run;
  const std::map<api::ReplicaId, int32_t>& ports;
  const EnvList& env_file;
  // CUDA_VISIBLE_DEVICES of each replica; empty: as inherited (gpus.h).
  const std::map<api::ReplicaId, std::string>& gpus;
  const std::vector<std::string>& environment;  // that replicas inherit
  std::string script = run.script;              // the file to run for it (kept_code.h)
};

// A path of this machine that a replica sees at another path, and nobody else does.
struct Mount {
  std::string from, to;
  bool operator==(const Mount&) const = default;
};

struct Command {
  std::vector<std::string> argv;
  EnvList added;  // on top of the inherited environment, in order; later entries win
  std::string directory;
  std::vector<Mount> mounts;  // of ElasticDL's jobs, whose option for it means this machine
};

// The hostPath volumes of a pod template that its container mounts.
std::vector<Mount> MountsOf(const base::Json& pod_template);

base::Result<Command> CommandOf(const ReplicaContext& context, api::ReplicaId id, int32_t attempt);

// The value of a variable in an environment, if it is set.
std::optional<std::string> ValueIn(const std::vector<std::string>& environment,
                                   std::string_view name);

// The inherited environment without what must not leak into a replica (a TF_CONFIG of the shell),
// then `added`.
std::vector<std::string> FullEnvironment(const std::vector<std::string>& inherited,
                                         const EnvList& added);

// All replicas of a job in a fixed order.
std::vector<api::ReplicaId> ReplicasInOrder(const api::JobSpec& spec);

// Who has a port, in the order of RunFile::ports: all replicas, and, where there are parameter
// servers, who are told of them beforehand, the workers that an elastic job may come to have.
std::vector<api::ReplicaId> WithPorts(const api::Job& job);

}  // namespace backend::local
