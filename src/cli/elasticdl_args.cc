#include "cli/elasticdl_args.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/strings.h"

namespace cli {

using base::Invalid;
using base::Result;

namespace {

// What argparse takes for a value though it begins like an option.
bool IsNegativeNumber(std::string_view word) {
  if (!word.starts_with('-')) return false;
  word.remove_prefix(1);
  const size_t dot = std::min(word.find('.'), word.size());
  const auto digits = [](std::string_view part) {
    return std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  };
  if (dot == word.size()) return !word.empty() && digits(word);
  return dot + 1 < word.size() && digits(word.substr(0, dot)) && digits(word.substr(dot + 1));
}

bool MeansTrue(const std::string& value) {
  const std::string lower = base::Lower(value);
  return lower == "true" || lower == "yes" || lower == "t" || lower == "y";
}

bool MeansFalse(const std::string& value) {
  const std::string lower = base::Lower(value);
  return lower == "false" || lower == "no" || lower == "f" || lower == "n";
}

}  // namespace

class EdlParser {
 public:
  EdlParser(const EdlCommand& command, const std::vector<std::string>& words)
      : command_(command), words_(words) {
    args_.command_ = &command;
  }

  Result<EdlArgs> Parse();

 private:
  // A word that begins like an option: which one it is, and what it has behind a '='.
  struct Match {
    const EdlOption* option = nullptr;  // null: unknown
    bool help = false;
    std::string name;  // as typed
    std::optional<std::string> value;
  };

  Result<std::optional<Match>> Matched(const std::string& word) const;
  Result<> TakeOption(const Match& match);
  Result<> TakeBool(const EdlOption& option, const std::optional<std::string>& value);
  Result<> TakeOperand(const std::string& word);
  Result<> CheckAll();
  std::unexpected<base::Error> Unknown(const std::string& name) const;

  const EdlCommand& command_;
  const std::vector<std::string>& words_;
  size_t at_ = 0;  // the next word
  EdlArgs args_;
};

std::unexpected<base::Error> EdlParser::Unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (const EdlOption& option : command_.options) names.push_back("--" + std::string(option.name));
  const auto nearest = base::Nearest(name, names);
  return Invalid(fmt::format("unknown option {}{}", base::OneLine(name),
                             nearest ? fmt::format(": did you mean {}?", *nearest)
                                     : fmt::format(": see elasticdl {} --help", command_.name)));
}

// Nothing when the word is a value or an operand.
Result<std::optional<EdlParser::Match>> EdlParser::Matched(const std::string& word) const {
  if (!word.starts_with('-') || word.size() == 1) return std::nullopt;
  Match out;
  const size_t equals = word.find('=');
  out.name = word.substr(0, equals);
  if (equals != std::string::npos) out.value = word.substr(equals + 1);
  if (out.name == "-h" || out.name == "--help") {
    out.help = true;
    return out;
  }
  if (out.name.starts_with("--") && out.name.size() > 2) {
    const std::string_view typed = std::string_view(out.name).substr(2);
    std::vector<std::string> names;
    for (const EdlOption& option : command_.options) {
      if (option.name == typed) {
        out.option = &option;
        return out;
      }
      if (!option.name.starts_with(typed)) continue;
      names.push_back("--" + std::string(option.name));
      out.option = &option;
    }
    if (names.size() > 1) {
      return Invalid(fmt::format("ambiguous option: {} could be {}", base::OneLine(out.name),
                                 base::Join(names, ", ")));
    }
    if (out.option) return out;
  }
  if (IsNegativeNumber(word) || word.find(' ') != std::string::npos) return std::nullopt;
  return out;
}

Result<> EdlParser::TakeBool(const EdlOption& option, const std::optional<std::string>& value) {
  bool on = option.fallback != "true";
  if (value) {
    on = MeansTrue(*value);
    if (!on && !MeansFalse(*value)) {
      args_.warnings_.push_back(
          fmt::format("--{}={} means false: only true, yes, t and y mean true", option.name,
                      base::OneLine(*value)));
    }
  } else if (!on) {
    args_.warnings_.push_back(fmt::format(
        "--{} without a value turns it off: it is on unless said otherwise", option.name));
  }
  args_.values_[std::string(option.name)] = on ? "true" : "false";
  return {};
}

