// The table of commands: parser, help, completion and man page are made from it.
#include "cli/commands.h"

namespace cli {
namespace {

// Flags that describe a job, for `run` and `render`.
std::vector<Flag> JobFlags() {
  return {
      {"file", 'f', "FILE", "a TFJob manifest, YAML or JSON of any age, instead of a script"},
      {"param", 0, "NAME=VALUE", "a parameter of the Template that -f names; may be repeated"},
      {"workers", 'w', "N", "number of workers (default 2)"},
      {"ps", 0, "N", "number of parameter servers (default 0)"},
      {"chief", 0, "", "a chief of its own (with --ps always)"},
      {"evaluator", 0, "", "an evaluator beside the training"},
      {"env-file", 'e', "FILE", "KEY=VALUE lines for every replica; they win over all else"},
      {"name", 0, "NAME", "the job's name (default: from the script, with a number)"},
      {"command", 'c', "FILE",
       "a bash script to run instead of Python; it gets the script and ARGS as \"$@\""},
      {"port", 'p', "PORT", "first of a range of ports, one a replica (default: free ones)"},
      {"python", 0, "PATH",
       "the Python to use (default: the active virtual environment, else python3)"},
      {"output", 0, "WHERE",
       "where TRAINYARD_OUTPUT_DIR points: a directory (default: in the job's own); on a cluster "
       "CLAIM[/PATH], new[:SIZE[:CLASS]] (default), a URL or none"},
      {"restart", 0, "POLICY",
       "Never, OnFailure, Always or ExitCode (default: a kill restarts, an error does not)"},
      {"restart-scope", 0, "SCOPE",
       "Auto, Replica or Job: who is restarted with a replica that failed"},
      {"backoff-limit", 0, "N", "restarts before the job has failed (default 3)"},
      {"hang-restart", 0, "TIME",
       "restart a training that has made no progress for this long (default: only say so)"},
      {"deadline", 0, "TIME", "the longest the job may run: 90s, 10m, 2h"},
      {"worker-memory", 0, "SIZE", "memory limit of each worker and chief: 512Mi, 2G"},
      {"worker-cpu", 0, "CPUS", "CPU limit of each worker and chief: 0.5, 2"},
      {"gpus", 0, "N", "on a cluster: GPUs of each worker and chief (nvidia.com/gpu)"},
      {"image", 'i', "IMAGE", "on a cluster: the image to run in"},
      {"pod-file", 0, "FILE", "on a cluster: a Pod to take as the template of every replica"},
      {"secret", 0, "NAME",
       "on a cluster: a Secret whose entries every replica gets as variables; may be repeated"},
  };
}

// As training-operator v1.9 has them, so that its Deployment's arguments can stay.
std::vector<Flag> OperatorFlags() {
  return {
      {"kubeconfig", 0, "FILE",
       "the cluster (default: KUBECONFIG, ~/.kube/config, or the pod's own)"},
      {"context", 0, "NAME", "the context of the kubeconfig (default: its current one)"},
      {"metrics-bind-address", 0, "ADDRESS", "for /metrics (default :8080; 0: none)"},
      {"health-probe-bind-address", 0, "ADDRESS",
       "for /healthz and /readyz (default :8081; 0: none)"},
      {"leader-elect", 0, "", "one of several operators leads, by a Lease"},
      {"leader-election-id", 0, "NAME", "the name of that Lease (default trainyard-operator)"},
      {"gang-scheduler-name", 0, "NAME", "make PodGroups: volcano, or another scheduler's name"},
      {"enable-scheme", 0, "KIND", "tfjob, which is all there is"},
      {"controller-threads", 0, "N", "accepted, without effect"},
      {"kube-api-qps", 0, "N", "accepted, without effect: the server sets the pace"},
      {"kube-api-burst", 0, "N", "accepted, without effect"},
      {"webhook-server-port", 0, "PORT", "accepted, without effect: there is no webhook"},
      {"webhook-service-name", 0, "NAME", "accepted, without effect"},
      {"webhook-secret-name", 0, "NAME", "accepted, without effect"},
      {"zap-log-level", 0, "LEVEL", "accepted, without effect"},
  };
}

// As TF-Spawner has them; --yes is ours.
std::vector<Flag> TfSpawnerFlags() {
  return {
      {"delete", 'd', "", "delete what has the tag: -d, -d TAG or -d -t TAG"},
      {"workers", 'w', "WORKERS", "number of workers (default 2)"},
      {"port", 'p', "PORT", "gRPC port (default 1999)"},
      {"command", 'c', "COMMAND",
       "a bash script to run in the pods; it calls /script/training-script.py itself"},
      {"pod-file", 0, "POD_FILE",
       "the pod template (default: pod.yaml if there is one here, else ours)"},
      {"tag", 't', "TAG", "the label training_attempt of all that is made (default tf-spawner)"},
      {"randomize-tag", 'r', "", "a tag by chance; wins over -t"},
      {"env-file", 'e', "ENV_FILE", "KEY=VALUE lines for every worker; they win over all else"},
      {"image", 'i', "IMAGE", "the image of the workers (default: that of the pod template)"},
      {"yes", 'y', "", "delete without asking"},
  };
}

std::vector<Flag> With(std::vector<Flag> flags, const std::vector<Flag>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command> kCommands = {
      {"run", "SCRIPT | DIR | -f FILE",
       "train: start a job, show its logs and progress, end with a verdict",
       With(JobFlags(), {{"detach", 'd', "", "leave the job running and return"},
                         {"raw", 0, "", "log lines exactly as they were printed"}}),
       1, true, RunCommand},
      {"render", "SCRIPT | DIR | -f FILE", "print what run would start, and start nothing",
       JobFlags(), 1, true, RenderCommand},
      {"resume",
       "[JOB]",
       "make a job run again: after suspend, stop, a failure or a killed supervisor",
       {{"detach", 'd', "", "leave the job running and return"},
        {"raw", 0, "", "log lines exactly as they were printed"},
        {"worker-memory", 0, "SIZE", "a new memory limit for workers and chief"}},
       1,
       false,
       ResumeCommand},
      {"ps",
       "",
       "list jobs: state, replicas, progress, age",
       {{"all-namespaces", 'A', "", "of every namespace"}},
       0,
       false,
       PsCommand},
      {"get",
       "[JOB]",
       "print a job with its status",
       {{"output", 'o', "FORMAT", "yaml or json (default yaml)"}},
       1,
       false,
       GetCommand},
      {"events", "[JOB]", "what happened to a job, in order", {}, 1, false, EventsCommand},
      {"logs",
       "[JOB]",
       "print the logs of a job's replicas, merged",
       {{"follow", 'f', "", "go on as they grow"},
        {"replica", 'i', "ROLE/N", "of one replica, or of a role: worker/1, ps"},
        {"since", 0, "TIME", "only what was printed in the last 30s, 10m, 2h"},
        {"grep", 0, "TEXT", "only lines that contain TEXT"},
        {"tail", 0, "N", "only the last N lines"},
        {"raw", 0, "", "every line exactly as it was printed, progress bars too"}},
       1,
       false,
       LogsCommand},
      {"top",
       "[JOB]",
       "CPU, memory and step rate of each replica; the straggler marked",
       {{"once", 0, "", "print once and return"}},
       1,
       false,
       TopCommand},
      {"why",
       "[JOB]",
       "why a job is in the state it is in: cause, evidence, what to try",
       {},
       1,
       false,
       WhyCommand},
      {"scale",
       "[JOB] ROLE=N",
       "change the number of replicas of a live job",
       {},
       2,
       false,
       ScaleCommand},
      {"suspend", "[JOB]", "stop a job's replicas and keep the job", {}, 1, false, SuspendCommand},
      {"stop", "[JOB]", "end a job", {}, 1, false, StopCommand},
      {"delete",
       "[JOB]",
       "remove a job's records; its output stays unless told otherwise",
       {{"with-output", 0, "", "remove output, checkpoints and TensorBoard logs as well"},
        {"force", 0, "", "stop it first if it runs"}},
       1,
       false,
       DeleteCommand},
      {"wait",
       "[JOB]",
       "wait until a job has ended; the exit status is the job's",
       {{"timeout", 0, "TIME", "give up after this long, with exit status 1"}},
       1,
       false,
       WaitCommand},
      {"doctor",
       "",
       "check Python, TensorFlow, cgroups, ports and disk, and name the fix for each",
       {{"python", 0, "PATH", "the Python to check"}},
       0,
       false,
       DoctorCommand},
      {"operator", "", "keep the TFJobs of a cluster: what a Deployment runs", OperatorFlags(), 0,
       false, OperatorCommand},
      {"tf-spawner", "[SCRIPT]", "workers on Kubernetes, by the command line of TF-Spawner",
       TfSpawnerFlags(), 1, false, TfSpawnerCommand},
      {"completion", "bash|zsh|fish", "print shell completion", {}, 1, false, CompletionCommand},
      {"man", "", "print the manual page", {}, 0, false, ManCommand},
  };
  return kCommands;
}

}  // namespace cli
