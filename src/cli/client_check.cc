#include "cli/client_check.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "client_probe.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Result;
using namespace std::chrono_literals;

constexpr std::string_view kPipefail = "set -o pipefail;";  // ElasticDL's shell line begins with it
constexpr std::string_view kShellOnly = ";|&$`\"'<>()\\*?";

// The words of a command that no shell changes; empty: a shell is needed to know them.
std::vector<std::string> WordsOf(const std::vector<std::string>& argv) {
  if (argv.size() != 3 || argv[1] != "-c") return argv;
  std::string_view line = argv[2];
  if (line.starts_with(kPipefail)) line.remove_prefix(kPipefail.size());
  std::vector<std::string> out;
  for (const std::string_view word : base::Split(line, ' ')) {
    if (!word.empty()) out.emplace_back(word);
  }
  // Only the first words name the program; the others are its arguments.
  for (size_t i = 0; i < out.size() && i < 4; ++i) {
    if (out[i].find_first_of(kShellOnly) != std::string::npos) return {};
  }
  return out;
}

// {python, "-m", MODULE} or {python, SCRIPT}; empty: neither.
std::vector<std::string> ProgramOf(const std::vector<std::string>& argv) {
  std::vector<std::string> words = WordsOf(argv);
  if (words.size() < 2 || !io::BaseName(words[0]).starts_with("python")) return {};
  const std::string python = io::FindProgram(words[0]);
  if (python.empty()) return {};
  while (words.size() > 2 && (words[1] == "-u" || words[1] == "-B")) words.erase(words.begin() + 1);
  if (words[1] == "-m" && words.size() > 2) return {python, "-m", words[2]};
  if (words[1].ends_with(".py")) return {python, words[1]};
  return {};
}

struct Findings {
  std::vector<std::string> modules, packages, generated;
};

Result<Findings> Ask(std::vector<std::string> program, const backend::local::Command& command) {
  program.insert(program.begin() + 1, {"-c", std::string(client_probe::kCheckClientPy)});
  const io::Ended ended =
      TRY(io::RunToItsEnd({.argv = std::move(program),
                           .env = backend::local::FullEnvironment(io::Environment(), command.added),
                           .directory = command.directory},
                          60s, 64 << 10));
  Findings out;
  for (const std::string_view line : base::Split(ended.output, '\n')) {
    const size_t space = line.find(' ');
    if (ended.status != 0 || space == std::string_view::npos) continue;
    const std::string value(line.substr(space + 1));
    if (line.starts_with("module ")) out.modules.push_back(value);
    if (line.starts_with("package ")) out.packages.push_back(value);
    if (line.starts_with("generated ")) out.generated.push_back(value);
  }
  return out;
}

}  // namespace

Result<> CheckClient(const backend::local::Command& command) {
  const std::vector<std::string> program = ProgramOf(command.argv);
  if (program.empty()) return {};
  const auto found = Ask(program, command);
  if (!found) return {};
  if (!found->modules.empty()) {
    return base::Invalid(
        fmt::format("{}: for ElasticDL's client this Python lacks {}: {} -m pip "
                    "install {}",
                    program.back(), base::Join(found->modules, ", "), program[0],
                    base::Join(found->packages, " ")));
  }
  if (!found->generated.empty()) {
    return base::Invalid(fmt::format(
        "{}: Python finds the sources of ElasticDL's client, of which {} was never generated: copy "
        "the program out of the clone and run it from there",
        program.back(), base::Join(found->generated, ", ")));
  }
  return {};
}

}  // namespace cli
