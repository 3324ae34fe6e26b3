// The commands and options of ElasticDL's client: of develop, and what 1.0.0 added.
#include "cli/elasticdl_args.h"

namespace cli {
namespace {

using enum EdlKind;
using enum EdlUse;

constexpr std::string_view kIndex = "https://pypi.org/simple";
constexpr std::string_view kSmall = "cpu=0.1,memory=1024Mi";
constexpr std::string_view kLarge = "cpu=1,memory=4096Mi";

const std::vector<EdlOption>& TrainOptions() {
  static const std::vector<EdlOption> kOptions = {
      {"job_name",
       kText,
       "",
       "what the job is called; its pods are named after it",
       kUsed,
       {},
       true},
      {"job_command", kText, "", "what every replica runs, by bash"},
      {"image_name", kText, "", "the image of the master, and of whoever has none of its own"},
      {"worker_image", kText, "", "of workers, chief and evaluators"},
      {"ps_image", kText, "", "of parameter servers"},
      {"namespace", kText, "default", "where the job lives"},
      {"num_workers", kWhole, "2", "how many workers"},
      {"num_ps_pods", kWhole, "0", "how many parameter servers"},
      {"num_evaluators", kWhole, "0", "how many evaluators"},
      {"distribution_strategy",
       kText,
       "ParameterServerStrategy",
       "how they train together",
       kUsed,
       {"", "Local", "ParameterServerStrategy", "AllreduceStrategy", "CustomStrategy"}},
      {"need_tf_config", kBool, "false", "give every replica a TF_CONFIG"},
      {"master_resource_request", kText, kSmall, "cpu=1,memory=1024Mi,gpu=1 …"},
      {"master_resource_limit", kText, "", "the same; else what is requested"},
      {"worker_resource_request", kText, kLarge, "the same, of a worker"},
      {"worker_resource_limit", kText, "", "the same; else what is requested"},
      {"ps_resource_request", kText, kLarge, "the same, of a parameter server"},
      {"ps_resource_limit", kText, "", "the same; else what is requested"},
      {"chief_resource_request", kText, kLarge, "the same, of the chief"},
      {"chief_resource_limit", kText, "", "the same; else what is requested"},
      {"evaluator_resource_request", kText, kLarge, "the same, of an evaluator"},
      {"evaluator_resource_limit", kText, "", "the same; else what is requested"},
      {"master_pod_priority", kText, "", "its priority class"},
      {"ps_pod_priority", kText, "", "its priority class"},
      {"chief_pod_priority", kText, "", "its priority class"},
      {"evaluator_pod_priority", kText, "", "its priority class"},
      {"worker_pod_priority", kText, "", "high, low, or which part of the workers is high: 0.5"},
      {"volume", kText, "",
       "host_path=DIR,mount_path=PATH or claim_name=NAME,mount_path=PATH; several with ;"},
      {"envs", kText, "", "variables of every replica: A=1,B=2"},
      {"image_pull_policy",
       kText,
       "Always",
       "of every pod",
       kUsed,
       {"Never", "IfNotPresent", "Always"}},
      {"restart_policy",
       kText,
       "Never",
       "beyond what --relaunch_on_worker_failure allows",
       kUsed,
       {"Never", "OnFailure", "Always"}},
      {"relaunch_on_worker_failure", kWhole, "1",
       "how often a worker, chief or evaluator that fails is started again"},
      {"aux_params", kText, "", "disable_relaunch=True: nobody is started again"},
      {"ps_is_critical", kBool, "true", "a parameter server that fails fails the job"},
      {"cluster_spec_json", kText, "", "changes to pods and services: JSON, or base64 of it"},
      {"yaml", kText, "", "write the objects to this file, and make none"},
      {"need_task_manager", kBool, "true", "hand out the data in shards"},
      {"need_pod_manager", kBool, "true", "start replicas"},
      {"need_elasticdl_job_service", kBool, "false", "ElasticDL's own training loop: refused"},
      {"cluster_spec", kText, "", "a Python file: refused; see --cluster_spec_json"},
      // From here on nothing follows.
      {"critical_worker_index", kText, "default", "every worker is as critical as any other",
       kNone},
      {"ps_relaunch_max_num", kWhole, "1", "nor has it in ElasticDL", kNone},
      {"launch_worker_after_ps_running", kText, "default", "TensorFlow waits by itself", kNone},
      {"enable_automate_memory", kBool, "true", "memory is what was asked for", kNone},
      {"relaunch_timeout_worker", kBool, "false", "a silent worker's data goes to others", kNone},
      {"task_fault_tolerance", kBool, "true", "no record is lost", kNone},
      {"populate_env_names", kText, "", "variables of the master: see --envs", kNone},
      {"force_use_kube_config_file", kBool, "false", "the kubeconfig comes first", kNone},
      {"extra_pypi_index", kText, kIndex, "see zoo init", kNone},
      {"log_file_path", kText, "", "see trainyard logs", kNone},
      {"log_level", kText, "INFO", "of ElasticDL's own code", kNone},
      {"num_minibatches_per_task", kWhole, "8", "of a shard whose program does not say", kNone},
      {"minibatch_size", kWhole, "64", "", kLoop},
      {"model_zoo", kText, "", "", kLoop},
      {"model_def", kText, "", "", kLoop},
      {"feed", kText, "feed", "", kLoop},
      {"loss", kText, "loss", "", kLoop},
      {"optimizer", kText, "optimizer", "", kLoop},
      {"callbacks", kText, "callbacks", "", kLoop},
      {"eval_metrics_fn", kText, "eval_metrics_fn", "", kLoop},
      {"custom_data_reader", kText, "custom_data_reader", "", kLoop},
      {"get_model_steps", kWhole, "1", "", kLoop},
      {"data_reader_params", kText, "", "", kLoop},
      {"checkpoint_steps", kWhole, "0", "", kLoop},
      {"checkpoint_dir", kText, "", "", kLoop},
      {"keep_checkpoint_max", kWhole, "0", "", kLoop},
      {"output", kText, "", "", kLoop},
      {"num_epochs", kWhole, "1", "", kLoop},
      {"grads_to_wait", kWhole, "1", "", kLoop},
      {"training_data", kText, "", "", kLoop},
      {"validation_data", kText, "", "", kLoop},
      {"evaluation_steps", kWhole, "0", "", kLoop},
      {"checkpoint_dir_for_init", kText, "", "", kLoop},
      {"sync_version_tolerance", kWhole, "0", "", kLoop},
      {"log_loss_steps", kWhole, "100", "", kLoop},
      {"max_step", kWhole, "0", "", kLoop},
      {"use_async", kBool, "false", "", kLoop},
      {"lr_staleness_modulation", kBool, "false", "", kLoop},
  };
  return kOptions;
}

}  // namespace

const std::vector<EdlCommand>& EdlCommands() {
  static const std::vector<EdlCommand> kCommands = {
      {"train", "", "train with workers that may come and go", TrainOptions()},
      {"zoo init",
       "",
       "write a Dockerfile for an image with your models",
       {{"base_image", kText, "trainyard:latest",
         "the image to begin with; if one is named, it has Python, and packages are installed"},
        {"extra_pypi_index", kText, kIndex, "where pip looks for packages as well"},
        {"cluster_spec", kText, "", "a file that goes into the image, to /cluster_spec"},
        {"local_pkg_dir", kText, "", "wheels to install instead of those of the index"},
        {"model_zoo", kText, ".", "the directory of the models, to /model_zoo"}}},
      {"zoo build",
       "PATH",
       "build the image of a directory with a Dockerfile",
       {{"image", kText, "", "what it is called", kUsed, {}, true}}},
      {"zoo push", "IMAGE", "push an image to its registry", {}},
  };
  return kCommands;
}

}  // namespace cli
