// For tests: a status in which every member says something.
#pragma once

#include "api/status.h"

namespace api {

inline JobStatus FullStatus() {
  using namespace std::chrono_literals;
  const base::Time t{1'794'779'397s};
  const Unit unit = {.attempt = 2,
                     .failures_in_row = 1,
                     .disruptions_in_row = 3,
                     .preemptions_in_row = 2,
                     .preempted_at = 40,
                     .not_before = t + 5us,
                     .planned = true};
  JobStatus status;
  // A member that is added must be named here, and given a value below: deploy/crd.yaml is checked
  // against what becomes of this.
  auto& [conditions, replica_statuses, start_time, completion_time, restarts, disruptions, attempt,
         life, progress, shards, verdict, gang, units, completed, seen, shape, incidents] = status;
  conditions = {
      {.type = "Created",
       .reason = "TFJobCreated",
       .message = "m",
       .last_update = t,
       .last_transition = t},
      {.type = "Running", .status = false, .reason = "r", .last_update = t, .last_transition = t}};
  replica_statuses[Role::kWorker] = {.active = 2, .succeeded = 3, .failed = 1};
  replica_statuses[Role::kPs] = {};
  start_time = t;
  completion_time = t + 1s;
  restarts = 2;
  disruptions = 1;
  attempt = 3;
  life = 1;
  progress = {.percent = 12.5, .step = 40, .remaining = 90s, .metrics = {{"loss", 0.25}}};
  shards = Shards{
      .todo = 3,
      .doing = 2,
      .done = 5,
      .records_left = 320,
      .records_total = 640,
      .quarantined = 64,
      .complete = true,
      .replicas = {{{Role::kWorker, 1}, {.doing = 2, .done = 5, .records_per_second = 12.5}}}};
  verdict = Verdict{"failed", "c", "a", 137};
  gang = unit;
  units[{Role::kPs, 1}] = unit;
  completed = {{Role::kWorker, 1}};
  seen = {{Role::kPs, 0},
          {Role::kWorker, 0},
          {Role::kWorker, 1},
          {Role::kWorker, 2},
          {Role::kWorker, 7}};
  shape = {{Role::kWorker, 2}};
  incidents = {{.replica = {Role::kWorker, 0},
                .attempt = 1,
                .when = t,
                .what = "w",
                .line = "l",
                .consequences = {{Role::kWorker, 1}},
                .disruption = true}};
  return status;
}

}  // namespace api
