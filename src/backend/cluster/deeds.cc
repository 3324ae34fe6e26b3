#include "backend/cluster/deeds.h"

#include <fmt/core.h>

#include "backend/cluster/pod_group.h"
#include "base/strings.h"
#include "kube/api.h"

namespace backend::cluster {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;
using kube::Request;
using kube::Response;

constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
constexpr const char* kJson = "application/json";

std::string JobPath(const Key& key, std::string_view subresource = "") {
  return kube::Path(api::kApiVersion, "tfjobs", key.name_space, key.name, subresource);
}

Key KeyOf(const api::Job& job) { return {job.metadata.name_space, job.metadata.name}; }

// The status as it is stored: with the selector that the scale subresource points to.
Json Stored(const api::Job& job, const api::JobStatus& status, bool with_selector) {
  Json out = api::EncodeStatus(status);
  JsonObject& counts = out.get_object()["replicaStatuses"].get_object();
  if (Json* workers = counts.if_contains("Worker"); workers && with_selector) {
    workers->get_object()["selector"] = SelectorOf(job, api::Role::kWorker);
  }
  return out;
}

}  // namespace

Deeds::Deeds(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, const Settings& settings)
    : know_(knowledge),
      pacer_(pacer),
      chronicle_(chronicle),
      settings_(settings),
      alive_(std::make_shared<bool>(true)) {}

std::string Deeds::PathOf(Kind kind, const std::string& name_space, const std::string& name) const {
  switch (kind) {
    case Kind::kPod:
      return kube::Path("v1", "pods", name_space, name);
    case Kind::kService:
      return kube::Path("v1", "services", name_space, name);
    case Kind::kPodGroup:
      return kube::Path(PodGroupVersion(settings_), "podgroups", name_space, name);
  }
  return "";
}

// ---- Requests

void Deeds::Send(const std::string& name_space, Pacer::Make make, Answer answer) {
  pacer_.Submit(name_space, std::move(make),
                [alive = std::weak_ptr(alive_),
                 answer = std::move(answer)](Result<Response> response) mutable {
                  if (!alive.expired()) answer(std::move(response));
                });
}

void Deeds::Ask(const std::string& name_space, Pacer::Make make, Found found, Done done) {
  Send(name_space, std::move(make),
       [found = std::move(found), done = std::move(done)](Result<Response> response) {
         if (!response) return done(response.error());
         if (auto error = kube::ErrorOf(*response)) return done(std::move(error));
         auto object = base::ParseJson(response->body);
         if (!object) return done(std::move(object).error().Context("the answer of the server"));
         found(&*object);
         done(std::nullopt);
       });
}

bool Deeds::Learn(Kind kind, const Json& object) {
  switch (kind) {
    case Kind::kPod:
      know_.pods.Apply(object);
      return ReadPod(object).has_value();
    case Kind::kService:
      know_.services.Apply(object);
      return ReadService(object).has_value();
    case Kind::kPodGroup:
      know_.pod_groups.Apply(object);
      return ReadPodGroup(object).has_value();
  }
  return false;
}

// ---- The job itself

void Deeds::ReadJob(const Key& key, Done done) {
  const StoredJob* known = know_.jobs.Find(key);
  Ask(
      key.name_space, [path = JobPath(key)] { return Request{.path = path}; },
      [this](const Json* object) { know_.jobs.Apply(*object); },
      [this, key, uid = known ? known->uid : "",
       done = std::move(done)](std::optional<Error> error) {
        if (!error || error->kind() != ErrorKind::kNotFound) return done(std::move(error));
        // Not one that was made since we asked.
        const StoredJob* stored = know_.jobs.Find(key);
        if (stored && stored->uid == uid) know_.jobs.Drop(key, uid, stored->version);
        done(std::nullopt);
      });
}

void Deeds::Publish(const StoredJob& stored, const api::JobStatus& status, Done done) {
  const api::Job& job = *stored.value;
  const Json had = job.status == api::JobStatus() ? Json(JsonObject())
                                                  : Stored(job, job.status, stored.tells_selector);
  const Json patch =
      JsonObject{{"metadata", JsonObject{{"resourceVersion", std::to_string(stored.version)}}},
                 {"status", kube::MergePatch(had, Stored(job, status, true))}};
  Ask(
      stored.key.name_space,
      [path = JobPath(stored.key, "status"), body = base::CompactJson(patch)] {
        return Request{"PATCH", path, kMergePatch, body};
      },
      [this](const Json* object) { know_.jobs.Apply(*object); }, std::move(done));
}

