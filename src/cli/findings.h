// Why pods do not start, in the cluster's own words, and the cure. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/pod.h"
#include "base/json.h"
#include "cli/place.h"

namespace cli {

// Whose pod it is: the cure names the flags of the command that made it.
enum class PodKind { kReplica, kMaster, kOperator, kServer, kReader };

// The cure for `reason` and `message` of a pod that does not start, or that the server rejects;
// empty: none is known.
std::string FixFor(const std::string& reason, const std::string& message,
                   PodKind kind = PodKind::kReplica);

// An event about an object, reduced to what the functions below read.
struct Warning {
  std::string uid;  // of the object
  std::string reason, message;
};

// Why a pod has not started, and the cure: from its status, else from the latest of the `warnings`
// about it, oldest first. Nothing when it runs, has ended well, or may only need more time.
std::optional<Trouble> StartTrouble(const base::Json& pod, const std::vector<Warning>& warnings,
                                    PodKind kind);
// Whether more time does not help against a trouble: its image is not there.
bool IsAboutTheImage(const Trouble& trouble);
// "what; cure"
std::string InOneLine(const Trouble& trouble);

// One for each different trouble, the replicas that have it named together.
std::vector<Trouble> TroublesOf(const std::vector<const backend::cluster::Pod*>& pods,
                                const std::vector<Warning>& warnings = {});
// Whether a pod of these may have a reason that only events tell.
bool NeedsWarnings(const std::vector<const backend::cluster::Pod*>& pods);

// Replicas that the job wants and that have no pod.
std::vector<api::ReplicaId> MissingOf(const api::Job& job,
                                      const std::vector<const backend::cluster::Pod*>& pods);

// From the events of a job: rejections of pods that are not there although the job wants them.
std::vector<Trouble> Refusals(const api::Job& job,
                              const std::vector<const backend::cluster::Pod*>& pods,
                              const std::vector<base::Json>& events);

// Parameter servers that have ended while the job still needs them.
std::vector<Trouble> EndedServers(const api::Job& job);

}  // namespace cli
