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

TEST(Queue, TellsWhatIsToBeRepairedBeforeItAdmitsAJob) {
  const auto fix = [](const std::string& message, const std::string& reason = "Inadmissible") {
    const Trouble told =
        QueuedFor(Held(), Workload(R"([{"type":"QuotaReserved","status":"False","reason":")" +
                                   reason + R"(","message":")" + message + R"("}])"));
    EXPECT_EQ(told.what, "queue gpus has not admitted it: " + message);
    return told.fix;
  };
  EXPECT_EQ(fix("LocalQueue gpus doesn't exist"),
            "kubectl -n team get localqueues lists the queues, kubectl -n team label tfjob train "
            "kueue.x-k8s.io/queue-name=QUEUE --overwrite moves it to one");
  EXPECT_EQ(fix("LocalQueue gpus is inactive"),
            "it starts by itself once that is repaired: kubectl -n team describe localqueue gpus");
  EXPECT_EQ(fix("ClusterQueue all doesn't exist"),
            "it starts by itself once that is repaired: kubectl -n team describe localqueue gpus");
  EXPECT_EQ(fix("ClusterQueue all is inactive"),
            "it starts by itself once that is repaired: kubectl describe clusterqueue all");
  EXPECT_EQ(
      fix("podsets requests (0) + current podset request (7) > maximum capacity (1)", "Pending"),
      "request less, or have the quota of the queue raised: kubectl -n team describe "
      "workload w");
}

TEST(Queue, TellsAPreemptionAndWhatTheJobWaitsForSince) {
  EXPECT_EQ(QueuedFor(Held(), Workload(R"([
      {"type":"QuotaReserved","status":"False","reason":"Pending","message":"1 more needed"},
      {"type":"Preempted","status":"True","message":"Preempted to accommodate a workload"}])"))
                .what,
            "queue gpus preempted it and has not admitted it again: 1 more needed");
}

TEST(Queue, TellsWhyAWorkloadWasTakenOut) {
  const std::string evicted =
      R"([{"type":"Evicted","status":"True","message":"The workload is deactivated)";
  EXPECT_EQ(QueuedFor(Held(), Workload(evicted + R"("}])", false)).what,
            "it was taken out of queue gpus");
  EXPECT_EQ(QueuedFor(Held(), Workload(evicted + R"( due to exceeding its time"}])", false)).what,
            "it was taken out of queue gpus due to exceeding its time");
}

TEST(Queue, TellsAnAdmittedJobThatIsBeingStartedAndACheckThatHasNotPassed) {
  EXPECT_EQ(QueuedFor(Held(), Workload(R"([{"type":"Admitted","status":"True"}])")).what,
            "queue gpus has admitted it, and Kueue is starting it");
  base::Json checked = Workload(R"([{"type":"QuotaReserved","status":"True"}])");
  checked.at("status").get_object()["admissionChecks"] =
      base::ParseJson(R"([{"name":"fast","state":"Ready"},
                          {"name":"nodes","state":"Pending","message":"2 nodes are being added"}])")
          .value();
  const Trouble told = QueuedFor(Held(), checked);
  EXPECT_EQ(told.what,
            "queue gpus has not admitted it: admission check nodes is Pending: 2 nodes are being "
            "added");
  EXPECT_EQ(told.fix,
            "it starts by itself when the check has passed: kubectl -n team describe workload w");
}

TEST(Queue, TellsAWorkloadThatWasTakenOutAndOneThatIsNotThere) {
  EXPECT_NE(QueuedFor(Held(), Workload("[]", false)).fix.find("\"active\":true"),
            std::string::npos);
  EXPECT_NE(QueuedFor(Held(), base::Json()).fix.find("localqueue gpus"), std::string::npos);
}

}  // namespace
}  // namespace cli
