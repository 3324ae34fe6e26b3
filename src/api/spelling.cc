#include "api/spelling.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "api/tree.h"
#include "base/strings.h"

namespace api {
namespace {

using base::Node;
using base::NodeMember;

enum class Generation { kV1, kMapForm, kListForm };

struct Version {
  std::string_view api_version;
  Generation generation;
  std::string_view spelling;
};

constexpr Version kVersions[] = {
    {"kubeflow.org/v1", Generation::kV1, "v1"},
    {"kubeflow.org/v1beta2", Generation::kMapForm, "v1beta2"},
    {"kubeflow.org/v1beta1", Generation::kMapForm, "v1beta1"},
    {"kubeflow.org/v1alpha2", Generation::kMapForm, "v1alpha2"},
    {"kubeflow.org/v1alpha1", Generation::kListForm, "v1alpha1"},
    {"tensorflow.org/v1alpha1", Generation::kListForm, "tensorflow.org/v1alpha1"},
    {"mlkube.io/v1beta1", Generation::kListForm, "mlkube.io/v1beta1"},
};

// Until tf-operator 1.0 these stood at the top of the spec.
const std::vector<std::string> kPolicies = {"cleanPodPolicy", "ttlSecondsAfterFinished",
                                            "activeDeadlineSeconds", "backoffLimit"};

std::string Folded(std::string_view key) {
  std::string out = base::Lower(key);
  std::erase(out, '_');
  return out;
}

// Gives known fields their v1 names, whatever their letter case and underscores.
void NameFields(Node& map, const std::string& path, const std::vector<std::string>& known,
                FieldReader& reader) {
  std::vector<NodeMember> kept;
  std::set<std::string> taken;
  for (const NodeMember& member : map.members) taken.insert(member.key);
  for (NodeMember& member : map.members) {
    const auto name = std::ranges::find(known, Folded(member.key), Folded);
    if (name != known.end() && member.key != *name) {
      if (!taken.insert(*name).second) {
        reader.Fail(member, Below(path, member.key), "is given twice, also as " + *name);
        continue;
      }
      member.key = *name;
    }
    kept.push_back(std::move(member));
  }
  map.members = std::move(kept);
}

Node* TensorFlowContainerIn(Node& replica) {
  Node* pod_template = FindIn(replica, "template");
  Node* spec = pod_template ? FindIn(*pod_template, "spec") : nullptr;
  Node* containers = spec ? FindIn(*spec, "containers") : nullptr;
  if (!containers) return nullptr;
  for (Node& container : containers->items) {
    const Node* name = container.Find("name");
    if (name && name->scalar == base::Json(kContainerName)) return &container;
  }
  return nullptr;
}

class Rewriter {
 public:
  Rewriter(Node& root, FieldReader& reader) : root_(root), reader_(reader) {}

  Spelling Run() {
    if (root_.kind != Node::Kind::kMap) {
      reader_.Fail(root_, "",
                   root_.kind == Node::Kind::kNull ? "the manifest is empty"
                                                   : "must be a map, not " + Shown(root_));
      out_.is_job = false;
      return out_;
    }
    const Version version = VersionAndKind();
    out_.name = version.spelling;
    Node* spec = FindIn(root_, "spec");
    if (!spec || spec->kind != Node::Kind::kMap) return out_;
    if (version.generation == Generation::kV1) {
      NameListOfV1(*spec);
    } else {
      NameFields(*spec, "spec", {"tfReplicaSpecs", "replicaSpecs", "runPolicy", "successPolicy"},
                 reader_);
      NameFields(*spec, "spec", kPolicies, reader_);
    }
    MovePolicies(*spec, version.generation);
    const bool has_list = spec->Find("replicaSpecs");
    if (version.generation == Generation::kListForm || has_list) TakeFieldsOfAlpha1(*spec);
    if (has_list) {
      RewriteList(*spec, version.generation);
      LimitRestarts(*spec);
    }
    if (version.generation != Generation::kV1) {
      NameReplicaFields(*spec);
      KeepOldCleanUp(*spec);
      KeepOldTfConfig(*spec);
    }
    return out_;
  }

