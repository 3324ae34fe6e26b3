// Jobs on a simulated cluster, under the real operator (backend/sim/trials.h says what they are put
// through).
//
//   sim_cluster                            every crash, every third party, some storms
//   sim_cluster crash|party|unseen         all of one kind
//   sim_cluster storm|two|travel [FIRST COUNT]   so many seeds
//   sim_cluster TRIAL                      one again, with a trace: crash/plain/3/killed-stored
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "backend/sim/trials.h"
#include "base/strings.h"

namespace {

using namespace backend::sim;

constexpr int64_t kMostTold = 200;

struct Tally {
  int64_t trials = 0, wrong = 0, steps = 0;

  bool Take(const Trial& trial) {
    ++trials;
    steps += trial.life.steps;
    if (trial.finding.empty()) return true;
    fmt::print("{}: {}   (again: sim_cluster {})\n", trial.name, trial.finding, trial.name);
    return ++wrong < kMostTold;
  }
};

uint64_t NumberOr(const std::vector<std::string>& words, size_t i, uint64_t fallback) {
  const auto number = i < words.size() ? base::ParseInt(words[i]) : std::nullopt;
  return number && *number >= 0 ? static_cast<uint64_t>(*number) : fallback;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string what = words.empty() ? "all" : words[0];
  if (what.find('/') != std::string::npos) {
    const Trial trial = TrialAgain(what);
    fmt::print("{}{}{}: {}\n", trial.life.trace, trial.life.end, trial.name,
               trial.finding.empty() ? "as it should be" : trial.finding);
    return trial.finding.empty() ? 0 : 1;
  }
  const uint64_t first = NumberOr(words, 1, 1), count = NumberOr(words, 2, 500);
  int64_t wrong = 0;
  const auto run = [&](const std::string& kind, auto trials) {
    if (what != "all" && what != kind) return;
    const auto begin = std::chrono::steady_clock::now();
    Tally tally;
    trials([&](const Trial& trial) { return tally.Take(trial); });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print("{}: {} trials, {} steps, {:.1f} s, {} wrong\n", kind, tally.trials, tally.steps,
               seconds, tally.wrong);
    wrong += tally.wrong;
  };
  run("crash", [](const Report& report) { CrashTrials(report); });
  run("party", [](const Report& report) { PartyTrials(report); });
  run("unseen", [](const Report& report) { UnseenTrials(report); });
  run("storm", [&](const Report& report) { StormTrials(first, count, report); });
  run("two", [&](const Report& report) { TwoTrials(first, count, report); });
  run("travel", [&](const Report& report) { TravelTrials(first, count, report); });
  return wrong == 0 ? 0 : 1;
}
