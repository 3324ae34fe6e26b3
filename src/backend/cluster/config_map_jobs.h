// A door behind which TFJobs are ConfigMaps: for clusters that do not know TFJob, and for people
// who may not use it.
//
// Whoever goes through it asks for TFJobs as of any API server, and gets answers as from one. The
// job NAME is the ConfigMap NAME-job: its metadata is the job's, `spec` and `status` are JSON in
// its data. Objects that a TFJob would own are owned by that ConfigMap. Everything else passes
// through untouched.
//
// A patch of spec or status is a look and a conditional write, repeated when somebody else was
// quicker; one that names the version it was decided on is not repeated, as with any server.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "kube/transport.h"

namespace backend::cluster {

inline constexpr std::string_view kKeptLabel = "trainyard.dev/kept";  // on such a ConfigMap
inline constexpr std::string_view kKeptAs = "tfjob";

class ConfigMapJobs : public kube::Transport {
 public:
  explicit ConfigMapJobs(kube::Transport& behind) : behind_(behind) {}

  void Send(kube::Request request, base::Duration timeout, Answer answer) override;
  std::unique_ptr<kube::Stream> Open(kube::Request request, base::Duration silence, Data data,
                                     Answer end) override;

 private:
  struct Change;

  void Look(std::shared_ptr<Change> change);
  void Write(std::shared_ptr<Change> change, const base::Json& job);

  kube::Transport& behind_;
};

// The two forms of one job.
base::Json JobFromConfigMap(const base::Json& config_map);
base::Json ConfigMapFromJob(const base::Json& job);

}  // namespace backend::cluster