 private:
  Version VersionAndKind() {
    const Node* kind = FieldReader::Member(root_, "kind");
    const Node* api_version = FieldReader::Member(root_, "apiVersion");
    const auto kind_text = kind ? reader_.Text(*kind, "kind") : std::nullopt;
    const auto version_text = api_version ? reader_.Text(*api_version, "apiVersion") : std::nullopt;
    if (!kind) reader_.Require(root_, "kind", "is required: TFJob");
    if (!api_version) reader_.Require(root_, "apiVersion", "is required: kubeflow.org/v1");
    Version version = kVersions[0];
    if (version_text) {
      const auto known = std::ranges::find(kVersions, *version_text, &Version::api_version);
      if (known == std::end(kVersions)) {
        // Another kind of object, most likely; its fields would all be unknown.
        out_.is_job = false;
        reader_.Fail(*api_version, "apiVersion",
                     fmt::format("must be {} (or an older version of TFJob), not {}", kApiVersion,
                                 Quoted(*version_text)));
      } else {
        version = *known;
      }
    }
    if (kind_text) {
      const bool old = version.generation != Generation::kV1;
      const bool fits = old ? base::Lower(*kind_text) == base::Lower(kKind) : *kind_text == kKind;
      if (!fits) {
        out_.is_job = out_.is_job && base::Lower(*kind_text) == base::Lower(kKind);
        reader_.Fail(*kind, "kind", fmt::format("must be {}, not {}", kKind, Quoted(*kind_text)));
      }
    }
    return version;
  }

  void MovePolicies(Node& spec, Generation generation) {
    for (const std::string& policy : kPolicies) {
      const auto found = std::ranges::find(spec.members, policy, &NodeMember::key);
      if (found == spec.members.end()) continue;
      const NodeMember written = *found;
      const std::string path = Below("spec", policy);
      const std::string v1_path = Below("spec.runPolicy", policy);
      spec.members.erase(found);
      Node* run_policy = FindIn(spec, "runPolicy");
      if (run_policy && run_policy->kind != Node::Kind::kMap &&
          run_policy->kind != Node::Kind::kNull) {
        continue;  // reported as such
      }
      if (run_policy && run_policy->Find(policy)) {
        reader_.Fail(written, path, "is given twice, also as " + v1_path);
        continue;
      }
      if (generation == Generation::kV1) {
        reader_.Warn(written.value, path, "is read as " + v1_path + ", where v1 has it");
      }
      if (generation != Generation::kListForm && out_.name.find(' ') == std::string::npos) {
        out_.name += " (top-level policies)";
      }
      out_.moved.emplace_back(v1_path, path);
      if (!run_policy) run_policy = &Put(spec, "runPolicy", Node{});
      Put(*run_policy, policy, written.value);
    }
  }

  // The operator of v1alpha1 ran every replica as a Job of Kubernetes, which gives up by itself.
  void LimitRestarts(Node& spec) {
    Node* run_policy = MapIn(spec, "runPolicy");
    if (!run_policy || !IsEmpty(FindIn(*run_policy, "backoffLimit"))) return;
    Take(*run_policy, "backoffLimit");
    Node limit = base::ToNode(kBackoffLimitOfJob);
    Place(limit, spec);
    Put(*run_policy, "backoffLimit", std::move(limit));
  }

  void KeepOldCleanUp(Node& spec) {
    Node* run_policy = FindIn(spec, "runPolicy");
    if (!run_policy) run_policy = &Put(spec, "runPolicy", Node{});
    const bool fits = run_policy->kind == Node::Kind::kMap || run_policy->kind == Node::Kind::kNull;
    if (!fits || !IsEmpty(FindIn(*run_policy, "cleanPodPolicy"))) return;
    Take(*run_policy, "cleanPodPolicy");
    Put(*run_policy, "cleanPodPolicy", TextNode("Running", spec));
  }

  void KeepOldTfConfig(Node& spec) {
    if (!IsEmpty(FindIn(spec, "tfConfigForSingleReplica"))) return;
    Take(spec, "tfConfigForSingleReplica");
    Node set = TextNode("", spec);
    set.kind = Node::Kind::kBool;
    set.scalar = true;
    Put(spec, "tfConfigForSingleReplica", set);
  }

  void NameReplicaFields(Node& spec) {
    Node* replicas = FindIn(spec, "tfReplicaSpecs");
    if (!replicas || replicas->kind != Node::Kind::kMap) return;
    for (NodeMember& member : replicas->members) {
      NameFields(member.value, Below("spec.tfReplicaSpecs", member.key),
                 {"replicas", "restartPolicy", "template"}, reader_);
    }
  }

  // The list is taken in v1 as well: texts that teach it do not always say for which version.
  void NameListOfV1(Node& spec) {
    for (NodeMember& member : spec.members) {
      if (Folded(member.key) != "replicaspecs" || member.value.kind != Node::Kind::kList) continue;
      if (spec.Find("tfReplicaSpecs")) return;
      reader_.Warn(member.value, Below("spec", member.key),
                   "is read as spec.tfReplicaSpecs, the map that v1 has");
      member.key = "replicaSpecs";
      return;
    }
  }

