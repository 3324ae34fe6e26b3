#include "cli/builder.h"

#include <cstdio>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/refuse.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Result;
using namespace std::chrono_literals;

// Nothing if the builder works; else the last line that it says about that.
std::string WhatIsWrong(const std::string& path) {
  auto ended = io::RunToItsEnd({.argv = {path, "info"}, .env = io::Environment()}, 30s, 1 << 20);
  if (!ended) return ended.error().text();
  if (ended->status == 0) return "";
  const std::string_view said = base::Trim(ended->output);
  return said.empty() ? fmt::format("exit status {}", ended->status)
                      : std::string(said.substr(said.rfind('\n') + 1));
}

}  // namespace

Result<Builder> Builder::Find() {
  std::string text = "no docker, podman or buildah to build with";
  for (const char* name : {"docker", "podman", "buildah"}) {
    const std::string path = io::FindProgram(name);
    if (path.empty()) continue;
    const std::string wrong = WhatIsWrong(path);
    if (wrong.empty()) return Builder(path);
    text += fmt::format("; `{} info` says: {}", path, wrong);
  }
  return base::Invalid(text + "; install one: apt-get install buildah");
}

std::vector<std::string> Builder::Build(const std::string& image, const std::string& dockerfile,
                                        const std::string& context) const {
  return {path_, "build", "-t", image, "-f", dockerfile, context};
}

std::vector<std::string> Builder::Push(const std::string& image) const {
  return {path_, "push", image};
}

Result<> RunBuilder(const std::vector<std::string>& words) {
  fmt::print("{}\n", base::Join(words, " "));
  std::fflush(stdout);  // before what the builder writes
  const int status = TRY(
      io::RunInSight({.argv = words, .env = io::Environment()}, [] { return Interrupted() != 0; }));
  if (status == 0) return {};
  return std::unexpected(
      base::Error(base::ErrorKind::kUnavailable,
                  fmt::format("{} {} failed with exit status {}", words[0], words[1], status)));
}

int NotBuilt(const base::Error& error) {
  Refuse(error);
  if (Interrupted()) return 128 + Interrupted();
  return error.kind() == base::ErrorKind::kUnavailable ? 1 : kRefused;
}

}  // namespace cli
