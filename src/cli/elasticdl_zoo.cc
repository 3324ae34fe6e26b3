// `elasticdl zoo`: the image of a model zoo, by the builders that `package` uses.
//
// Unless a base is named, the image begins with Trainyard's own: it is the one that the tutorial
// gives to the master, which needs no Python.
#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/builder.h"
#include "cli/cluster.h"
#include "cli/elasticdl_command.h"
#include "cli/recipe.h"
#include "cli/refuse.h"
#include "io/files.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;

constexpr std::string_view kDockerfile = "Dockerfile";

// The builder sees what lies below the current directory.
Result<> CheckBelow(const std::string& option, const std::string& path) {
  const auto parts = base::Split(path, '/');
  if (path.starts_with('/') || std::ranges::find(parts, "..") != parts.end()) {
    return Invalid(fmt::format("{}: must lie below the current directory, not '{}'", option,
                               base::OneLine(path)));
  }
  if (!io::Exists(path)) return Invalid(fmt::format("{}: there is no {}", option, path));
  return {};
}

Result<ZooRecipe> ReadRecipe(const EdlArgs& args) {
  ZooRecipe out{.base = args.Get("base_image"),
                .python = args.Given("base_image"),
                .model_zoo = args.Get("model_zoo"),
                .cluster_spec = args.Get("cluster_spec")};
  TRY(CheckImageName("--base_image", out.base));
  if (args.Given("extra_pypi_index")) out.index = args.Get("extra_pypi_index");
  while (out.model_zoo.size() > 1 && out.model_zoo.ends_with('/')) out.model_zoo.pop_back();
  TRY(CheckBelow("--model_zoo", out.model_zoo));
  if (!out.cluster_spec.empty()) TRY(CheckBelow("--cluster_spec", out.cluster_spec));
  if (const std::string wheels = args.Get("local_pkg_dir"); !wheels.empty()) {
    TRY(CheckBelow("--local_pkg_dir", wheels));
    for (const std::string& name : io::ListDir(wheels)) {
      if (name.ends_with(".whl")) out.wheels.push_back(wheels + "/" + name);
    }
    if (out.wheels.empty()) return Invalid("--local_pkg_dir: no *.whl in " + wheels);
    std::ranges::sort(out.wheels);
    if (!out.python) return Invalid("--local_pkg_dir: give a --base_image that has Python");
  }
  out.requirements = io::Exists(out.model_zoo + "/requirements.txt");
  return out;
}

Result<> WriteDockerfile(const ZooRecipe& recipe) {
  const std::string path(kDockerfile);
  if (io::Exists(path)) {
    const std::string there = TRY(io::ReadFile(path, 1 << 20));
    if (!there.starts_with(kZooMark))
      return Invalid("the Dockerfile here is not one of `zoo init`: move it away first");
  }
  return io::WriteFile(path, ZooDockerfile(recipe));
}

Result<> Build(const std::string& directory, const std::string& image) {
  TRY(CheckImageName("--image", image));
  const std::string dockerfile = fmt::format("{}/{}", directory, kDockerfile);
  if (!io::Exists(dockerfile))
    return Invalid(fmt::format("{} is not there: elasticdl zoo init writes one", dockerfile));
  return RunBuilder(TRY(Builder::Find()).Build(image, dockerfile, directory));
}

Result<> Push(const std::string& image) {
  TRY(CheckImageName("IMAGE", image));
  return RunBuilder(TRY(Builder::Find()).Push(image));
}

}  // namespace

int ZooInit(const EdlArgs& args) {
  auto recipe = ReadRecipe(args);
  if (!recipe) return Refuse(recipe.error());
  if (auto written = WriteDockerfile(*recipe); !written) return Refuse(written.error());
  fmt::print("Dockerfile is written: elasticdl zoo build --image=IMAGE .\n");
  return 0;
}

int ZooBuild(const EdlArgs& args) {
  CatchInterrupts();
  auto built = Build(args.operand(), args.Get("image"));
  return built ? 0 : NotBuilt(built.error());
}

int ZooPush(const EdlArgs& args) {
  CatchInterrupts();
  auto pushed = Push(args.operand());
  return pushed ? 0 : NotBuilt(pushed.error());
}

}  // namespace cli
