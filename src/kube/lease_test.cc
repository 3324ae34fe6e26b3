#include "kube/lease.h"

#include <map>

#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/testing/clock_step.h"
#include "kube/api.h"
#include "kube/testing.h"

namespace kube {
namespace {

using base::Json;
using base::JsonObject;
using base::Time;
using testing::J;
using testing::kStart;
using namespace std::chrono_literals;

// One lease of a server that checks versions.
class LeaseTest : public ::testing::Test {
 protected:
  // Answers what was asked, or does not.
  void Serve() {
    while (!transport.asked.empty()) {
      if (down) {
        transport.Break();
        continue;
      }
      const Request request = transport.asked.front().request;
      const Json body = request.body.empty() ? Json() : J(request.body);
      if (request.method == "POST") {
        const bool taken = stored.has_value();
        transport.Reply(taken ? 409 : 201, taken ? "{}" : Store(body));
      } else if (!stored) {
        transport.Reply(404, "{}");
      } else if (request.method == "PUT") {
        const bool stale = body.at("metadata").at("resourceVersion") !=
                           stored->at("metadata").at("resourceVersion");
        transport.Reply(stale ? 409 : 200, stale ? "{}" : Store(body));
      } else {
        transport.Reply(200, base::CompactJson(*stored));
      }
    }
  }

  std::string Store(Json body) {
    body.at("metadata").get_object()["resourceVersion"] = std::to_string(++version);
    stored = body;
    return base::CompactJson(body);
  }

  // Lets time pass in steps of 100 ms.
  void Run(base::Duration how_long) {
    for (const Time end = now + how_long; now < end; now += 100ms) {
      for (Lease* lease : {&a, &b}) {
        if (paused == lease) continue;
        lease->Advance(now);
        Serve();
        lease->Advance(now);
        Serve();
        lease->Advance(now);
      }
      EXPECT_TRUE(paused || !a.leads() || !b.leads());
    }
  }

  std::string Holder() const { return base::StringOr(stored->at("spec"), "holderIdentity"); }

