// `sweep`: search for better hyperparameters, go on with a search, look at one, or only ask and
// tell.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/place.h"
#include "cli/refuse.h"
#include "cli/sweep_drive.h"
#include "cli/sweep_end.h"
#include "cli/sweep_plan.h"
#include "cli/sweep_report.h"
#include "cli/sweep_store.h"
#include "io/terminal.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;
using sweep::Study;
using sweep::Trial;

constexpr int kNothingToAsk = 1;

int Drive(SweepStore& store, const Args& args) {
  auto study = store.Load();
  if (!study) return Refuse(study.error());
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  auto place = PlaceOf(args);
  if (!place) return Fail(place.error());
  if (!args.json()) io::WriteOut(1, PlanText(store.plan(), store.path()));
  return DriveSweep(store, *std::move(study), **place, !*context, args.json());
}

int Begin(const Args& args) {
  auto planned = PlanSweep(args);
  if (!planned) return Refuse(planned.error());
  auto store = SweepStore::Create(planned->plan, planned->base_name);
  if (!store) return Refuse(store.error());
  return Drive(*store, args);
}

int Resume(const Args& args) {
  auto store = SweepStore::Open(args.name_space(), args.operand(1));
  if (!store) return Refuse(store.error());
  if (store->plan().directory.empty())
    return Refuse(store->plan().name + " is driven by ask and tell: there is nothing to resume");
  auto slots = SlotsFrom(args, store->plan().settings, store->plan().parallel);
  if (!slots) return Refuse(slots.error());
  store->set_parallel(*slots);
  if (auto taken = store->Take(); !taken) return Refuse(taken.error());
  auto where = WhereItWasBegun(args, store->plan());
  return where ? Drive(*store, *where) : Refuse(where.error());
}

// The sweep of ask and tell: made by the first ask, which says what is searched.
Result<SweepStore> AskedOf(const Args& args) {
  const std::string name = args.operand(1);
  if (name.empty()) return Invalid("which sweep? usage: trainyard sweep ask NAME --param lr=…");
  auto store = SweepStore::Open(args.name_space(), name);
  if (store) {
    if (args.Has("param"))
      return Invalid(name +
                     " has its parameters already: leave out --param, or choose another name");
    if (!store->plan().directory.empty())
      return Invalid(name + " runs its trials itself: ask and tell have sweeps of their own");
    TRY(store->TakeSoon());
    return store;
  }
  if (!args.Has("param")) return store;
  SweepPlan plan{
      .name = name, .name_space = args.name_space(), .metric = args.Get("metric", "value")};
  const bool good =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
          name.npos &&
      name[0] != '.' && name.size() <= 100;
  if (!good) return Invalid(base::OneLine(name) + ": letters, digits, '_', '-' and '.' only");
  plan.settings = TRY(SettingsFrom(args, args.Get("metric")));
  // Who asks decides what is at once; nobody waits unless told to.
  plan.settings.async = !args.Has("window");
  if (!args.Has("trials") && plan.settings.algorithm != sweep::Algorithm::kGrid)
    plan.settings.trials = 100'000;
  return SweepStore::Create(plan, name);
}

int AskCommand(const Args& args) {
  auto store = AskedOf(args);
  if (!store) return Refuse(store.error());
  auto study = store->Load();
  if (!study) return Refuse(study.error());
  if (!study->CanAsk()) {
    Refuse(study->AllAsked()
               ? "all trials were asked for"
               : "tell the results of earlier trials first, or use a greater --window");
    return kNothingToAsk;
  }
  const Trial trial = study->Ask();
  if (auto noted = store->NoteAsked(trial); !noted) return Refuse(noted.error());
  const sweep::Space& space = study->settings().space;
  if (args.json()) {
    io::WriteOut(1, base::CompactJson(base::JsonObject{
                        {"trial", trial.number}, {"params", sweep::ToJson(space, trial.point)}}) +
                        "\n");
    return 0;
  }
  std::string line = std::to_string(trial.number);
  for (const auto& [parameter, text] : sweep::Texts(space, trial.point))
    line += fmt::format(" --{}={}", parameter->name, text);
  io::WriteOut(1, line + "\n");
  return 0;
}

Result<std::string> Told(const Args& args) {
  SweepStore store = TRY(SweepStore::Open(args.name_space(), args.operand(1)));
  if (args.operand(1).empty() || args.operand(2).empty())
    return Invalid("usage: trainyard sweep tell NAME TRIAL VALUE | --failed");
  if (!store.plan().directory.empty())
    return Invalid(store.plan().name + " runs its trials itself");
  TRY(store.TakeSoon());
  Study study = TRY(store.Load());
  const auto number = base::ParseInt(args.operand(2));
  if (!number || *number < 0 || *number >= static_cast<int64_t>(study.trials().size()))
    return Invalid(fmt::format("there is no trial {}: {} were asked for",
                               base::OneLine(args.operand(2)), study.trials().size()));
  const int trial = static_cast<int>(*number);
  if (sweep::IsOver(study.trials()[static_cast<size_t>(trial)]))
    return Invalid(fmt::format("trial {} is over: {}", trial,
                               sweep::Name(study.trials()[static_cast<size_t>(trial)].state)));
  std::optional<double> value;
  if (const std::string text = args.operand(3); !text.empty()) {
    double parsed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (error != std::errc() || end != text.data() + text.size())
      return Invalid(fmt::format("{} is no number", base::OneLine(text)));
    value = parsed;
  }
  if (args.Has("failed") == value.has_value()) return Invalid("give a value, or --failed");
  if (args.Has("report")) {
    if (!value) return Invalid("--report goes with a value");
    TRY(store.NoteReport(trial, *value));
    study.Report(trial, *value);
  } else {
    const Study::Ending ending{.failed = !value, .reason = value ? "" : "told so", .value = value};
    TRY(store.NoteEnding(trial, ending));
    study.End(trial, ending);
  }
  for (int decided : study.TakeDecided())
    TRY(store.NoteDecided(study.trials()[static_cast<size_t>(decided)]));
  TRY(store.WriteTable(study.trials()));
  const bool pruned = study.trials()[static_cast<size_t>(trial)].state == sweep::State::kPruned;
  return args.Has("report") ? std::string(pruned ? "prune\n" : "continue\n") : std::string();
}

