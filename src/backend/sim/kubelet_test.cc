#include "backend/sim/kubelet.h"

#include <gtest/gtest.h>

#include "backend/sim/api_object.h"

namespace backend::sim {
namespace {

using namespace std::chrono_literals;

class KubeletTest : public ::testing::Test {
 protected:
  void MakePod(const std::string& policy) {
    server.Serve({.method = "POST",
                  .path = "/api/v1/namespaces/default/pods",
                  .body = R"({"metadata":{"name":"a","finalizers":["a.dev/x"]},"spec":{)"
                          R"("restartPolicy":")" +
                          policy + R"(","containers":[{"name":"c","image":"i"}]}})"});
    Pass(1min);
  }
  void Pass(base::Duration time) { agenda.RunUntil(agenda.now() + time); }
  Object Pod() const { return server.store().Get(kPods, "default/a"); }

  Agenda agenda{1, base::Time(1'800'000'000s)};
  Random random{1};
  ApiServer server{agenda};
  Kubelet kubelet{agenda, server, random};
};

TEST_F(KubeletTest, APodRunsAndEndsAsItIsTold) {
  MakePod("Never");
  EXPECT_EQ(PhaseOf(*Pod()), "Running");
  EXPECT_TRUE(kubelet.End("default", "a", {.code = 137, .reason = "OOMKilled"}));
  EXPECT_EQ(PhaseOf(*Pod()), "Failed");
}

TEST_F(KubeletTest, OnFailureItRunsAgainInPlace) {
  MakePod("OnFailure");
  kubelet.End("default", "a", {.code = 1});
  Pass(1min);
  EXPECT_EQ(PhaseOf(*Pod()), "Running");
  EXPECT_EQ(
      base::IntOr(ArrayAt(*base::Find(*Pod(), "status"), "containerStatuses")[0], "restartCount"),
      1);
}

TEST_F(KubeletTest, ADeletedPodEndsAndIsConfirmedAndHeldByItsFinalizer) {
  MakePod("Never");
  server.Serve({.method = "DELETE", .path = "/api/v1/namespaces/default/pods/a"});
  EXPECT_EQ(GraceOf(*Pod()), 30);
  Pass(1min);
  EXPECT_EQ(PhaseOf(*Pod()), "Failed");
  EXPECT_EQ(GraceOf(*Pod()), 0);
}

TEST_F(KubeletTest, APodOfALostNodeIsDroppedByForceInTheEnd) {
  MakePod("Never");
  kubelet.LoseNode("default", "a");
  Pass(35s);
  EXPECT_EQ(PhaseOf(*Pod()), "Running");
  Pass(5min);
  EXPECT_EQ(PhaseOf(*Pod()), "Failed");
  EXPECT_EQ(GraceOf(*Pod()), 0);
}

}  // namespace
}  // namespace backend::sim
