// The kinds of objects that the model of an API server keeps, and which of them a request is about.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/transport.h"

namespace backend::sim {

enum class NameRule { kSubdomain, kLabel, kLabel1035 };

struct Resource {
  std::string_view group;  // empty: the core group
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;
  bool custom = false;                // defined by a CRD
  bool has_status = false;            // with a subresource of its own
  bool counts_generation = false;     // metadata.generation tells of changes of the spec
  bool unconditional_update = false;  // a PUT without a version is taken
  bool create_on_update = false;      // a PUT of what does not exist creates it
  bool returns_deleted = false;       // DELETE answers with the object, not with a Status
  NameRule names = NameRule::kSubdomain;

  std::string ApiVersion() const;
  std::string Qualified() const;      // "pods", "tfjobs.kubeflow.org"
  std::string QualifiedKind() const;  // "Pod", "TFJob.kubeflow.org"
};

extern const Resource kPods, kServices, kEvents, kNamespaces, kConfigMaps, kLeases, kTFJobs,
    kVolcanoPodGroups, kPluginsPodGroups;
// All of them, in a fixed order.
const std::vector<const Resource*>& AllResources();

// "a%2Cb" -> "a,b"; as in a query, '+' is a space.
std::string Decoded(std::string_view text);

// What a path names.
struct Target {
  const Resource* resource = nullptr;
  std::string name_space;  // empty: all of them, or the resource has none
  std::string name;        // empty: the collection
  std::string subresource;
  std::map<std::string, std::string, std::less<>> query;

  std::string Query(std::string_view key) const;
  bool Flag(std::string_view key) const;  // "true" or "1"
};

// Nothing: there is no such path on any server.
std::optional<Target> TargetOf(const std::string& path);

// GET of a collection with watch=true.
bool IsWatch(const kube::Request& request);

}  // namespace backend::sim
