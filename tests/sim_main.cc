// Lives of jobs in the simulator: `sim --lives 5000`; a failing one again: `sim --seed N --trace`.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include <fmt/core.h>

#include "backend/sim/life.h"
#include "base/strings.h"
#include "core/planted_bugs.h"

int main(int argc, char** argv) {
  int64_t lives = 1000, first = 1, minutes = 0, bug = 0;
  bool trace = false, twice = false, one = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--trace") {
      trace = true;
      continue;
    }
    if (flag == "--twice") {  // every life is lived twice and must be the same
      twice = true;
      continue;
    }
    const auto value = i + 1 < argc ? base::ParseInt(argv[++i]) : std::nullopt;
    int64_t* const target = flag == "--lives"        ? &lives
                            : flag == "--first-seed" ? &first
                            : flag == "--minutes"    ? &minutes
                            : flag == "--bug"        ? &bug
                            : flag == "--seed"       ? &first
                                                     : nullptr;
    if (!target || !value) {
      fmt::print(stderr,
                 "usage: {} [--lives N] [--first-seed S] [--minutes M] [--twice] "
                 "[--seed N [--trace]] [--bug N]\n",
                 argv[0]);
      return 2;
    }
    *target = *value;
    one |= flag == "--seed";
  }
#ifdef TRAINYARD_PLANTED_BUGS
  core::planted_bug = static_cast<int>(bug);
#else
  if (bug != 0) {
    fmt::print(stderr, "no bugs are planted in this build: use sim_with_bugs\n");
    return 2;
  }
#endif
  if (one) lives = 1;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::map<std::string, int64_t> outcomes;
  int64_t lived = 0, happenings = 0, findings = 0;
  uint64_t digest = 0;
  for (; minutes > 0 ? elapsed() < 60.0 * static_cast<double>(minutes) : lived < lives; ++lived) {
    const auto seed = static_cast<uint64_t>(first + lived);
    const backend::sim::Lived life = backend::sim::Life(seed, trace);
    if (trace) fmt::print("{}", life.trace);
    digest = digest * 31 + life.digest;
    happenings += life.happenings;
    outcomes[life.outcome] += 1;
    if (twice && backend::sim::Life(seed).digest != life.digest) {
      fmt::print("seed {}: lived twice, not the same\n", seed);
      return 1;
    }
    if (!life.finding.empty()) {
      fmt::print("seed {}: {}   (again: sim --seed {} --trace{})\n", seed, life.finding, seed,
                 bug ? fmt::format(" --bug {}", bug) : "");
      if (bug != 0 || ++findings >= 20) return 1;
    }
  }
  fmt::print("{} lives, {} happenings, {:.0f} lives/s, {} succeeded, {} failed, digest {:016x}\n",
             lived, happenings, static_cast<double>(lived) / elapsed(), outcomes["Succeeded"],
             outcomes["Failed"], digest);
  return findings == 0 ? 0 : 1;
}
