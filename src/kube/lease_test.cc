#include "kube/lease.h"

#include <gtest/gtest.h>

#include "kube/testing.h"

namespace kube {
namespace {

using namespace testing;

std::string Held(const std::string& by, const std::string& renewed, int version = 5) {
  return R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
         R"("},"spec":{"holderIdentity":")" + by + R"(","renewTime":")" + renewed + R"("}})";
}

struct LeaseTest : ::testing::Test {
  FakeTransport server;
  Lease lease{server, {.name_space = "ns", .name = "it", .identity = "me"}};
  base::Time now = kStart;

  const Request& Asked() { return server.asked.front().request; }
  void Take() {
    lease.Advance(now);
    server.Reply(404, R"({"kind":"Status","reason":"NotFound"})");
    lease.Advance(now);
    server.Reply(201, Held("me", "t0"));
  }
};

TEST_F(LeaseTest, IsMadeAndHeldWhenThereIsNone) {
  lease.Advance(now);
  EXPECT_EQ(Asked().path, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/it");
  server.Reply(404, R"({"kind":"Status","reason":"NotFound"})");
  EXPECT_FALSE(lease.leads());
  EXPECT_EQ(lease.next(), now) << "taken at once";
  lease.Advance(now);
  EXPECT_EQ(Asked().method, "POST");
  server.Reply(201, Held("me", "t0"));
  EXPECT_TRUE(lease.leads());
}

TEST_F(LeaseTest, IsRenewedEveryTwoSecondsWithTheVersionItHad) {
  Take();
  lease.Advance(now += 1s);
  EXPECT_TRUE(server.asked.empty());
  lease.Advance(now += 1s);
  EXPECT_EQ(Asked().method, "PUT");
  EXPECT_NE(Asked().body.find(R"("resourceVersion":"5")"), std::string::npos);
}

TEST_F(LeaseTest, OfAnotherIsLeftAloneWhileItIsRenewed) {
  for (int i = 0; i < 30; ++i) {
    lease.Advance(now += 2s);
    EXPECT_EQ(Asked().method, "GET");
    server.Reply(200, Held("other", "t" + std::to_string(i)));
  }
  EXPECT_FALSE(lease.leads());
  EXPECT_EQ(lease.holder(), "other");
}

TEST_F(LeaseTest, OfAnotherIsTakenFifteenSecondsAfterItsLastChangeByOurClock) {
  lease.Advance(now);
  server.Reply(200, Held("other", "2000-01-01"));
  for (int i = 0; i < 7; ++i) {
    lease.Advance(now += 2s);
    EXPECT_EQ(Asked().method, "GET") << "whatever the other's clock says";
    server.Reply(200, Held("other", "2000-01-01"));
  }
  lease.Advance(now += 2s);
  EXPECT_EQ(Asked().method, "PUT");
  server.Reply(200, Held("me", "t"));
  EXPECT_TRUE(lease.leads());
}

TEST_F(LeaseTest, LostToAFasterOneIsLookedAtAgain) {
  lease.Advance(now);
  server.Reply(404, R"({"kind":"Status","reason":"NotFound"})");
  lease.Advance(now);
  server.Reply(409, R"({"kind":"Status","reason":"AlreadyExists"})");
  EXPECT_FALSE(lease.leads());
  lease.Advance(now += 2s);
  EXPECT_EQ(Asked().method, "GET");
}

TEST_F(LeaseTest, IsNotOursAnyMoreTenSecondsAfterTheLastRenewal) {
  Take();
  for (int i = 0; i < 4; ++i) {
    lease.Advance(now += 2s);
    server.Break();
    EXPECT_TRUE(lease.leads());
  }
  EXPECT_EQ(lease.trouble(), "cut");
  lease.Advance(now += 2s);
  EXPECT_FALSE(lease.leads());
}

TEST_F(LeaseTest, IsGivenUpAtOnce) {
  Take();
  lease.Resign(now);
  EXPECT_FALSE(lease.leads());
  EXPECT_EQ(Asked().method, "PUT");
  EXPECT_NE(Asked().body.find(R"("holderIdentity":"")"), std::string::npos);
  EXPECT_EQ(lease.next(), std::nullopt);
}

}  // namespace
}  // namespace kube
