// Why the jobs of a list do not start, each in a line: for `ps` on a cluster.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/pod.h"
#include "cli/cluster.h"
#include "cli/findings.h"

namespace cli {

// Reads pods once for all jobs, and only when one waits. What takes requests for each job is asked
// for the first few.
class Waiting {
 public:
  // `cluster` outlives it. An empty namespace means all.
  Waiting(Cluster& cluster, std::string name_space, std::string again)
      : cluster_(cluster), name_space_(std::move(name_space)), again_(std::move(again)) {}

  // Empty: the job does not wait, or nothing is known.
  std::string Why(Store store, const api::Job& job);

 private:
  void Load();

  Cluster& cluster_;
  const std::string name_space_, again_;
  std::optional<std::string> operator_;  // why no job of the operator is taken up
  int asked_ = 0;
  bool loaded_ = false;
  std::map<std::pair<std::string, std::string>, std::vector<backend::cluster::Pod>> pods_;  // by job
  std::vector<Warning> warnings_;
};

}  // namespace cli
