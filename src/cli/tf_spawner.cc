#include "cli/tf_spawner.h"

#include <algorithm>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "base/base64.h"
#include "base/strings.h"
#include "core/tf_config.h"

namespace cli {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::ObjectAt;

constexpr std::string_view kTagLabel = "training_attempt";
constexpr std::string_view kScript = "script";  // the ConfigMap, and the volume that shows it
constexpr std::string_view kSecret = "script-env";
constexpr std::string_view kFolder = "/script";
constexpr std::string_view kCommandInPod = "/script/command.sh";
// For a template that names none: the last with Keras 2, which TF-Spawner's scripts were made for.
constexpr std::string_view kImage = "tensorflow/tensorflow:2.15.0";

JsonObject MetadataOf(const Spawn& spawn, std::string_view name) {
  return {{"name", NameUnder(spawn.tag, name)}, {"labels", JsonObject{{kTagLabel, spawn.tag}}}};
}

// Members of a checked template; made where there is nothing. (TF-Spawner's own has `env:` without
// a value.)
JsonArray& ListAt(JsonObject& parent, std::string_view key) {
  if (parent[key].is_null()) parent[key] = JsonArray();
  return parent[key].get_array();
}

bool HasNamed(const JsonArray& list, std::string_view name) {
  return std::ranges::any_of(
      list, [&](const Json& item) { return base::StringOr(item, "name") == name; });
}

// The container that trains: the one named tensorflow or, without one, the first.
JsonObject& Trainer(JsonArray& containers) {
  auto it = std::ranges::find_if(containers, [](const Json& container) {
    return base::StringOr(container, "name") == api::kContainerName;
  });
  return (it == containers.end() ? containers.front() : *it).get_object();
}

Json ScriptOf(const Spawn& spawn) {
  JsonObject text, binary;
  const auto add = [&](std::string_view path, const std::string& bytes) {
    const std::string_view file = path.substr(kFolder.size() + 1);
    // JSON has no way to say what is not UTF-8.
    if (base::CleanUtf8(bytes) == bytes) {
      text[file] = bytes;
    } else {
      binary[file] = base::EncodeBase64(bytes);
    }
  };
  add(kScriptInPod, spawn.script);
  if (spawn.command) add(kCommandInPod, *spawn.command);
  JsonObject object{
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", MetadataOf(spawn, kScript)}};
  if (!text.empty()) object["data"] = std::move(text);
  if (!binary.empty()) object["binaryData"] = std::move(binary);
  return object;
}

Json SecretOf(const Spawn& spawn) {
  JsonObject data;
  for (const auto& [name, value] : spawn.env) data[name] = base::EncodeBase64(value);
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Secret"},
                    {"metadata", MetadataOf(spawn, kSecret)},
                    {"type", "Opaque"},
                    {"data", std::move(data)}};
}

Json ServiceOf(const Spawn& spawn, int32_t worker) {
  const std::string name = WorkerName(worker);
  JsonObject port{{"protocol", "TCP"}, {"port", spawn.port}, {"targetPort", spawn.port}};
  // A worker that starts finds its peers, whose readiness may wait for it.
  return JsonObject{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", MetadataOf(spawn, name)},
      {"spec", JsonObject{{"selector", JsonObject{{"app", name}, {kTagLabel, spawn.tag}}},
                          {"ports", JsonArray{std::move(port)}},
                          {"publishNotReadyAddresses", true}}}};
}

std::string TfConfigOf(const Spawn& spawn, int32_t worker) {
  api::Job job;
  job.spec.replicas[api::Role::kWorker].replicas = spawn.workers;
  const auto address = [&](api::ReplicaId id) {
    return fmt::format("{}:{}", NameUnder(spawn.tag, WorkerName(id.index)), spawn.port);
  };
  job.extensions.dialect = api::Dialect::kTfSpawner;
  const auto config = core::TfConfig(job, {api::Role::kWorker, worker}, address);
  CHECK(config.has_value());
  return *config;
}

// Each variable once: the env file's, else the template's, else ours. A variable may refer to those
// before it, $(NAME), so the template's come last.
JsonArray EnvOf(const Spawn& spawn, int32_t worker, const JsonArray& of_template) {
  JsonArray out;
  for (const auto& [name, value] : spawn.env) {
    const JsonObject key{{"name", NameUnder(spawn.tag, kSecret)}, {"key", name}};
    out.push_back(JsonObject{{"name", name}, {"valueFrom", JsonObject{{"secretKeyRef", key}}}});
  }
  const std::pair<std::string_view, std::string> ours[] = {
      {"TF_CONFIG", TfConfigOf(spawn, worker)},
      {"WORKER_NUMBER", std::to_string(worker)},
      {"TOT_WORKERS", std::to_string(spawn.workers)}};
  for (const auto& [name, value] : ours) {
    if (spawn.env.contains(std::string(name)) || HasNamed(of_template, name)) continue;
    out.push_back(JsonObject{{"name", name}, {"value", value}});
  }
  for (const Json& variable : of_template) {
    if (!spawn.env.contains(base::StringOr(variable, "name"))) out.push_back(variable);
  }
  return out;
}

void MountScript(const Spawn& spawn, JsonObject& spec, JsonObject& container) {
  JsonArray& volumes = ListAt(spec, "volumes");
  if (!HasNamed(volumes, kScript)) volumes.push_back(JsonObject{{"name", kScript}});
  for (Json& volume : volumes) {
    if (base::StringOr(volume, "name") != kScript) continue;
    // The template cannot know what it is called under this tag.
    const Json* given = base::Find(volume, "configMap");
    JsonObject source = given && given->is_object() ? given->get_object() : JsonObject();
    source["name"] = NameUnder(spawn.tag, kScript);
    volume = JsonObject{{"name", kScript}, {"configMap", std::move(source)}};
  }
  JsonArray& mounts = ListAt(container, "volumeMounts");
  if (!HasNamed(mounts, kScript)) {
    mounts.push_back(JsonObject{{"name", kScript}, {"mountPath", kFolder}, {"readOnly", true}});
  }
}

void SetCommand(const Spawn& spawn, JsonObject& container) {
  if (spawn.command) {
    container["command"] = JsonArray{Json("/bin/bash"), Json("-e"), Json(kCommandInPod)};
    container.erase("args");
  } else if (container["command"].is_null()) {
    container["command"] = JsonArray{Json("python"), Json(kScriptInPod)};
  }
}

Json PodOf(const Spawn& spawn, int32_t worker) {
  JsonObject pod = spawn.pod.get_object();
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  JsonObject& metadata = ObjectAt(pod, "metadata");
  // The template's namespace would contradict the one that was asked for.
  for (std::string_view key : {"namespace", "generateName"}) metadata.erase(key);
  metadata["name"] = NameUnder(spawn.tag, WorkerName(worker));
  JsonObject& labels = ObjectAt(metadata, "labels");
  labels["app"] = WorkerName(worker);
  labels[kTagLabel] = spawn.tag;

  JsonObject& spec = ObjectAt(pod, "spec");
  // A worker that has trained is not to train again, which is what Kubernetes does unless told.
  if (spec["restartPolicy"].is_null()) spec["restartPolicy"] = "Never";
  JsonObject& container = Trainer(ListAt(spec, "containers"));
  if (!spawn.image.empty()) container["image"] = spawn.image;
  if (container["image"].is_null()) container["image"] = kImage;
  container["env"] = EnvOf(spawn, worker, ListAt(container, "env"));
  SetCommand(spawn, container);
  MountScript(spawn, spec, container);
  return pod;
}

}  // namespace

