#include "cli/args.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"

namespace cli {

using base::Invalid;
using base::Result;

namespace {

std::vector<const Flag*> AllFlags(const Command& command) {
  std::vector<const Flag*> out;
  for (const Flag& flag : command.flags) out.push_back(&flag);
  for (const Flag& flag : CommonFlags(command.on_cluster)) out.push_back(&flag);
  return out;
}

std::unexpected<base::Error> Unknown(const std::string& word,
                                     const std::vector<const Flag*>& flags) {
  std::vector<std::string> names;
  for (const Flag* flag : flags) names.push_back("--" + std::string(flag->name));
  const auto nearest = base::Nearest(word, names);
  return Invalid(fmt::format("unknown flag {}{}", word,
                             nearest ? fmt::format(": did you mean {}?", *nearest) : ""));
}

std::string Shown(const Flag& flag) {
  std::string out = flag.letter ? fmt::format("-{}, ", flag.letter) : "    ";
  out += "--" + std::string(flag.name);
  if (!flag.value.empty()) out += " " + std::string(flag.value);
  return out;
}

}  // namespace

const std::vector<Flag>& CommonFlags(bool on_cluster) {
  const auto flags = [](std::string_view on) {
    return std::vector<Flag>{
        {"namespace", 'n', "NAME", "the namespace of the job (default: default)"},
        {"on", 0, "WHERE", on},
        {"json", 0, "", "print JSON for machines"},
        {"help", 'h', "", "show this help"},
    };
  };
  static const std::vector<Flag> kLocal =
      flags("local, kubernetes or kubernetes:CONTEXT (default: TRAINYARD_ON, else local)");
  static const std::vector<Flag> kCluster =
      flags("local, kubernetes or kubernetes:CONTEXT (default: TRAINYARD_ON, else kubernetes)");
  return on_cluster ? kCluster : kLocal;
}

std::string Args::Get(std::string_view flag, std::string_view fallback) const {
  const auto it = values_.find(flag);
  return it == values_.end() ? std::string(fallback) : it->second.back();
}

std::vector<std::string> Args::All(std::string_view flag) const {
  const auto it = values_.find(flag);
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

Result<int64_t> Args::Number(std::string_view flag, int64_t fallback, int64_t least,
                             int64_t most) const {
  if (!Has(flag)) return fallback;
  const std::string text = Get(flag);
  const auto value = base::ParseInt(text);
  if (!value || *value < least || *value > most) {
    return Invalid(fmt::format("--{}: must be a whole number from {} to {}, not '{}'", flag, least,
                               most, text));
  }
  return *value;
}

Result<std::string> Args::OneOf(std::string_view flag, std::string_view fallback,
                                const std::vector<std::string>& valid) const {
  if (!Has(flag)) return std::string(fallback);
  const std::string text = Get(flag);
  for (const std::string& candidate : valid) {
    if (base::Lower(candidate) == base::Lower(text)) return candidate;
  }
  return Invalid(
      fmt::format("--{}: must be one of {}, not '{}'", flag, base::Join(valid, ", "), text));
}

Result<Args> Parse(const Command& command, const std::vector<std::string>& words) {
  const std::vector<const Flag*> flags = AllFlags(command);
  Args args;
  if (command.reads_words) {
    args.rest_ = words;
    return args;
  }
  const auto set = [&](const Flag& flag, const std::string& shown,
                       std::optional<std::string> inline_value, size_t& i) -> Result<> {
    if (flag.value.empty()) {
      if (inline_value && *inline_value != "true" && *inline_value != "false") {
        return Invalid(fmt::format("{} takes no value but true or false", shown));
      }
      if (inline_value == "false") {
        args.values_.erase(std::string(flag.name));
      } else {
        args.values_[std::string(flag.name)] = {"true"};
      }
      return {};
    }
    if (!inline_value) {
      if (i + 1 >= words.size())
        return Invalid(fmt::format("{} needs a value: {}", shown, flag.value));
      inline_value = words[++i];
    }
    args.values_[std::string(flag.name)].push_back(*inline_value);
    return {};
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      if (!command.takes_rest && i + 1 < words.size()) return Invalid("'--' has no meaning here");
      args.rest_.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word.starts_with("--")) {
      const size_t equals = word.find('=');
      const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      const auto it = std::ranges::find(flags, name, &Flag::name);
      if (it == flags.end()) return Unknown(word.substr(0, equals), flags);
      std::optional<std::string> value;
      if (equals != std::string::npos) value = word.substr(equals + 1);
      TRY(set(**it, "--" + name, value, i));
    } else if (word.starts_with('-') && word.size() > 1) {
      // -w4, -w 4, -d
      const auto it = std::ranges::find(flags, word[1], &Flag::letter);
      if (it == flags.end()) return Unknown(word, flags);
      std::optional<std::string> value;
      if (word.size() > 2) value = word.substr(2);
      TRY(set(**it, word.substr(0, 2), value, i));
    } else {
      args.operands_.push_back(word);
    }
  }
  if (args.operands_.size() > static_cast<size_t>(command.most_operands)) {
    const std::string& extra = args.operands_[static_cast<size_t>(command.most_operands)];
    return Invalid(
        fmt::format("unexpected word '{}'{}", extra,
                    command.takes_rest ? ": the script's own arguments go after --" : ""));
  }
  return args;
}

std::string Usage(const Command& command) {
  if (command.reads_words) {
    return fmt::format("usage: trainyard {} {}\n\n{}\n", command.name, command.operands,
                       command.summary);
  }
  std::string out =
      fmt::format("usage: trainyard {} [flags] {}{}\n\n{}\n\nflags:\n", command.name,
                  command.operands, command.takes_rest ? " [-- ARGS]" : "", command.summary);
  for (const Flag* flag : AllFlags(command)) {
    out += fmt::format("  {:<30} {}\n", Shown(*flag), flag->help);
  }
  return out;
}

}  // namespace cli
