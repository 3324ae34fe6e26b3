// Turns for elastic jobs: the master of the data hears first.
#include <algorithm>

#include "backend/cluster/turns_testing.h"

namespace backend::cluster {
namespace {

using namespace testing;
using ledger::MemberState;
using std::chrono::seconds;

// As a server applies a merge patch.
void Merge(Json& into, const Json& patch) {
  if (!patch.is_object() || !into.is_object()) {
    into = patch;
    return;
  }
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      into.get_object().erase(key);
    } else {
      Merge(into.get_object()[key], value);
    }
  }
}

class Master : public DataMaster {
 public:
  void Tell(std::vector<ledger::HostMember> members) override { told = std::move(members); }
  bool Knows(const std::string& member, MemberState state) const override {
    return std::ranges::any_of(known,
                               [&](const auto& m) { return m.name == member && m.state == state; });
  }
  const ledger::DataReport& data() const override { return report; }
  const std::string& broken() const override { return words; }

  std::string Told() const {
    constexpr const char* kStates[] = {"live", "leaving", "succeeded", "failed"};
    std::string out;
    for (const auto& member : told)
      out += member.name + " " + kStates[static_cast<int>(member.state)] + "\n";
    return out;
  }

  std::vector<ledger::HostMember> told, known;
  ledger::DataReport report{.registered = true, .todo = 9, .records_left = 9, .records_total = 9};
  std::string words;
};

struct ElasticTurnsTest : WithTurns {
  Master master;
  Turns elastic{{jobs, pods, services, groups}, pacer, chronicle, {}, &master};

  ElasticTurnsTest() {
    job.at("metadata").get_object()["annotations"] = JsonObject{{"trainyard.dev/elastic", "1:4"}};
    Rewrite(10);
    pods.ListBegin();
    for (const char* index : {"0", "1"}) pods.Apply(Worker(index, kRunning));
    pods.ListEnd(10);
    services.ListBegin();
    services.ListEnd(10);
    woken = &elastic;
  }

  static inline const std::string kRunning =
      R"("phase":"Running",)" + ContainerState(R"("running":{"startedAt":"2026-01-01T00:00:05Z"})");

  void Turn(base::Time now = kStart) {
    elastic.Wake(kJob);
    elastic.Advance(now);
    pacer.Advance(now);
  }
  // A list of what there is, as new as can be.
  static std::string ListOf(base::JsonArray items) {
    return base::CompactJson(JsonObject{{"kind", "List"},
                                        {"metadata", JsonObject{{"resourceVersion", "1000"}}},
                                        {"items", std::move(items)}});
  }
  std::string AnswerTo(const kube::Request& request) {
    if (request.path.find("tfjobs") != std::string::npos) return base::CompactJson(job);
    if (request.method == "POST") {
      Json made = kube::testing::J(request.body);
      made.at("metadata").get_object()["uid"] = "made";
      made.at("metadata").get_object()["resourceVersion"] = "1001";
      return base::CompactJson(made);
    }
    if (request.method != "GET") return "{}";
    const bool of_pods = request.path.find("/pods") != std::string::npos;
    return of_pods ? ListOf({Worker("0", kRunning), Worker("1", kRunning)}) : ListOf({});
  }
  // Answers all that is asked.
  void Serve(base::Time now = kStart) {
    for (int i = 0; i < 20 && !transport.asked.empty(); ++i) {
      const auto& request = transport.asked.front().request;
      const bool of_job = request.path.find("tfjobs") != std::string::npos;
      if (of_job && request.method == "PATCH") {
        Merge(job.at("status"), kube::testing::J(request.body).at("status"));
        const int version = std::stoi(base::StringOr(job.at("metadata"), "resourceVersion")) + 1;
        job.at("metadata").get_object()["resourceVersion"] = std::to_string(version);
      }
      performed += request.method + " " + request.path + "\n";
      transport.Reply(200, AnswerTo(request));
      elastic.Advance(now);
      pacer.Advance(now);
    }
  }
  void Scale(int workers) {
    job.at("spec").at("tfReplicaSpecs").at("Worker").get_object()["replicas"] = workers;
    const int version = std::stoi(base::StringOr(job.at("metadata"), "resourceVersion")) + 1;
    job.at("metadata").get_object()["resourceVersion"] = std::to_string(version);
    jobs.Apply(job);
  }

  std::string performed;
};

TEST_F(ElasticTurnsTest, TheMasterHearsOfAWorkerBeforeItsPodIsMade) {
  Rewrite(10);
  Turn();
  Serve();
  EXPECT_EQ(master.Told(), "worker-0@0 live\nworker-1@0 live\n");
  Scale(3);
  performed.clear();
  Turn();
  Serve();
  EXPECT_EQ(master.Told(), "worker-0@0 live\nworker-1@0 live\nworker-2@1 live\n");
  EXPECT_EQ(performed.find("POST /api/v1/namespaces/team-a/pods\n"), std::string::npos)
      << performed;
  master.known = master.told;
  Turn();
  Serve();
  EXPECT_NE(performed.find("POST /api/v1/namespaces/team-a/pods\n"), std::string::npos)
      << performed;
}

TEST_F(ElasticTurnsTest, AWorkerThatIsToLeaveMayFinishAndIsDeletedWhenItsTimeIsOver) {
  Turn();
  Serve();
  master.known = master.told;
  Scale(1);
  performed.clear();
  Turn();
  Serve();
  EXPECT_EQ(master.Told(), "worker-0@0 live\nworker-1@0 leaving\n");
  EXPECT_EQ(performed.find("DELETE"), std::string::npos) << performed;
  Turn(kStart + seconds(29));
  Serve(kStart + seconds(29));
  EXPECT_EQ(performed.find("DELETE"), std::string::npos) << performed;
  Turn(kStart + seconds(31));
  Serve(kStart + seconds(31));
  EXPECT_NE(performed.find("DELETE /api/v1/namespaces/team-a/pods/mnist-worker-1"),
            std::string::npos)
      << performed;
}

TEST_F(ElasticTurnsTest, NobodyIsTakenForDeadOnAViewOlderThanTheJob) {
  Rewrite(11);
  Turn();
  EXPECT_EQ(master.Told(), "");
  EXPECT_NE(Asked().find("GET /api/v1/namespaces/team-a/pods"), std::string::npos) << Asked();
}

}  // namespace
}  // namespace backend::cluster
