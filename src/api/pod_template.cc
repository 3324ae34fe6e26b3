#include "api/pod_template.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace api {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Node;

constexpr int64_t kMaxPort = 65'535;

JsonArray* ContainersOf(Json& pod_template) {
  JsonObject* object = pod_template.if_object();
  Json* spec = object ? object->if_contains("spec") : nullptr;
  Json* list = spec && spec->is_object() ? spec->get_object().if_contains("containers") : nullptr;
  return list ? list->if_array() : nullptr;
}

const Json* NamedPort(const Json& container) {
  const Json* ports = base::Find(container, "ports");
  if (!ports || !ports->is_array()) return nullptr;
  for (const Json& port : ports->get_array()) {
    if (base::StringOr(port, "name") == kPortName) return &port;
  }
  return nullptr;
}

void CheckTexts(const Node& container, const std::string& path, std::string_view key,
                FieldReader& reader) {
  const std::string here = Below(path, key);
  const Node* list = FieldReader::Member(container, key);
  if (!list || !reader.IsList(*list, here)) return;
  for (size_t i = 0; i < list->items.size(); ++i) {
    if (list->items[i].kind == Node::Kind::kNull) {
      reader.Fail(list->items[i], BelowIndex(here, i), "must be text, not null");
    } else {
      reader.Text(list->items[i], BelowIndex(here, i));
    }
  }
}

void CheckEnv(const Node& container, const std::string& path, FieldReader& reader) {
  const std::string here = Below(path, "env");
  const Node* list = FieldReader::Member(container, "env");
  if (!list || !reader.IsList(*list, here)) return;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Node& item = list->items[i];
    const std::string at = BelowIndex(here, i);
    if (!reader.IsMapItem(item, at)) continue;
    const Node* value = FieldReader::Member(item, "value");
    if (value && value->kind != Node::Kind::kString) {
      // Not shown: it may be a secret.
      reader.Fail(*value, Below(at, "value"), "must be text; put it in quotes");
    }
    if (const Node* member = FieldReader::Member(item, "name")) {
      reader.Text(*member, Below(at, "name"));
    } else {
      reader.Fail(item, Below(at, "name"), "is required");
    }
  }
}

void CheckPorts(const Node& container, const std::string& path, FieldReader& reader) {
  const std::string here = Below(path, "ports");
  const Node* list = FieldReader::Member(container, "ports");
  if (!list || !reader.IsList(*list, here)) return;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Node& item = list->items[i];
    const std::string at = BelowIndex(here, i);
    if (!reader.IsMapItem(item, at)) continue;
    std::string name;
    reader.Text(item, at, "name", name);
    const Node* number = FieldReader::Member(item, "containerPort");
    if (!number) {
      reader.Fail(item, Below(at, "containerPort"), "is required");
    } else if (auto port = reader.Whole(*number, Below(at, "containerPort"))) {
      if (*port < 1 || *port > kMaxPort) {
        reader.Fail(*number, Below(at, "containerPort"),
                    fmt::format("must be between 1 and {}, not {}", kMaxPort, *port));
      }
    }
  }
}

// The container's name, empty when it has none; nothing when it cannot be told.
std::optional<std::string> CheckContainer(const Node& container, const std::string& path,
                                          FieldReader& reader) {
  if (!reader.IsMapItem(container, path)) return std::nullopt;
  std::optional<std::string> name = "";
  if (const Node* member = FieldReader::Member(container, "name")) {
    name = reader.Text(*member, Below(path, "name"));
  }
  const Node* image = FieldReader::Member(container, "image");
  if (!image) {
    reader.Fail(container, Below(path, "image"), "is required");
  } else if (auto text = reader.Text(*image, Below(path, "image")); text && text->empty()) {
    reader.Fail(*image, Below(path, "image"), "must not be empty");
  }
  CheckTexts(container, path, "command", reader);
  CheckTexts(container, path, "args", reader);
  CheckEnv(container, path, reader);
  CheckPorts(container, path, reader);
  return name;
}

