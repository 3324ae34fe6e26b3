#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/refuse.h"
#include "io/files.h"

namespace cli {
namespace {

constexpr std::string_view kVersion = "0.1.0";
// Systems whose command lines we take, by the program's own name too.
constexpr std::string_view kOtherNames[] = {"tf-spawner", "elasticdl"};

std::string Overview() {
  std::string out =
      "usage: trainyard COMMAND [flags] …\n\n"
      "Takes a TensorFlow training script to a trained model, on this machine.\n\n"
      "  trainyard run mnist.py              two workers, a verdict at the end\n"
      "  trainyard run -f tfjob.yaml         a TFJob manifest\n\ncommands:\n";
  for (const Command& command : Commands()) {
    out += fmt::format("  {:<12} {}\n", command.name, command.summary);
  }
  return out + "\n`trainyard COMMAND --help` lists the flags of a command.\n";
}

}  // namespace

int Main(const std::string& program, std::vector<std::string> words) {
  setvbuf(stdout, nullptr, _IOLBF, 0);  // also in a pipe: what is done takes its time to be done
  for (std::string_view other : kOtherNames) {
    if (io::BaseName(program) == other) words.insert(words.begin(), std::string(other));
  }
  if (words.empty()) {
    fmt::print(stderr, "{}", Overview());
    return kRefused;
  }
  const std::string& name = words[0];
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", Overview());
    return 0;
  }
  if (name == "--version" || name == "version") {
    fmt::print("trainyard {}\n", kVersion);
    return 0;
  }
  const auto command = std::ranges::find(Commands(), name, &Command::name);
  if (command == Commands().end()) {
    std::vector<std::string> names;
    for (const Command& c : Commands()) names.emplace_back(c.name);
    const auto nearest = base::Nearest(name, names);
    return Refuse(fmt::format(
        "unknown command {}{}", name,
        nearest ? fmt::format(": did you mean {}?", *nearest) : ": see trainyard --help"));
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  auto args = Parse(*command, rest);
  if (!args) return Refuse(args.error().text());
  if (args->Has("help")) {
    fmt::print("{}", Usage(*command));
    return 0;
  }
  return command->run(*args);
}

}  // namespace cli
