#include "sweep/space.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/strings.h"

namespace sweep {
namespace {

using base::Invalid;
using base::Result;

constexpr std::string_view kWhen = " when ";
constexpr double kMostWhole = 1e15;  // whole numbers below it are exact as double

std::optional<double> NumberFrom(std::string_view text) {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

bool LooksWhole(std::string_view text) { return text.find_first_of(".eE") == text.npos; }

bool IsGoodName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || name.size() > kMostText || !letter(name[0])) return false;
  return std::ranges::all_of(
      name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

Result<> CheckName(const std::string& name) {
  if (!IsGoodName(name)) {
    return Invalid(fmt::format(
        "\"{}\" is no name of a parameter: letters, digits, _ and -, beginning with a letter",
        base::OneLine(base::CleanUtf8(name))));
  }
  return {};
}

// Whether numbers stand in rising or falling order.
bool AreOrdered(const std::vector<std::string>& choices) {
  std::vector<double> numbers;
  for (const std::string& choice : choices) {
    const auto number = NumberFrom(choice);
    if (!number) return false;
    numbers.push_back(*number);
  }
  return numbers.size() > 2 && (std::ranges::is_sorted(numbers) ||
                                std::ranges::is_sorted(numbers, std::ranges::greater()));
}

Result<Parameter> Range(const std::string& name, std::string_view text, size_t dots, bool log,
                        std::optional<Kind> kind) {
  const std::string_view low_text = base::Trim(text.substr(0, dots));
  const std::string_view high_text = base::Trim(text.substr(dots + 2));
  const auto low = NumberFrom(low_text), high = NumberFrom(high_text);
  for (const auto& [number, words] : {std::pair(low, low_text), {high, high_text}}) {
    if (!number) {
      return Invalid(fmt::format("{}: \"{}\" is no number: a range is LOW..HIGH, such as 0.1..0.9",
                                 name, base::OneLine(words)));
    }
  }
  if (!(*low < *high)) {
    return Invalid(
        fmt::format("{}: {}..{} is empty: the low end comes first", name, low_text, high_text));
  }
  if (!std::isfinite(*high - *low)) return Invalid(name + ": the range is too wide");
  if (log && *low <= 0) {
    return Invalid(fmt::format("{}: log: needs a low end above 0, not {}", name, low_text));
  }
  Parameter made{.name = name, .low = *low, .high = *high, .log = log};
  made.kind =
      kind.value_or(LooksWhole(low_text) && LooksWhole(high_text) ? Kind::kInt : Kind::kFloat);
  if (made.kind == Kind::kInt) {
    if (*low != std::floor(*low) || *high != std::floor(*high)) {
      return Invalid(fmt::format("{}: int: needs whole numbers at both ends", name));
    }
    if (std::fabs(*low) > kMostWhole || std::fabs(*high) > kMostWhole) {
      return Invalid(fmt::format("{}: whole numbers go to {:g}", name, kMostWhole));
    }
  }
  return made;
}

// In the interval that is cut into equal parts: whole numbers have a part of their own each.
double Stretched(const Parameter& p, double value) { return p.log ? std::log(value) : value; }
double Low(const Parameter& p) { return Stretched(p, p.kind == Kind::kInt ? p.low - 0.5 : p.low); }
double High(const Parameter& p) {
  return Stretched(p, p.kind == Kind::kInt ? p.high + 0.5 : p.high);
}

Result<std::vector<Condition>> ParseConditions(const std::string& name, std::string_view text) {
  std::vector<Condition> conditions;
  while (true) {
    const size_t end = text.find(" and ");
    const std::string_view part = base::Trim(text.substr(0, end));
    const size_t equals = part.find('=');
    if (equals == 0 || equals == part.npos) {
      return Invalid(fmt::format("{}: \"{}\" is no condition: when NAME=VALUE, such as when "
                                 "optimizer=sgd",
                                 name, base::OneLine(base::CleanUtf8(part))));
    }
    Condition condition{.parent = std::string(base::Trim(part.substr(0, equals)))};
    TRY(CheckName(condition.parent));
    for (std::string_view value : base::Split(part.substr(equals + 1), ',')) {
      condition.values.emplace_back(base::Trim(value));
      if (condition.values.back().empty())
        return Invalid(fmt::format("{}: when {}: a value is empty", name, condition.parent));
    }
    conditions.push_back(std::move(condition));
    if (end == text.npos) return conditions;
    text.remove_prefix(end + 5);
  }
}

size_t IndexOf(const Space& space, const std::string& name) {
  return static_cast<size_t>(std::ranges::find(space, name, &Parameter::name) - space.begin());
}

double SixDigits(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  return NumberFrom(text).value_or(value);
}

}  // namespace

Result<Parameter> ChoiceOf(const std::string& name, std::vector<std::string> choices) {
  TRY(CheckName(name));
  if (choices.empty()) return Invalid(name + ": no values");
  if (choices.size() > kMostChoices) {
    return Invalid(
        fmt::format("{}: {} values are more than {}", name, choices.size(), kMostChoices));
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string& choice = choices[i];
    if (choice.empty()) return Invalid(name + ": a value is empty");
    if (choice.size() > kMostText) {
      return Invalid(fmt::format("{}: a value is longer than {} bytes", name, kMostText));
    }
    const bool control =
        std::ranges::any_of(choice, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (control || base::CleanUtf8(choice) != choice) {
      return Invalid(fmt::format("{}: \"{}\" has control characters or is not UTF-8", name,
                                 base::OneLine(base::CleanUtf8(choice))));
    }
    if (std::find(choices.begin(), choices.begin() + static_cast<ptrdiff_t>(i), choice) !=
        choices.begin() + static_cast<ptrdiff_t>(i)) {
      return Invalid(fmt::format("{}: {} is given twice", name, choice));
    }
  }
  Parameter made{.name = name, .kind = Kind::kChoice, .choices = std::move(choices)};
  made.ordered = AreOrdered(made.choices);
  return made;
}

Result<Parameter> ParseValues(const std::string& name, std::string_view values) {
  TRY(CheckName(name));
  std::string_view text = base::Trim(values);
  bool log = false;
  std::optional<Kind> kind;
  while (true) {
    if (text.starts_with("log:") && !log) {
      log = true;
      text.remove_prefix(4);
    } else if (text.starts_with("int:") && !kind) {
      kind = Kind::kInt;
      text.remove_prefix(4);
    } else if (text.starts_with("float:") && !kind) {
      kind = Kind::kFloat;
      text.remove_prefix(6);
    } else {
      break;
    }
  }
  const size_t dots = text.find("..");
  const bool is_list = text.find(',') != text.npos;
  if (dots != text.npos && !is_list) {
    return Range(name, text, dots, log, kind);
  }
  if (log || kind) {
    return Invalid(fmt::format("{}: {} goes with a range, LOW..HIGH", name,
                               log ? "log:" : (*kind == Kind::kInt ? "int:" : "float:")));
  }
  std::vector<std::string> choices;
  for (std::string_view choice : base::Split(text, ',')) choices.emplace_back(base::Trim(choice));
  return ChoiceOf(name, std::move(choices));
}

Result<Parameter> ParseParameter(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos) {
    return Invalid(fmt::format("{}: must be NAME=VALUES, such as lr=log:1e-4..1e-1 or layers=1,2,3",
                               base::OneLine(base::CleanUtf8(text))));
  }
  const std::string name(text.substr(0, equals));
  const std::string_view rest = text.substr(equals + 1);
  const size_t when = rest.find(kWhen);
  Parameter parameter = TRY(ParseValues(name, rest.substr(0, when)));
  if (when != rest.npos)
    parameter.when = TRY(ParseConditions(name, rest.substr(when + kWhen.size())));
  return parameter;
}

Result<> CheckSpace(const Space& space) {
  if (space.empty()) return Invalid("no parameters: --param lr=log:1e-4..1e-1");
  if (space.size() > kMostParameters) {
    return Invalid(fmt::format("{} parameters are more than {}", space.size(), kMostParameters));
  }
  std::map<std::string, std::string> variables;
  for (const Parameter& parameter : space) {
    const auto [at, is_new] = variables.emplace(VariableOf(parameter), parameter.name);
    if (is_new) continue;
    if (at->second == parameter.name) return Invalid(parameter.name + " is given twice");
    return Invalid(fmt::format("{} and {} would be the same variable {}", at->second,
                               parameter.name, at->first));
  }
  for (size_t i = 0; i < space.size(); ++i) TRY(CheckConditions(space, i));
  return {};
}

Result<> CheckConditions(const Space& space, size_t index) {
  const Parameter& p = space[index];
  for (const Condition& condition : p.when) {
    const size_t at = IndexOf(space, condition.parent);
    if (at == space.size()) {
      std::vector<std::string> names;
      for (const Parameter& other : space) names.push_back(other.name);
      const auto nearest = base::Nearest(condition.parent, names);
      return Invalid(fmt::format("{}: when: there is no parameter {}{}", p.name, condition.parent,
                                 nearest ? fmt::format(": did you mean {}?", *nearest) : ""));
    }
    if (std::ranges::count(p.when, condition.parent, &Condition::parent) > 1)
      return Invalid(fmt::format("{}: when: {} is given twice", p.name, condition.parent));
    if (at == index)
      return Invalid(fmt::format("{}: when: a parameter cannot depend on itself", p.name));
    const Parameter& parent = space[at];
    if (parent.kind == Kind::kFloat) {
      return Invalid(fmt::format(
          "{}: when: {} is a range of numbers that are not whole: a condition needs a choice or "
          "whole numbers",
          p.name, parent.name));
    }
    for (const std::string& value : condition.values)
      TRY_AS(p.name + ": when", ValueFrom(parent, value));
  }
  // Up from parent to parent; one that comes back to where it began goes around.
  std::vector<size_t> above = {index};
  for (size_t i = 0; i < above.size(); ++i) {
    for (const Condition& condition : space[above[i]].when) {
      const size_t at = IndexOf(space, condition.parent);
      if (at == index) {
        return Invalid(fmt::format("{}: when: the conditions of {} and {} depend on each other",
                                   p.name, p.name, space[above[i]].name));
      }
      if (at < space.size() && !std::ranges::count(above, at)) above.push_back(at);
    }
  }
  return {};
}

bool IsConditional(const Space& space) {
  return std::ranges::any_of(space, [](const Parameter& p) { return !p.when.empty(); });
}

std::vector<size_t> ParentsFirst(const Space& space) {
  std::vector<size_t> order;
  while (order.size() < space.size()) {
    const size_t before = order.size();
    for (size_t i = 0; i < space.size(); ++i) {
      const bool ready = std::ranges::all_of(space[i].when, [&](const Condition& condition) {
        return std::ranges::count(order, IndexOf(space, condition.parent)) > 0;
      });
      if (ready && !std::ranges::count(order, i)) order.push_back(i);
    }
    CHECK(order.size() > before);  // CheckSpace refuses circles
  }
  return order;
}

bool IsActive(const Space& space, size_t index, const Point& point) {
  return std::ranges::all_of(space[index].when, [&](const Condition& condition) {
    const size_t parent = IndexOf(space, condition.parent);
    return point[parent] != kInactive &&
           std::ranges::any_of(condition.values, [&](const std::string& text) {
             return ValueFrom(space[parent], text) == point[parent];
           });
  });
}

void DeactivateUnits(const Space& space, std::vector<double>& units) {
  if (!IsConditional(space)) return;
  Point point(space.size(), kInactive);
  for (size_t i : ParentsFirst(space)) {
    if (IsActive(space, i, point)) {
      point[i] = FromUnit(space[i], units[i]);
    } else {
      units[i] = kInactive;
    }
  }
}

std::string Describe(const Parameter& p) {
  if (p.kind == Kind::kChoice) return base::Join(p.choices, ",");
  if (p.kind == Kind::kInt)
    return fmt::format("{}{:.0f}..{:.0f}", p.log ? "log:" : "", p.low, p.high);
  const std::string range = fmt::format("{}..{}", p.low, p.high);
  // What would read as whole numbers says that it is not.
  const bool whole = LooksWhole(fmt::format("{}", p.low)) && LooksWhole(fmt::format("{}", p.high));
  return fmt::format("{}{}{}", p.log ? "log:" : "", whole ? "float:" : "", range);
}

std::string DescribeConditions(const Parameter& p) {
  std::vector<std::string> parts;
  for (const Condition& condition : p.when)
    parts.push_back(condition.parent + "=" + base::Join(condition.values, ","));
  return base::Join(parts, " and ");
}

size_t Cells(const Parameter& p) {
  if (p.kind == Kind::kChoice) return p.choices.size();
  return p.kind == Kind::kInt ? static_cast<size_t>(p.high - p.low) + 1 : 0;
}

double CellWidth(const Parameter& p, double unit) {
  if (p.kind == Kind::kFloat) return 0;
  if (p.kind == Kind::kChoice || !p.log) return 1 / static_cast<double>(Cells(p));
  const double value = FromUnit(p, unit);
  return (Stretched(p, value + 0.5) - Stretched(p, value - 0.5)) / (High(p) - Low(p));
}

double ToUnit(const Parameter& p, double value) {
  if (value == kInactive) return kInactive;
  if (p.kind == Kind::kChoice) return (value + 0.5) / static_cast<double>(p.choices.size());
  return std::clamp((Stretched(p, value) - Low(p)) / (High(p) - Low(p)), 0.0, 1.0);
}

double FromUnit(const Parameter& p, double unit) {
  unit = std::clamp(unit, 0.0, 1.0);
  if (p.kind == Kind::kChoice) {
    const double count = static_cast<double>(p.choices.size());
    return std::min(std::floor(unit * count), count - 1);
  }
  const double stretched = Low(p) + unit * (High(p) - Low(p));
  const double value = p.log ? std::exp(stretched) : stretched;
  if (p.kind == Kind::kInt) return std::clamp(std::round(value), p.low, p.high);
  return std::clamp(SixDigits(value), p.low, p.high);
}

std::string Text(const Parameter& p, double value) {
  if (p.kind == Kind::kChoice) return p.choices[static_cast<size_t>(value)];
  return p.kind == Kind::kInt ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

Result<double> ValueFrom(const Parameter& p, std::string_view text) {
  if (p.kind == Kind::kChoice) {
    const auto found = std::ranges::find(p.choices, text);
    if (found != p.choices.end()) return static_cast<double>(found - p.choices.begin());
  } else if (const auto number = NumberFrom(text)) {
    const bool whole = p.kind != Kind::kInt || *number == std::floor(*number);
    if (whole && *number >= p.low && *number <= p.high) return *number;
  }
  return Invalid(fmt::format("{}: {} is none of {}", p.name, base::OneLine(text), Describe(p)));
}

std::vector<std::pair<const Parameter*, std::string>> Texts(const Space& space,
                                                            const Point& point) {
  std::vector<std::pair<const Parameter*, std::string>> texts;
  for (size_t i = 0; i < space.size(); ++i) {
    if (point[i] != kInactive) texts.emplace_back(&space[i], Text(space[i], point[i]));
  }
  return texts;
}

base::JsonObject ToJson(const Space& space, const Point& point) {
  base::JsonObject object;
  for (size_t i = 0; i < space.size(); ++i) {
    const Parameter& p = space[i];
    if (point[i] == kInactive) continue;
    if (p.kind == Kind::kFloat) {
      object[p.name] = point[i];
    } else if (p.kind == Kind::kInt) {
      object[p.name] = static_cast<int64_t>(point[i]);
    } else {
      const std::string& text = p.choices[static_cast<size_t>(point[i])];
      const auto number = NumberFrom(text);
      if (const auto whole = base::ParseInt(text)) {
        object[p.name] = *whole;
      } else if (number) {
        object[p.name] = *number;
      } else {
        object[p.name] = text;
      }
    }
  }
  return object;
}

std::string VariableOf(const Parameter& p) {
  std::string variable = "TRAINYARD_PARAM_";
  for (char c : p.name) {
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return variable;
}

}  // namespace sweep
