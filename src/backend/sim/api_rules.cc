#include "backend/sim/api_rules.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "backend/sim/api_names.h"
#include "backend/sim/api_object.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using Kind = FieldError::Kind;

std::string Text(const Json& value) {
  return value.is_string() ? std::string(value.as_string()) : "";
}

std::string Quoted(std::string_view text) { return base::CompactJson(Json(text)); }

// Collects what is wrong.
class Findings {
 public:
  void Add(Kind kind, std::string field, std::string value = "", std::string detail = "") {
    errors_.push_back({kind, std::move(field), std::move(value), std::move(detail)});
  }
  void Invalid(const std::string& field, std::string_view value, const Faults& faults) {
    for (const std::string& fault : faults) Add(Kind::kInvalid, field, Quoted(value), fault);
  }
  void Port(const std::string& field, int64_t port) {
    if (port >= 1 && port <= 65535) return;
    Add(Kind::kInvalid, field, std::to_string(port), "must be between 1 and 65535, inclusive");
  }
  void OneOf(const std::string& field, const std::string& value,
             const std::vector<std::string>& known) {
    if (std::ranges::find(known, value) != known.end()) return;
    std::string all;
    for (const std::string& one : known) all += (all.empty() ? "" : ", ") + Quoted(one);
    Add(Kind::kNotSupported, field, Quoted(value), "supported values: " + all);
  }
  FieldErrors Take() { return std::move(errors_); }

 private:
  FieldErrors errors_;
};

void CheckLabels(const JsonObject& labels, const std::string& field, Findings& found) {
  for (const auto& [key, value] : labels) {
    found.Invalid(field, key, WrongQualifiedName(key));
    found.Invalid(field, Text(value), WrongLabelValue(Text(value)));
  }
}

// What is checked of the metadata of every object, new or changed.
void CheckMeta(const Json& meta, Findings& found) {
  CheckLabels(ObjectAt(meta, "labels"), "metadata.labels", found);
  size_t bytes = 0;
  for (const auto& [key, value] : ObjectAt(meta, "annotations")) {
    found.Invalid("metadata.annotations", key, WrongQualifiedName(base::Lower(key)));
    bytes += key.size() + Text(value).size();
  }
  if (bytes > 256 * 1024) {
    found.Add(Kind::kTooLong, "metadata.annotations", "", "may not be more than 262144 bytes");
  }
  std::string controller;
  for (const Json& owner : ArrayAt(meta, "ownerReferences")) {
    const std::string field = "metadata.ownerReferences";
    if (base::StringOr(owner, "apiVersion").empty()) {
      found.Add(Kind::kInvalid, field + ".apiVersion", "\"\"", "version must not be empty");
    }
    for (const char* key : {"kind", "name", "uid"}) {
      if (base::StringOr(owner, key).empty()) {
        found.Add(Kind::kInvalid, field + "." + key, "\"\"", "must not be empty");
      }
    }
    if (!base::BoolOr(owner, "controller")) continue;
    const std::string name = base::StringOr(owner, "kind") + "/" + base::StringOr(owner, "name");
    if (!controller.empty()) {
      found.Add(Kind::kInvalid, field, base::CompactJson(*base::Find(meta, "ownerReferences")),
                fmt::format("Only one reference can have Controller set to true. Found \"true\" in "
                            "references for {} and {}",
                            controller, name));
    }
    if (controller.empty()) controller = name;
  }
}

// Leading "." or "..", and what would end a part of a path.
Faults WrongPathSegment(std::string_view name) {
  if (name == "." || name == "..") return {fmt::format("may not be '{}'", name)};
  for (const char* part : {"/", "%"}) {
    if (name.find(part) != std::string_view::npos) {
      return {fmt::format("may not contain '{}'", part)};
    }
  }
  return {};
}

