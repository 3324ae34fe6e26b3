// `render`: what `run` would start, without starting it.
#include <fmt/core.h>

#include "backend/local/replica.h"
#include "base/env_file.h"
#include "base/json.h"
#include "base/yaml.h"
#include "cli/cluster.h"
#include "cli/cluster_run.h"
#include "cli/commands.h"
#include "cli/plan.h"
#include "cli/refuse.h"
#include "io/terminal.h"

namespace cli {

int RenderCommand(const Args& args) {
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
