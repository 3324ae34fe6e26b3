#include "cli/python.h"

#include <cstdlib>

#include <fmt/core.h>

#include "base/strings.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;

constexpr base::Duration kAnswersWithin = std::chrono::seconds(60);
constexpr int kNoTensorFlow = 3;
constexpr int64_t kOldestMinor = 12;  // of 2.x: what our tests have seen

constexpr std::string_view kProbe = R"PYTHON(
import importlib.metadata, importlib.util, os, sys
spec = importlib.util.find_spec('tensorflow')
if not spec or not spec.origin: sys.exit(3)
print('directory=' + os.path.dirname(os.path.realpath(spec.origin)))
for name in ('tensorflow-cpu', 'tensorflow', 'tensorflow-intel', 'tf-nightly'):
    try:
        print('version=' + importlib.metadata.version(name))
        break
    except importlib.metadata.PackageNotFoundError:
        pass
)PYTHON";

Result<io::Ended> Run(const std::string& python, const std::string& code) {
  return io::RunToItsEnd({.argv = {python, "-c", code}, .env = io::Environment()}, kAnswersWithin,
                         64 << 10);
}

bool IsTooOld(const std::string& version) {
  const auto parts = base::Split(version, '.');
  const int64_t major = base::ParseInt(parts[0]).value_or(2);
  const int64_t minor = parts.size() > 1 ? base::ParseInt(parts[1]).value_or(99) : 99;
  return major < 2 || (major == 2 && minor < kOldestMinor);
}

}  // namespace

Result<std::string> ChoosePython(const Args& args) {
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
  const auto ended = Run(python, code);
  return ended && ended->status == 0 ? std::string(base::Trim(ended->output)) : "";
}

Result<FoundTensorFlow> FindTensorFlow(const std::string& python) {
  const auto ended = Run(python, std::string(kProbe));
  if (ended && ended->status == kNoTensorFlow)
    return Invalid(
        fmt::format("{} has no TensorFlow: pip install tensorflow-cpu into it, activate another "
                    "environment, or use --python",
                    python));
  if (!ended || ended->status != 0)
    return Invalid(fmt::format("{} does not run Python code: name another with --python", python));
  FoundTensorFlow out;  // among whatever else its modules say
  for (const std::string_view line : base::Split(ended->output, '\n')) {
    if (line.starts_with("directory=")) out.directory = line.substr(10);
    if (line.starts_with("version=")) out.version = line.substr(8);
  }
  return out;
}

std::string MissingLibrary(const std::string& directory) {
  for (const char* name : {"libtensorflow_cc.so.2", "libtensorflow_framework.so.2"}) {
    if (!io::Exists(directory + "/" + name)) return name;
  }
  return "";
}

Result<FoundTensorFlow> FindTensorFlowLibrary(const std::string& python) {
  const FoundTensorFlow found = TRY(FindTensorFlow(python));
  const std::string called =
      found.version.empty() ? "the TensorFlow" : "TensorFlow " + found.version;
  if (!found.version.empty() && IsTooOld(found.version))
    return Invalid(fmt::format("{} of {} is too old: serving needs 2.{} or newer", called, python,
                               kOldestMinor));
  if (const std::string missing = MissingLibrary(found.directory); !missing.empty())
    return Invalid(
        fmt::format("{} of {} has no {}: serving needs a tensorflow package of 2.{} or "
                    "newer, as it comes from PyPI",
                    called, python, missing, kOldestMinor));
  return found;
}

}  // namespace cli
