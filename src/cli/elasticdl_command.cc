// `elasticdl`: the command line of ElasticDL's client.
#include "cli/elasticdl_command.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"
#include "base/yaml.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/refuse.h"
#include "io/files.h"

namespace cli {
namespace {

using base::Result;

std::string Overview() {
  std::string out = "usage: elasticdl COMMAND [options]\n\n";
  for (const EdlCommand& command : EdlCommands())
    out += fmt::format("  {:<10} {}\n", command.name, command.summary);
  return out + "\n`elasticdl COMMAND --help` lists the options of a command.\n";
}

// As ElasticDL writes its one object: what `kubectl create -f` needs to start the job.
Result<> WriteObjects(const EdlJob& job, const std::string& path) {
  std::string text;
  for (const base::Json& object : EdlObjects(job))
    text += (text.empty() ? "" : "---\n") + base::WriteYaml(object);
  // It holds the values of --envs.
  TRY_AS("--yaml", io::WriteFile(path, text, 0600));
  return {};
}

int Train(const EdlArgs& args) {
  auto job = MakeEdlJob(args);
  if (!job) return Refuse(job.error());
  const std::string yaml = args.Get("yaml");
  auto context = ContextOf(Args(), "kubernetes");
  if (!context) return Refuse(context.error());
  if (yaml.empty() && !*context) return TrainHere(*job, args);
  if (job->master.image.empty()) return Refuse("--image_name is required: the image of the master");
  if (yaml.empty()) return TrainThere(*job, args, **context);
  for (const std::string& warning : args.warnings())
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  if (auto written = WriteObjects(*job, yaml); !written) return Refuse(written.error());
  fmt::print("{} has the objects of {}: kubectl create -f {}\n", yaml, job->job.metadata.name,
             yaml);
  return 0;
}

int Unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const EdlCommand& command : EdlCommands()) names.emplace_back(command.name);
  const auto nearest = base::Nearest(name, names);
  return Refuse(fmt::format(
      "unknown command {}{}", base::OneLine(name),
      nearest ? fmt::format(": did you mean {}?", *nearest) : ": see elasticdl --help"));
}

int RunNamed(const EdlCommand& command, const std::vector<std::string>& words) {
  auto args = ParseEdl(command, words);
  if (!args) return Refuse(args.error());
  if (args->help()) {
    fmt::print("{}", EdlUsage(command));
    return 0;
  }
  if (command.name == "zoo init") return ZooInit(*args);
  if (command.name == "zoo build") return ZooBuild(*args);
  if (command.name == "zoo push") return ZooPush(*args);
  return Train(*args);
}

}  // namespace

int ElasticDlCommand(const Args& args) {
  std::vector<std::string> words = args.rest();
  if (words.empty() || words == std::vector<std::string>{"zoo"}) {
    fmt::print(stderr, "{}", Overview());
    return kRefused;
  }
  if (words[0] == "-h" || words[0] == "--help") {
    fmt::print("{}", Overview());
    return 0;
  }
  if (words[0] == "evaluate" || words[0] == "predict") {
    return Refuse(fmt::format(
        "elasticdl {} needs ElasticDL's own runtime, which is not here: evaluate in your training "
        "(--num_evaluators), and predict with trainyard serve",
        words[0]));
  }
  std::string name = words[0];
  size_t used = 1;
  if (name == "zoo") name += " " + words[used++];
  const auto command = std::ranges::find(EdlCommands(), name, &EdlCommand::name);
  if (command == EdlCommands().end()) return Unknown(name);
  words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(used));
  return RunNamed(*command, words);
}

}  // namespace cli
