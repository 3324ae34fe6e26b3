// `package`: a directory of code as an image, by whichever builder the machine has.
//
// The builder sees a copy of the directory that holds what belongs into the image and nothing else:
// how files are left out differs between builders, and an .env file must not be in an image because
// of that. A directory with a Dockerfile of its own is built as its author meant it.
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "cli/builder.h"
#include "cli/cluster.h"
#include "cli/code_files.h"
#include "cli/commands.h"
#include "cli/recipe.h"
#include "cli/refuse.h"
#include "io/files.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using base::Invalid;
using base::Result;

struct Package {
  std::string directory, image;
  bool own;                // the directory has a Dockerfile
  std::string dockerfile;  // its text
};

Result<Package> ReadPackage(const Args& args) {
  Package out{.directory = args.operand(0), .image = args.Get("tag")};
  if (out.directory.empty()) return Invalid("which directory? trainyard package DIR -t IMAGE");
  if (!io::IsDirectory(out.directory)) return Invalid(out.directory + ": not a directory");
  if (!args.Has("tag")) return Invalid("-t IMAGE: what is the image to be called?");
  TRY(CheckImageName("-t", out.image));
  const std::string own = out.directory + "/Dockerfile";
  out.own = io::Exists(own);
  if (out.own) {
    if (args.Has("base")) return Invalid("--base: " + own + " says what the image begins with");
    out.dockerfile = TRY(io::ReadFile(own));
    return out;
  }
  Recipe recipe{.base = args.Get("base", kBaseImage)};
  TRY(CheckImageName("--base", recipe.base));
  recipe.script = io::BaseName(TRY(ScriptIn(out.directory)));
  recipe.requirements = io::Exists(out.directory + "/requirements.txt");
  out.dockerfile = Dockerfile(recipe);
  return out;
}

// A directory that goes with this object.
class Scratch {
 public:
  static Result<Scratch> Make() {
    std::string path = (fs::temp_directory_path() / "trainyard-package-XXXXXX").string();
    if (!mkdtemp(path.data())) return base::FromErrno("make " + path, errno);
    return Scratch(std::move(path));
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ~Scratch() {
    if (!path_.empty()) base::IgnoreError(io::RemoveTree(path_), "it lies where files are cleared");
  }
  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<> CopyCode(const std::string& from, const std::string& to) {
  TRY(io::MakeDirs(to));
  for (const std::string& file : TRY(CodeFiles(from))) {
    const std::string target = to + "/" + file;
    TRY(io::MakeDirs(io::DirName(target)));
    std::error_code error;
    fs::copy_file(from + "/" + file, target, error);
    if (error) return base::FromErrno(fmt::format("copy {}/{}", from, file), error.value());
  }
  return {};
}

Result<> Make(const Package& package, bool push) {
  const Builder builder = TRY(Builder::Find());
  const Scratch scratch = TRY(Scratch::Make());
  std::string context = package.directory, dockerfile = package.directory + "/Dockerfile";
  if (!package.own) {
    context = scratch.path() + "/code";
    dockerfile = scratch.path() + "/Dockerfile";
    TRY(CopyCode(package.directory, context));
    TRY(io::WriteFile(dockerfile, package.dockerfile));
  }
  TRY(RunBuilder(builder.Build(package.image, dockerfile, context)));
  if (push) TRY(RunBuilder(builder.Push(package.image)));
  return {};
}

}  // namespace

int PackageCommand(const Args& args) {
  auto package = ReadPackage(args);
  if (!package) return Refuse(package.error());
  if (args.Has("dry-run")) {
    fmt::print("{}", package->dockerfile);
    return 0;
  }
  CatchInterrupts();
  auto made = Make(*package, args.Has("push"));
  if (!made) return NotBuilt(made.error());
  fmt::print("{} is {}. To train with it:\n  trainyard run {} -i {} --on kubernetes\n",
             package->image, args.Has("push") ? "pushed" : "built", package->directory,
             package->image);
  return 0;
}

}  // namespace cli
