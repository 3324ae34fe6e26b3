#include "cli/python.h"

#include <cstdlib>

#include <fmt/core.h>

#include "base/strings.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Invalid;
using namespace std::chrono_literals;

constexpr base::Duration kAnswersWithin = 60s;  // on a machine that has more to do
constexpr size_t kMostWords = 64 << 10;

}  // namespace

base::Result<std::string> ChoosePython(const Args& args) {
  if (args.Has("python")) {
    const std::string found = io::FindProgram(args.Get("python"));
    if (found.empty())
      return Invalid(fmt::format("--python {}: not a program that can be run", args.Get("python")));
    return io::AbsolutePath(found);
  }
  if (const char* env = std::getenv("VIRTUAL_ENV"); env && *env) {
    const std::string found = io::FindProgram(std::string(env) + "/bin/python");
    if (!found.empty()) return found;
  }
  const std::string found = io::FindProgram("python3");
  if (found.empty())
    return Invalid("no python3 on PATH: install Python 3, or name one with --python");
  return io::AbsolutePath(found);
}

std::string AskPython(const std::string& python, const std::string& code) {
  const auto ended = io::RunToItsEnd({.argv = {python, "-c", code}, .env = io::Environment()},
                                     kAnswersWithin, kMostWords);
  return ended && ended->status == 0 ? std::string(base::Trim(ended->output)) : "";
}

}  // namespace cli
