// Ports for replicas, so that two jobs never collide.
//
// TensorFlow binds 0.0.0.0:port without SO_REUSEPORT, and a port from the ephemeral range may be
// taken by any outgoing connection. So ports come from below that range and are leased in one
// locked file; a lease lasts while its job's supervisor lives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace backend::local {

// Leases `count` ports for the job in `job_dir` (whose lock the caller holds). `first` > 0: exactly
// first, first + 1, …, refused (kInvalid) if one is in use. `preferred` are taken again where they
// are still free.
base::Result<std::vector<int32_t>> LeasePorts(const std::string& home, const std::string& job_dir,
                                              size_t count, int32_t first,
                                              const std::vector<int32_t>& preferred);

// `count` more for a job that holds `taken` already.
base::Result<std::vector<int32_t>> LeaseMorePorts(const std::string& home,
                                                  const std::string& job_dir, size_t count,
                                                  const std::vector<int32_t>& taken);

}  // namespace backend::local
