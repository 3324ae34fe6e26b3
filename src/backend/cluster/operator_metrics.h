// The operator's numbers for Prometheus: names and labels as training-operator v1.9 has them, and
// ours beside them. Where v1.9 counts wrongly (docs/differences.md), these count right.
#pragma once

#include <string>

#include "backend/cluster/operator.h"
#include "base/metrics.h"

namespace backend::cluster {

class OperatorMetrics : public Operator::Observer {
 public:
  explicit OperatorMetrics(base::Metrics& metrics);

  void Published(const api::JobStatus& before, const api::Job& after) override;
  void Deleted(const api::Job& job) override;
  void TurnOver(bool failed, base::Duration took) override;
  // What there is now.
  void Look(const Operator& it);

 private:
  using Counters = base::Family<base::Counter>;
  Counters &created_, &deleted_, &successful_, &failed_, &restarted_;
  Counters& turns_;
  base::Counter& errors_;
  base::Histogram& time_;
  base::Gauge &depth_, &jobs_, &pods_, &leader_;
};

}  // namespace backend::cluster
