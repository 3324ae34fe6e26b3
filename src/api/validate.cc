// The rules that hold for any job. Numbered V1-V8 as in training-operator v1.9's webhook, where a
// rule is its; the others refuse what that operator accepts and then chokes on.
#include <algorithm>

#include <fmt/core.h>

#include "api/decode.h"
#include "api/field_reader.h"

namespace api {
namespace {

constexpr size_t kMaxLabel = 63;  // of a DNS label, and so of a Service's name
constexpr std::string_view kOurManager = "kubeflow.org/training-operator";
constexpr std::string_view kMultiKueue = "kueue.x-k8s.io/multikueue";
// What the API server appends to a generateName.
constexpr std::string_view kGenerated = "xxxxx";

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLabel(std::string_view text, bool may_start_with_digit) {
  if (text.empty() || text.size() > kMaxLabel) return false;
  if (!IsLower(text.front()) && !(may_start_with_digit && IsDigit(text.front()))) return false;
  if (text.back() == '-') return false;
  return std::ranges::all_of(text, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

class Validator {
 public:
  explicit Validator(const Job& job) : job_(job), spec_(job.spec) {}

  std::vector<FieldError> Run() {
    CheckName();
    CheckReplicas();
    CheckRunPolicy();
    CheckElastic();
    return std::move(errors_);
  }

 private:
  void Fail(std::string path, std::string detail) {
    errors_.push_back({std::move(path), 0, 0, std::move(detail)});
  }

  // V1, and the length of the longest name made from it: Services are named like the replicas, and
  // one that is too long leaves the operator retrying for ever (trainer #1101).
  void CheckName() {
    const Metadata& metadata = job_.metadata;
    if (!metadata.name_space.empty() && !IsLabel(metadata.name_space, true)) {
      Fail("metadata.namespace",
           "must be lower-case letters, digits and '-', at most 63 of them, not " +
               Quoted(metadata.name_space));
    }
    const bool generated = metadata.name.empty() && !metadata.generate_name.empty();
    const std::string path = generated ? "metadata.generateName" : "metadata.name";
    const std::string name =
        generated ? metadata.generate_name + std::string(kGenerated) : metadata.name;
    if (name.empty()) return Fail(path, "is required");
    const size_t most = kMaxLabel - LongestSuffix() - (generated ? kGenerated.size() : 0);
    const std::string& given = generated ? metadata.generate_name : metadata.name;
    if (given.size() > most) {
      return Fail(path,
                  fmt::format("must have at most {} characters, not {}: replica names such as "
                              "NAME{} may have {}",
                              most, given.size(), longest_suffix_, kMaxLabel));
    }
    if (!IsLabel(name, false)) {
      Fail(path,
           "must be lower-case letters, digits and '-', start with a letter and not end with "
           "'-', not " +
               Quoted(given));
    }
  }

  size_t LongestSuffix() {
    for (const auto& [role, replica] : spec_.replicas) {
      int32_t count = replica.replicas;
      if (role == Role::kWorker && job_.extensions.elastic) {
        count = std::max(count, job_.extensions.elastic->max);
      }
      if (count < 1 || count > kMaxReplicas) continue;
      const std::string suffix = "-" + ToString({role, count - 1});
      if (suffix.size() > longest_suffix_.size()) longest_suffix_ = suffix;
    }
    return longest_suffix_.size();
  }

  void CheckReplicas() {
    for (const auto& [role, replica] : spec_.replicas) {
      const std::string path = Below("spec.tfReplicaSpecs", Name(role));
      if (replica.replicas < 0 || replica.replicas > kMaxReplicas) {
        Fail(Below(path, "replicas"),
             fmt::format("must be between 0 and {}, not {}", kMaxReplicas, replica.replicas));
      }
      if (replica.port < 1 || replica.port > 65'535) {
        Fail(path, fmt::format("its port must be between 1 and 65535, not {}", replica.port));
      }
    }
    // V8. More than one replica of either is allowed.
    if (spec_.replicas.contains(Role::kChief) && spec_.replicas.contains(Role::kMaster)) {
      Fail("spec.tfReplicaSpecs", "must not have both Chief and Master: they are the same role");
    }
  }

  template <typename T>
  void AtLeast(const std::string& path, const std::optional<T>& value, T least) {
    if (value && *value < least) {
      Fail(path, fmt::format("must be at least {}, not {}", least, *value));
    }
  }

  void CheckRunPolicy() {
    const RunPolicy& policy = spec_.run_policy;
    AtLeast("spec.runPolicy.ttlSecondsAfterFinished", policy.ttl_seconds_after_finished, 0);
    AtLeast<int64_t>("spec.runPolicy.activeDeadlineSeconds", policy.active_deadline_seconds, 0);
    AtLeast("spec.runPolicy.backoffLimit", policy.backoff_limit, 0);
    // V2
    if (!policy.managed_by.empty() && policy.managed_by != kOurManager &&
        policy.managed_by != kMultiKueue) {
      Fail("spec.runPolicy.managedBy", fmt::format("must be {} or {}, not {}", kOurManager,
                                                   kMultiKueue, Quoted(policy.managed_by)));
    }
    if (policy.scheduling_policy) {
      const std::string path = "spec.runPolicy.schedulingPolicy";
      AtLeast(path + ".minAvailable", policy.scheduling_policy->min_available, 0);
      AtLeast(path + ".scheduleTimeoutSeconds", policy.scheduling_policy->schedule_timeout_seconds,
              0);
    }
  }

  void CheckElastic() {
    const auto& elastic = job_.extensions.elastic;
    if (!elastic) return;
    const std::string path = "metadata.annotations[trainyard.dev/elastic]";
    const auto workers = spec_.replicas.find(Role::kWorker);
    if (elastic->min < 1 || elastic->max < elastic->min || elastic->max > kMaxReplicas) {
      Fail(path, fmt::format("must be MIN:MAX workers, 1 <= MIN <= MAX <= {}, not {}:{}",
                             kMaxReplicas, elastic->min, elastic->max));
    } else if (workers == spec_.replicas.end()) {
      Fail(path, "needs workers: spec.tfReplicaSpecs has no Worker");
    } else if (workers->second.replicas < elastic->min || workers->second.replicas > elastic->max) {
      Fail("spec.tfReplicaSpecs.Worker.replicas",
           fmt::format("must be between {} and {}, as trainyard.dev/elastic says, not {}",
                       elastic->min, elastic->max, workers->second.replicas));
    }
  }

  const Job& job_;
  const JobSpec& spec_;
  std::string longest_suffix_;
  std::vector<FieldError> errors_;
};

}  // namespace

std::vector<FieldError> Validate(const Job& job) { return Validator(job).Run(); }

std::vector<FieldError> ValidateUpdate(const Job& before, const Job& after) {
  std::vector<FieldError> errors;
  const RunPolicy& was = before.spec.run_policy;
  const RunPolicy& is = after.spec.run_policy;
  // V3
  if (was.managed_by != is.managed_by) {
    errors.push_back({"spec.runPolicy.managedBy", 0, 0, "is immutable"});
  }
  // The one CEL rule of TFJob v1: adding or removing a queue is allowed, changing it is not.
  const std::string was_queue = was.scheduling_policy ? was.scheduling_policy->queue : "";
  const std::string is_queue = is.scheduling_policy ? is.scheduling_policy->queue : "";
  if (!was_queue.empty() && !is_queue.empty() && was_queue != is_queue) {
    errors.push_back({"spec.runPolicy.schedulingPolicy.queue", 0, 0, "is immutable"});
  }
  return errors;
}

}  // namespace api
