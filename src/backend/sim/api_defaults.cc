#include "backend/sim/api_defaults.h"

#include <algorithm>

#include "backend/sim/api_object.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

void Default(JsonObject& object, std::string_view key, Json value) {
  const Json* there = object.if_contains(key);
  if (!there || there->is_null() || (there->is_string() && there->as_string().empty())) {
    object[key] = std::move(value);
  }
}

JsonObject& Inner(JsonObject& object, std::string_view key) {
  Json& value = object[key];
  if (!value.is_object()) value = JsonObject();
  return value.as_object();
}

JsonArray* ArrayIn(JsonObject& object, std::string_view key) {
  Json* value = object.if_contains(key);
  return value && value->is_array() ? &value->as_array() : nullptr;
}

// An image without a tag, or with the tag "latest", is looked for anew each time.
std::string_view PullPolicy(std::string_view image) {
  const std::string_view leaf = image.substr(image.rfind('/') + 1);
  const size_t colon = leaf.find(':');
  if (leaf.find('@') != std::string_view::npos) return "IfNotPresent";
  return colon == std::string_view::npos || leaf.substr(colon + 1) == "latest" ? "Always"
                                                                               : "IfNotPresent";
}

void FillContainer(JsonObject& container) {
  const Json* image = container.if_contains("image");
  Default(
      container, "imagePullPolicy",
      Json(PullPolicy(image && image->is_string() ? std::string_view(image->as_string()) : "")));
  Default(container, "terminationMessagePath", "/dev/termination-log");
  Default(container, "terminationMessagePolicy", "File");
  JsonObject& resources = Inner(container, "resources");
  if (const Json* limits = resources.if_contains("limits"); limits && limits->is_object()) {
    const JsonObject wanted = limits->as_object();
    JsonObject& requests = Inner(resources, "requests");
    for (const auto& [key, value] : wanted) {
      if (!requests.contains(key)) requests[key] = value;
    }
  }
  if (JsonArray* ports = ArrayIn(container, "ports")) {
    for (Json& port : *ports) {
      if (port.is_object()) Default(port.as_object(), "protocol", "TCP");
    }
  }
  for (std::string_view key : {"args", "command", "env", "ports"}) {
    if (JsonArray* array = ArrayIn(container, key); array && array->empty()) container.erase(key);
  }
}

bool Tolerates(const JsonArray& tolerations, std::string_view taint) {
  return std::ranges::any_of(tolerations,
                             [&](const Json& one) { return base::StringOr(one, "key") == taint; });
}

void FillPod(JsonObject& spec) {
  if (JsonArray* containers = ArrayIn(spec, "containers")) {
    for (Json& one : *containers) {
      if (one.is_object()) FillContainer(one.as_object());
    }
  }
  Default(spec, "restartPolicy", "Always");
  Default(spec, "terminationGracePeriodSeconds", 30);
  Default(spec, "dnsPolicy", "ClusterFirst");
  Default(spec, "serviceAccountName", "default");
  Default(spec, "serviceAccount", Json(spec["serviceAccountName"]));
  Default(spec, "securityContext", JsonObject());
  Default(spec, "schedulerName", "default-scheduler");
  Default(spec, "priority", 0);
  Default(spec, "enableServiceLinks", true);
  Default(spec, "preemptionPolicy", "PreemptLowerPriority");
  Default(spec, "tolerations", JsonArray());
  JsonArray& tolerations = spec["tolerations"].as_array();
  for (std::string_view taint :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    if (Tolerates(tolerations, taint)) continue;
    tolerations.push_back(JsonObject{{"key", taint},
                                     {"operator", "Exists"},
                                     {"effect", "NoExecute"},
                                     {"tolerationSeconds", 300}});
  }
}

void FillService(JsonObject& spec) {
  Default(spec, "type", "ClusterIP");
  Default(spec, "sessionAffinity", "None");
  Default(spec, "internalTrafficPolicy", "Cluster");
  Default(spec, "ipFamilies", JsonArray{"IPv4"});
  Default(spec, "ipFamilyPolicy", "SingleStack");
  Default(spec, "clusterIP", "10.96.0.1");  // all share one: nothing of ours looks at it
  spec["clusterIPs"] = JsonArray{spec["clusterIP"]};
  if (JsonArray* ports = ArrayIn(spec, "ports")) {
    if (ports->empty()) {
      spec.erase("ports");
      return;
    }
    for (Json& port : *ports) {
      if (!port.is_object()) continue;
      Default(port.as_object(), "protocol", "TCP");
      Default(port.as_object(), "targetPort", Json(port.as_object()["port"]));
    }
  }
}

// Guaranteed when everything has limits and asks for no less, best effort when nothing asks.
std::string_view QualityOf(const Json& spec) {
  bool any = false, all = true;
  for (const Json& container : ArrayAt(spec, "containers")) {
    const Json none;
    const Json* resources = base::Find(container, "resources");
    const JsonObject& limits = ObjectAt(resources ? *resources : none, "limits");
    const JsonObject& requests = ObjectAt(resources ? *resources : none, "requests");
    any |= !limits.empty() || !requests.empty();
    for (std::string_view what : {"cpu", "memory"}) {
      all &=
          limits.contains(what) && requests.contains(what) && limits.at(what) == requests.at(what);
    }
  }
  return !any ? "BestEffort" : all ? "Guaranteed" : "Burstable";
}

}  // namespace

void FillDefaults(const Resource& resource, Json& object) {
  JsonObject& all = object.as_object();
  if (!resource.custom) {  // an object of a CRD has a spec only when it was given one
    if (&resource == &kPods) FillPod(Inner(all, "spec"));
    if (&resource == &kServices) FillService(Inner(all, "spec"));
    if (&resource == &kLeases) Inner(all, "spec");
    if (&resource == &kNamespaces) {
      Default(Inner(all, "spec"), "finalizers", JsonArray{"kubernetes"});
      Inner(MetaOf(object), "labels")["kubernetes.io/metadata.name"] = NameOf(object);
    }
    if (&resource == &kEvents) {
      for (const char* key : {"involvedObject", "source"}) Inner(all, key);
      for (const char* key : {"reportingComponent", "reportingInstance"}) {
        if (!all.contains(key)) all[key] = "";
      }
      for (const char* key : {"firstTimestamp", "lastTimestamp", "eventTime"}) {
        if (!all.contains(key)) all[key] = nullptr;
      }
    }
  }
  TidyMeta(object);
}

void BeginStatus(const Resource& resource, Json& object) {
  JsonObject& all = object.as_object();
  if (resource.has_status) all.erase("status");
  if (&resource == &kPods) {
    all["status"] = JsonObject{{"phase", "Pending"}, {"qosClass", QualityOf(all["spec"])}};
  }
  if (&resource == &kServices) all["status"] = JsonObject{{"loadBalancer", JsonObject()}};
  if (&resource == &kNamespaces) all["status"] = JsonObject{{"phase", "Active"}};
}

}  // namespace backend::sim