  Time now = kStart;
  testing::FakeTransport transport;
  std::optional<Json> stored;
  int version = 0;
  bool down = false;
  Lease* paused = nullptr;
  Lease a{transport, {.ns = "ns", .identity = "a"}};
  Lease b{transport, {.ns = "ns", .identity = "b"}};
};

TEST_F(LeaseTest, TheFirstToComeLeads) {
  Run(30s);
  EXPECT_TRUE(a.leads());
  EXPECT_FALSE(b.leads());
  EXPECT_EQ(b.holder(), "a");
  const Json& spec = stored->at("spec");
  EXPECT_EQ(base::IntOr(spec, "leaseDurationSeconds"), 15);
  EXPECT_EQ(base::IntOr(spec, "leaseTransitions"), 0);
  EXPECT_EQ(base::StringOr(spec, "acquireTime"), "2026-11-15T21:50:00.000000Z");
  EXPECT_GE(base::ParseTime(base::StringOr(spec, "renewTime")).value(), now - 3s);
}

TEST_F(LeaseTest, AnotherTakesOverWhenTheHolderIsSilent) {
  Run(5s);
  paused = &a;
  Run(13s);
  EXPECT_FALSE(b.leads());
  Run(6s);
  EXPECT_TRUE(b.leads());
  EXPECT_EQ(base::IntOr(stored->at("spec"), "leaseTransitions"), 1);
  paused = nullptr;
  a.Advance(now);
  EXPECT_FALSE(a.leads());
  Run(20s);
  EXPECT_TRUE(b.leads());
}

TEST_F(LeaseTest, ReleasedItIsTakenAtOnce) {
  Run(5s);
  a.Release();
  EXPECT_FALSE(a.leads());
  Run(3s);
  EXPECT_TRUE(a.released());
  EXPECT_TRUE(b.leads());
  Run(20s);
  EXPECT_EQ(Holder(), "b");
}

TEST_F(LeaseTest, WhoDoesNotHoldItIsReleasedAtOnce) {
  Run(5s);
  b.Release();
  b.Advance(now);
  EXPECT_TRUE(b.released());
  Run(1s);
  EXPECT_TRUE(a.leads());
}

TEST_F(LeaseTest, StopsLeadingWhenItCannotRenewForTenSeconds) {
  Run(5s);
  down = true;
  Run(7s);
  EXPECT_TRUE(a.leads());
  EXPECT_NE(a.trouble(), "");
  Run(4s);
  EXPECT_FALSE(a.leads());
  down = false;
  Run(10s);
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.trouble(), "");
}

TEST_F(LeaseTest, SaysWhenItMustBeAdvancedToStopInTime) {
  Run(5s);
  EXPECT_LE(a.next(), now + 2s);
  a.Advance(now + 2s);  // sends, and no answer comes
  EXPECT_LE(a.next(), now + 10s);
  a.Advance(a.next());
  EXPECT_FALSE(a.leads());
}

TEST_F(LeaseTest, ALeaseThatIsDeletedIsMadeAgain) {
  Run(5s);
  stored.reset();
  Run(10s);
  EXPECT_TRUE(a.leads() || b.leads());
  EXPECT_TRUE(stored);
}

TEST_F(LeaseTest, KeepsWhatOthersWroteIntoTheObject) {
  Run(5s);
  stored->at("metadata").get_object()["labels"] = JsonObject{{"x", "y"}};
  stored->at("metadata").get_object()["resourceVersion"] = std::to_string(++version);
  Run(10s);
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(base::StringOr(stored->at("metadata").at("labels"), "x"), "y");
}

TEST_F(LeaseTest, AForeignLeaseThatSaysNonsenseIsTakenInTheEnd) {
  for (const char* spec : {R"({"holderIdentity":"x","leaseDurationSeconds":99999999})",
                           R"({"holderIdentity":"x","leaseDurationSeconds":-5})",
                           R"({"holderIdentity":"x"})", R"({"holderIdentity":7})", "5", "null"}) {
    testing::FakeTransport door;
    Lease lease(door, {.ns = "ns", .identity = "me"});
    const std::string foreign =
        std::string(R"({"metadata":{"name":"n","resourceVersion":"1"},"spec":)") + spec + "}";
    Time time = kStart;
    bool taken = false;
    for (; !taken && time < kStart + 10min; time += 500ms) {
      lease.Advance(time);
      while (!door.asked.empty()) {
        taken |= door.asked.front().request.method == "PUT";
        door.Reply(200, taken ? door.asked.front().request.body : foreign);
        lease.Advance(time);
      }
    }
    EXPECT_TRUE(taken && lease.leads()) << spec;
  }
}

TEST(Lease, AnAnswerThatIsNoLeaseIsTrouble) {
  testing::FakeTransport transport;
  Lease lease(transport, {.ns = "ns", .identity = "me"});
  Time now = kStart;
  for (const char* body : {"", "[]", "x"}) {
    lease.Advance(now);
    transport.Reply(200, body);
    lease.Advance(now);
    EXPECT_FALSE(lease.leads());
    EXPECT_EQ(lease.trouble(), "the answer is no Lease");
    now += 2s;
  }
}

TEST(Lease, AnAnswerAfterTheEndIsIgnored) {
  testing::FakeTransport transport;
  {
    Lease lease(transport, {.ns = "ns", .identity = "me"});
    lease.Advance(kStart);
  }
  transport.Reply(404, "");
}

TEST_F(LeaseTest, AStepOfTheWallClockTakesTheLeaseFromNobody) {
  for (const base::Duration step : io::testing::kClockSteps) {
    stored.reset();
    Lease leader{transport, {.ns = "ns", .identity = "leader", .retry = 1us}};
    Lease follower{transport, {.ns = "ns", .identity = "follower", .retry = 1us}};
    const auto advance = [&](Lease& lease) {
      for (int i = 0; i < 3; ++i) {
        lease.Advance(io::Now());
        Serve();
      }
      lease.Advance(io::Now());
    };
    advance(leader);
    advance(follower);
    ASSERT_TRUE(leader.leads());
    const io::testing::ClockStep stepped(step);
    advance(follower);
    EXPECT_FALSE(follower.leads()) << step.count();
    EXPECT_EQ(Holder(), "leader") << step.count();
    leader.Advance(io::Now());
    EXPECT_TRUE(leader.leads()) << step.count();
    EXPECT_LE(leader.next(), io::Now() + 10s) << step.count();
  }
}

}  // namespace
}  // namespace kube
