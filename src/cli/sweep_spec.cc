#include "cli/sweep_spec.h"

#include <algorithm>
#include <cstdlib>

namespace cli {
namespace {

using base::Invalid;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr std::string_view kAlgorithms[] = {"grid", "random", "tpe", "gp"};
constexpr std::string_view kPrunings[] = {"none", "asha", "median"};

JsonArray Texts(const std::vector<std::string>& texts) {
  return JsonArray(texts.begin(), texts.end());
}

std::vector<std::string> TextsAt(const Json& json, std::string_view key) {
  std::vector<std::string> out;
  if (const Json& found = base::At(json, key); found.is_array()) {
    for (const Json& item : found.get_array()) {
      if (item.is_string()) out.emplace_back(item.get_string());
    }
  }
  return out;
}

template <size_t n>
size_t IndexOf(const std::string_view (&names)[n], const std::string& name) {
  return static_cast<size_t>(std::ranges::find(names, name) - names) % n;
}

}  // namespace

Json EncodePlan(const SweepPlan& plan) {
  const sweep::Settings& s = plan.settings;
  JsonArray parameters;
  for (const sweep::Parameter& p : s.space) {
    JsonObject parameter{{"name", p.name}};
    if (p.kind == sweep::Kind::kChoice) {
      parameter["choices"] = Texts(p.choices);
    } else {
      parameter["values"] = sweep::Describe(p);
    }
    JsonObject when;
    for (const sweep::Condition& condition : p.when)
      when[condition.parent] = Texts(condition.values);
    if (!when.empty()) parameter["when"] = std::move(when);
    parameters.push_back(std::move(parameter));
  }
  return JsonObject{{"version", 1},
                    {"name", plan.name},
                    {"namespace", plan.name_space},
                    {"jobs", plan.job_space},
                    {"parameters", std::move(parameters)},
                    {"algorithm", kAlgorithms[static_cast<size_t>(s.algorithm)]},
                    {"prune", kPrunings[static_cast<size_t>(s.pruning)]},
                    {"maximize", s.maximize},
                    {"seed", std::to_string(s.seed)},
                    {"trials", s.trials},
                    {"window", s.window},
                    {"async", s.async},
                    {"metric", plan.metric},
                    {"parallel", plan.parallel},
                    {"on", plan.on},
                    {"directory", plan.directory},
                    {"script", plan.script},
                    {"manifest", plan.manifest},
                    {"flags", Texts(plan.run_flags)},
                    {"arguments", Texts(plan.arguments)},
                    {"output", plan.output}};
}

Result<SweepPlan> DecodePlan(const Json& json) {
  SweepPlan plan{.name = base::StringOr(json, "name"),
                 .name_space = base::StringOr(json, "namespace", "default"),
                 .job_space = base::StringOr(json, "jobs", "default"),
                 .metric = base::StringOr(json, "metric"),
                 .parallel = static_cast<int>(base::IntOr(json, "parallel", 1)),
                 .on = base::StringOr(json, "on"),
                 .directory = base::StringOr(json, "directory"),
                 .script = base::StringOr(json, "script"),
                 .manifest = base::StringOr(json, "manifest"),
                 .run_flags = TextsAt(json, "flags"),
                 .arguments = TextsAt(json, "arguments"),
                 .output = base::StringOr(json, "output")};
  if (base::IntOr(json, "version") != 1) return Invalid("of another version of trainyard");
  sweep::Settings& s = plan.settings;
  if (const Json& parameters = base::At(json, "parameters"); parameters.is_array()) {
    for (const Json& p : parameters.get_array()) {
      const std::string name = base::StringOr(p, "name");
      s.space.push_back(base::Find(p, "choices")
                            ? TRY(sweep::ChoiceOf(name, TextsAt(p, "choices")))
                            : TRY(sweep::ParseValues(name, base::StringOr(p, "values"))));
      if (const Json& when = base::At(p, "when"); when.is_object()) {
        for (const auto& member : when.get_object()) {
          const std::string parent(member.key());
          s.space.back().when.push_back({.parent = parent, .values = TextsAt(when, parent)});
        }
      }
    }
  }
  s.algorithm =
      static_cast<sweep::Algorithm>(IndexOf(kAlgorithms, base::StringOr(json, "algorithm")));
  s.pruning = static_cast<sweep::Pruning>(IndexOf(kPrunings, base::StringOr(json, "prune")));
  s.maximize = base::BoolOr(json, "maximize");
  s.seed = std::strtoull(base::StringOr(json, "seed", "0").c_str(), nullptr, 10);
  s.trials = static_cast<int>(base::IntOr(json, "trials", 1));
  s.window = static_cast<int>(base::IntOr(json, "window", 8));
  s.async = base::BoolOr(json, "async");
  return plan;
}

}  // namespace cli
