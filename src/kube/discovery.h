// Which resource of an API server a kind of object is.
#pragma once

#include <string>

#include "base/result.h"
#include "kube/client.h"

namespace kube {

struct Kind {
  std::string api_version;
  std::string resource;  // "configmaps"
  bool namespaced = true;
};

// kInvalid: the server has no such kind.
base::Result<Kind> FindKind(Client& client, const std::string& api_version,
                            const std::string& kind);

}  // namespace kube
