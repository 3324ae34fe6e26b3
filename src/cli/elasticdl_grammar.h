// The small languages in the values of ElasticDL's options: resources, volumes, variables,
// priorities, changes to pods.
//
// What theirs takes is taken, but for what could only go wrong later: it is refused, and the error
// says what would be right. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace cli {

// "cpu=0.5,memory=1024Mi,gpu=1" as Kubernetes has it: {"cpu": "0.5", "memory": "1024Mi",
// "nvidia.com/gpu": "1"}. `disk` is what Kubernetes calls ephemeral-storage, and K is its k.
base::Result<base::JsonObject> ParseEdlResources(std::string_view text);

struct EdlVolume {
  std::string claim_name;  // a PersistentVolumeClaim, or else
  std::string host_path;   // a path of the node
  std::string type;        // of that: "Directory"; empty: whatever is there
  std::string mount_path;
  std::string sub_path;

  bool operator==(const EdlVolume&) const = default;
};

// "host_path=/a,mount_path=/b;claim_name=c,mount_path=/d", in the order written.
base::Result<std::vector<EdlVolume>> ParseEdlVolumes(std::string_view text);

// "A=1,B=x,y": a value ends at the last comma before the next '='. A '=' with no comma before it
// belongs to the value, which theirs gets wrong: "URL=http://h?q=1". Later ones win.
base::Result<std::vector<std::pair<std::string, std::string>>> ParseEdlEnvs(std::string_view text);

// The priority class of each of `workers` workers; empty: none. "high" and "low" are everybody's; a
// fraction makes that part of them, rounded up, high, taken in turn from both ends, the rest low.
base::Result<std::vector<std::string>> ParseEdlPriority(std::string_view text, int32_t workers);

// Whether "disable_relaunch=True" stands in "k=v; k=v".
base::Result<bool> DisablesRelaunch(std::string_view aux_params);

// Changes to the objects of a job: --cluster_spec_json.
class EdlClusterSpec {
 public:
  EdlClusterSpec() = default;

  // JSON, or base64 of it; nothing for an empty text.
  static base::Result<EdlClusterSpec> Parse(std::string_view text);

  // Of a pod, or of the template of one: those for every pod, then those for `who` ("worker",
  // "edl-master"). Labels and annotations are added, affinity is replaced, tolerations and the
  // variables of every container are added.
  void ChangePod(std::string_view who, base::JsonObject& pod) const;
  // What there is in it of a service's spec replaces what the service has.
  void ChangeService(base::JsonObject& service) const;

 private:
  base::JsonObject parts_;  // by key: "worker_pod_spec"
};

}  // namespace cli