void Deeds::DeleteJob(const JobPtr& job, Done done) {
  Delete(
      job->metadata.name_space, JobPath(KeyOf(*job)), job->metadata.uid,
      {{"propagationPolicy", "Background"}},
      [this, job](const Json* object) {
        if (!object) return;
        chronicle_.Deleted(*job);
        chronicle_.Tell(*job, {false, "SuccessfulDeleteJob", "Deleted job: " + job->metadata.name});
      },
      [this](const Json* object) { know_.jobs.Apply(*object); }, std::move(done));
}

// ---- Making

void Deeds::TryPod(const JobPtr& job, api::Role role, Done done) {
  Ask(
      job->metadata.name_space,
      [this, job, role] {
        return Request{"POST", PathOf(Kind::kPod, job->metadata.name_space) + "?dryRun=All", kJson,
                       base::CompactJson(MakePod(*job, {role, 0}, 0, settings_))};
      },
      [](const Json*) {}, std::move(done));
}

void Deeds::CreatePod(const JobPtr& job, api::ReplicaId id, int32_t attempt, Done done) {
  Create(
      job, Kind::kPod, ReplicaName(*job, id),
      [this, job, id, attempt] { return MakePod(*job, id, attempt, settings_); }, std::move(done));
}

void Deeds::CreateService(const JobPtr& job, api::ReplicaId id, Done done) {
  Create(
      job, Kind::kService, ReplicaName(*job, id), [job, id] { return MakeService(*job, id); },
      std::move(done));
}

void Deeds::EnsurePodGroup(const JobPtr& job, const PodGroup* there, Done done) {
  const Json wanted = MakePodGroup(*job, settings_);
  if (!there) {
    return Create(
        job, Kind::kPodGroup, job->metadata.name, [wanted] { return wanted; }, std::move(done));
  }
  const Json patch =
      JsonObject{{"metadata", JsonObject{{"uid", there->uid}}}, {"spec", wanted.at("spec")}};
  Ask(
      there->key.name_space,
      [path = PathOf(Kind::kPodGroup, there->key.name_space, there->key.name),
       body = base::CompactJson(patch)] { return Request{"PATCH", path, kMergePatch, body}; },
      [this](const Json* object) { Learn(Kind::kPodGroup, *object); }, std::move(done));
}

void Deeds::Create(const JobPtr& job, Kind kind, const std::string& name,
                   std::function<Json()> make, Done done) {
  const Key key{job->metadata.name_space, name};
  const std::string what = kind == Kind::kPod       ? "Pod"
                           : kind == Kind::kService ? "Service"
                                                    : "PodGroup";
  Ask(
      key.name_space,
      [path = PathOf(kind, key.name_space), make = std::move(make)] {
        return Request{"POST", path, kJson, base::CompactJson(make())};
      },
      [this, job, kind, what, name](const Json* object) {
        Learn(kind, *object);
        chronicle_.Tell(*job, {false, "SuccessfulCreate" + what,
                               fmt::format("Created {}: {}", base::Lower(what), name)});
      },
      [this, job, kind, what, key, done = std::move(done)](std::optional<Error> error) {
        if (!error) return done(std::nullopt);
        // Made by us, and the answer was lost; or by another operator; or it is a stranger's.
        if (error->kind() == ErrorKind::kTaken) return LookAt(job, kind, key, *error, done);
        chronicle_.Tell(*job, {true, "FailedCreate" + what, "Error creating: " + error->text()});
        done(std::move(error));
      });
}

void Deeds::LookAt(const JobPtr& job, Kind kind, const Key& key, const Error& taken, Done done) {
  auto ours = std::make_shared<bool>(true);
  Ask(
      key.name_space,
      [path = PathOf(kind, key.name_space, key.name)] { return Request{.path = path}; },
      [this, kind, ours](const Json* object) { *ours = Learn(kind, *object); },
      [this, job, kind, taken, ours, done = std::move(done)](std::optional<Error> error) {
        if (*ours) return done(std::move(error));
        chronicle_.Tell(*job, {true,
                               kind == Kind::kPod       ? "FailedCreatePod"
                               : kind == Kind::kService ? "FailedCreateService"
                                                        : "FailedCreatePodGroup",
                               "Error creating: " + taken.text()});
        done(taken);
      });
}

// ---- Taking away

