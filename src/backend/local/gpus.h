// NVIDIA GPUs for the replicas of a job, so that two processes never share one.
//
// TensorFlow takes all memory of each GPU that it sees, so a second process on it fails. Chiefs,
// masters and workers train and get GPUs; parameter servers and evaluators get none. A replica that
// trains alone gets every GPU, for MirroredStrategy. Of a gang each member gets the same number, or
// none: a collective needs the same devices in all members. Replicas that are restarted alone (with
// parameter servers, or in an elastic job) get one each, as far as there are any. Where a template
// has a limit of nvidia.com/gpu, it is the number for each replica of that role.
//
// A lease is a name (io::HoldName), as for ports: it is free again when its holder is gone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/result.h"
#include "io/files.h"

namespace backend::local {

inline constexpr std::string_view kVisibleGpus = "CUDA_VISIBLE_DEVICES";

struct Gpu {
  std::string address;  // on the PCI bus; the entry itself for a GPU that /proc does not list
  std::string entry;    // of CUDA_VISIBLE_DEVICES: a UUID or a number
  bool operator==(const Gpu&) const = default;
};

// The GPUs that a value of CUDA_VISIBLE_DEVICES names, in its order and with its entries; without a
// value, all GPUs of this machine. As in CUDA, the first entry that names no GPU ends the list.
// Numbers count in the order of the PCI bus.
std::vector<Gpu> GpusIn(const std::optional<std::string>& value,
                        const std::string& proc = "/proc/driver/nvidia/gpus");

struct GpuShares {
  // CUDA_VISIBLE_DEVICES of each replica, "-1" for none; empty if there are no GPUs at all.
  std::map<api::ReplicaId, std::string> visible;
  std::string notice;  // what the user should know; may be empty
};

class GpuLeases {
 public:
  // Divides these GPUs, without those that other jobs have leased, among the replicas of the job,
  // and leases them. When called again for a changed job, a gang is divided anew, and replicas that
  // are restarted alone keep what they have. An error (kInvalid): the job has a limit of
  // nvidia.com/gpu, and fewer are free.
  base::Result<GpuShares> ShareOut(const api::Job& job, const std::vector<Gpu>& gpus);

 private:
  bool Take(const Gpu& gpu);

  std::map<std::string, io::Fd> held_;                 // by address
  std::map<api::ReplicaId, std::vector<Gpu>> shares_;  // of replicas that train
};

}  // namespace backend::local
