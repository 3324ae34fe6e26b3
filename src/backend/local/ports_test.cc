#include "backend/local/ports.h"

#include <optional>
#include <set>

#include <gtest/gtest.h>

namespace backend::local {
namespace {

TEST(PortLeases, OfTwoNeverOverlapThoughNobodyListensThere) {
  PortLeases one, other;
  std::set<int32_t> all;
  for (const auto& ports :
       {one.Lease(3, 0, {}), other.Lease(3, 0, {}), one.LeaseMore(2), other.LeaseMore(2)}) {
    ASSERT_TRUE(ports);
    all.insert(ports->begin(), ports->end());
  }
  EXPECT_EQ(all.size(), 10u);
}

TEST(PortLeases, AreTakenAgainOnceTheirHolderIsGone) {
  auto first = std::make_optional<PortLeases>();
  const auto ports = first->Lease(2, 0, {});
  ASSERT_TRUE(ports);
  PortLeases second;
  EXPECT_NE(second.Lease(2, 0, *ports), ports);  // they are held
  first.reset();
  PortLeases third;
  EXPECT_EQ(third.Lease(2, 0, *ports), ports);
}

TEST(PortLeases, OfOneIsThePreferredIfItIsFree) {
  auto first = std::make_optional<PortLeases>();
  const auto port = first->LeaseOne(0);
  ASSERT_TRUE(port);
  PortLeases second;
  const auto other = second.LeaseOne(*port);
  ASSERT_TRUE(other);
  EXPECT_NE(*other, *port);  // it is held
  first.reset();
  PortLeases third;
  EXPECT_EQ(third.LeaseOne(*port), port);
}

TEST(PortLeases, OfARangeAreThoseOrNone) {
  PortLeases one, other;
  const auto ports = one.LeaseMore(1);
  ASSERT_TRUE(ports);
  const auto refused = other.Lease(2, ports->front(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), base::ErrorKind::kInvalid);
  EXPECT_FALSE(other.Lease(2, 65535, {}));
}

}  // namespace
}  // namespace backend::local
