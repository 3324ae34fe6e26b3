// TF-Spawner's jobs: from its options to the objects that it makes on a cluster.
//
// A ConfigMap with the script, a Secret with the env file, and for each worker a Service and a Pod,
// all labelled training_attempt=TAG. Under the default tag they are called script, script-env and
// worker0; under the tag T, T-script, T-script-env and T-worker0, so that jobs can live side by
// side.
//
// Pure. The objects hold secrets: never to be printed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace cli {

inline constexpr std::string_view kDefaultTag = "tf-spawner";
// Where the script is in a pod; those who write a command rely on it.
inline constexpr std::string_view kScriptInPod = "/script/training-script.py";

struct Spawn {
  std::string tag{kDefaultTag};
  int32_t workers = 2;
  int32_t port = 1999;
  std::string script;
  std::optional<std::string> command;      // a bash script to run instead
  std::map<std::string, std::string> env;  // wins over all else
  std::string image;                       // empty: the template's, or else a TensorFlow
  base::Json pod;                          // a template that ReadPodFile has read
};

// A pod template: whatever of it we do not set reaches the pod. `name` is that of the file, for
// errors.
base::Result<base::Json> ReadPodFile(std::string_view text, const std::string& name);

// Whether objects can carry this tag. TF-Spawner itself takes any such.
base::Result<> CheckTag(const std::string& tag);
// Whether this can be made of it: names that fit, and data that a ConfigMap and a Secret hold.
base::Result<> CheckSpawn(const Spawn& spawn);

// "training_attempt=TAG", to find all that belongs to a tag.
std::string SelectorOf(const std::string& tag);
// What an object is called under a tag: NameUnder("x", "worker0") is x-worker0.
std::string NameUnder(const std::string& tag, std::string_view name);
std::string WorkerName(int32_t worker);  // before the tag: "worker0"

struct Piece {
  std::string_view kind;      // as a person says it: "config map"
  std::string_view resource;  // "configmaps", of the API version v1
  base::Json object;
};

// In the order in which they are to be made: the script first, services before pods.
std::vector<Piece> PiecesOf(const Spawn& spawn);

// `object` is to go when `owner`, as the server has it, goes.
void SetOwner(base::Json& object, const base::Json& owner);

}  // namespace cli
