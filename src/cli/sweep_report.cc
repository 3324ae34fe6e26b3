#include "cli/sweep_report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/strings.h"
#include "cli/sweep_plan.h"
#include "sweep/importance.h"

namespace cli {
namespace {

using sweep::State;
using sweep::Trial;

struct Counts {
  int complete = 0, pruned = 0, failed = 0;
  int over() const { return complete + pruned + failed; }
};

Counts CountsOf(const std::vector<Trial>& trials) {
  Counts counts;
  for (const Trial& trial : trials) {
    counts.complete += trial.state == State::kComplete;
    counts.pruned += trial.state == State::kPruned;
    counts.failed += trial.state == State::kFailed;
  }
  return counts;
}

const Trial* BestOf(const SweepPlan& plan, const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.state != State::kComplete || !trial.value) continue;
    if (!best ||
        sweep::Loss(plan.settings, *trial.value) < sweep::Loss(plan.settings, *best->value))
      best = &trial;
  }
  return best;
}

// The best so far after each of the last trials.
std::string Sparkline(const SweepPlan& plan, const std::vector<Trial>& trials) {
  static constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> bests;
  for (const Trial& trial : trials) {
    if (trial.state != State::kComplete || !trial.value) continue;
    const double loss = sweep::Loss(plan.settings, *trial.value);
    bests.push_back(bests.empty() ? loss : std::min(bests.back(), loss));
  }
  if (bests.size() < 2 || !std::isfinite(bests.front() - bests.back())) return "";
  if (bests.size() > 24) bests.erase(bests.begin(), bests.end() - 24);
  const double low = bests.back(), high = bests.front();
  std::string out = "  ";
  for (double best : bests) {
    const double along = high > low ? (best - low) / (high - low) : 0;
    out += kBars[static_cast<size_t>(along * 7)];
  }
  return out;
}

// A word as a shell would need it.
std::string Typed(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=:,+@%").contains(c);
  });
  if (plain) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string MetricText(const SweepPlan& plan, const Trial& trial) {
  return trial.value ? fmt::format("{} {:.6g}", plan.metric, *trial.value) : plan.metric + " -";
}

}  // namespace

std::string ValuesText(const sweep::Space& space, const sweep::Point& point) {
  std::vector<std::string> values;
  for (const auto& [parameter, text] : sweep::Texts(space, point))
    values.push_back(parameter->name + "=" + text);
  return base::Join(values, " ");
}

std::string PlanText(const SweepPlan& plan, const std::string& path) {
  static constexpr std::array<std::string_view, 4> kWords = {"grid", "random", "tpe",
                                                             "gaussian process"};
  const sweep::Settings& s = plan.settings;
  std::string out = fmt::format("{} · {}\n", plan.name,
                                plan.script.empty() ? "a manifest for each trial" : plan.script);
  for (const sweep::Parameter& p : s.space) {
    out += fmt::format("  search  {} {}{}\n", p.name, base::OneLine(sweep::Describe(p), 200),
                       p.when.empty() ? "" : " when " + sweep::DescribeConditions(p));
  }
  out += fmt::format("  by      {}, {} {}, {} at a time, seed {}{}\n",
                     kWords[static_cast<size_t>(s.algorithm)], s.trials,
                     s.trials == 1 ? "trial" : "trials", plan.parallel, s.seed,
                     s.async ? ", asynchronous" : fmt::format(", window {}", s.window));
  const std::string pruning =
      s.pruning == sweep::Pruning::kAsha ? "the best third goes on at reports 1, 3, 9, 27 … (asha)"
      : s.pruning == sweep::Pruning::kMedian ? "who is worse than the median is stopped"
                                             : "no trial is stopped early";
  out +=
      fmt::format("  goal    {} {}; {}\n", s.maximize ? "greatest" : "least", plan.metric, pruning);
  return out + fmt::format("  kept    {}\n", path);
}