void Deeds::Delete(const std::string& name_space, const std::string& path, const std::string& uid,
                   JsonObject options, Found found, Found learn, Done done) {
  options["apiVersion"] = "v1";
  options["kind"] = "DeleteOptions";
  options["preconditions"] = JsonObject{{"uid", uid}};
  const Done missing = [found, done](std::optional<Error> error) {
    const bool gone = error && error->kind() == ErrorKind::kNotFound;
    if (gone) found(nullptr);
    done(gone ? std::nullopt : std::move(error));
  };
  Ask(
      name_space,
      [path, body = base::CompactJson(options)] { return Request{"DELETE", path, kJson, body}; },
      found,
      [=, this](std::optional<Error> error) {
        if (!error || error->kind() != ErrorKind::kTaken) return missing(std::move(error));
        // Most likely the name is another's by now. If it is not, nothing was deleted.
        auto refused = std::make_shared<std::optional<Error>>();
        Ask(
            name_space, [path] { return Request{.path = path}; },
            [=](const Json* object) {
              learn(object);
              const Json* metadata = base::Find(*object, "metadata");
              if (!metadata || base::StringOr(*metadata, "uid") == uid) *refused = error;
            },
            [=](std::optional<Error> second) {
              missing(second ? std::move(second) : std::move(*refused));
            });
      });
}

void Deeds::DeletePod(const JobPtr& job, const Pod& pod, std::optional<int64_t> grace, Done done) {
  JsonObject options;
  if (grace) options["gracePeriodSeconds"] = *grace;
  Delete(
      pod.key.name_space, PathOf(Kind::kPod, pod.key.name_space, pod.key.name), pod.uid,
      std::move(options),
      [this, job, pod](const Json* object) {
        if (!object) return know_.pods.Drop(pod.key, pod.uid, pod.version);
        TookAway(*object, pod);
        if (pod.replica.deleting) return;
        chronicle_.Tell(*job, {false, "SuccessfulDeletePod", "Deleted pod: " + pod.key.name});
      },
      [this](const Json* object) { Learn(Kind::kPod, *object); }, std::move(done));
}

// What the server says of a pod after a deed of ours: there still, or gone with its last finalizer.
void Deeds::TookAway(const Json& object, const Pod& pod) {
  const Json* metadata = base::Find(object, "metadata");
  const Json* finalizers = metadata ? base::Find(*metadata, "finalizers") : nullptr;
  const bool free = !finalizers || !finalizers->is_array() || finalizers->get_array().empty();
  const bool gone = metadata && free && base::Find(*metadata, "deletionTimestamp") &&
                    base::IntOr(*metadata, "deletionGracePeriodSeconds", 0) == 0;
  gone ? know_.pods.Drop(pod.key, pod.uid, kube::VersionOf(object)) : know_.pods.Apply(object);
}

void Deeds::Release(const Pod& pod, Done done) {
  const Json patch = JsonObject{{"metadata", JsonObject{{"uid", pod.uid},
                                                        {"$deleteFromPrimitiveList/finalizers",
                                                         base::JsonArray{Json(kFinalizer)}}}}};
  const std::string path = PathOf(Kind::kPod, pod.key.name_space, pod.key.name);
  Ask(
      pod.key.name_space,
      [path, body = base::CompactJson(patch)] {
        return Request{"PATCH", path, kStrategicPatch, body};
      },
      [this, pod](const Json* object) { TookAway(*object, pod); },
      [this, pod, path, done = std::move(done)](std::optional<Error> error) {
        const bool missing = error && error->kind() == ErrorKind::kNotFound;
        if (missing) know_.pods.Drop(pod.key, pod.uid, pod.version);
        if (missing || !error) return done(std::nullopt);
        // Refused for its UID: the name is another pod's by now.
        if (error->kind() != ErrorKind::kInvalid && error->kind() != ErrorKind::kTaken) {
          return done(std::move(error));
        }
        Ask(
            pod.key.name_space, [path] { return Request{.path = path}; },
            [this](const Json* object) { know_.pods.Apply(*object); }, done);
      });
}

void Deeds::DeleteService(const JobPtr& job, const Service& service, Done done) {
  Delete(
      service.key.name_space, PathOf(Kind::kService, service.key.name_space, service.key.name),
      service.uid, {},
      [this, job, service](const Json* object) {
        know_.services.Drop(service.key, service.uid, service.version);
        if (!object) return;
        chronicle_.Tell(*job,
                        {false, "SuccessfulDeleteService", "Deleted service: " + service.key.name});
      },
      [this](const Json* object) { Learn(Kind::kService, *object); }, std::move(done));
}

void Deeds::DeletePodGroup(const JobPtr& job, const PodGroup& group, Done done) {
  Delete(
      group.key.name_space, PathOf(Kind::kPodGroup, group.key.name_space, group.key.name),
      group.uid, {},
      [this, job, group](const Json* object) {
        know_.pod_groups.Drop(group.key, group.uid, group.version);
        if (!object) return;
        chronicle_.Tell(*job,
                        {false, "JobTerminated", "Job has been terminated. Deleting PodGroup"});
        chronicle_.Tell(*job,
                        {false, "SuccessfulDeletePodGroup", "Deleted PodGroup: " + group.key.name});
      },
      [this](const Json* object) { Learn(Kind::kPodGroup, *object); }, std::move(done));
}

}  // namespace backend::cluster
