#include "cli/sweep_plan.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "base/env_file.h"
#include "base/strings.h"
#include "cli/bundle.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/metric_goal.h"
#include "cli/place.h"
#include "cli/plan.h"
#include "cli/sweep_file.h"
#include "cli/sweep_manifest.h"
#include "io/files.h"
#include "sweep/search.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;
using sweep::Settings;

constexpr int kDefaultTrials = 20;
constexpr int64_t kMostSlots = 1000;

const Command& CommandNamed(std::string_view name) {
  return *std::ranges::find(Commands(), name, &Command::name);
}

// "min" or "max": as typed, or as the name of the metric says.
Result<std::string> GoalFrom(const Args& args, const std::string& metric) {
  const std::vector<std::string> valid = {"min", "max"};
  if (args.Has("goal")) return args.OneOf("goal", "", valid);
  // Ask and tell without a metric: less is better, as documented.
  const auto known = metric.empty() ? Goal::kMin : GoalOf(metric);
  if (known) return *known == Goal::kMax ? "max" : "min";
  return Invalid(
      fmt::format("--metric {}: its name does not say whether less or more of it is better: add "
                  "--goal min or --goal max",
                  base::OneLine(base::CleanUtf8(metric))));
}

bool IsSweepFile(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json");
}

std::string Beside(const std::string& file, const std::string& path) {
  return path.starts_with('/') ? path : io::DirName(io::AbsolutePath(file)) + "/" + path;
}

// The command line with the words of a sweep file before those that were typed, so that the latter
// win; parameters are the file's unless some were typed.
Result<Args> WithFile(const Args& typed, const std::string& path) {
  const std::string text = TRY(io::ReadFile(path, 1 << 20));
  SweepFile file = TRY(ReadSweepFile(text, path));
  std::vector<std::string> words;
  for (const std::string& flag : file.flags) {
    if (!flag.starts_with("--param=") || !typed.Has("param")) words.push_back(flag);
  }
  const Command& command = CommandNamed("sweep");
  for (const std::vector<Flag>* flags : {&command.flags, &CommonFlags()}) {
    for (const Flag& flag : *flags) {
      for (const std::string& value : typed.All(flag.name))
        words.push_back(fmt::format("--{}={}", flag.name, value));
    }
  }
  if (!file.manifest.empty()) words.push_back("--file=" + Beside(path, file.manifest));
  if (!file.script.empty()) words.push_back(Beside(path, file.script));
  words.emplace_back("--");
  words.insert(words.end(), file.arguments.begin(), file.arguments.end());
  words.insert(words.end(), typed.rest().begin(), typed.rest().end());
  return TRY_AS(path, Parse(command, words));
}

Result<> CheckName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 40 && name[0] >= 'a' && name[0] <= 'z' &&
                    name.back() != '-' && std::ranges::all_of(name, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (good) return {};
  return Invalid(
      fmt::format("--name {}: small letters, digits and '-', at most 40, beginning with a letter",
                  base::OneLine(base::CleanUtf8(name))));
}

// As `run` would refuse it: before the first trial, not in each of them.
Result<Plan> TryOut(const SweepPlan& plan, const Args& args) {
  std::vector<std::string> words = plan.run_flags;
  if (!plan.script.empty()) words.push_back(plan.script);
  words.emplace_back("--");
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  const Args run = TRY(Parse(CommandNamed("run"), words));
  if (TRY(ContextOf(args))) {
    Plan read = TRY(ReadPlan(run));
    TRY(CheckJob(read));
    return read;
  }
  return MakePlan(run);
}

int DefaultSlots(const Plan& plan) {
  int replicas = 0;
  for (const auto& [role, spec] : plan.job.spec.replicas) replicas += spec.replicas;
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cpus / std::max(replicas, 1), 1, 8);
}

}  // namespace

