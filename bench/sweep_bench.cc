// Searches known functions by ask and tell, and prints what it found as JSON: the one half of
// bench/sweep_bench.py, which asks Optuna the same.
//
//   sweep_bench search ALGORITHM FUNCTION WINDOW SEEDS BUDGET...
//                                              best value after each budget, each seed
//   sweep_bench ask ALGORITHM WINDOW SEED TRIALS PARAM...
//                                              prints each point as JSON, reads its value: for
//                                              functions that are written in Python
//   sweep_bench time ALGORITHM SEEN            microseconds a suggestion, 6 numbers
//   sweep_bench curves ALGORITHM PRUNING SEEDS regret at a budget of 4,050 steps
//
// With a window of 1 nothing lags behind, as in Optuna with one job.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sweep/rng.h"
#include "sweep/search.h"
#include "sweep/study.h"

namespace {

using sweep::Parameter;

struct Function {
  sweep::Space space;
  std::function<double(const std::vector<double>&)> value;
};

double Branin(const std::vector<double>& x) {
  const double pi = 3.141592653589793;
  const double a = x[1] - 5.1 / (4 * pi * pi) * x[0] * x[0] + 5 / pi * x[0] - 6;
  return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
}

double Hartmann6(const std::vector<double>& x) {
  static const double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                  {0.05, 10, 17, 0.1, 8, 14},
                                  {3, 3.5, 1.7, 10, 17, 8},
                                  {17, 8, 0.05, 10, 0.1, 14}};
  static const double kP[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                                  {2329, 4135, 8307, 3736, 1004, 9991},
                                  {2348, 1451, 3522, 2883, 3047, 6650},
                                  {4047, 8828, 8732, 5743, 1091, 381}};
  static const double kAlpha[4] = {1, 1.2, 3, 3.2};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    double inner = 0;
    for (size_t j = 0; j < 6; ++j) inner += kA[i][j] * std::pow(x[j] - kP[i][j] * 1e-4, 2);
    sum += kAlpha[i] * std::exp(-inner);
  }
  return -sum;
}

Function Named(const std::string& name) {
  Function function;
  if (name == "branin") {
    function.space = {{.name = "a", .low = -5, .high = 10}, {.name = "b", .low = 0, .high = 15}};
    function.value = Branin;
  } else {
    for (char c = 'a'; c < 'g'; ++c) {
      function.space.push_back({.name = std::string(1, c), .low = 0, .high = 1});
    }
    function.value = Hartmann6;
  }
  return function;
}

sweep::Algorithm AlgorithmNamed(const std::string& name) {
  if (name == "gp") return sweep::Algorithm::kGp;
  return name == "tpe" ? sweep::Algorithm::kTpe : sweep::Algorithm::kRandom;
}

sweep::Settings SettingsFor(const Function& function, const std::string& algorithm, int seed,
                            int trials, int window = 1) {
  return {.space = function.space,
          .algorithm = AlgorithmNamed(algorithm),
          .pruning = sweep::Pruning::kNone,
          .seed = static_cast<uint64_t>(seed),
          .trials = trials,
          .window = window};
}

void Search(const std::string& algorithm, const std::string& name, int window, int seeds,
            const std::vector<int>& budgets) {
  const Function function = Named(name);
  std::vector<std::string> rows;
  for (int seed = 0; seed < seeds; ++seed) {
    sweep::Study study(SettingsFor(function, algorithm, seed, budgets.back(), window));
    std::vector<double> bests;
    double best = HUGE_VAL;
    while (study.CanAsk()) {
      const sweep::Trial& trial = study.Ask();
      const double value = function.value(trial.point);
      best = std::min(best, value);
      study.End(trial.number, {.value = value});
      if (std::ranges::count(budgets, static_cast<int>(study.trials().size())))
        bests.push_back(best);
    }
    rows.push_back(fmt::format("[{}]", fmt::join(bests, ", ")));
  }
  fmt::print("[{}]\n", fmt::join(rows, ",\n "));
}

