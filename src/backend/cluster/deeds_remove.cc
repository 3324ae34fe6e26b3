// The deeds that take something away: pods, services, pod groups, and our finalizer.
#include "backend/cluster/deeds.h"
#include "kube/api.h"

namespace backend::cluster {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;
using kube::Request;

void Deeds::Delete(const std::string& name_space, const std::string& path, const std::string& uid,
                   std::optional<kube::Version> version, JsonObject options, Found found,
                   Found learn, Done done) {
  options["apiVersion"] = "v1";
  options["kind"] = "DeleteOptions";
  JsonObject& conditions = options["preconditions"].emplace_object();
  conditions["uid"] = uid;
  if (version) conditions["resourceVersion"] = std::to_string(*version);
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
        // Most likely the name is another's by now, or the object has changed, which wakes us. If
        // neither is so, nothing was deleted.
        auto refused = std::make_shared<std::optional<Error>>();
        Ask(
            name_space, [path] { return Request{.path = path}; },
            [=](const Json* object) {
              learn(object);
              const Json* metadata = base::Find(*object, "metadata");
              const bool same = !metadata || base::StringOr(*metadata, "uid") == uid;
              if (same && (!version || kube::VersionOf(*object) == *version)) *refused = error;
            },
            [=](std::optional<Error> second) {
              missing(second ? std::move(second) : std::move(*refused));
            });
      });
}

void Deeds::DeletePod(const JobPtr& job, const Pod& pod, std::optional<int64_t> grace,
                      bool if_unchanged, Done done) {
  JsonObject options;
  if (grace) options["gracePeriodSeconds"] = *grace;
  Delete(
      pod.key.name_space, PathOf(Kind::kPod, pod.key.name_space, pod.key.name), pod.uid,
      if_unchanged ? std::optional(pod.version) : std::nullopt, std::move(options),
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
  gone ? know_.pods.Drop(pod.key, pod.uid, kube::VersionOf(object)) : know_.pods.Learn(object);
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
            [this](const Json* object) { know_.pods.Learn(*object); },
            [this, pod, refused = *error, done](std::optional<Error> second) {
              const Pod* there = know_.pods.Find(pod.key);
              const bool still = there && there->uid == pod.uid && there->held;
              done(second || !still ? std::move(second) : refused);
            });
      });
}

void Deeds::DeleteService(const JobPtr& job, const Service& service, Done done) {
  Delete(
      service.key.name_space, PathOf(Kind::kService, service.key.name_space, service.key.name),
      service.uid, std::nullopt, {},
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
      group.uid, std::nullopt, {},
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
