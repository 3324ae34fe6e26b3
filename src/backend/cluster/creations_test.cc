#include "backend/cluster/creations.h"

#include <gtest/gtest.h>

namespace backend::cluster {
namespace {

using base::Error;
using base::ErrorKind;
using Events = std::vector<core::Event>;

TEST(Creations, AFewObjectsHaveAnEventEach) {
  Creations creations;
  creations.Created("Pod", "a-worker-1");
  creations.Created("Pod", "a-worker-0");
  EXPECT_EQ(creations.TakeEvents(),
            Events({{false, "SuccessfulCreatePod", "Created pod: a-worker-0"},
                    {false, "SuccessfulCreatePod", "Created pod: a-worker-1"}}));
  EXPECT_EQ(creations.TakeEvents(), Events());
}

TEST(Creations, ManyObjectsOfAKindShareAnEvent) {
  Creations creations;
  for (int i = 0; i < 9; ++i) creations.Created("Service", "a-worker-" + std::to_string(i));
  EXPECT_EQ(creations.TakeEvents(),
            Events({{false, "SuccessfulCreateService",
                     "Created service: a-worker-0, a-worker-1, a-worker-2, a-worker-3, "
                     "a-worker-4, a-worker-5, a-worker-6, a-worker-7, a-worker-8"}}));
  for (int i = 0; i < 500; ++i) creations.Created("Pod", "a-" + std::to_string(1000 + i));
  EXPECT_EQ(creations.TakeEvents(),
            Events({{false, "SuccessfulCreatePod",
                     "Created pod: a-1000, a-1001, a-1002, a-1003, a-1004, a-1005, a-1006, a-1007, "
                     "a-1008, a-1009 and 490 more"}}));
}

// The latest event then says that something is missing.
TEST(Creations, RefusalsComeAfterWhatWasCreatedAndShareAnEventToo) {
  Creations creations;
  for (int i = 0; i < 101; ++i) {
    const std::string name = "a-" + std::to_string(1000 + i);
    if (i < 4) {
      creations.Created("Pod", name);
    } else {
      creations.Refused("Pod", Error(ErrorKind::kForbidden, name + ": exceeded quota"));
    }
  }
  const Events events = creations.TakeEvents();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events.back(), core::Event({true, "FailedCreatePod",
                                        "Error creating: a-1004: exceeded quota and 96 more"}));
}

}  // namespace
}  // namespace backend::cluster