std::string TrialText(const SweepPlan& plan, const Trial& trial) {
  std::string out =
      fmt::format("trial {:<3} {:<8}  {}  {}", trial.number, sweep::Name(trial.state),
                  MetricText(plan, trial), ValuesText(plan.settings.space, trial.point));
  if (!trial.reason.empty()) out += "  (" + trial.reason + ")";
  return out;
}

base::Json TrialJson(const SweepPlan& plan, const Trial& trial) {
  base::JsonObject json{{"trial", trial.number},
                        {"state", sweep::Name(trial.state)},
                        {"value", nullptr},
                        {"reports", trial.reports},
                        {"params", sweep::ToJson(plan.settings.space, trial.point)}};
  if (trial.value && std::isfinite(*trial.value)) json["value"] = *trial.value;
  if (!trial.reason.empty()) json["reason"] = trial.reason;
  return json;
}

std::string BoardText(const SweepPlan& plan, const std::vector<Trial>& trials, int running,
                      bool unicode) {
  const Counts counts = CountsOf(trials);
  const std::string dot = unicode ? " · " : ", ";
  std::string out =
      fmt::format("{}/{} done{}{} running{}{} pruned{}{} failed", counts.over(),
                  plan.settings.trials, dot, running, dot, counts.pruned, dot, counts.failed);
  if (const Trial* best = BestOf(plan, trials)) {
    out += fmt::format("{}best {} ({})", dot, MetricText(plan, *best),
                       ValuesText(plan.settings.space, best->point));
    if (unicode) out += Sparkline(plan, trials);
  }
  return out;
}

std::string TypedAgain(const SweepPlan& plan) {
  std::string out = plan.on.empty() ? "" : " --on " + Typed(plan.on);
  if (plan.name_space != "default") out += " -n " + plan.name_space;
  return out;
}

std::string EndText(const SweepPlan& plan, const SweepStore& store,
                    const std::vector<Trial>& trials, const Trial* best,
                    std::optional<base::Duration> took, const io::Terminal& terminal) {
  const Counts counts = CountsOf(trials);
  const std::string mark = terminal.unicode ? (best ? "✓ " : "✗ ") : "";
  std::string out = fmt::format("{}{}: {} {}{}: {} complete, {} pruned, {} failed\n", mark,
                                plan.name, counts.over(), counts.over() == 1 ? "trial" : "trials",
                                took ? " in " + base::FormatDuration(*took) : "", counts.complete,
                                counts.pruned, counts.failed);
  if (!best) return out;
  out += fmt::format("  best    trial {}: {}  {}\n", best->number, MetricText(plan, *best),
                     ValuesText(plan.settings.space, best->point));
  std::vector<std::string> words = RunWords(plan, *best);
  if (plan.name_space != "default")
    words.insert(words.begin() + 1, "--namespace=" + plan.name_space);
  // Of this machine it would be the directory of the trial.
  const bool there = !plan.on.empty() && plan.on != "local";
  if (there && !plan.output.empty()) words.insert(words.begin() + 1, "--output=" + plan.output);
  if (plan.script.empty()) words.push_back("--file=" + store.TrialDir(*best) + "/job.yaml");
  for (std::string& word : words) word = Typed(word);
  out += "  run     trainyard " + base::Join(words, " ") + "\n";
  if (const auto shares = sweep::Importance(plan.settings, trials); !shares.empty()) {
    std::vector<size_t> order(shares.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return -shares[i]; });
    std::vector<std::string> parts;
    for (size_t i : order)
      parts.push_back(fmt::format("{} {:.0f} %", plan.settings.space[i].name, 100 * shares[i]));
    out += "  matters " + base::Join(parts, ", ") + "\n";
  }
  out += "  table   " + store.File("trials.csv") + "\n";
  const std::string again = TypedAgain(plan);
  out += fmt::format("  serve   trainyard serve {}{}\n", store.JobName(best->number), again);
  return out + fmt::format("  look    trainyard board {}{}\n", plan.name, again);
}

}  // namespace cli
