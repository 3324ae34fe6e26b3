// Shell completion and the manual page, from the table of commands.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/refuse.h"

namespace cli {
namespace {

std::vector<Flag> FlagsOf(const Command& command) {
  std::vector<Flag> flags = command.flags;
  const std::vector<Flag>& common = CommonFlags(command.on_cluster);
  flags.insert(flags.end(), common.begin(), common.end());
  return flags;
}

// Between its two gaps, the names of the commands and the flags of each.
constexpr std::string_view kBashHead = R"BASH(_trainyard() {
  local current=${COMP_WORDS[COMP_CWORD]} words=""
  local commands=")BASH";
constexpr std::string_view kBashMiddle = R"BASH("
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
    return
  fi
  case ${COMP_WORDS[1]} in
)BASH";
constexpr std::string_view kBashTail = R"BASH(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ ${COMP_WORDS[1]} =~ ^(run|render|tf-spawner)$ ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -W "$(trainyard ps 2>/dev/null | awk 'NR > 1 {print $1}')" -- "$current"))
  fi
}
complete -o filenames -F _trainyard trainyard
)BASH";

std::string Bash() {
  std::string names, cases;
  for (const Command& command : Commands()) {
    if (!names.empty()) names += ' ';
    names += command.name;
    std::string words;
    for (const Flag& flag : FlagsOf(command)) words += fmt::format("--{} ", flag.name);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, words);
  }
  return fmt::format("{}{}{}{}{}", kBashHead, names, kBashMiddle, cases, kBashTail);
}

std::string Fish() {
  std::string out = "complete -c trainyard -f\n";
  for (const Command& command : Commands()) {
    out += fmt::format("complete -c trainyard -n __fish_use_subcommand -a {} -d '{}'\n",
                       command.name, command.summary);
    for (const Flag& flag : FlagsOf(command)) {
      out += fmt::format(
          "complete -c trainyard -n '__fish_seen_subcommand_from {}' -l {}{}{} -d '{}'\n",
          command.name, flag.name, flag.letter ? fmt::format(" -s {}", flag.letter) : "",
          flag.value.empty() ? "" : " -r", flag.help);
    }
  }
  return out;
}

// zsh reads bash completions.
std::string Zsh() {
  return "#compdef trainyard\nautoload -U +X bashcompinit && bashcompinit\n" + Bash();
}

// What troff would take for a command or a dash.
std::string Troff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

}  // namespace

int CompletionCommand(const Args& args) {
  const std::string shell = args.operand(0);
  if (shell == "bash") {
    fmt::print("{}", Bash());
  } else if (shell == "zsh") {
    fmt::print("{}", Zsh());
  } else if (shell == "fish") {
    fmt::print("{}", Fish());
  } else {
    return Refuse("which shell? usage: trainyard completion bash|zsh|fish");
  }
  return 0;
}

int ManCommand(const Args&) {
  fmt::print(
      ".TH TRAINYARD 1\n.SH NAME\ntrainyard \\- train TensorFlow scripts, distributed, with one "
      "command\n"
      ".SH SYNOPSIS\n.B trainyard\n.I COMMAND\n[flags] ...\n.SH COMMANDS\n");
  for (const Command& command : Commands()) {
    fmt::print(".SS {} {}\n{}\n", Troff(command.name), Troff(command.operands),
               Troff(command.summary));
    for (const Flag& flag : FlagsOf(command)) {
      fmt::print(".TP\n.B {}\\-\\-{}{}\n{}\n",
                 flag.letter ? fmt::format("\\-{}, ", flag.letter) : "", Troff(flag.name),
                 flag.value.empty() ? "" : " " + Troff(flag.value), Troff(flag.help));
    }
  }
  fmt::print(
      ".SH EXIT STATUS\n.TP\n0\nthe job succeeded\n.TP\n2\nrefused before anything was "
      "started\n.TP\n64\nfailed by "
      "a limit: back\\-off, deadline\n.TP\n65\nstopped, suspended or deleted by "
      "somebody\n.TP\n69\nlost contact\n"
      ".TP\n130\ninterrupted here\n.TP\nany other\nof the replica that failed first\n"
      ".SH ENVIRONMENT\n.TP\nTRAINYARD_HOME\nwhere jobs are kept (default "
      "$XDG_STATE_HOME/trainyard)\n");
  return 0;
}

}  // namespace cli
