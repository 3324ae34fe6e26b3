#include "cli/findings.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "backend/local/replica.h"
#include "base/strings.h"
#include "core/verdict.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;

struct Rule {
  std::string_view reason;   // empty: any
  std::string_view message;  // a part of it; empty: any
  std::string_view fix;
};

// The first that fits counts.
constexpr Rule kRules[] = {
    {"", "unbound immediate PersistentVolumeClaims",
     "kubectl describe pvc tells why the claim has no volume; --output CLAIM names one that has, "
     "--output none does without"},
    {"", "persistentvolumeclaim",
     "--output CLAIM must name a claim of this namespace: kubectl get pvc"},
    {"Unschedulable", "nvidia.com/gpu", "ask for fewer GPUs (--gpus), or add a node that has some"},
    {"Unschedulable", "Insufficient",
     "ask for less (--worker-cpu, --worker-memory, -w), or wait until there is room: kubectl "
     "describe nodes"},
    {"Unschedulable", "taint", "tolerate it in a pod template of your own: --pod-file"},
    {"Unschedulable", "", "kubectl describe nodes tells what they offer"},
    {"ErrImagePull", "",
     "check the name of the image (--image); a private one needs imagePullSecrets "
     "in a pod template (--pod-file)"},
    {"ImagePullBackOff", "",
     "check the name of the image (--image); a private one needs "
     "imagePullSecrets in a pod template (--pod-file)"},
    {"InvalidImageName", "", "correct --image"},
    {"ErrImageNeverPull", "", "load the image into the node, or let it be pulled"},
    {"CreateContainerConfigError", "", "make what it names, in the namespace of the job"},
    {"NodeNotReady", "",
     "bring the node back; if it is gone for good, kubectl delete node NODE lets the job go on"},
    {"", "exceeded quota",
     "ask for less, delete what is not needed any more, or have the quota raised: kubectl describe "
     "quota"},
    {"", "violates PodSecurity",
     "give the pods the securityContext that it names (--pod-file), or use another namespace (-n)"},
    {"", "admission webhook", "the webhook says what it wants: change the pods with --pod-file"},
    {"", "is forbidden", "ask for the right that it names: trainyard doctor lists what is missing"},
};

std::string Names(const std::vector<ReplicaId>& ids) {
  std::vector<std::string> out;
  for (ReplicaId id : ids) out.push_back(api::Spoken(id));
  if (out.size() > 3) return fmt::format("{}, {} and {} more", out[0], out[1], out.size() - 2);
  return base::Join(out, ", ");
}

// "Error pod x condition message: 0/1 nodes are available" -> what the cluster said.
std::string InItsWords(const std::string& message) {
  constexpr std::string_view kBefore = "message: ";
  const size_t at = message.find(kBefore);
  return base::OneLine(at == std::string::npos ? message : message.substr(at + kBefore.size()),
                       400);
}

// Replicas that lost a peer, while the peers run as far as Kubernetes knows.
std::optional<Trouble> LostContact(const std::vector<const Pod*>& pods) {
  std::vector<ReplicaId> lost, running;
  for (const Pod* pod : pods) {
    if (!pod->replica.silent.empty()) return std::nullopt;  // known, and told as such
    if (pod->replica.phase == core::Phase::kRunning) running.push_back(pod->replica.id);
    if (pod->replica.phase == core::Phase::kFailed &&
        core::BlamesAPeer(core::TellingLine(pod->replica.ending->last_lines))) {
      lost.push_back(pod->replica.id);
    }
  }
  if (lost.empty() || running.empty()) return std::nullopt;
  return Trouble{
      fmt::format("{} lost contact with a peer: waiting until it is known whether the {} of {} "
                  "still {}",
                  Names(lost), running.size() == 1 ? "node" : "nodes", Names(running),
                  running.size() == 1 ? "answers" : "answer"),
      ""};
}

}  // namespace

std::string FixFor(const std::string& reason, const std::string& message) {
  for (const Rule& rule : kRules) {
    if ((rule.reason.empty() || rule.reason == reason) &&
        message.find(rule.message) != std::string::npos) {
      return std::string(rule.fix);
    }
  }
  return "";
}

std::vector<Trouble> TroublesOf(const std::vector<const Pod*>& pods) {
  std::map<std::pair<std::string, std::string>, std::vector<ReplicaId>> by_kind;
  for (const Pod* pod : pods) {
    if (!pod->trouble.empty())
      by_kind[{pod->trouble, InItsWords(pod->trouble_message)}].push_back(pod->replica.id);
  }
  std::vector<Trouble> out;
  for (const auto& [kind, ids] : by_kind) {
    const auto& [reason, words] = kind;
    out.push_back({fmt::format("{} {}: {}{}", Names(ids), ids.size() == 1 ? "waits" : "wait",
                               reason, words.empty() ? "" : ": " + words),
                   FixFor(reason, words)});
  }
  if (auto lost = LostContact(pods)) out.push_back(*std::move(lost));
  return out;
}

std::vector<ReplicaId> MissingOf(const api::Job& job, const std::vector<const Pod*>& pods) {
  std::vector<ReplicaId> missing;
  for (ReplicaId id : backend::local::ReplicasInOrder(job.spec)) {
    const bool there =
        std::ranges::any_of(pods, [&](const Pod* pod) { return pod->replica.id == id; });
    if (!there && !job.status.completed.contains(id)) missing.push_back(id);
  }
  return missing;
}

std::vector<Trouble> Refusals(const api::Job& job, const std::vector<const Pod*>& pods,
                              const std::vector<base::Json>& events) {
  const std::vector<ReplicaId> missing = MissingOf(job, pods);
  if (missing.empty()) return {};
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const std::string reason = base::StringOr(*event, "reason");
    if (reason == "SuccessfulCreatePod") return {};  // whatever was refused before it is over
    if (reason != "FailedCreatePod" && reason != "FailedCreateService") continue;
    const std::string words = base::OneLine(base::StringOr(*event, "message"), 400);
    return {{fmt::format("{} cannot be made: {}", Names(missing), words), FixFor(reason, words)}};
  }
  return {};
}

}  // namespace cli