Result<> EdlParser::TakeOption(const Match& match) {
  if (!match.option) return Unknown(match.name);
  const EdlOption& option = *match.option;
  std::optional<std::string> value = match.value;
  if (!value && at_ < words_.size() && words_[at_] != "--") {
    if (!TRY(Matched(words_[at_]))) value = words_[at_++];
  }
  if (option.kind == EdlKind::kBool) return TakeBool(option, value);
  if (!value) return Invalid(fmt::format("--{}: needs a value", option.name));
  if (option.kind == EdlKind::kWhole && !base::ParseInt(*value)) {
    return Invalid(
        fmt::format("--{}: must be a whole number, not '{}'", option.name, base::OneLine(*value)));
  }
  if (!option.choices.empty() &&
      std::ranges::find(option.choices, *value) == option.choices.end()) {
    std::vector<std::string> names;
    for (std::string_view choice : option.choices) {
      names.push_back(choice.empty() ? "''" : std::string(choice));
    }
    return Invalid(fmt::format("--{}: must be one of {}, not '{}'", option.name,
                               base::Join(names, ", "), base::OneLine(*value)));
  }
  args_.values_[std::string(option.name)] = *value;
  return {};
}

Result<> EdlParser::TakeOperand(const std::string& word) {
  if (command_.operand.empty() || !args_.operand_.empty()) {
    return Invalid(fmt::format("unexpected word '{}'", base::OneLine(word)));
  }
  args_.operand_ = word;
  return {};
}

Result<> EdlParser::CheckAll() {
  for (const EdlOption& option : command_.options) {
    if (option.required && args_.Get(option.name).empty())
      return Invalid(fmt::format("--{} is required", option.name));
  }
  if (!command_.operand.empty() && args_.operand_.empty()) {
    return Invalid(fmt::format("{}: usage: elasticdl {} [options] {}", command_.operand,
                               command_.name, command_.operand));
  }
  std::vector<std::string> loop, none;
  for (const EdlOption& option : command_.options) {
    if (!args_.Given(option.name) || option.use == EdlUse::kUsed) continue;
    if (args_.Get(option.name) == option.fallback) continue;
    (option.use == EdlUse::kLoop ? loop : none).push_back("--" + std::string(option.name));
  }
  if (!loop.empty()) {
    args_.warnings_.push_back(
        fmt::format("{}: for ElasticDL's own training loop: no effect on a --job_command",
                    base::Join(loop, ", ")));
  }
  if (!none.empty()) args_.warnings_.push_back(base::Join(none, ", ") + ": no effect");
  return {};
}

Result<EdlArgs> EdlParser::Parse() {
  bool only_operands = false;
  while (at_ < words_.size()) {
    const std::string& word = words_[at_++];
    if (!only_operands && word == "--") {
      only_operands = true;
      continue;
    }
    const std::optional<Match> match = only_operands ? std::nullopt : TRY(Matched(word));
    if (!match) {
      TRY(TakeOperand(word));
    } else if (match->help) {
      args_.help_ = true;
      return args_;
    } else {
      TRY(TakeOption(*match));
    }
  }
  TRY(CheckAll());
  return args_;
}

std::string EdlArgs::Get(std::string_view option) const {
  if (const auto it = values_.find(option); it != values_.end()) return it->second;
  const auto it = std::ranges::find(command_->options, option, &EdlOption::name);
  CHECK(it != command_->options.end());
  return std::string(it->fallback);
}

bool EdlArgs::IsTrue(std::string_view option) const { return Get(option) == "true"; }

Result<int32_t> EdlArgs::Number(std::string_view option, int32_t least, int32_t most) const {
  const std::string text = Get(option);
  const auto value = base::ParseInt(text);
  if (value && *value >= least && *value <= most) return static_cast<int32_t>(*value);
  return Invalid(fmt::format("--{}: must be a whole number from {} to {}, not '{}'", option, least,
                             most, base::OneLine(text)));
}

Result<EdlArgs> ParseEdl(const EdlCommand& command, const std::vector<std::string>& words) {
  return EdlParser(command, words).Parse();
}

std::string EdlUsage(const EdlCommand& command) {
  std::string out =
      fmt::format("usage: elasticdl {} [options]{}{}\n\n{}\n\noptions:\n", command.name,
                  command.operand.empty() ? "" : " ", command.operand, command.summary);
  for (const EdlOption& option : command.options) {
    std::string help(option.help);
    if (option.required) {
      help += " (required)";
    } else if (!option.fallback.empty()) {
      help += fmt::format(" (default {})", option.fallback);
    }
    out += fmt::format("  --{:<32} {}\n", option.name, help);
  }
  return out;
}

}  // namespace cli
