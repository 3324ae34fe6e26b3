#include "cli/findings.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/core.h>

#include "backend/cluster/objects.h"
#include "backend/local/replica.h"
#include "base/strings.h"
#include "core/verdict.h"
#include "kube/api.h"

namespace cli {
namespace {

using api::ReplicaId;
using backend::cluster::Pod;

struct Rule {
  std::string_view reason;   // empty: any
  std::string_view message;  // a part of it; empty: any
  std::string_view fix;
};

// What is special about pods that are no replicas comes before what is said of all.
constexpr Rule kMasterRules[] = {
    {"ErrImagePull", "", "name the image of the master with --master-image"},
    {"ImagePullBackOff", "", "name the image of the master with --master-image"},
    {"InvalidImageName", "", "correct --master-image"},
    {"ErrImageNeverPull", "", "load the image into the nodes, or name another with --master-image"},
    {"Unschedulable", "Insufficient", "wait until there is room: kubectl describe nodes"},
};
constexpr Rule kOperatorRules[] = {
    {"ErrImagePull", "",
     "push Trainyard's image to a registry that the nodes reach and name it: trainyard install "
     "--image REGISTRY/trainyard:TAG"},
    {"ImagePullBackOff", "",
     "push Trainyard's image to a registry that the nodes reach and name it: trainyard install "
     "--image REGISTRY/trainyard:TAG"},
    {"InvalidImageName", "", "correct the name: trainyard install --image IMAGE"},
    {"ErrImageNeverPull", "",
     "load the image into the nodes, or name another: trainyard install --image IMAGE"},
    {"Unschedulable", "Insufficient", "wait until there is room: kubectl describe nodes"},
    {"Unschedulable", "taint", "remove the taint from a node, or add a node without it"},
    {"", "violates PodSecurity",
     "install into a namespace that admits it: trainyard install -n NAMESPACE"},
};
constexpr Rule kServerRules[] = {
    {"ErrImagePull", "",
     "name an image that the nodes reach with --image, or use --server trainyard"},
    {"ImagePullBackOff", "",
     "name an image that the nodes reach with --image, or use --server trainyard"},
    {"InvalidImageName", "", "correct --image"},
    {"ErrImageNeverPull", "",
     "load the image into the nodes, name another with --image, or use --server trainyard"},
    {"Unschedulable", "Insufficient", "wait until there is room: kubectl describe nodes"},
};
constexpr Rule kReaderRules[] = {
    {"ErrImagePull", "", "name an image that the nodes reach with --image"},
    {"ImagePullBackOff", "", "name an image that the nodes reach with --image"},
    {"InvalidImageName", "", "correct --image"},
    {"ErrImageNeverPull", "", "load the image into the nodes, or name another with --image"},
    {"Unschedulable", "Insufficient", "wait until there is room: kubectl describe nodes"},
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
    {"FailedMount", "helper program",
     "install the client of that file system on the nodes (nfs-common for NFS)"},
    {"FailedMount", "-t nfs",
     "check that the NFS server runs, that the volume names its address and path, and that the "
     "nodes reach it"},
    {"FailedMount", "not found", "make what it names, in the namespace of the job"},
    {"FailedMount", "", "check the server and the path of the volume: kubectl describe pv"},
    {"FailedAttachVolume", "Multi-Attach",
     "another node has the volume: use a claim that is ReadWriteMany"},
    {"FailedAttachVolume", "", "kubectl describe pv tells what the volume is"},
    {"FailedCreatePodSandBox", "", "the network of the node does not work: kubectl describe node"},
    {"", "exceeded quota",
     "ask for less, delete what is not needed any more, or have the quota raised: kubectl describe "
     "quota"},
    {"", "violates PodSecurity",
     "give the pods the securityContext that it names (--pod-file), or use another namespace (-n)"},
    {"", "admission webhook", "the webhook says what it wants: change the pods with --pod-file"},
    {"", "is forbidden", "ask for the right that it names: trainyard doctor lists what is missing"},
};

std::span<const Rule> RulesFor(PodKind kind) {
  switch (kind) {
    case PodKind::kReplica:
      return {};
    case PodKind::kMaster:
      return kMasterRules;
    case PodKind::kOperator:
      return kOperatorRules;
    case PodKind::kServer:
      return kServerRules;
    case PodKind::kReader:
      return kReaderRules;
  }
  return {};
}

const Rule* Matching(std::span<const Rule> rules, const std::string& reason,
                     const std::string& message) {
  const auto rule = std::ranges::find_if(rules, [&](const Rule& one) {
    return (one.reason.empty() || one.reason == reason) &&
           message.find(one.message) != std::string::npos;
  });
  return rule == rules.end() ? nullptr : &*rule;
}

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

// A pod that a node has and that does not start, without a word about it in its status: the kubelet
// tells in events what it tries to do.
bool MayBeInEvents(const Pod& pod) {
  return pod.trouble.empty() && !pod.node.empty() && !pod.replica.deleting &&
         pod.replica.phase == core::Phase::kPending && !core::HasEnded(pod.replica);
}

// The kubelet follows a failed mount with one event that says what failed, and others that only
// say that it waits.
const Warning* LatestAbout(const std::string& uid, const std::vector<Warning>& warnings) {
  const Warning* vague = nullptr;
  for (auto one = warnings.rbegin(); one != warnings.rend(); ++one) {
    // The status of the pod tells these itself in a moment, and better.
    const bool in_status = one->reason == "FailedScheduling" || one->reason == "Failed" ||
                           one->reason == "BackOff";
    if (one->uid != uid || in_status) continue;
    if (!one->message.starts_with("Unable to attach or mount")) return &*one;
    if (!vague) vague = &*one;
  }
  return vague;
}

// The status with which a container of the pod ended, or ends each time that it is started.
std::optional<int64_t> FailedExit(const base::Json& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const base::Json& statuses = base::At(base::At(pod, "status"), list);
    if (!statuses.is_array()) continue;
    for (const base::Json& one : statuses.get_array()) {
      const bool waits = base::At(base::At(one, "state"), "waiting").is_object();
      const base::Json& ended =
          base::At(base::At(one, waits ? "lastState" : "state"), "terminated");
      const int64_t code = base::IntOr(ended, "exitCode", 0);
      if (code != 0) return code;
    }
  }
  return std::nullopt;
}

// Whether an event is about the creation of a pod or service of this name.
bool IsAbout(const std::string& message, const std::string& name) {
  return message.contains("\"" + name + "\"") || message.ends_with(": " + name);
}

}  // namespace