  void TakeFieldsOfAlpha1(Node& spec) {
    NameFields(spec, "spec",
               {"tfImage", "terminationPolicy", "schedulerName", "runtimeId", "tensorboard"},
               reader_);
    const Node tensorboard = Take(spec, "tensorboard");
    if (reader_.IsMap(tensorboard, "spec.tensorboard")) {
      reader_.Warn(tensorboard, "spec.tensorboard",
                   "is ignored: TensorBoard runs beside a job, not in it");
    }
    const Node runtime_id = TakeText(spec, "runtimeId");
    if (!IsEmpty(&runtime_id)) {
      reader_.Warn(runtime_id, "spec.runtimeId",
                   "is ignored: replica names have no random part any more");
    }
    image_ = TakeText(spec, "tfImage");
    scheduler_ = TakeText(spec, "schedulerName");
    termination_ = Take(spec, "terminationPolicy");
  }

  void RewriteList(Node& spec, Generation generation) {
    Node list = Take(spec, "replicaSpecs");
    if (list.kind == Node::Kind::kNull) return;
    if (out_.name.find(' ') == std::string::npos) out_.name += " (list form)";
    if (const Node* map = spec.Find("tfReplicaSpecs")) {
      // An API server puts an empty map beside the list (deploy/crd.yaml).
      if (map->kind != Node::Kind::kMap || !map->members.empty()) {
        reader_.Fail(list, "spec.replicaSpecs", "is given twice, also as tfReplicaSpecs");
        return;
      }
      Take(spec, "tfReplicaSpecs");
    }
    // MASTER in v1alpha1; the texts that speak of a chief have it as the default.
    const Role unless_said = generation == Generation::kListForm ? Role::kMaster : Role::kChief;
    Node map = MapNode(list);
    out_.moved.emplace_back("spec.tfReplicaSpecs", "spec.replicaSpecs");
    if (reader_.IsList(list, "spec.replicaSpecs")) {
      for (size_t i = 0; i < list.items.size(); ++i) {
        RewriteReplica(map, std::move(list.items[i]), BelowIndex("spec.replicaSpecs", i),
                       unless_said);
      }
    }
    CheckTermination(termination_, map);
    Put(spec, "tfReplicaSpecs", std::move(map));
  }

  // Null when it is absent or no text.
  Node TakeText(Node& spec, std::string_view key) {
    const Node value = Take(spec, key);
    return reader_.Text(value, Below("spec", key)) ? value : Node{};
  }

  void RewriteReplica(Node& map, Node replica, const std::string& path, Role unless_said) {
    if (replica.kind != Node::Kind::kMap) {
      reader_.Fail(replica, path, "must be a map, not " + Shown(replica));
      return;
    }
    NameFields(replica, path,
               {"replicas", "tfReplicaType", "tfPort", "template", "isDefaultPS", "restartPolicy"},
               reader_);
    const auto role = TakeRole(replica, path, unless_said);
    if (!role) return;
    const std::string key(Name(*role));
    if (map.Find(key)) {
      reader_.Fail(replica, path, "is a second entry for " + key);
      return;
    }
    const std::string v1_path = Below("spec.tfReplicaSpecs", key);
    out_.moved.emplace_back(v1_path, path);
    reader_.Flag(Take(replica, "isDefaultPS"), Below(path, "isDefaultPS"));
    if (IsEmpty(FindIn(replica, "template")) && *role == Role::kPs) {
      reader_.Fail(replica, Below(path, "template"),
                   "is required: the parameter server that ran by itself is gone since 2018");
      return;
    }
    LiftRestartPolicy(replica, path, v1_path);
    PlacePort(replica, path);
    PlaceDefaults(replica);
    const int line = replica.line;
    const int column = replica.column;
    map.members.push_back({key, line, column, std::move(replica)});
  }

  std::optional<Role> TakeRole(Node& replica, const std::string& path, Role unless_said) {
    const Node type = Take(replica, "tfReplicaType");
    const std::string type_path = Below(path, "tfReplicaType");
    if (type.kind == Node::Kind::kNull) return unless_said;
    const auto text = reader_.Text(type, type_path);
    if (!text) return std::nullopt;
    if (auto role = RoleFromName(*text)) return role;
    reader_.FailUnknown(type, type_path, "unknown replica type " + Quoted(*text), *text,
                        {"MASTER", "WORKER", "PS", "CHIEF", "EVALUATOR"});
    return std::nullopt;
  }