void AskAndRead(const sweep::Settings& settings) {
  sweep::Study study(settings);
  while (study.CanAsk()) {
    const sweep::Trial& trial = study.Ask();
    fmt::print("{}\n", base::CompactJson(sweep::ToJson(settings.space, trial.point)));
    std::fflush(stdout);
    double value = 0;
    if (std::scanf("%lf", &value) != 1) return;
    study.End(trial.number, {.value = value});
  }
}

// The mean over ten suggestions in a row, so that a fit now and then is in it.
void Time(const std::string& algorithm, int seen) {
  constexpr int kRepeats = 20;
  const Function function = Named("hartmann6");
  sweep::Study study(SettingsFor(function, algorithm, 1, seen + kRepeats));
  std::chrono::duration<double, std::micro> spent{};
  while (study.CanAsk()) {
    const auto start = std::chrono::steady_clock::now();
    const sweep::Trial& trial = study.Ask();
    if (trial.number >= seen) spent += std::chrono::steady_clock::now() - start;
    study.End(trial.number, {.value = function.value(trial.point)});
  }
  fmt::print("{}\n", spent.count() / kRepeats);
}

// Learning curves of 81 steps that end at Hartmann-6; the regret of the best fully trained trial
// within 4,050 steps.
double Regret(const std::string& algorithm, sweep::Pruning pruning, int seed) {
  constexpr int kSteps = 81, kBudget = 4050;
  constexpr double kMinimum = -3.32237;
  const Function function = Named("hartmann6");
  sweep::Settings settings = SettingsFor(function, algorithm, seed, kBudget);
  settings.pruning = pruning;
  sweep::Study study(settings);
  double best = HUGE_VAL;
  for (int left = kBudget; left > 0 && study.CanAsk();) {
    const sweep::Trial trial = study.Ask();
    sweep::Rng noise(static_cast<uint64_t>(seed), static_cast<uint64_t>(trial.number), 99);
    const double regret = function.value(trial.point) - kMinimum;
    const double a = 1 + 0.5 * trial.point[0], b = 6 + 18 * trial.point[1];
    int step = 0;
    while (step < kSteps && left > 0) {
      ++step;
      --left;
      study.Report(trial.number, regret + a * std::exp(-step / b) + 0.02 * noise.Normal());
      if (sweep::IsOver(study.trials().back())) break;
    }
    study.End(trial.number, {});
    if (step == kSteps) best = std::min(best, regret);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 6 && words[0] == "search") {
    std::vector<int> budgets;
    for (size_t i = 5; i < words.size(); ++i) budgets.push_back(std::atoi(words[i].c_str()));
    Search(words[1], words[2], std::atoi(words[3].c_str()), std::atoi(words[4].c_str()), budgets);
  } else if (words.size() >= 6 && words[0] == "ask") {
    Function function;
    for (size_t i = 5; i < words.size(); ++i) {
      function.space.push_back(*sweep::ParseParameter(words[i]));
    }
    AskAndRead(SettingsFor(function, words[1], std::atoi(words[3].c_str()),
                           std::atoi(words[4].c_str()), std::atoi(words[2].c_str())));
  } else if (words.size() == 3 && words[0] == "time") {
    Time(words[1], std::atoi(words[2].c_str()));
  } else if (words.size() == 4 && words[0] == "curves") {
    const auto pruning = words[2] == "asha"     ? sweep::Pruning::kAsha
                         : words[2] == "median" ? sweep::Pruning::kMedian
                                                : sweep::Pruning::kNone;
    std::vector<double> regrets;
    for (int seed = 0; seed < std::atoi(words[3].c_str()); ++seed) {
      regrets.push_back(Regret(words[1], pruning, seed));
    }
    fmt::print("[{}]\n", fmt::join(regrets, ", "));
  } else {
    fmt::print(stderr, "usage: sweep_bench search|ask|time|curves …\n");
    return 2;
  }
  return 0;
}
