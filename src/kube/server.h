// The API server of a cluster, over the network.
//
// One thread; answers come out of Poll alone. A request that is answered 401 is asked once more
// with credentials read anew. Streams must be closed before the server's end; what is under way at
// its end is dropped without a word.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <poll.h>

#include "base/result.h"
#include "base/time.h"
#include "io/http_client.h"
#include "kube/access.h"
#include "kube/credentials.h"
#include "kube/transport.h"

namespace kube {

class Server : public Transport {
 public:
  // Reads the first credentials, and with an exec plugin waits for it; says nothing to the server.
  static base::Result<std::unique_ptr<Server>> Connect(Access access, size_t requests_at_once = 32);
  ~Server() override;

  void Send(Request request, base::Duration timeout, Answer answer) override;
  std::unique_ptr<Stream> Open(Request request, base::Duration silence, Data data,
                               Answer end) override;

  // As io::HttpClient.
  void Poll(base::Duration timeout, std::span<pollfd> extra = {});
  void Wake();

  const Access& access() const { return credentials_.access(); }
  // Read what is due, for connections that do not go through here (exec, port-forward).
  base::Result<const Credentials*> credentials();

 private:
  struct Call;
  class OpenStream;

  Server(Credentials credentials, size_t requests_at_once);
  void Launch(const std::shared_ptr<Call>& call);
  void Take(const std::shared_ptr<Call>& call, base::Result<io::HttpResponse> result);

  Credentials credentials_;
  uint64_t shown_generation_ = 0;  // whose certificate the client has
  io::HttpClient client_;
  std::vector<std::shared_ptr<Call>> failed_;  // before they began; answered by Poll
};

}  // namespace kube