void CheckContainers(const Node& list, const std::string& path, FieldReader& reader) {
  std::vector<std::string> names;
  bool may_have_one = false;
  for (size_t i = 0; i < list.items.size(); ++i) {
    const auto name = CheckContainer(list.items[i], BelowIndex(path, i), reader);
    if (!name || *name == kContainerName) may_have_one = true;
    if (name) names.push_back(name->empty() ? "one without a name" : Quoted(*name));
  }
  if (may_have_one) return;
  reader.Fail(list, path,
              fmt::format("must have a container named {}, has {}", kContainerName,
                          base::Join(names, ", ")));
}

}  // namespace

void CheckPodTemplate(const Node& replica, const std::string& replica_path, FieldReader& reader) {
  const std::string path = Below(replica_path, "template");
  const Node* pod_template = FieldReader::Member(replica, "template");
  if (!pod_template) {
    reader.Require(replica, path, "is required, with a container named tensorflow");
    return;
  }
  if (!reader.IsMap(*pod_template, path)) return;
  if (const Node* metadata = FieldReader::Member(*pod_template, "metadata")) {
    reader.IsMap(*metadata, Below(path, "metadata"));
  }
  const Node* spec = FieldReader::Member(*pod_template, "spec");
  const std::string spec_path = Below(path, "spec");
  if (!spec) {
    reader.Fail(*pod_template, spec_path, "is required, with a container named tensorflow");
    return;
  }
  if (!reader.IsMap(*spec, spec_path)) return;
  const Node* containers = FieldReader::Member(*spec, "containers");
  const std::string containers_path = Below(spec_path, "containers");
  if (!containers) {
    reader.Fail(*spec, containers_path, "is required: a container named tensorflow");
  } else if (reader.IsList(*containers, containers_path)) {
    if (containers->items.empty()) {
      reader.Fail(*containers, containers_path, "must have a container named tensorflow");
    } else {
      CheckContainers(*containers, containers_path, reader);
    }
  }
}

const Json* TensorFlowContainer(const Json& pod_template) {
  const Json* spec = base::Find(pod_template, "spec");
  const Json* containers = spec ? base::Find(*spec, "containers") : nullptr;
  if (!containers || !containers->is_array()) return nullptr;
  for (const Json& container : containers->get_array()) {
    if (base::StringOr(container, "name") == kContainerName) return &container;
  }
  return nullptr;
}

void SetMemoryLimit(Json& pod_template, int64_t bytes) {
  JsonArray* containers = ContainersOf(pod_template);
  if (!containers) return;
  for (Json& container : *containers) {
    if (base::StringOr(container, "name") != kContainerName) continue;
    Json& resources = container.get_object()["resources"];
    if (!resources.is_object()) resources = base::JsonObject();
    Json& limits = resources.get_object()["limits"];
    if (!limits.is_object()) limits = base::JsonObject();
    limits.get_object()["memory"] = std::to_string(bytes);
  }
}

int32_t PortOf(const Json& pod_template) {
  const Json* container = TensorFlowContainer(pod_template);
  const Json* port = container ? NamedPort(*container) : nullptr;
  const Json* number = port ? base::Find(*port, "containerPort") : nullptr;
  if (!number || !number->is_number()) return kDefaultPort;
  const auto value = number->to_number<double>();
  return value >= 1 && value <= kMaxPort ? static_cast<int32_t>(value) : kDefaultPort;
}

void AddPort(Json& pod_template, int32_t port) {
  JsonArray* containers = ContainersOf(pod_template);
  if (!containers || containers->empty()) return;
  Json* chosen = &containers->front();
  for (Json& container : *containers) {
    if (base::StringOr(container, "name") == kContainerName) {
      chosen = &container;
      break;
    }
  }
  if (!chosen->is_object() || NamedPort(*chosen)) return;
  Json& ports = chosen->get_object()["ports"];
  if (!ports.is_array()) ports = JsonArray();
  ports.get_array().push_back(JsonObject{{"name", kPortName}, {"containerPort", port}});
}

}  // namespace api
