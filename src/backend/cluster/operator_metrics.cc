#include "backend/cluster/operator_metrics.h"

namespace backend::cluster {
namespace {

constexpr std::string_view kController = "tfjob-controller";

base::Family<base::Counter>& Jobs(base::Metrics& metrics, const std::string& what,
                                  const std::string& help) {
  return metrics.AddCounters("training_operator_jobs_" + what + "_total", help,
                             {"job_namespace", "framework"});
}

}  // namespace

OperatorMetrics::OperatorMetrics(base::Metrics& metrics)
    : created_(Jobs(metrics, "created", "Jobs that were taken up.")),
      deleted_(
          Jobs(metrics, "deleted", "Jobs that were deleted at the end of their time to live.")),
      successful_(Jobs(metrics, "successful", "Jobs that succeeded.")),
      failed_(Jobs(metrics, "failed", "Jobs that failed.")),
      restarted_(Jobs(metrics, "restarted", "Restarts, after failures and disruptions.")),
      turns_(metrics.AddCounters("controller_runtime_reconcile_total", "Turns by result.",
                                 {"controller", "result"})),
      errors_(metrics
                  .AddCounters("controller_runtime_reconcile_errors_total", "Turns that failed.",
                               {"controller"})
                  .With({kController})),
      time_(metrics
                .AddHistograms("controller_runtime_reconcile_time_seconds",
                               "How long a turn took, answers of the server included.",
                               {"controller"})
                .With({kController})),
      depth_(metrics.AddGauges("workqueue_depth", "Turns and requests that wait.", {"name"})
                 .With({kController})),
      jobs_(metrics.AddGauge("trainyard_jobs", "TFJobs that are known.")),
      pods_(metrics.AddGauge("trainyard_pods", "Pods of TFJobs that are known.")),
      leader_(metrics.AddGauge("trainyard_leader", "1 while this operator leads.")) {
  for (std::string_view result : {"success", "error"}) turns_.With({kController, result});
}

void OperatorMetrics::Published(const api::JobStatus& before, const api::Job& after) {
  const auto of = [&](Counters& counters) -> base::Counter& {
    return counters.With({after.metadata.name_space, "tensorflow"});
  };
  const api::JobStatus& now = after.status;
  if (before.conditions.empty()) of(created_).Add();
  for (const auto& [type, counters] :
       {std::pair("Succeeded", &successful_), std::pair("Failed", &failed_)}) {
    if (api::Has(now, type) && !api::Has(before, type)) of(*counters).Add();
  }
  const int32_t restarts = now.restarts + now.disruptions - before.restarts - before.disruptions;
  if (restarts > 0) of(restarted_).Add(static_cast<uint64_t>(restarts));
}

void OperatorMetrics::Deleted(const api::Job& job) {
  deleted_.With({job.metadata.name_space, "tensorflow"}).Add();
}

void OperatorMetrics::TurnOver(bool failed, base::Duration took) {
  turns_.With({kController, failed ? "error" : "success"}).Add();
  if (failed) errors_.Add();
  time_.Observe(std::chrono::duration<double>(took).count());
}

void OperatorMetrics::Look(const Operator& it) {
  depth_.Set(static_cast<double>(it.waiting()));
  jobs_.Set(static_cast<double>(it.jobs()));
  pods_.Set(static_cast<double>(it.pods()));
  leader_.Set(it.leads() ? 1 : 0);
}

}  // namespace backend::cluster
