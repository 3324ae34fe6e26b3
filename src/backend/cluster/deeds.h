// What a turn does to the cluster: one request each, or two where the first answer leaves a
// question.
//
// Doing a thing twice is harmless. Deletions name the UID, so that they never hit a successor. The
// answers go into the collections at once, so that the next look already knows of them.
//
// One thread. `done` is called once for each deed, with the error if there was one, and never from
// within the call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "backend/cluster/chronicle.h"
#include "backend/cluster/collection.h"
#include "backend/cluster/creations.h"
#include "backend/cluster/objects.h"
#include "backend/cluster/pacer.h"
#include "backend/cluster/pod.h"
#include "backend/cluster/stored.h"
#include "base/result.h"

namespace backend::cluster {

// What we know of the cluster.
struct Knowledge {
  Collection<StoredJob>& jobs;
  Collection<Pod>& pods;
  Collection<Service>& services;
  Collection<PodGroup>& pod_groups;
};

// What there is of the master of an elastic job.
struct MasterLook {
  enum State {
    kMade,   // just now
    kWaits,  // its pod does not run; `pods` say why
    kRuns,
    kGoes,  // and another is made once it has gone
  } state;
  std::vector<Pod> pods;
};

// The server will never take it, however often it is asked.
inline bool WillNeverDo(const std::optional<base::Error>& error) {
  return error && error->kind() == base::ErrorKind::kInvalid;
}

class Deeds {
 public:
  using JobPtr = std::shared_ptr<const api::Job>;
  using Done = std::function<void(std::optional<base::Error>)>;
  using CreationsPtr = std::shared_ptr<Creations>;

  Deeds(Knowledge knowledge, Pacer& pacer, Chronicle& chronicle, const Settings& settings);

  // Reads the job anew. Found or gone, the collection knows; an error means that nobody does.
  void LookUpJob(const Key& key, Done done);
  // The same for the pod of a replica, kNotFound when it is gone. One that somebody took from the
  // job is taken back.
  void LookUpPod(const JobPtr& job, api::ReplicaId id, Done done);
  // Reads all pods, or all services, of the job; kUnavailable when the server says how they were
  // before this version.
  void SurveyPods(const JobPtr& job, kube::Version at_least, Done done);
  void SurveyServices(const JobPtr& job, kube::Version at_least, Done done);
  // Patches the status, if the job still has this version.
  void Publish(const StoredJob& stored, const api::JobStatus& status, Done done);
  // Whether the server would take a pod of this role: kInvalid when it never will.
  void TryPod(const JobPtr& job, api::Role role, Done done);

  // Records the server's answer in `creations`, for events.
  void CreatePod(const JobPtr& job, api::ReplicaId id, int32_t attempt, CreationsPtr creations,
                 Done done);
  void CreateService(const JobPtr& job, api::ReplicaId id, CreationsPtr creations, Done done);
  // Makes the pod group, or makes it as it should be.
  void EnsurePodGroup(const JobPtr& job, const PodGroup* there, CreationsPtr creations, Done done);

  // Makes the master of an elastic job, with all that it needs, unless it is there. kTaken:
  // something of its name is another's.
  void EnsureMaster(const JobPtr& job, std::function<void(MasterLook)> found, Done done);

  // Asks a pod to end, within so many seconds; nothing: as its author allows.
  void DeletePod(const JobPtr& job, const Pod& pod, std::optional<int64_t> grace, bool if_unchanged,
                 Done done);
  void DeleteService(const JobPtr& job, const Service& service, Done done);
  void DeletePodGroup(const JobPtr& job, const PodGroup& group, Done done);
  void DeleteJob(const JobPtr& job, Done done);
  // Puts our finalizer on a pod that another operator made. One that is not there any more as it
  // was seen stays as it is.
  void Hold(const JobPtr& job, const Pod& pod, Done done);
  // Takes our finalizer off.
  void Release(const Pod& pod, Done done);

 private:
  static constexpr const char* kJson = "application/json";
  static constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";
  enum class Kind { kPod, kService, kPodGroup };
  using Answer = std::move_only_function<void(base::Result<kube::Response>)>;
  using Found = std::function<void(const base::Json* object)>;

  std::string PathOf(Kind kind, const std::string& name_space, const std::string& name = "") const;
  void Send(const std::string& name_space, Pacer::Make make, Answer answer,
            Priority priority = Priority::kNormal);
  // `found` gets the object of the answer. Errors go to `done`.
  void Ask(const std::string& name_space, Pacer::Make make, Found found, Done done,
           Priority priority = Priority::kNormal);
  void Create(const JobPtr& job, Kind kind, api::ReplicaId id, const std::string& name,
              std::function<base::Json()> make, CreationsPtr creations, Done done);
  void LookAt(const JobPtr& job, Kind kind, api::ReplicaId id, const Key& key,
              const base::Error& taken, Done done);
  // `found` gets nothing when there was no such object of that UID; `learn` what has its name then.
  void Delete(const std::string& name_space, const std::string& path, const std::string& uid,
              std::optional<kube::Version> version, base::JsonObject options, Found found,
              Found learn, Done done);
  void LookAtMaster(const JobPtr& job, std::function<void(MasterLook)> found, Done done);
  void MakeMaster(const JobPtr& job, std::shared_ptr<const std::vector<base::Json>> objects,
                  size_t next, Done done);
  template <typename Object>
  struct Listing;
  template <typename Object>
  void ListOn(std::shared_ptr<Listing<Object>> listing);
  template <typename Object>
  void ReadPage(Listing<Object>& listing, const base::Json& page);
  void Claim(const JobPtr& job, api::ReplicaId id, const std::string& uid, Found found, Done done);
  void Learn(Kind kind, const base::Json& object);
  void TookAway(const base::Json& object, const Pod& pod);

  Knowledge know_;
  Pacer& pacer_;
  Chronicle& chronicle_;
  const Settings& settings_;
  std::shared_ptr<bool> alive_;  // answers may outlive us
};

}  // namespace backend::cluster