Result<Settings> SettingsFrom(const Args& args, const std::string& metric) {
  Settings settings;
  for (const std::string& word : args.All("param"))
    settings.space.push_back(TRY_AS("--param", sweep::ParseParameter(word)));
  TRY_AS("--param", sweep::CheckSpace(settings.space));
  const bool all_choices = std::ranges::all_of(
      settings.space, [](const sweep::Parameter& p) { return p.kind == sweep::Kind::kChoice; });
  // A few values each and no number of trials: all of them.
  const auto grid = all_choices ? sweep::Grid(settings.space) : std::vector<sweep::Point>();
  const bool small = all_choices && grid && grid->size() <= 100;
  const std::string algorithm = TRY(args.OneOf(
      "algorithm", small && !args.Has("trials") ? "grid" : "tpe", {"grid", "random", "tpe", "gp"}));
  settings.algorithm = algorithm == "grid"     ? sweep::Algorithm::kGrid
                       : algorithm == "random" ? sweep::Algorithm::kRandom
                       : algorithm == "gp"     ? sweep::Algorithm::kGp
                                               : sweep::Algorithm::kTpe;
  const std::string prune = TRY(args.OneOf("prune", "asha", {"asha", "median", "none"}));
  settings.pruning = prune == "asha"     ? sweep::Pruning::kAsha
                     : prune == "median" ? sweep::Pruning::kMedian
                                         : sweep::Pruning::kNone;
  settings.maximize = TRY(GoalFrom(args, metric)) == "max";
  settings.seed = static_cast<uint64_t>(TRY(args.Number("seed", 0, 0, INT64_MAX)));
  settings.window = static_cast<int>(TRY(args.Number("window", 8, 1, 1000)));
  settings.async = args.Has("async");
  int trials = kDefaultTrials;
  if (settings.algorithm == sweep::Algorithm::kGrid)
    trials = static_cast<int>(TRY(sweep::Grid(settings.space)).size());
  settings.trials = static_cast<int>(TRY(args.Number("trials", trials, 1, 100'000)));
  TRY(sweep::CheckSettings(settings));
  return settings;
}

std::vector<std::string> RunWords(const SweepPlan& plan, const sweep::Trial& trial) {
  std::vector<std::string> words = {"run"};
  words.insert(words.end(), plan.run_flags.begin(), plan.run_flags.end());
  if (plan.script.empty()) return words;
  words.push_back(plan.script);
  words.emplace_back("--");
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  for (const auto& [parameter, text] : sweep::Texts(plan.settings.space, trial.point))
    words.push_back(fmt::format("--{}={}", parameter->name, text));
  return words;
}

Result<PlannedSweep> PlanSweep(const Args& typed) {
  const std::string operand = typed.operand(0);
  if (operand.empty() && !typed.Has("file"))
    return Invalid("which script? usage: trainyard sweep SCRIPT --param lr=log:1e-4..1e-1");
  if (!operand.empty() && typed.Has("file")) return Invalid("give a script or -f FILE, not both");
  const Args args = IsSweepFile(operand) ? TRY(WithFile(typed, operand)) : typed;
  PlannedSweep planned;
  SweepPlan& plan = planned.plan;
  plan.metric = args.Get("metric", "loss");
  if (plan.metric.empty()) return Invalid("--metric: must not be empty");
  if (!args.Has("param")) return Invalid("what is to be searched? --param lr=log:1e-4..1e-1");
  plan.settings = TRY(SettingsFrom(args, plan.metric));
  if (args.Has("name")) {
    plan.name = args.Get("name");
    TRY(CheckName(plan.name));
  }
  const char* on = std::getenv("TRAINYARD_ON");
  plan.name_space = args.name_space();
  plan.on = args.Get("on", on ? on : "");
  plan.job_space = TRY(PlaceOf(args))->NamespaceOf(args);
  char directory[4096];
  if (!getcwd(directory, sizeof directory)) return base::FromErrno("current directory", errno);
  plan.directory = directory;
  for (const Flag& flag : SweptRunFlags()) {
    for (const std::string& value : args.All(flag.name))
      plan.run_flags.push_back(fmt::format("--{}={}", flag.name, value));
  }
  if (!plan.on.empty()) plan.run_flags.push_back("--on=" + plan.on);
  plan.arguments = args.rest();
  if (args.Has("env-file")) {
    plan.env = TRY_AS("--env-file", io::ReadFile(args.Get("env-file"), base::kMaxEnvFile));
    TRY_AS("--env-file " + args.Get("env-file"), base::ParseEnvFile(plan.env));
  }
  if (args.Has("output")) {
    const bool there = TRY(ContextOf(args)).has_value();
    if (there) TRY(ParseOutput(args.Get("output")));
    plan.output = there ? args.Get("output") : io::AbsolutePath(args.Get("output"));
  }
  int slots = 2;
  if (args.Has("file")) {
    if (!plan.arguments.empty())
      return Invalid("arguments after -- are for scripts: with -f, say them in the manifest");
    plan.manifest = TRY_AS("-f", io::ReadFile(args.Get("file"), 1 << 20));
    TRY_AS(args.Get("file"), CheckManifest(plan, args.Get("file")));
    planned.base_name = "sweep";
  } else {
    plan.script = io::AbsolutePath(args.operand(0));
    const Plan tried = TRY(TryOut(plan, args));
    planned.base_name = tried.base_name.substr(0, 30) + "-sweep";
    slots = DefaultSlots(tried);
  }
  if (!plan.settings.async) slots = std::min(slots, plan.settings.window);
  plan.parallel = TRY(SlotsFrom(args, plan.settings, slots));
  return planned;
}

Result<Args> WhereItWasBegun(const Args& args, const SweepPlan& plan) {
  if (args.Has("on")) return args;
  std::vector<std::string> words = {"--on=" + (plan.on.empty() ? "local" : plan.on),
                                    "--namespace=" + args.name_space()};
  if (args.json()) words.push_back("--json");
  return Parse(*std::ranges::find(Commands(), "sweep", &Command::name), words);
}

Result<int> SlotsFrom(const Args& args, const Settings& settings, int unless_said) {
  const int slots = static_cast<int>(TRY(args.Number("parallel", unless_said, 1, kMostSlots)));
  if (!settings.async && slots > settings.window) {
    return Invalid(
        fmt::format("--parallel {} is more than the window of {}: --window {}, or --async", slots,
                    settings.window, slots));
  }
  return slots;
}

}  // namespace cli