void CheckNewMeta(const Resource& resource, const Json& meta, Findings& found) {
  const std::string name = base::StringOr(meta, "name");
  // Events of v1 may be called anything.
  const auto wrong = [&](std::string_view text) {
    return &resource == &kEvents ? WrongPathSegment(text) : WrongName(resource.names, text);
  };
  if (const std::string prefix = base::StringOr(meta, "generateName"); !prefix.empty()) {
    // The end of it need not be the end of a name.
    const std::string_view stem = std::string_view(prefix).substr(0, prefix.size() - 1);
    found.Invalid("metadata.generateName", prefix,
                  prefix.ends_with('-') && !stem.empty() ? wrong(stem) : wrong(prefix));
  }
  if (name.empty()) {
    found.Add(Kind::kRequired, "metadata.name", "", "name or generateName is required");
  } else {
    found.Invalid("metadata.name", name, wrong(name));
  }
  CheckMeta(meta, found);
  const JsonArray& finalizers = ArrayAt(meta, "finalizers");
  for (const Json& one : finalizers) {
    found.Invalid("metadata.finalizers", Text(one), WrongQualifiedName(Text(one)));
  }
  const bool core = resource.group.empty() && &resource != &kEvents;
  for (size_t i = 0; i < finalizers.size() && core; ++i) {
    const std::string one = Text(finalizers[i]);
    if (one.find('/') != std::string::npos || one == "orphan" || one == "foregroundDeletion") {
      continue;
    }
    found.Invalid(fmt::format("metadata.finalizers[{}]", i), one,
                  {"name is neither a standard finalizer name nor is it fully qualified"});
  }
}

void CheckContainers(const JsonArray& containers, Findings& found) {
  if (containers.empty()) return found.Add(Kind::kRequired, "spec.containers");
  std::set<std::string> names;
  for (size_t i = 0; i < containers.size(); ++i) {
    const Json& container = containers[i];
    const std::string at = fmt::format("spec.containers[{}]", i);
    const std::string name = base::StringOr(container, "name");
    if (name.empty()) {
      found.Add(Kind::kRequired, at + ".name");
    } else {
      found.Invalid(at + ".name", name, WrongName(NameRule::kLabel, name));
    }
    if (base::StringOr(container, "image").empty()) found.Add(Kind::kRequired, at + ".image");
    const JsonArray& ports = ArrayAt(container, "ports");
    std::set<std::string> port_names;
    for (size_t j = 0; j < ports.size(); ++j) {
      const std::string port_at = fmt::format("{}.ports[{}]", at, j);
      const std::string port_name = base::StringOr(ports[j], "name");
      if (!port_name.empty()) {
        const Faults faults = WrongPortName(port_name);
        found.Invalid(port_at + ".name", port_name, faults);
        if (faults.empty() && !port_names.insert(port_name).second) {
          found.Add(Kind::kDuplicate, port_at + ".name", Quoted(port_name));
        }
      }
      const int64_t number = base::IntOr(ports[j], "containerPort");
      if (number == 0) {
        found.Add(Kind::kRequired, port_at + ".containerPort");
      } else {
        found.Port(port_at + ".containerPort", number);
      }
      found.OneOf(port_at + ".protocol", base::StringOr(ports[j], "protocol"),
                  {"SCTP", "TCP", "UDP"});
    }
    const JsonArray& env = ArrayAt(container, "env");
    for (size_t j = 0; j < env.size(); ++j) {
      if (base::StringOr(env[j], "name").empty()) {
        found.Add(Kind::kRequired, fmt::format("{}.env[{}].name", at, j));
      }
    }
    if (!names.insert(name).second) found.Add(Kind::kDuplicate, at + ".name", Quoted(name));
  }
}

void CheckPod(const Json& spec, Findings& found) {
  CheckContainers(ArrayAt(spec, "containers"), found);
  found.OneOf("spec.restartPolicy", base::StringOr(spec, "restartPolicy"),
              {"Always", "OnFailure", "Never"});
  CheckLabels(ObjectAt(spec, "nodeSelector"), "spec.nodeSelector", found);
}

void CheckService(const Json& spec, Findings& found) {
  const bool headless = base::StringOr(spec, "clusterIP") == "None";
  const JsonArray& ports = ArrayAt(spec, "ports");
  if (ports.empty() && !headless) found.Add(Kind::kRequired, "spec.ports");
  std::set<std::string> names;
  std::set<std::pair<std::string, int64_t>> seen;
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string at = fmt::format("spec.ports[{}]", i);
    const std::string name = base::StringOr(ports[i], "name");
    if (name.empty() && ports.size() > 1) found.Add(Kind::kRequired, at + ".name");
    if (!name.empty()) {
      found.Invalid(at + ".name", name, WrongName(NameRule::kLabel, name));
      if (!names.insert(name).second) found.Add(Kind::kDuplicate, at + ".name", Quoted(name));
    }
    found.Port(at + ".port", base::IntOr(ports[i], "port"));
    found.OneOf(at + ".protocol", base::StringOr(ports[i], "protocol"), {"SCTP", "TCP", "UDP"});
    if (const Json* inner = base::Find(ports[i], "targetPort"); inner && !inner->is_string()) {
      found.Port(at + ".targetPort", base::IntOr(ports[i], "targetPort"));
    }
  }
  CheckLabels(ObjectAt(spec, "selector"), "spec.selector", found);
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string protocol = base::StringOr(ports[i], "protocol");
    const int64_t port = base::IntOr(ports[i], "port");
    if (!seen.insert({protocol, port}).second) {
      found.Add(Kind::kDuplicate, fmt::format("spec.ports[{}]", i),
                fmt::format("{{\"Name\":\"\",\"Protocol\":\"{}\",\"AppProtocol\":null,\"Port\":{},"
                            "\"TargetPort\":0,\"NodePort\":0}}",
                            protocol, port));
    }
  }
}

