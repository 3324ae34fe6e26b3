// `serve`: a model behind TensorFlow Serving's gRPC and REST. Finds the model and the TensorFlow to
// run it with, refuses what is wrong, and becomes the server (server_main.cc).
#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/cluster_serve.h"
#include "cli/commands.h"
#include "cli/local_jobs.h"
#include "cli/local_place.h"
#include "cli/python.h"
#include "cli/refuse.h"
#include "cli/sweep_store.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

using base::Invalid;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr int64_t kMostPort = 65535;
constexpr int64_t kLeastBody = 1 << 10, kMostBody = int64_t{1} << 30;

struct Model {
  std::string path;    // versions lie below it, or it is one
  std::string name;    // unless --name says otherwise
  std::string python;  // that trained it; empty: not known
};

bool IsNumber(const std::string& text) { return base::ParseInt(text).value_or(-1) >= 0; }

// The directory whose versions are meant: that of a version's parent, if it has a number.
std::string BaseOf(const std::string& version) {
  return IsNumber(io::BaseName(version)) ? io::DirName(version) : version;
}

bool HasVersions(const std::string& directory) {
  const auto is_version = [&](const std::string& name) {
    return IsNumber(name) && io::Exists(directory + "/" + name + "/saved_model.pb");
  };
  return std::ranges::any_of(io::ListDir(directory), is_version);
}

// What a path is called in URLs: its last part that is no version.
std::string NameFor(const std::string& path) {
  std::string name = io::BaseName(BaseOf(path));
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
  }
  return name.empty() ? "model" : name.substr(0, 128);
}

Result<Model> ModelAt(const std::string& given) {
  std::string path = io::AbsolutePath(given);
  if (!io::IsDirectory(path)) return Invalid(fmt::format("{} is no directory", given));
  if (!io::Exists(path + "/saved_model.pb") && !HasVersions(path)) {
    const std::string below = NewestModel(path);
    if (below.empty())
      return Invalid(fmt::format(
          "no SavedModel in {}: neither saved_model.pb nor N/saved_model.pb is there", given));
    path = BaseOf(below);
  }
  return Model{.path = path, .name = NameFor(path)};
}

Result<Model> ModelOfJob(const Args& args) {
  auto found = FindLocalJob(args.name_space(), args.operand(0));
  // A sweep stands for its best trial, which is served under the name of the sweep.
  std::string name;
  if (const auto best = found ? std::nullopt : BestJobOf(args.name_space(), args.operand(0))) {
    found = FindLocalJob(best->name_space, best->name);
    name = args.operand(0);
  }
  const LocalJob job = TRY(std::move(found));
  const backend::local::RunFile run = TRY(job.dir.LoadRun());
  const std::string newest = NewestModel(run.output);
  if (newest.empty())
    return Invalid(fmt::format("{} has exported no SavedModel to {}", job.name, run.output));
  return Model{
      .path = BaseOf(newest), .name = name.empty() ? job.name : name, .python = run.python};
}

Result<Model> FindModel(const Args& args) {
  const std::string operand = args.operand(0);
  const bool path = operand.find('/') != std::string::npos || io::IsDirectory(operand);
  return path ? ModelAt(operand) : ModelOfJob(args);
}

Result<> AddNetwork(const Args& args, JsonObject& options) {
  const std::string host = args.Get("host", "127.0.0.1");
  const bool loopback = host.starts_with("127.") || host == "::1";
  if (!loopback && !args.Has("token-file") && !args.Has("open"))
    return Invalid(
        fmt::format("--host {}: anybody who reaches it could ask; give --token-file, or --open if "
                    "that is what you want",
                    base::OneLine(host)));
  if (args.Has("certificate") != args.Has("key"))
    return Invalid("--certificate and --key go together");
  options["host"] = host;
  options["port"] = TRY(args.Number("port", 8500, 0, kMostPort));
  options["rest_port"] = TRY(args.Number("rest-port", 8501, 0, kMostPort));
  options["token_file"] = args.Get("token-file");
  options["certificate"] = args.Get("certificate");
  options["key"] = args.Get("key");
  options["json"] = args.json();
  return {};
}

