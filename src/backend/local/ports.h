// Ports for replicas, so that two jobs never collide.
//
// TensorFlow binds 0.0.0.0:port without SO_REUSEPORT, and a port from the ephemeral range may be
// taken by any outgoing connection. So ports come from below that range and are leased, also for
// the time when the replica that listens there is being restarted. A lease is a socket with the
// port's number in its abstract name: there is one such name in the network namespace, as there is
// one such port, whoever asks for it; and it is free again when its holder is gone, however that
// came about.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "io/files.h"

namespace backend::local {

class PortLeases {
 public:
  // `count` ports, held from now on. `first` > 0: exactly first, first + 1, …, refused (kInvalid)
  // if one is in use. `preferred` are taken again if all of them are still free.
  base::Result<std::vector<int32_t>> Lease(size_t count, int32_t first,
                                           const std::vector<int32_t>& preferred);
  // One more: `preferred` if it is free.
  base::Result<int32_t> LeaseOne(int32_t preferred);
  // `count` more, wherever they are free.
  base::Result<std::vector<int32_t>> LeaseMore(size_t count);

 private:
  bool Take(int32_t port);

  std::map<int32_t, io::Fd> held_;  // by port
};

}  // namespace backend::local
