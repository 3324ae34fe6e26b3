// The gRPC server of a master: the published clients' service `proto.Master`, our own
// `trainyard.Shards`, and for every other method UNIMPLEMENTED and one event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "master/master.h"

namespace master {

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any
  // Batches a shard where a published client leaves it open: ElasticDL's
  // --num_minibatches_per_task.
  int32_t minibatches = 8;
  // Of the shuffles of data sets that published clients register: they have no word for it.
  uint64_t seed = 0;
};

class Server {
 public:
  // The port is open when this returns. `master` must outlive the server.
  static base::Result<std::unique_ptr<Server>> Listen(const ServerOptions& options, Master& master);
  // Ends all calls.
  ~Server();

  uint16_t port() const;

 private:
  class Services;
  Server(std::unique_ptr<Services> services, Master& master);
  std::unique_ptr<Services> services_;
  Master& master_;
};

}  // namespace master