  // The restart policy was the pod's own.
  void LiftRestartPolicy(Node& replica, const std::string& path, const std::string& v1_path) {
    Node* pod_template = FindIn(replica, "template");
    Node* spec = pod_template ? FindIn(*pod_template, "spec") : nullptr;
    if (!spec || IsEmpty(FindIn(*spec, "restartPolicy"))) return;
    if (!IsEmpty(FindIn(replica, "restartPolicy"))) return;
    Take(replica, "restartPolicy");
    Put(replica, "restartPolicy", Take(*spec, "restartPolicy"));
    out_.moved.emplace_back(Below(v1_path, "restartPolicy"),
                            Below(path, "template.spec.restartPolicy"));
  }

  void PlacePort(Node& replica, const std::string& path) {
    const Node port = Take(replica, "tfPort");
    Node* container = TensorFlowContainerIn(replica);
    const auto number = reader_.Whole(port, Below(path, "tfPort"));
    if (!number || !container || container->kind != Node::Kind::kMap) return;
    if (*number < 1 || *number > 65'535) {
      reader_.Fail(port, Below(path, "tfPort"),
                   fmt::format("must be between 1 and 65535, not {}", *number));
      return;
    }
    Node* ports = FindIn(*container, "ports");
    if (!ports) ports = &Put(*container, "ports", Node{});
    if (ports->kind == Node::Kind::kNull) ports->kind = Node::Kind::kList;
    if (ports->kind != Node::Kind::kList) return;  // reported as such
    for (const Node& there : ports->items) {
      const Node* name = there.Find("name");
      if (!name || name->scalar != base::Json(kPortName)) continue;
      const Node* written = there.Find("containerPort");
      if (!written || written->scalar != port.scalar) {
        reader_.Fail(port, Below(path, "tfPort"),
                     "differs from the port named tfjob-port of the container");
      }
      return;
    }
    Node entry;
    Put(entry, "name", TextNode(kPortName, port));
    Put(entry, "containerPort", port);
    ports->items.push_back(std::move(entry));
  }

  void PlaceDefaults(Node& replica) {
    Node* container = TensorFlowContainerIn(replica);
    if (container && image_.kind != Node::Kind::kNull && IsEmpty(FindIn(*container, "image"))) {
      Take(*container, "image");
      Put(*container, "image", image_);
    }
    Node* pod_template = FindIn(replica, "template");
    Node* spec = pod_template ? FindIn(*pod_template, "spec") : nullptr;
    if (spec && spec->kind == Node::Kind::kMap && scheduler_.kind != Node::Kind::kNull &&
        IsEmpty(FindIn(*spec, "schedulerName"))) {
      Take(*spec, "schedulerName");
      Put(*spec, "schedulerName", scheduler_);
    }
  }

  // v1 always takes replica 0 of Chief or Master and, without one, worker 0.
  void CheckTermination(Node policy, const Node& replicas) {
    const std::string path = "spec.terminationPolicy";
    if (!reader_.IsMap(policy, path)) return;
    NameFields(policy, path, {"chief"}, reader_);
    reader_.KnownOnly(policy, path, {"chief"});
    Node chief = Take(policy, "chief");
    const std::string chief_path = Below(path, "chief");
    if (!reader_.IsMap(chief, chief_path)) return;
    NameFields(chief, chief_path, {"replicaName", "replicaIndex"}, reader_);
    reader_.KnownOnly(chief, chief_path, {"replicaName", "replicaIndex"});
    std::string name = "MASTER";
    int64_t index = 0;
    reader_.Text(chief, chief_path, "replicaName", name);
    reader_.Whole(chief, chief_path, "replicaIndex", index);
    const bool has_master = replicas.Find("Master") || replicas.Find("Chief");
    const auto role = RoleFromName(name);
    const bool fits = index == 0 && role && replicas.Find(Name(*role)) &&
                      (*role == Role::kMaster || *role == Role::kChief ||
                       (*role == Role::kWorker && !has_master));
    if (!fits) {
      reader_.Fail(chief, chief_path,
                   fmt::format("must name MASTER 0 or, in a job without one, WORKER 0, not {} {}",
                               Quoted(name), index));
    }
  }

  Node& root_;
  FieldReader& reader_;
  // Fields of v1alpha1 that concern every replica; null when not given.
  Node image_;
  Node scheduler_;
  Node termination_;
  Spelling out_;
};

}  // namespace

std::string Spelling::Written(const std::string& v1_path) const {
  size_t longest = 0;
  std::string out = v1_path;
  for (const auto& [v1, written] : moved) {
    if (!v1_path.starts_with(v1) || v1.size() < longest) continue;
    const std::string_view rest = std::string_view(v1_path).substr(v1.size());
    if (!rest.empty() && rest[0] != '.' && rest[0] != '[') continue;
    longest = v1.size();
    out = written + std::string(rest);
  }
  return out;
}

Spelling RewriteAsV1(Node& root, FieldReader& reader) { return Rewriter(root, reader).Run(); }

}  // namespace api