int TellCommand(const Args& args) {
  auto told = Told(args);
  if (!told) return Refuse(told.error());
  io::WriteOut(1, *told);
  return 0;
}

int ShowCommand(const Args& args) {
  auto store = SweepStore::Open(args.name_space(), args.operand(1));
  if (!store) return Refuse(store.error());
  auto study = store->Load();
  if (!study) return Refuse(study.error());
  const SweepPlan& plan = store->plan();
  std::string out;
  if (args.json()) {
    for (const Trial& trial : study->trials())
      out += base::CompactJson(TrialJson(plan, trial)) + "\n";
    io::WriteOut(1, out);
    return 0;
  }
  if (!plan.directory.empty()) out += PlanText(plan, store->path());
  for (const Trial& trial : study->trials()) out += TrialText(plan, trial) + "\n";
  const bool driven = !plan.directory.empty();
  if (driven && study->Best())
    out += EndText(plan, *store, study->trials(), study->Best(), std::nullopt, io::TerminalOf(1));
  if (driven && !study->AllOver() && !store->IsAlive())
    out += fmt::format("  try     trainyard sweep resume {}{}\n", plan.name,
                       plan.name_space == "default" ? "" : " -n " + plan.name_space);
  io::WriteOut(1, out);
  return 0;
}

int ListCommand(const Args& args) {
  std::string out;
  if (!args.json())
    out = fmt::format("{:<28} {:<12} {:>9}  {}\n", "NAME", "STATE", "TRIALS", "BEST");
  for (const std::string& name : SweepStore::List(args.name_space())) {
    auto store = SweepStore::Open(args.name_space(), name);
    if (!store) continue;
    auto study = store->Load();
    if (!study) continue;
    const SweepPlan& plan = store->plan();
    const auto over = std::ranges::count_if(study->trials(), sweep::IsOver);
    const std::string state = plan.directory.empty() ? "ask and tell"
                              : study->AllOver()     ? "done"
                              : store->IsAlive()     ? "running"
                                                     : "interrupted";
    const Trial* best = study->Best();
    if (args.json()) {
      base::JsonObject json{
          {"name", name}, {"state", state}, {"over", over}, {"trials", study->size()}};
      if (best) json["best"] = TrialJson(plan, *best);
      out += base::CompactJson(json) + "\n";
      continue;
    }
    out += fmt::format("{:<28} {:<12} {:>9}  {}\n", name, state,
                       fmt::format("{}/{}", over, study->size()),
                       best ? fmt::format("{} {:.6g}  {}", plan.metric, *best->value,
                                          ValuesText(plan.settings.space, best->point))
                            : "-");
  }
  io::WriteOut(1, out);
  return 0;
}

}  // namespace

int SweepCommand(const Args& args) {
  const std::string word = args.operand(0);
  if (const std::string space = args.name_space();
      space.empty() || space.contains('/') || space.starts_with('.')) {
    return Refuse(fmt::format("--namespace {}: no such name can be", base::OneLine(space)));
  }
  for (const auto& [verb, flag] : {std::pair("tell", "report"),
                                   {"tell", "failed"},
                                   {"delete", "with-output"},
                                   {"delete", "force"}}) {
    if (word != verb && args.Has(flag))
      return Refuse(fmt::format("--{} is for sweep {}", flag, verb));
  }
  const size_t most = word == "tell" ? 4 : word == "ps" ? 1 : 2;
  if (word == "resume" || word == "ask" || word == "tell" || word == "show" || word == "ps" ||
      word == "stop" || word == "delete") {
    if (args.operands().size() > most)
      return Refuse(fmt::format("unexpected '{}'", base::OneLine(args.operand(most))));
  } else if (args.operands().size() > 1) {
    return Refuse(fmt::format("unexpected '{}': arguments of the script come after --",
                              base::OneLine(args.operand(1))));
  }
  if (word == "resume") return Resume(args);
  if (word == "ask") return AskCommand(args);
  if (word == "tell") return TellCommand(args);
  if (word == "show") return ShowCommand(args);
  if (word == "ps") return ListCommand(args);
  if (word == "stop") return StopSweep(args);
  if (word == "delete") return DeleteSweep(args);
  return Begin(args);
}

}  // namespace cli