std::string SelectorOf(const std::string& tag) { return fmt::format("{}={}", kTagLabel, tag); }

std::string NameUnder(const std::string& tag, std::string_view name) {
  return tag == kDefaultTag ? std::string(name) : fmt::format("{}-{}", tag, name);
}

std::string WorkerName(int32_t worker) { return fmt::format("worker{}", worker); }

std::vector<Piece> PiecesOf(const Spawn& spawn) {
  std::vector<Piece> out;
  out.push_back({"config map", "configmaps", ScriptOf(spawn)});
  if (!spawn.env.empty()) out.push_back({"secret", "secrets", SecretOf(spawn)});
  for (int32_t i = 0; i < spawn.workers; ++i) {
    out.push_back({"service", "services", ServiceOf(spawn, i)});
  }
  for (int32_t i = 0; i < spawn.workers; ++i) out.push_back({"pod", "pods", PodOf(spawn, i)});
  return out;
}

void SetOwner(Json& object, const Json& owner) {
  const Json* metadata = base::Find(owner, "metadata");
  CHECK(metadata);
  object.get_object()["metadata"].get_object()["ownerReferences"] =
      JsonArray{JsonObject{{"apiVersion", base::StringOr(owner, "apiVersion")},
                           {"kind", base::StringOr(owner, "kind")},
                           {"name", base::StringOr(*metadata, "name")},
                           {"uid", base::StringOr(*metadata, "uid")}}};
}

}  // namespace cli
