#include "api/status.h"

#include <gtest/gtest.h>

namespace api {
namespace {

using namespace std::chrono_literals;

TEST(Status, DecodesWhatItEncodes) {
  const base::Time t{1'794'779'397s};
  JobStatus status;
  status.conditions = {
      {.type = "Created",
       .reason = "TFJobCreated",
       .message = "m",
       .last_update = t,
       .last_transition = t},
      {.type = "Running", .status = false, .reason = "r", .last_update = t, .last_transition = t}};
  status.replica_statuses[Role::kWorker] = {.active = 2, .failed = 1};
  status.replica_statuses[Role::kPs] = {};
  status.start_time = t;
  status.restarts = 2;
  status.disruptions = 1;
  status.attempt = 3;
  status.progress = {.percent = 12.5, .step = 40, .remaining = 90s, .metrics = {{"loss", 0.25}}};
  status.verdict = Verdict{"failed", "c", "a", 137};
  status.gang = {.attempt = 2, .failures_in_row = 1, .not_before = t + 5us};
  status.units[{Role::kPs, 1}] = {.attempt = 3, .disruptions_in_row = 1};
  status.completed = {{Role::kWorker, 1}};
  status.seen = {{Role::kPs, 0}, {Role::kWorker, 0}, {Role::kWorker, 1}, {Role::kWorker, 2}, {Role::kWorker, 7}};
  status.shape = {{Role::kWorker, 2}};
  status.incidents = {{.replica = {Role::kWorker, 0},
                       .attempt = 1,
                       .when = t,
                       .what = "w",
                       .line = "l",
                       .consequences = {{Role::kWorker, 1}},
                       .disruption = true}};
  EXPECT_EQ(DecodeStatus(EncodeStatus(status)), status);
}

TEST(Status, SurvivesGarbage) {
  for (const char* text :
       {"null", "[]", "{\"conditions\":3}", "{\"units\":{\"x\":1,\"worker-0\":2}}",
        "{\"conditions\":[1,{}],\"completed\":{\"Worker\":\"3-,-,9-1,a\"},\"shape\":{\"a\":1}}"}) {
    DecodeStatus(*base::ParseJson(text));
  }
}

TEST(ReplicaId, ReadsBothSpellings) {
  EXPECT_EQ(ReplicaIdFrom("worker-1"), (ReplicaId{Role::kWorker, 1}));
  EXPECT_EQ(ReplicaIdFrom("PS/0"), (ReplicaId{Role::kPs, 0}));
  for (const char* text : {"worker", "worker-", "worker--1", "cook/1", "worker-99999999999"}) {
    EXPECT_EQ(ReplicaIdFrom(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace api