void CheckSpec(const Resource& resource, const Json& object, Findings& found) {
  const Json none;
  const Json* spec = base::Find(object, "spec");
  if (!spec) spec = &none;
  if (&resource == &kPods) CheckPod(*spec, found);
  if (&resource == &kServices) CheckService(*spec, found);
  if (&resource == &kTFJobs && !base::Find(*spec, "tfReplicaSpecs")) {
    found.Add(Kind::kRequired, "spec.tfReplicaSpecs");
  }
  if (&resource == &kLeases) {
    const Json* seconds = base::Find(*spec, "leaseDurationSeconds");
    if (seconds && base::IntOr(*spec, "leaseDurationSeconds") <= 0) {
      found.Add(Kind::kInvalid, "spec.leaseDurationSeconds", base::CompactJson(*seconds),
                "must be greater than 0");
    }
  }
  if (&resource == &kEvents) {
    const Json* subject = base::Find(object, "involvedObject");
    const std::string theirs = subject ? base::StringOr(*subject, "namespace") : "";
    const std::string ours = NamespaceOf(object);
    if (theirs != ours && !(theirs.empty() && ours == "default")) {
      found.Add(Kind::kInvalid, "involvedObject.namespace", Quoted(theirs),
                "does not match event.namespace");
    }
  }
}

void CheckMetaChange(const Json& object, const Json& old, Findings& found) {
  if (IsDeleting(old)) {
    std::set<std::string> added;
    for (const std::string& one : FinalizersOf(object)) {
      if (!HasFinalizer(old, one)) added.insert(one);
    }
    if (!added.empty()) {
      std::string all;
      for (const std::string& one : added) all += (all.empty() ? "" : ", ") + Quoted(one);
      found.Add(Kind::kForbidden, "metadata.finalizers", "",
                "no new finalizers can be added if the object is being deleted, found new "
                "finalizers []string{" +
                    all + "}");
    }
  }
  if (IsDeleting(object) != IsDeleting(old)) {
    found.Add(Kind::kInvalid, "metadata.deletionTimestamp",
              Quoted(base::StringOr(MetaOf(object), "deletionTimestamp")), "field is immutable");
  }
  if (UidOf(object) != UidOf(old)) {
    found.Add(Kind::kInvalid, "metadata.uid", Quoted(UidOf(object)), "field is immutable");
  }
  CheckMeta(MetaOf(object), found);
}

// The images of a pod may change, and nothing else of it that we model.
Json WithoutImages(Json spec) {
  if (!spec.is_object()) return spec;
  if (Json* containers = spec.as_object().if_contains("containers");
      containers && containers->is_array()) {
    for (Json& one : containers->as_array()) {
      if (one.is_object()) one.as_object().erase("image");
    }
  }
  return spec;
}

}  // namespace

FieldErrors WrongOnCreate(const Resource& resource, const Json& object) {
  Findings found;
  CheckNewMeta(resource, MetaOf(object), found);
  CheckSpec(resource, object, found);
  return found.Take();
}

FieldErrors WrongOnUpdate(const Resource& resource, const std::string& subresource,
                          const Json& object, const Json& old) {
  Findings found;
  CheckMetaChange(object, old, found);
  if (!subresource.empty()) return found.Take();
  CheckSpec(resource, object, found);
  const Json* spec = base::Find(object, "spec");
  const Json* old_spec = base::Find(old, "spec");
  if (&resource == &kPods && spec && old_spec && WithoutImages(*spec) != WithoutImages(*old_spec)) {
    found.Add(Kind::kForbidden, "spec", "",
              "pod updates may not change fields other than `spec.containers[*].image`");
  }
  return found.Take();
}

}  // namespace backend::sim
