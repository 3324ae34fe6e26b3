// A job in the middle of its life, and turns for it on a server that a test plays.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "backend/cluster/objects.h"
#include "backend/cluster/testing.h"
#include "backend/cluster/turns.h"
#include "kube/testing.h"

namespace backend::cluster::testing {

using base::JsonObject;
using kube::testing::kStart;

inline const Key kJob{"team-a", "mnist"};
inline const std::string kStatusWritten =
    "PATCH /apis/kubeflow.org/v1/namespaces/team-a/tfjobs/mnist/status\n";

// A job whose workers run, and whose status says so: a turn has nothing to publish.
struct WithTurns : ::testing::Test {
  kube::testing::FakeTransport transport;
  Turns* woken = nullptr;
  const std::function<void(const Key&)> wake = [this](const Key& key) {
    if (woken) woken->Wake(key);
  };
  Collection<StoredJob> jobs{ReadJob, wake};
  Collection<Pod> pods{ReadPod, wake};
  Collection<Service> services{ReadService, wake};
  Collection<PodGroup> groups{ReadPodGroup, wake};
  Pacer pacer{transport};
  Ears chronicle;
  Turns turns{{jobs, pods, services, groups}, pacer, chronicle, {}};
  Json job = JobObject();

  static Json Worker(const std::string& index, const std::string& status, int version = 9) {
    Json pod = PodObject("", status);
    JsonObject& metadata = pod.get_object()["metadata"].get_object();
    metadata["name"] = "mnist-worker-" + index;
    metadata["uid"] = "p-" + index;
    metadata["resourceVersion"] = std::to_string(version);
    metadata["labels"].get_object()[kIndexLabel] = index;
    metadata["labels"].get_object()[kAttemptLabel] = "0";
    return pod;
  }

  static Json Unheld(Json pod) {
    pod.at("metadata").get_object().erase("finalizers");
    return pod;
  }

  WithTurns() {
    const std::string running = R"("phase":"Running",)" +
                                ContainerState(R"("running":{"startedAt":"2026-01-01T00:00:05Z"})");
    core::Observed observed;
    for (const char* index : {"0", "1"}) {
      const Json pod = Worker(index, running);
      pods.Apply(pod);
      observed.replicas.push_back(ReadPod(pod)->replica);
    }
    const core::Policy policy{.end_leftovers = false, .clock_resolution = std::chrono::seconds(1)};
    const api::JobStatus status =
        core::Reconcile(*ReadJob(job)->value, observed, policy, kStart).status;
    job.get_object()["status"] = api::EncodeStatus(status);
    jobs.Apply(job);
    services.ListBegin();
    services.ListEnd(9);
    woken = &turns;
  }

  // As somebody else wrote it.
  void Rewrite(int version) {
    woken = nullptr;
    job.get_object()["metadata"].get_object()["resourceVersion"] = std::to_string(version);
    jobs.Apply(job);
    woken = &turns;
  }

  void Advance(base::Time now = kStart) {
    turns.Advance(now);
    pacer.Advance(now);
  }
  std::string Asked() {
    std::string out;
    for (const auto& one : transport.asked)
      out += one.request.method + " " + one.request.path + "\n";
    return out;
  }
};

}  // namespace backend::cluster::testing
