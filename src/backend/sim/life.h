// One simulated life of a job: drawn from a seed, with faults, to its end and an hour beyond.
#pragma once

#include <cstdint>
#include <string>

namespace backend::sim {

struct Lived {
  uint64_t digest = 0;  // the same seed gives the same digest
  std::string finding;  // empty: nothing wrong was seen
  std::string trace;    // when asked for
  std::string outcome;  // "Succeeded", "Failed"
  int32_t happenings = 0;
};

Lived Life(uint64_t seed, bool trace = false);

}  // namespace backend::sim
