// A training job as its author wrote it: TFJob v1 (kubeflow.org/v1), in memory.
//
// Whatever a job came from (flags, a script, a manifest of any age), it becomes this before
// anything decides about it. What we decide on is typed; pod templates stay JSON as written, so
// that fields we do not know reach the pod.
//
// Values only: no I/O, no clock.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/status.h"
#include "base/json.h"
#include "base/time.h"

namespace api {

inline constexpr std::string_view kGroup = "kubeflow.org";
inline constexpr std::string_view kApiVersion = "kubeflow.org/v1";
inline constexpr std::string_view kKind = "TFJob";
inline constexpr std::string_view kContainerName = "tensorflow";
inline constexpr std::string_view kPortName = "tfjob-port";
inline constexpr int32_t kDefaultPort = 2222;
// Of one replica type. A dense TF_CONFIG of so many does not fit an environment variable any more.
inline constexpr int32_t kMaxReplicas = 10'000;

enum class RestartPolicy { kNever, kOnFailure, kAlways, kExitCode };
enum class CleanPodPolicy { kNone, kRunning, kAll };
enum class SuccessPolicy { kDefault, kAllWorkers };
// Who is restarted when one replica failed (annotation trainyard.dev/restart-scope).
enum class RestartScope { kAuto, kReplica, kJob };

// The systems whose jobs we run differ in the names of a job's parts and in what they tell a
// replica (core/dialect.h).
enum class Dialect { kTfJob, kTfSpawner, kElasticDl };

std::string_view Name(RestartPolicy policy);  // "ExitCode"
std::string_view Name(CleanPodPolicy policy);
std::string_view Name(SuccessPolicy policy);  // "" or "AllWorkers"
std::string_view Name(RestartScope scope);
std::string_view Name(Dialect dialect);  // "ElasticDL"

struct ReplicaSpec {
  int32_t replicas = 1;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  base::Json pod_template;      // as written; see container()
  int32_t port = kDefaultPort;  // of the port named tfjob-port in the container named tensorflow

  bool operator==(const ReplicaSpec&) const = default;
};

// The container named "tensorflow" of a pod template, or nullptr.
const base::Json* TensorFlowContainer(const base::Json& pod_template);

// Sets resources.limits.memory of that container.
void SetMemoryLimit(base::Json& pod_template, int64_t bytes);

struct SchedulingPolicy {
  std::optional<int32_t> min_available;
  std::string queue;
  std::optional<base::Json> min_resources;
  std::string priority_class;
  std::optional<int32_t> schedule_timeout_seconds;

  bool operator==(const SchedulingPolicy&) const = default;
};

struct RunPolicy {
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNone;
  std::optional<int32_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int32_t> backoff_limit;
  bool suspend = false;
  std::string managed_by;  // empty: ours
  std::optional<SchedulingPolicy> scheduling_policy;

  bool operator==(const RunPolicy&) const = default;
};

struct JobSpec {
  std::map<Role, ReplicaSpec> replicas;
  SuccessPolicy success_policy = SuccessPolicy::kDefault;
  bool enable_dynamic_worker = false;
  // A job of a single replica gets a TF_CONFIG, too: all versions before v1 gave it one.
  bool tf_config_for_single_replica = false;
  RunPolicy run_policy;

  bool operator==(const JobSpec&) const = default;
};

struct Elastic {
  int32_t min = 1;
  int32_t max = 1;
  bool operator==(const Elastic&) const = default;
};

// What the annotations trainyard.dev/* of a TFJob say.
struct Extensions {
  RestartScope restart_scope = RestartScope::kAuto;
  std::optional<Elastic> elastic;                // trainyard.dev/elastic: MIN:MAX
  std::optional<base::Duration> start_deadline;  // trainyard.dev/start-deadline: 10m, 90s, 90
  bool wait_for_evaluator = false;               // trainyard.dev/wait-for-evaluator
  bool evaluator_in_cluster = true;              // trainyard.dev/evaluator-in-cluster
  // Whatever still runs when the job is decided is ended, though cleanPodPolicy would leave it: as
  // on one machine, and the pods that had ended stay to be read.
  bool end_leftovers = false;  // trainyard.dev/end-leftovers
  // What a person wishes of a job that others keep; the core heeds it (core/wishes.h).
  std::string stopped_by;  // trainyard.dev/stopped-by: who wants it ended
  int32_t life = 0;        // trainyard.dev/life: one more than in the status makes it run again
  std::string output;      // trainyard.dev/output: CLAIM[/PATH] or URL where its output lies
  Dialect dialect = Dialect::kTfJob;  // trainyard.dev/dialect: TFJob or ElasticDL
  bool tf_config = true;              // trainyard.dev/tf-config: whether replicas get a TF_CONFIG
  // trainyard.dev/high-priority: "0,3": these workers are of the priority class high, the others
  // low.
  std::optional<std::vector<int32_t>> high_priority;

  bool operator==(const Extensions&) const = default;
};

struct Metadata {
  std::string name;
  std::string name_space;  // "default" unless said
  std::string uid;
  std::string generate_name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;

  bool operator==(const Metadata&) const = default;
};

struct Job {
  Metadata metadata;
  JobSpec spec;
  Extensions extensions;  // read from metadata.annotations
  JobStatus status;

  bool operator==(const Job&) const = default;
};

// The replicas of a role that the spec asks for; 0 when the role is not in the spec.
int32_t ReplicasOf(const JobSpec& spec, Role role);

// apiVersion, kind, metadata and spec, as v1. The status is EncodeStatus's (api/status.h).
base::Json EncodeJob(const Job& job);

}  // namespace api
