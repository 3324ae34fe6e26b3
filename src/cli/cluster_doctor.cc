#include "cli/cluster_doctor.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "base/duration.h"
#include "base/strings.h"
#include "base/version.h"
#include "cli/checkup.h"
#include "cli/cluster.h"
#include "cli/deployment.h"
#include "cli/object.h"
#include "cli/refuse.h"
#include "io/clock.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::Json;
using base::JsonObject;
using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kSkew = 5s;  // that logs and deadlines bear

struct Right {
  const char* verb;
  const char* group;
  const char* resource;
};

// What the verbs need, of the person who types. With an operator there, pods are its business.
constexpr Right kRights[] = {{"create", "kubeflow.org", "tfjobs"},
                             {"list", "kubeflow.org", "tfjobs"},
                             {"watch", "kubeflow.org", "tfjobs"},
                             {"patch", "kubeflow.org", "tfjobs"},
                             {"delete", "kubeflow.org", "tfjobs"},
                             {"create", "", "configmaps"},
                             {"list", "", "configmaps"},
                             {"patch", "", "configmaps"},
                             {"create", "", "secrets"},
                             {"patch", "", "secrets"},
                             {"create", "", "persistentvolumeclaims"},
                             {"list", "", "pods"},
                             {"watch", "", "pods"},
                             {"get", "", "pods/log"},
                             {"create", "", "pods"},
                             {"create", "", "pods/exec"},
                             {"list", "", "events"}};

class Examination {
 public:
  Examination(Cluster& cluster, const Args& args)
      : cluster_(cluster), client_(cluster.client()), space_(cluster.NamespaceOf(args)) {}

  std::vector<Finding> Run() {
    if (!Access()) return findings_;
    Clock();
    Rights();
    Definition();
    Operator();
    Storage();
    Dns();
    return findings_;
  }

 private:
  void Good(std::string what) { findings_.push_back({Health::kGood, std::move(what), ""}); }
  void Note(std::string what, std::string fix) {
    findings_.push_back({Health::kNote, std::move(what), std::move(fix)});
  }
  void Bad(std::string what, std::string fix) {
    findings_.push_back({Health::kBad, std::move(what), std::move(fix)});
  }

  bool Access() {
    auto version = client_.Get("/version");
    if (!version) {
      Bad(cluster_.Explain(version.error()).text(),
          "check the address and the credentials: kubectl cluster-info");
      return false;
    }
    Good(fmt::format("Kubernetes {} at {} (context {})", base::StringOr(*version, "gitVersion"),
                     cluster_.server().access().server, cluster_.context()));
    auto space = client_.Get(kube::Path("v1", "namespaces", "", space_));
    if (!space && space.error().kind() == ErrorKind::kNotFound) {
      Bad(fmt::format("there is no namespace {}", space_),
          fmt::format("kubectl create namespace {}, or name another with -n", space_));
      return false;
    }
    return true;
  }

  // What a server would write into an object that it is asked to make, and does not.
  void Clock() {
    const base::Time before = io::Wall();
    auto made =
        client_.Create(kube::WithQuery(kube::Path("v1", "configmaps", space_), {{"dryRun", "All"}}),
                       JsonObject{{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"metadata", JsonObject{{"generateName", "trainyard-doctor-"}}}});
    if (!made) return;  // the rights tell why
    const auto theirs = base::ParseTime(base::StringOr(At(*made, "metadata"), "creationTimestamp"));
    if (!theirs) return;
    // They write whole seconds.
    const base::Duration off = *theirs + 500ms < before
                                   ? before - *theirs - 1s
                                   : std::max(*theirs - io::Wall(), base::Duration(0));
    if (off > kSkew) {
      Note(fmt::format("its clock and ours are {} apart", base::FormatDuration(off)),
           "set the time of this machine: timedatectl set-ntp true");
    } else {
      Good("its clock agrees with ours");
    }
  }

  void Rights() {
    std::vector<std::string> missing;
    for (const Right& right : kRights) {
      auto may = cluster_.May(right.verb, right.group, right.resource, space_);
      if (!may) {
        Bad("cannot ask for our rights: " + may.error().text(), "");
        return;
      }
      if (!*may) missing.push_back(fmt::format("{} {}", right.verb, right.resource));
    }
    if (missing.empty()) {
      Good(fmt::format("all rights that are needed in namespace {}", space_));
    } else {
      Bad(fmt::format("rights are missing in namespace {}: {}", space_, base::Join(missing, ", ")),
          fmt::format("kubectl create rolebinding trainyard-edit -n {} --clusterrole=edit "
                      "--user=YOU, by somebody who may",
                      space_));
    }
  }

