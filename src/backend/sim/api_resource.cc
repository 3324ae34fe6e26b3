#include "backend/sim/api_resource.h"

#include "base/strings.h"

namespace backend::sim {

const Resource kPods = {.version = "v1",
                        .plural = "pods",
                        .kind = "Pod",
                        .has_status = true,
                        .counts_generation = true,
                        .unconditional_update = true,
                        .returns_deleted = true};
const Resource kServices = {.version = "v1",
                            .plural = "services",
                            .kind = "Service",
                            .has_status = true,
                            .unconditional_update = true,
                            .returns_deleted = true,
                            .names = NameRule::kLabel1035};
const Resource kEvents = {.version = "v1",
                          .plural = "events",
                          .kind = "Event",
                          .unconditional_update = true,
                          .create_on_update = true};
const Resource kNamespaces = {.version = "v1",
                              .plural = "namespaces",
                              .kind = "Namespace",
                              .namespaced = false,
                              .has_status = true,
                              .unconditional_update = true,
                              .names = NameRule::kLabel};
const Resource kConfigMaps = {
    .version = "v1", .plural = "configmaps", .kind = "ConfigMap", .unconditional_update = true};
const Resource kLeases = {.group = "coordination.k8s.io",
                          .version = "v1",
                          .plural = "leases",
                          .kind = "Lease",
                          .create_on_update = true};
const Resource kTFJobs = {.group = "kubeflow.org",
                          .version = "v1",
                          .plural = "tfjobs",
                          .kind = "TFJob",
                          .custom = true,
                          .has_status = true,
                          .counts_generation = true};
const Resource kVolcanoPodGroups = {.group = "scheduling.volcano.sh",
                                    .version = "v1beta1",
                                    .plural = "podgroups",
                                    .kind = "PodGroup",
                                    .custom = true,
                                    .has_status = true,
                                    .counts_generation = true};
const Resource kPluginsPodGroups = {.group = "scheduling.x-k8s.io",
                                    .version = "v1alpha1",
                                    .plural = "podgroups",
                                    .kind = "PodGroup",
                                    .custom = true,
                                    .has_status = true,
                                    .counts_generation = true};

const std::vector<const Resource*>& AllResources() {
  static const std::vector<const Resource*> all = {
      &kPods,   &kServices, &kEvents,           &kNamespaces,      &kConfigMaps,
      &kLeases, &kTFJobs,   &kVolcanoPodGroups, &kPluginsPodGroups};
  return all;
}

std::string Resource::ApiVersion() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

std::string Resource::Qualified() const {
  return group.empty() ? std::string(plural) : std::string(plural) + "." + std::string(group);
}

std::string Resource::QualifiedKind() const {
  return group.empty() ? std::string(kind) : std::string(kind) + "." + std::string(group);
}

std::string Decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string Target::Query(std::string_view key) const {
  const auto it = query.find(key);
  return it == query.end() ? "" : it->second;
}

bool Target::Flag(std::string_view key) const {
  const std::string value = Query(key);
  return value == "true" || value == "1";
}

std::optional<Target> TargetOf(const std::string& path) {
  Target target;
  const size_t mark = path.find('?');
  if (mark != std::string::npos) {
    for (std::string_view pair : base::Split(std::string_view(path).substr(mark + 1), '&')) {
      const size_t equals = pair.find('=');
      if (pair.empty()) continue;
      target.query[Decoded(pair.substr(0, equals))] =
          equals == std::string_view::npos ? "" : Decoded(pair.substr(equals + 1));
    }
  }
  std::vector<std::string> parts;
  for (std::string_view part : base::Split(std::string_view(path).substr(0, mark), '/')) {
    if (!part.empty()) parts.push_back(Decoded(part));
  }
  size_t at = 0;
  const auto next = [&]() -> std::string { return at < parts.size() ? parts[at++] : ""; };
  const std::string root = next();
  std::string group, version;
  if (root == "apis") group = next();
  version = next();
  if (version.empty() || (root != "api" && (root != "apis" || group.empty()))) return std::nullopt;
  std::string plural = next();
  if (plural == "namespaces" && parts.size() > at + 1 && parts[at + 1] != "status") {
    target.name_space = next();
    plural = next();
  }
  for (const Resource* resource : AllResources()) {
    if (resource->group == group && resource->version == version && resource->plural == plural) {
      target.resource = resource;
    }
  }
  if (!target.resource || (!target.resource->namespaced && !target.name_space.empty())) {
    return std::nullopt;
  }
  target.name = next();
  target.subresource = next();
  if (at < parts.size()) return std::nullopt;
  if (target.resource->namespaced && !target.name.empty() && target.name_space.empty()) {
    return std::nullopt;
  }
  return target;
}

bool IsWatch(const kube::Request& request) {
  if (request.method != "GET") return false;
  const std::optional<Target> target = TargetOf(request.path);
  return target && target->Flag("watch");
}

}  // namespace backend::sim
