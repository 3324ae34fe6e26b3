#include <fmt/core.h>

#include "backend/cluster/config_map_jobs.h"
#include "backend/cluster/master_objects.h"
#include "backend/cluster/objects.h"
#include "cli/elasticdl_job.h"
#include "cli/pod_python.h"
#include "core/dialect.h"

namespace cli {
namespace {

using base::ArrayAt;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::ObjectAt;

// What ElasticDL calls it, so that a job has one master in either's selectors.
constexpr std::string_view kMasterType = "edl-master";

JsonObject Metadata(const EdlJob& job) {
  const std::string& name = job.job.metadata.name;
  return {{"name", core::MasterName(job.job)},
          {"namespace", job.job.metadata.name_space},
          {"labels", backend::cluster::ElasticDlLabels(name, kMasterType, 0)}};
}

// Replicas find the hook of ElasticDL's client. The image may have a PYTHONPATH, which a variable
// of the pod would replace, so the shell adds to it.
void AddPython(Json& pod_template) {
  JsonObject& pod = pod_template.get_object();
  AnnotateWithPython(pod);
  JsonObject& spec = ObjectAt(pod, "spec");
  ArrayAt(spec, "volumes").push_back(PythonVolume());
  JsonObject& container = ArrayAt(spec, "containers").front().get_object();
  ArrayAt(container, "volumeMounts").push_back(PythonVolumeMount());
  Json& line = ArrayAt(container, "command").back();
  line = fmt::format("export PYTHONPATH={}${{PYTHONPATH:+:$PYTHONPATH}};{}", kPythonMount,
                     std::string_view(line.get_string()));
}

// The TFJob as it is kept where nothing knows TFJobs.
Json JobObject(const EdlJob& job) {
  api::Job kept = job.job;
  for (auto& [role, spec] : kept.spec.replicas) AddPython(spec.pod_template);
  JsonObject map = backend::cluster::ConfigMapFromJob(api::EncodeJob(kept)).get_object();
  JsonObject& labels = ObjectAt(ObjectAt(map, "metadata"), "labels");
  labels[backend::cluster::kAppLabel] = backend::cluster::kElasticDl;
  labels[backend::cluster::kEdlJobLabel] = job.job.metadata.name;
  return map;
}

Json MasterService(const EdlJob& job) {
  JsonObject metadata = Metadata(job);
  const JsonObject labels = metadata["labels"].get_object();
  metadata["annotations"] = labels;
  JsonObject port{{"port", core::kMasterPort}, {"targetPort", core::kMasterPort}};
  JsonObject out{{"apiVersion", "v1"},
                 {"kind", "Service"},
                 {"metadata", std::move(metadata)},
                 {"spec", JsonObject{{"selector", labels},
                                     {"ports", JsonArray{std::move(port)}},
                                     // One that was just started again is there at once.
                                     {"publishNotReadyAddresses", true}}}};
  job.changes.ChangeService(out);
  return out;
}

JsonObject MasterContainer(const EdlJob& job) {
  const std::string& name = job.job.metadata.name;
  JsonObject out{
      {"name", core::MasterName(job.job)},
      {"image", job.master.image},
      {"imagePullPolicy", job.master.image_pull_policy},
      {"args",
       JsonArray{Json("master"), Json(name), Json("--namespace=" + job.job.metadata.name_space),
                 Json(fmt::format("--ledger={}", backend::cluster::kLedgerMount))}},
      {"ports", JsonArray{JsonObject{{"containerPort", core::kMasterPort}}}},
      {"volumeMounts",
       JsonArray{JsonObject{{"name", "ledger"}, {"mountPath", backend::cluster::kLedgerMount}}}},
      {"securityContext",
       JsonObject{{"allowPrivilegeEscalation", false},
                  {"capabilities", JsonObject{{"drop", JsonArray{Json("ALL")}}}}}}};
  JsonObject& resources = ObjectAt(out, "resources");
  if (!job.master.requests.empty()) resources["requests"] = job.master.requests;
  if (!job.master.limits.empty()) resources["limits"] = job.master.limits;
  return out;
}

Json MasterPod(const EdlJob& job) {
  JsonObject spec{
      // Started again in its place, it finds what it has handed out.
      {"restartPolicy", "OnFailure"},
      {"terminationGracePeriodSeconds", 10},
      {"securityContext", JsonObject{{"runAsNonRoot", true},
                                     {"seccompProfile", JsonObject{{"type", "RuntimeDefault"}}}}},
      {"containers", JsonArray{MasterContainer(job)}},
      {"volumes", JsonArray{JsonObject{{"name", "ledger"}, {"emptyDir", JsonObject()}}}}};
  if (!job.master.priority_class.empty()) spec["priorityClassName"] = job.master.priority_class;
  JsonObject out{{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", Metadata(job)},
                 {"spec", std::move(spec)}};
  job.changes.ChangePod(kMasterType, out);
  return out;
}

}  // namespace

std::vector<Json> EdlObjects(const EdlJob& job) {
  return {JobObject(job), MasterService(job), MasterPod(job)};
}

}  // namespace cli
