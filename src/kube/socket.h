// WebSockets to an API server, with its credentials: for exec and port-forward.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/websocket.h"
#include "kube/server.h"

namespace kube {

// Waits until it is open. A refusal is an error of the kind that ErrorOf gives.
base::Result<std::unique_ptr<io::WebSocket>> OpenSocket(Server& server, const std::string& path,
                                                        std::vector<std::string> protocols);

}  // namespace kube
