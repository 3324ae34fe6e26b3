// What became of jobs, for those who count it or tell it.
#pragma once

#include "api/tfjob.h"
#include "base/time.h"
#include "core/reconcile.h"

namespace backend::cluster {

class Chronicle {
 public:
  virtual ~Chronicle() = default;
  virtual void Tell(const api::Job& job, const core::Event& event) = 0;
  // A status is stored.
  virtual void Published(const api::JobStatus& before, const api::Job& after) = 0;
  virtual void Deleted(const api::Job& job) = 0;  // at the end of its time to live
  virtual void TurnOver(bool failed, base::Duration took) = 0;
};

}  // namespace backend::cluster