  void Definition() {
    auto there = client_.Get(kube::Path("apiextensions.k8s.io/v1", "customresourcedefinitions", "",
                                        "tfjobs.kubeflow.org"));
    if (there) {
      const std::string text = base::CompactJson(*there);
      if (text.find("\"incidents\"") == std::string::npos) {
        Note("TFJob is defined by another operator: progress and verdicts are not kept",
             "trainyard adopt");
      } else if (text.find("\"life\"") == std::string::npos) {
        Bad("TFJob is defined by an older Trainyard", "trainyard install");
      } else {
        Good(fmt::format("TFJob is defined as this Trainyard ({}) wants it", base::kVersion));
      }
      return;
    }
    if (there.error().kind() == ErrorKind::kForbidden) {
      // Whoever may not read definitions still sees whether there is one.
      if (client_.Get("/apis/kubeflow.org/v1")) {
        Good("TFJob is defined");
        return;
      }
    }
    Bad("TFJob is not defined", "trainyard install");
  }

  void Operator() {
    auto there = client_.Get(kube::Path("apps/v1", "deployments", std::string(kSystemNamespace),
                                        std::string(kOperatorDeployment)));
    if (!there && there.error().kind() == ErrorKind::kForbidden) {
      Note(fmt::format("the operator in {} cannot be seen with your rights", kSystemNamespace),
           "a job that is not taken up tells");
      return;
    }
    if (!there) {
      Bad(fmt::format("there is no operator in {}", kSystemNamespace), "trainyard install");
      return;
    }
    const Json& containers = At(At(At(At(*there, "spec"), "template"), "spec"), "containers");
    const std::string image = containers.is_array() && !containers.get_array().empty()
                                  ? base::StringOr(containers.get_array().front(), "image")
                                  : "";
    if (base::IntOr(At(*there, "status"), "availableReplicas") > 0) {
      Good(fmt::format("the operator is at work, image {}", image));
    } else {
      Bad(fmt::format("the operator is not available, image {}", image),
          fmt::format("kubectl describe pods -n {}", kSystemNamespace));
    }
  }

  void Storage() {
    auto classes = client_.List(kube::Path("storage.k8s.io/v1", "storageclasses"));
    auto volumes = client_.List(kube::Path("v1", "persistentvolumes"));
    if (!classes && !volumes) {
      Note("storage cannot be seen with your rights", "--output CLAIM names a claim that you know");
      return;
    }
    for (const Json& one : classes.value_or(base::JsonArray())) {
      const Json& annotations = At(At(one, "metadata"), "annotations");
      if (base::StringOr(annotations, "storageclass.kubernetes.io/is-default-class") == "true") {
        Good(fmt::format("storage of class {} for output",
                         base::StringOr(At(one, "metadata"), "name")));
        return;
      }
    }
    for (const Json& one : volumes.value_or(base::JsonArray())) {
      if (base::StringOr(At(one, "status"), "phase") == "Available") {
        Good(fmt::format("volume {} is free for output",
                         base::StringOr(At(one, "metadata"), "name")));
        return;
      }
    }
    auto claims = client_.List(kube::Path("v1", "persistentvolumeclaims", space_));
    for (const Json& one : claims.value_or(base::JsonArray())) {
      if (base::StringOr(At(one, "status"), "phase") != "Bound") continue;
      const std::string name = base::StringOr(At(one, "metadata"), "name");
      Good(fmt::format("claim {} for output: --output {}", name, name));
      return;
    }
    Note("no default storage class and no free volume: output has no place to stay",
         "trainyard install --storage hostpath|nfs, or --output CLAIM");
  }

  void Dns() {
    auto slices = client_.List(kube::Path("discovery.k8s.io/v1", "endpointslices", "kube-system"),
                               "kubernetes.io/service-name=kube-dns");
    if (!slices) {
      Note("DNS cannot be seen with your rights", "");
      return;
    }
    for (const Json& slice : *slices) {
      const Json& endpoints = At(slice, "endpoints");
      if (endpoints.is_array() && !endpoints.get_array().empty()) {
        Good("DNS answers in the cluster");
        return;
      }
    }
    Bad("no DNS in the cluster: replicas cannot find each other",
        "kubectl get pods -n kube-system -l k8s-app=kube-dns");
  }

  Cluster& cluster_;
  kube::Client& client_;
  const std::string space_;
  std::vector<Finding> findings_;
};

}  // namespace

int ExamineCluster(const Args& args, const std::string& context) {
  auto cluster = Cluster::Connect(context);
  if (!cluster) return Fail(cluster.error());
  return Report(Examination(*cluster, args).Run(), args.json());
}

}  // namespace cli