std::string FixFor(const std::string& reason, const std::string& message, PodKind kind) {
  const Rule* rule = Matching(RulesFor(kind), reason, message);
  if (!rule) rule = Matching(kRules, reason, message);
  return rule ? std::string(rule->fix) : "";
}

std::optional<Trouble> StartTrouble(const base::Json& pod, const std::vector<Warning>& warnings,
                                    PodKind kind) {
  const Pod read = backend::cluster::ReadTroubled(pod);
  const std::string logs =
      fmt::format("kubectl -n {} logs {}", read.key.name_space, read.key.name);
  if (const auto code = FailedExit(pod)) {
    const std::string how = fmt::format("it exits with status {}", *code);
    return Trouble{read.trouble.empty() ? how : read.trouble + ": " + how,
                   logs + (read.trouble.empty() ? "" : " --previous") + " tells why"};
  }
  std::string reason = read.trouble, words = InItsWords(read.trouble_message);
  if (reason.empty() && base::StringOr(base::At(pod, "status"), "phase") == "Pending") {
    if (const Warning* warning = LatestAbout(read.uid, warnings)) {
      reason = warning->reason;
      words = base::OneLine(warning->message, 400);
    }
  }
  if (reason.empty()) return std::nullopt;
  return Trouble{reason + (words.empty() ? "" : ": " + words), FixFor(reason, words, kind)};
}

bool IsAboutTheImage(const Trouble& trouble) {
  constexpr std::string_view kReasons[] = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                           "ErrImageNeverPull"};
  return std::ranges::any_of(
      kReasons, [&](std::string_view reason) { return trouble.what.starts_with(reason); });
}

std::string InOneLine(const Trouble& trouble) {
  return trouble.what + (trouble.fix.empty() ? "" : "; " + trouble.fix);
}

bool NeedsWarnings(const std::vector<const Pod*>& pods) {
  return std::ranges::any_of(pods, [](const Pod* pod) { return MayBeInEvents(*pod); });
}

std::vector<Trouble> TroublesOf(const std::vector<const Pod*>& pods,
                                const std::vector<Warning>& warnings) {
  std::map<std::pair<std::string, std::string>, std::vector<ReplicaId>> by_kind;
  for (const Pod* pod : pods) {
    if (!pod->trouble.empty()) {
      by_kind[{pod->trouble, InItsWords(pod->trouble_message)}].push_back(pod->replica.id);
    } else if (const Warning* warning =
                   MayBeInEvents(*pod) ? LatestAbout(pod->uid, warnings) : nullptr) {
      by_kind[{warning->reason, base::OneLine(warning->message, 400)}].push_back(pod->replica.id);
    }
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

// A rejection holds for as long as a pod that it may be about is missing. Pods are created
// together, so those that were created since say nothing of the others.
std::vector<Trouble> Refusals(const api::Job& job, const std::vector<const Pod*>& pods,
                              const std::vector<base::Json>& events) {
  std::vector<ReplicaId> missing = MissingOf(job, pods);
  const std::string ours = "\"" + job.metadata.name + "-";
  for (auto event = events.rbegin(); event != events.rend() && !missing.empty(); ++event) {
    const std::string reason = base::StringOr(*event, "reason");
    const std::string message = base::StringOr(*event, "message");
    const auto is_about = [&](ReplicaId id) {
      return IsAbout(message, backend::cluster::ReplicaName(job, id));
    };
    // It was created after all that was rejected before, and is missing for another reason.
    if (reason == "SuccessfulCreatePod") std::erase_if(missing, is_about);
    if (reason != "FailedCreatePod" && reason != "FailedCreateService") continue;
    // One that names a pod which is there is over.
    if (message.contains(ours) && std::ranges::none_of(missing, is_about)) continue;
    const std::string words = base::OneLine(message, 400);
    return {{fmt::format("{} cannot be made: {}", Names(missing), words), FixFor(reason, words)}};
  }
  return {};
}

std::vector<Trouble> EndedServers(const api::Job& job) {
  std::vector<ReplicaId> ended;
  for (ReplicaId id : job.status.completed)
    if (id.role == api::Role::kPs) ended.push_back(id);
  if (ended.empty() || api::IsTerminal(job.status)) return {};
  return {{fmt::format("{} {} ended with exit status 0, and the others wait for {}", Names(ended),
                       ended.size() == 1 ? "has" : "have", ended.size() == 1 ? "it" : "them"),
           "a parameter server must stay until the job ends: where TF_CONFIG says ps, the script "
           "calls tf.distribute.Server(…).join(), in TensorFlow 1 tf.train.Server(…).join()"}};
}

}  // namespace cli
