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

void Deeds::Send(const std::string& name_space, Pacer::Make make, Answer answer,
                 Priority priority) {
  pacer_.Submit(
      name_space, std::move(make),
      [alive = std::weak_ptr(alive_),
       answer = std::move(answer)](Result<Response> response) mutable {
        if (!alive.expired()) answer(std::move(response));
      },
      priority);
}

void Deeds::Ask(const std::string& name_space, Pacer::Make make, Found found, Done done,
                Priority priority) {
  Send(
      name_space, std::move(make),
      [found = std::move(found), done = std::move(done)](Result<Response> response) {
        if (!response) return done(response.error());
        if (auto error = kube::ErrorOf(*response)) return done(std::move(error));
        auto object = base::ParseJson(response->body);
        if (!object) return done(std::move(object).error().Context("the answer of the server"));
        found(&*object);
        done(std::nullopt);
      },
      priority);
}

void Deeds::Learn(Kind kind, const Json& object) {
  switch (kind) {
    case Kind::kPod:
      return know_.pods.Learn(object);
    case Kind::kService:
      return know_.services.Learn(object);
    case Kind::kPodGroup:
      return know_.pod_groups.Learn(object);
  }
}

// ---- The job itself

void Deeds::LookUpJob(const Key& key, Done done) {
  const StoredJob* known = know_.jobs.Find(key);
  Ask(
      key.name_space, [path = JobPath(key)] { return Request{.path = path}; },
      [this](const Json* object) { know_.jobs.Learn(*object); },
      [this, key, uid = known ? known->uid : "", version = known ? known->version : 0,
       done = std::move(done)](std::optional<Error> error) {
        if (!error || error->kind() != ErrorKind::kNotFound) return done(std::move(error));
        // Not one that was made since we asked.
        know_.jobs.Drop(key, uid, version);
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
      [this](const Json* object) { know_.jobs.Learn(*object); }, std::move(done),
      Priority::kFirst);
}

void Deeds::DeleteJob(const JobPtr& job, Done done) {
  Delete(
      job->metadata.name_space, JobPath(KeyOf(*job)), job->metadata.uid, std::nullopt,
      {{"propagationPolicy", "Background"}},
      [this, job](const Json* object) {
        if (!object) return;
        chronicle_.Deleted(*job);
        chronicle_.Tell(*job, {false, "SuccessfulDeleteJob", "Deleted job: " + job->metadata.name});
      },
      [this](const Json* object) { know_.jobs.Learn(*object); }, std::move(done));
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

void Deeds::CreatePod(const JobPtr& job, api::ReplicaId id, int32_t attempt,
                      CreationsPtr creations, Done done) {
  Create(
      job, Kind::kPod, id, ReplicaName(*job, id),
      [this, job, id, attempt] { return MakePod(*job, id, attempt, settings_); },
      std::move(creations), std::move(done));
}

void Deeds::CreateService(const JobPtr& job, api::ReplicaId id, CreationsPtr creations,
                          Done done) {
  Create(
      job, Kind::kService, id, ReplicaName(*job, id), [job, id] { return MakeService(*job, id); },
      std::move(creations), std::move(done));
}

void Deeds::EnsurePodGroup(const JobPtr& job, const PodGroup* there, CreationsPtr creations,
                           Done done) {
  const Json wanted = MakePodGroup(*job, settings_, there);
  if (!there) {
    return Create(
        job, Kind::kPodGroup, {}, job->metadata.name, [wanted] { return wanted; },
        std::move(creations), std::move(done));
  }
  const Json patch =
      JsonObject{{"metadata", JsonObject{{"uid", there->uid}}}, {"spec", wanted.at("spec")}};
  Ask(
      there->key.name_space,
      [path = PathOf(Kind::kPodGroup, there->key.name_space, there->key.name),
       body = base::CompactJson(patch)] { return Request{"PATCH", path, kMergePatch, body}; },
      [this](const Json* object) { Learn(Kind::kPodGroup, *object); }, std::move(done));
}

void Deeds::Create(const JobPtr& job, Kind kind, api::ReplicaId id, const std::string& name,
                   std::function<Json()> make, CreationsPtr creations, Done done) {
  const Key key{job->metadata.name_space, name};
  const std::string what = kind == Kind::kPod       ? "Pod"
                           : kind == Kind::kService ? "Service"
                                                    : "PodGroup";
  Ask(
      key.name_space,
      [path = PathOf(kind, key.name_space), make = std::move(make)] {
        return Request{"POST", path, kJson, base::CompactJson(make())};
      },
      [this, kind, what, name, creations](const Json* object) {
        Learn(kind, *object);
        creations->Created(what, name);
      },
      [this, job, kind, id, what, key, creations,
       done = std::move(done)](std::optional<Error> error) {
        if (!error) return done(std::nullopt);
        // Made by us, and the answer was lost; or by another operator; or it is a stranger's.
        if (error->kind() == ErrorKind::kTaken) return LookAt(job, kind, id, key, *error, done);
        creations->Refused(what, *error);
        done(std::move(error));
      },
      // A job begins with its services, and the others go on first.
      kind == Kind::kService ? Priority::kLast : Priority::kNormal);
}

void Deeds::LookUpPod(const JobPtr& job, api::ReplicaId id, Done done) {
  const Key key{job->metadata.name_space, ReplicaName(*job, id)};
  const std::string path = PathOf(Kind::kPod, key.name_space, key.name);
  const Pod* known = know_.pods.Find(key);
  auto claim = std::make_shared<std::string>();  // UID of a pod to take back
  Ask(
      key.name_space, [path] { return Request{.path = path}; },
      [this, job, claim](const Json* object) {
        if (WasTakenFrom(*job, *object)) *claim = base::StringOr(object->at("metadata"), "uid");
        know_.pods.Learn(*object);
      },
      [this, job, id, key, claim, uid = known ? known->uid : "",
       version = known ? known->version : 0, done = std::move(done)](std::optional<Error> error) {
        // Not one that was made since we asked.
        if (error && error->kind() == ErrorKind::kNotFound) know_.pods.Drop(key, uid, version);
        if (error || claim->empty()) return done(std::move(error));
        Claim(
            job, id, *claim,
            [this, job, key](const Json*) {
              chronicle_.Tell(*job, {true, "TakenBackPod",
                                     fmt::format("Took pod {} back: somebody had removed its "
                                                 "label or its owner",
                                                 key.name)});
            },
            done);
      });
}

void Deeds::Claim(const JobPtr& job, api::ReplicaId id, const std::string& uid, Found found,
                  Done done) {
  Ask(
      job->metadata.name_space,
      [path = PathOf(Kind::kPod, job->metadata.name_space, ReplicaName(*job, id)),
       body = base::CompactJson(MakeClaim(*job, id, uid, settings_))] {
        return Request{"PATCH", path, kStrategicPatch, body};
      },
      [this, found = std::move(found)](const Json* object) {
        know_.pods.Learn(*object);
        found(object);
      },
      std::move(done));
}

void Deeds::Hold(const JobPtr& job, const Pod& pod, Done done) {
  Claim(
      job, pod.replica.id, pod.uid, [](const Json*) {},
      [done = std::move(done)](std::optional<Error> error) {
        // Gone, on its way out, or another's name by now: all of it wakes us.
        const bool other = error && (error->kind() == ErrorKind::kNotFound ||
                                     error->kind() == ErrorKind::kTaken || WillNeverDo(error));
        done(other ? std::nullopt : std::move(error));
      });
}

void Deeds::LookAt(const JobPtr& job, Kind kind, api::ReplicaId id, const Key& key,
                   const Error& taken, Done done) {
  const std::string path = PathOf(kind, key.name_space, key.name);
  // UID of a service of this job that has none of our labels, and selects by others.
  auto unlabelled = std::make_shared<std::string>();
  const Done looked = [this, job, kind, key, path, unlabelled, taken,
                       done](std::optional<Error> error) {
    // Made by an operator from before these labels. Another is made once it is gone.
    if (!error && !unlabelled->empty()) {
      return Delete(
          key.name_space, path, *unlabelled, std::nullopt, {}, [](const Json*) {},
          [](const Json*) {},
          [taken, done](std::optional<Error> second) { done(second ? std::move(second) : taken); });
    }
    const Pod* pod = kind == Kind::kPod ? know_.pods.Find(key) : nullptr;
    const Service* service = kind == Kind::kService ? know_.services.Find(key) : nullptr;
    const PodGroup* group = kind == Kind::kPodGroup ? know_.pod_groups.Find(key) : nullptr;
    // Of a job before this one: it goes by itself, and nothing is to start while it is there.
    if (!error && ((service && IsOfAnother(*service, job->metadata.uid)) ||
                   (group && IsOfAnother(*group, job->metadata.uid)))) {
      return done(taken);
    }
    if (error || pod || service || group) return done(std::move(error));
    chronicle_.Tell(*job, {true,
                           kind == Kind::kPod       ? "FailedCreatePod"
                           : kind == Kind::kService ? "FailedCreateService"
                                                    : "FailedCreatePodGroup",
                           "Error creating: " + taken.text()});
    done(taken);
  };
  if (kind == Kind::kPod) return LookUpPod(job, id, looked);
  Ask(
      key.name_space, [path] { return Request{.path = path}; },
      [this, job, kind, unlabelled](const Json* object) {
        Learn(kind, *object);
        const Json* metadata = base::Find(*object, "metadata");
        const bool ours = metadata && OwnerOf(*metadata) == job->metadata.uid;
        if (kind == Kind::kService && ours && !ReadService(*object))
          *unlabelled = base::StringOr(*metadata, "uid");
      },
      looked);
}

}  // namespace backend::cluster
