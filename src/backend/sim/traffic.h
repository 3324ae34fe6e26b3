// What was written to the API server by one client in all its lives, and whether it was written as
// it must be.
//
// Held to at every write: a DELETE names the uid that it means, and a change of a status the
// version that it is based on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/sim/api_server.h"
#include "kube/transport.h"

namespace backend::sim {

class Traffic {
 public:
  struct Count {
    int32_t created = 0;
    int32_t deleted = 0;
    bool operator==(const Count&) const = default;
  };

  // Writes that matter: neither dry runs nor events nor leases.
  static bool IsWrite(const kube::Request& request);
  // "POST pods default/a", for people and for comparing.
  static std::string Named(const kube::Request& request);

  // A write leaves the client. Returns its number.
  int32_t Sent(const kube::Request& request);
  // Serves it, and counts what it did.
  kube::Response Served(ApiServer& server, const kube::Request& request);

  const std::vector<std::string>& writes() const { return writes_; }
  // By "pods default/a".
  const std::map<std::string, Count>& counts() const { return counts_; }
  const std::string& finding() const { return finding_; }  // empty: nothing wrong was seen

 private:
  void Check(const kube::Request& request, const Target& target);

  std::vector<std::string> writes_;
  std::map<std::string, Count> counts_;
  std::string finding_;
};

}  // namespace backend::sim
