// A job and pods of it, as JSON from an API server, and an ear for events, for the tests of this
// folder.
#pragma once

#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "api/decode.h"
#include "backend/cluster/chronicle.h"
#include "backend/cluster/deeds.h"
#include "base/json.h"
#include "base/result.h"
#include "kube/testing.h"

namespace backend::cluster::testing {

using api::Role;
using base::Json;

inline Json Parse(const std::string& text) {
  auto json = base::ParseJson(text);
  CHECK(json);
  return *json;
}

struct Ears : Chronicle {
  std::vector<core::Event> heard;
  void Tell(const api::Job&, const core::Event& event) override { heard.push_back(event); }
  void Published(const api::JobStatus&, const api::Job&) override {}
  void Deleted(const api::Job&) override {}
  void TurnOver(bool, base::Duration) override {}
};

// Deeds on a server that a test plays.
struct WithDeeds : ::testing::Test {
  kube::testing::FakeTransport transport;
  Collection<StoredJob> jobs{ReadJob, [](const Key&) {}};
  Collection<Pod> pods{ReadPod, [](const Key&) {}};
  Collection<Service> services{ReadService, [](const Key&) {}};
  Collection<PodGroup> groups{ReadPodGroup, [](const Key&) {}};
  Pacer pacer{transport};
  Ears chronicle;
  const Settings settings;
  Deeds deeds{{jobs, pods, services, groups}, pacer, chronicle, settings};
};

inline Json JobObject(const std::string& spec_extra = "") {
  return Parse(
      R"({"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"mnist",)"
      R"("namespace":"team-a","uid":"u-1","resourceVersion":"7"},"spec":{)" +
      spec_extra +
      R"("tfReplicaSpecs":{"Worker":{"replicas":2,"restartPolicy":"OnFailure",)"
      R"("template":{"metadata":{"annotations":{"note":"yes"}},"spec":{"someday":{"new":[1]},)"
      R"("containers":[{"name":"tensorflow","image":"i",)"
      R"("env":[{"name":"PYTHONUNBUFFERED","value":"0"}]}]}}}}}})");
}

inline api::Job MakeJob() {
  api::Decoded decoded = api::DecodeJobObject(JobObject());
  CHECK(decoded.errors.empty());
  return decoded.job;
}

// Parts that a test adds to a plain pod of worker 0: `metadata` and `status` are lists of members.
inline Json PodObject(const std::string& metadata, const std::string& status,
                      const std::string& node = "\"nodeName\":\"n\",") {
  return Parse(fmt::format(
      R"({{"metadata":{{"name":"mnist-worker-0","namespace":"team-a","uid":"p-1",)"
      R"("resourceVersion":"9","creationTimestamp":"2026-01-01T00:00:00Z",)"
      R"("labels":{{"training.kubeflow.org/operator-name":"tfjob-controller",)"
      R"("training.kubeflow.org/job-name":"mnist","training.kubeflow.org/replica-type":"worker",)"
      R"("training.kubeflow.org/replica-index":"0","trainyard.dev/attempt":"2"}},)"
      R"("ownerReferences":[{{"kind":"TFJob","name":"mnist","uid":"u-1","controller":true}}],)"
      R"("finalizers":["trainyard.dev/observed"]{}}},"spec":{{{}"restartPolicy":"Never",)"
      R"("containers":[{{"name":"tensorflow","resources":{{"limits":{{"memory":"64Mi"}}}}}}]}},)"
      R"("status":{{{}}}}})",
      metadata, node, status));
}

// "state":{...} of the container named tensorflow.
inline std::string ContainerState(const std::string& state) {
  return R"("containerStatuses":[{"name":"tensorflow","state":{)" + state + "}}]";
}

inline std::string Terminated(int code, const std::string& extra = "",
                              const std::string& when = "2026-01-01T00:01:00Z") {
  return ContainerState(fmt::format(
      R"("terminated":{{"exitCode":{},"startedAt":"2026-01-01T00:00:05Z","finishedAt":"{}"{}}})",
      code, when, extra));
}

}  // namespace backend::cluster::testing
