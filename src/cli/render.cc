// `render`: what `run` would start, without starting it.
#include <fmt/core.h>

#include "backend/local/replica.h"
#include "base/env_file.h"
#include "base/json.h"
#include "base/yaml.h"
#include "cli/cluster.h"
#include "cli/cluster_run.h"
#include "cli/commands.h"
#include "cli/manifest.h"
#include "cli/plan.h"
#include "cli/refuse.h"
#include "io/files.h"
#include "io/terminal.h"

namespace cli {
namespace {

constexpr size_t kMostManifest = size_t{1} << 20;

// The objects of a Template that holds no job, as `oc process` prints them; nothing when -f names
// anything else. No cluster is needed.
base::Result<std::optional<std::string>> RenderTemplate(const Args& args) {
  if (!args.Has("file") || args.Get("file") == "-") return std::nullopt;
  const auto text = io::ReadFile(args.Get("file"), kMostManifest);
  if (!text) return std::nullopt;  // whoever reads it as a job says why
  const auto found = TRY(TemplateFrom(*text, args));
  if (!found) return std::nullopt;
  for (const std::string& warning : found->warnings)
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  base::JsonArray items(found->objects.begin(), found->objects.end());
  if (args.json())
    return base::IndentedJson(base::JsonObject{
        {"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
  std::string out;
  for (const base::Json& object : items)
    out += (out.empty() ? "" : "---\n") + base::WriteYaml(object);
  return out;
}

}  // namespace

int RenderCommand(const Args& args) {
  auto objects = RenderTemplate(args);
  if (!objects) return Refuse(objects.error());
  if (*objects) {
    io::WriteOut(1, **objects);
    return 0;
  }
  auto context = ContextOf(args);
  if (!context) return Refuse(context.error());
  if (*context) return RenderForCluster(args, **context);
  auto plan = MakePlan(args);
  if (!plan) return Refuse(plan.error());
  for (const std::string& warning : plan->warnings)
    fmt::print(stderr, "trainyard: warning: {}\n", warning);
  api::Job job = plan->job;
  if (job.metadata.name.empty()) job.metadata.name = plan->base_name + "-1";
  const backend::local::JobDir dir =
      backend::local::Locate(job.metadata.name_space, job.metadata.name);
  backend::local::RunFile run = plan->run;
  if (run.output.empty()) run.output = dir.File("output");
  // Ports are leased when the job starts; here they are counted up from where leasing begins.
  std::map<api::ReplicaId, int32_t> ports;
  int32_t port = run.first_port > 0 ? run.first_port : 20000;
  for (api::ReplicaId id : backend::local::WithPorts(job)) ports[id] = port++;
  run.master_port = port;
  backend::local::EnvList env_file;
  if (auto parsed = base::ParseEnvFile(plan->env_text)) {
    for (const auto& [name, value] : *parsed) env_file.emplace_back(name, "(set)");
  }
  base::JsonArray rendered;
  for (api::ReplicaId id : backend::local::ReplicasInOrder(job.spec)) {
    auto command = backend::local::CommandOf({job, dir, run, ports, env_file, {}, {}}, id, 0);
    if (!command) return Refuse(command.error());
    base::JsonArray argv;
    for (const std::string& word : command->argv) argv.emplace_back(word);
    base::JsonObject env;
    for (const auto& [name, value] : command->added) env[name] = value;
    rendered.push_back(base::JsonObject{{"replica", api::Spoken(id)},
                                        {"directory", command->directory},
                                        {"command", std::move(argv)},
                                        {"env", std::move(env)}});
  }
  if (args.json()) {
    io::WriteOut(1, base::IndentedJson(base::JsonObject{{"job", api::EncodeJob(job)},
                                                        {"replicas", std::move(rendered)}}));
  } else {
    io::WriteOut(1, base::WriteYaml(api::EncodeJob(job)) + "---\n" +
                        base::WriteYaml(base::JsonObject{{"replicas", std::move(rendered)}}));
  }
  return 0;
}

}  // namespace cli
