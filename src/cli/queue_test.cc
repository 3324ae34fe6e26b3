#include "cli/queue.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

api::Job Held() {
  api::Job job;
  job.metadata = {.name = "train", .name_space = "team", .labels = {}};
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "gpus";
  job.spec.run_policy.suspend = true;
  return job;
}

base::Json Workload(const std::string& conditions, bool active = true) {
  return base::JsonObject{
      {"metadata", base::JsonObject{{"name", "w"}}},
      {"spec", base::JsonObject{{"active", active}}},
      {"status", base::JsonObject{{"conditions", base::ParseJson(conditions).value()}}}};
}

TEST(Queue, HoldsAJobBackWhileItIsSuspendedUnderAQueueName) {
  api::Job job = Held();
  EXPECT_EQ(QueueOf(job), "gpus");
  job.spec.run_policy.suspend = false;
  EXPECT_EQ(QueueOf(job), "");
  job = Held();
  job.metadata.labels.clear();
  EXPECT_EQ(QueueOf(job), "") << "a person suspended it";
}

TEST(Queue, TellsWhatTheWorkloadWaitsFor) {
  const Trouble pending = QueuedFor(Held(), Workload(R"([
      {"type":"Evicted","status":"True","message":"Preempted to accommodate a workload"},
      {"type":"QuotaReserved","status":"False","message":"insufficient quota for cpu"}])"));
  EXPECT_EQ(pending.what, "queue gpus has not admitted it: insufficient quota for cpu");
  EXPECT_NE(pending.fix.find("kubectl -n team describe workload w"), std::string::npos);
  EXPECT_EQ(QueuedFor(Held(), Workload("[]")).what, "queue gpus has not admitted it");
}

TEST(Queue, TellsAWorkloadThatWasTakenOutAndOneThatIsNotThere) {
  EXPECT_NE(QueuedFor(Held(), Workload("[]", false)).fix.find("\"active\":true"),
            std::string::npos);
  EXPECT_NE(QueuedFor(Held(), base::Json()).fix.find("localqueue gpus"), std::string::npos);
}

}  // namespace
}  // namespace cli