Result<int64_t> Time(const Args& args, std::string_view flag, std::string_view fallback,
                     base::Duration unit) {
  auto time = base::ParseDuration(args.Get(flag, fallback));
  if (!time) return Invalid(fmt::format("--{}: {}", flag, time.error().text()));
  return *time / unit;
}

Result<> AddLimits(const Args& args, JsonObject& options) {
  if (args.Has("threads")) options["threads"] = TRY(args.Number("threads", 1, 1, 127));
  options["runs"] = TRY(args.Number("runs", 1, 1, 64));
  if (args.Has("batch")) options["batch"] = TRY(args.Number("batch", 128, 1, 1 << 20));
  options["queue"] = TRY(args.Number("queue", 1000, 1, 1 << 20));
  options["linger_us"] = TRY(Time(args, "batch-wait", "0s", std::chrono::microseconds(1)));
  options["rest_timeout_ms"] = TRY(Time(args, "rest-timeout", "30s", std::chrono::milliseconds(1)));
  if (options["rest_timeout_ms"].get_int64() <= 0) return Invalid("--rest-timeout: more than 0s");
  options["poll_ms"] = TRY(Time(args, "poll", "1s", std::chrono::milliseconds(1)));
  const auto body = base::ParseMemory(args.Get("max-request", "64Mi"));
  if (!body || *body < kLeastBody || *body > kMostBody)
    return Invalid(fmt::format("--max-request {}: a size from 1Ki to 1Gi",
                               base::OneLine(args.Get("max-request"))));
  options["most_bytes"] = *body;
  return {};
}

// The directory of TensorFlow's C library. An image for serving has one without a Python.
Result<std::string> LibrariesFor(const Args& args, const std::string& trained_by) {
  const char* given = std::getenv("TRAINYARD_TENSORFLOW");
  if (given && *given && !args.Has("python")) {
    const std::string missing = MissingLibrary(given);
    if (!missing.empty())
      return Invalid(fmt::format("TRAINYARD_TENSORFLOW={}: there is no {}", given, missing));
    return io::AbsolutePath(given);
  }
  const bool chosen = args.Has("python") || trained_by.empty();
  const std::string python = chosen ? TRY(ChoosePython(args)) : trained_by;
  return TRY(FindTensorFlowLibrary(python)).directory;
}

Result<JsonObject> MakeOptions(const Args& args) {
  JsonObject options;
  TRY(AddNetwork(args, options));
  TRY(AddLimits(args, options));
  std::string python;
  if (args.Has("config")) {
    if (!args.operands().empty() || args.Has("name"))
      return Invalid("--config names the models: no JOB, DIR or --name beside it");
    if (!io::Exists(args.Get("config")))
      return Invalid(fmt::format("--config {}: there is no such file", args.Get("config")));
    options["config"] = io::AbsolutePath(args.Get("config"));
  } else {
    Model model = TRY(FindModel(args));
    options["models"] =
        JsonArray{JsonObject{{"name", args.Get("name", model.name)}, {"path", model.path}}};
    python = model.python;
  }
  options["libraries"] = TRY(LibrariesFor(args, python));
  options["program"] = TRY(io::HelperProgram("trainyard-runtime"));
  return options;
}

}  // namespace

int ServeCommand(const Args& args) {
  const auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (*context) return ServeThere(args, **context);
  for (const char* flag : {"server", "image", "path", "ingress", "detach"}) {
    if (args.Has(flag))
      return Refuse(fmt::format("--{} is for clusters: with --on kubernetes", flag));
  }
  const auto server = io::HelperProgram("trainyard-server");
  if (!server) return Refuse(server.error());
  const auto options = MakeOptions(args);
  if (!options) return Refuse(options.error());
  const std::string text = base::CompactJson(*options);
  execl(server->c_str(), server->c_str(), text.c_str(), nullptr);
  return Refuse(base::FromErrno("start " + *server, errno).error());
}

}  // namespace cli
