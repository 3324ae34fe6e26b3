#include "backend/cluster/stored.h"

#include "api/decode.h"
#include "backend/cluster/objects.h"
#include "base/strings.h"

namespace backend::cluster {
namespace {

using base::At;
using base::Json;
using base::StringOr;

// The first few, on one line.
std::string Summary(const std::vector<api::FieldError>& errors) {
  std::string out;
  for (size_t i = 0; i < errors.size() && i < 5; ++i) {
    if (i > 0) out += "; ";
    if (!errors[i].path.empty()) out += errors[i].path + ": ";
    out += errors[i].detail;
  }
  if (errors.size() > 5) out += "; and " + std::to_string(errors.size() - 5) + " more";
  return base::OneLine(out, 900);
}

// The server shows every object as v1, also one that was written as v1alpha1: what it holds tells.
Json AsWritten(const Json& object) {
  const Json& spec = At(object, "spec");
  const Json& map = At(spec, "tfReplicaSpecs");
  const bool no_map = map.is_null() || (map.is_object() && map.get_object().empty());
  const bool list_form = base::Find(spec, "replicaSpecs") && no_map;
  if (!list_form) return object;
  Json out = object;
  out.get_object()["apiVersion"] = "kubeflow.org/v1alpha1";
  return out;
}

}  // namespace

const Json& ControllerOf(const Json& metadata) {
  static const Json kNobody;
  const Json& owners = At(metadata, "ownerReferences");
  if (!owners.is_array()) return kNobody;
  for (const Json& owner : owners.get_array()) {
    if (base::BoolOr(owner, "controller")) return owner;
  }
  return kNobody;
}

std::string OwnerOf(const Json& metadata) { return StringOr(ControllerOf(metadata), "uid"); }

std::optional<StoredJob> ReadJob(const Json& object) {
  const Json& metadata = At(object, "metadata");
  StoredJob out;
  out.key = out.job = {StringOr(metadata, "namespace"), StringOr(metadata, "name")};
  out.uid = StringOr(metadata, "uid");
  out.version = kube::VersionOf(object);
  if (out.key.name.empty() || out.uid.empty()) return std::nullopt;
  out.deleting = base::Find(metadata, "deletionTimestamp") != nullptr;
  api::Decoded decoded = api::DecodeJobObject(AsWritten(object));
  api::Job job;
  if (decoded.errors.empty()) {
    job = std::move(decoded.job);
  } else {
    out.invalid = Summary(decoded.errors);
  }
  job.metadata.name = out.key.name;
  job.metadata.name_space = out.key.name_space;
  job.metadata.uid = out.uid;
  const Json& status = At(object, "status");
  job.status = api::DecodeStatus(status);
  out.value = std::make_shared<const api::Job>(std::move(job));
  const Json& workers = At(At(status, "replicaStatuses"), api::Name(api::Role::kWorker));
  out.tells_selector = !StringOr(workers, "selector").empty();
  return out;
}

bool IsOurs(const api::Job& job) {
  const std::string& by = job.spec.run_policy.managed_by;
  return by.empty() || by == "kubeflow.org/training-operator";
}

std::optional<Service> ReadService(const Json& object) {
  const Json& metadata = At(object, "metadata");
  const Json& labels = At(metadata, "labels");
  const auto id =
      api::ReplicaIdFrom(StringOr(labels, kTypeLabel) + "-" + StringOr(labels, kIndexLabel));
  Service out;
  out.key = {StringOr(metadata, "namespace"), StringOr(metadata, "name")};
  out.job = {out.key.name_space, StringOr(labels, kJobLabel)};
  out.uid = StringOr(metadata, "uid");
  out.version = kube::VersionOf(object);
  out.owner = OwnerOf(metadata);
  out.deleting = base::Find(metadata, "deletionTimestamp") != nullptr;
  if (!id || out.job.name.empty() || out.uid.empty()) return std::nullopt;
  out.id = *id;
  return out;
}

std::optional<PodGroup> ReadPodGroup(const Json& object) {
  const Json& metadata = At(object, "metadata");
  PodGroup out;
  out.key = out.job = {StringOr(metadata, "namespace"), StringOr(metadata, "name")};
  out.uid = StringOr(metadata, "uid");
  out.version = kube::VersionOf(object);
  out.owner = OwnerOf(metadata);
  out.spec = At(object, "spec");
  out.phase = StringOr(At(object, "status"), "phase");
  out.deleting = base::Find(metadata, "deletionTimestamp") != nullptr;
  if (out.key.name.empty() || out.uid.empty() || out.owner.empty()) return std::nullopt;
  return out;
}

}  // namespace backend::cluster
