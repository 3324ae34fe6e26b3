// Reading a manifest, in five steps: YAML to a tree, an older spelling to v1, the tree to a job
// with every value checked by itself, the rules that hold for any job, and at last the places:
// errors that know only their path are looked up in the tree, and all are told by the author's
// paths.
#include "api/decode.h"

#include <algorithm>

#include <fmt/core.h>

#include "api/extensions.h"
#include "api/field_reader.h"
#include "api/plain_job.h"
#include "api/pod_template.h"
#include "api/spelling.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "base/yaml.h"

namespace api {
namespace {

using base::Node;

constexpr RestartPolicy kRestartPolicies[] = {RestartPolicy::kNever, RestartPolicy::kOnFailure,
                                              RestartPolicy::kAlways, RestartPolicy::kExitCode};
constexpr CleanPodPolicy kCleanPodPolicies[] = {CleanPodPolicy::kNone, CleanPodPolicy::kRunning,
                                                CleanPodPolicy::kAll};
constexpr SuccessPolicy kSuccessPolicies[] = {SuccessPolicy::kDefault, SuccessPolicy::kAllWorkers};

void DecodeMetadata(const Node& root, Job& job, FieldReader& reader) {
  const Node* metadata = FieldReader::Member(root, "metadata");
  const std::string path = "metadata";
  if (!metadata || !reader.IsMap(*metadata, path)) return;
  reader.Text(*metadata, path, "name", job.metadata.name);
  reader.Text(*metadata, path, "generateName", job.metadata.generate_name);
  reader.Text(*metadata, path, "namespace", job.metadata.name_space);
  reader.Text(*metadata, path, "uid", job.metadata.uid);
  if (const Node* labels = FieldReader::Member(*metadata, "labels")) {
    job.metadata.labels = reader.TextMap(*labels, "metadata.labels");
  }
  if (const Node* annotations = FieldReader::Member(*metadata, "annotations")) {
    const std::string here = "metadata.annotations";
    job.metadata.annotations = reader.TextMap(*annotations, here);
    job.extensions = DecodeExtensions(*annotations, here, reader);
  }
}

std::optional<base::Json> DecodeResources(const Node& node, const std::string& path,
                                          FieldReader& reader) {
  if (!reader.IsMap(node, path)) return std::nullopt;
  for (const base::NodeMember& member : node.members) {
    const std::string here = BelowKey(path, member.key);
    const bool scalar = member.value.kind == Node::Kind::kString ||
                        member.value.kind == Node::Kind::kInt ||
                        member.value.kind == Node::Kind::kDouble;
    const std::string text = member.value.scalar.is_string()
                                 ? std::string(member.value.scalar.get_string())
                             : scalar ? base::CompactJson(member.value.scalar)
                                      : "";
    if (auto quantity = base::ParseQuantity(text); !scalar || !quantity) {
      reader.Fail(
          member.value, here,
          (scalar ? quantity.error().text() : "must be a quantity") + ": " + Shown(member.value));
    }
  }
  return base::ToJson(node);
}

SchedulingPolicy DecodeScheduling(const Node& node, const std::string& path, FieldReader& reader) {
  SchedulingPolicy out;
  reader.KnownOnly(
      node, path,
      {"minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds"});
  reader.Whole(node, path, "minAvailable", out.min_available);
  reader.Text(node, path, "queue", out.queue);
  reader.Text(node, path, "priorityClass", out.priority_class);
  reader.Whole(node, path, "scheduleTimeoutSeconds", out.schedule_timeout_seconds);
  if (const Node* resources = FieldReader::Member(node, "minResources")) {
    out.min_resources = DecodeResources(*resources, Below(path, "minResources"), reader);
  }
  return out;
}

void DecodeRunPolicy(const Node& spec, RunPolicy& out, FieldReader& reader) {
  const std::string path = "spec.runPolicy";
  const Node* node = FieldReader::Member(spec, "runPolicy");
  if (!node || !reader.IsMap(*node, path)) return;
  reader.KnownOnly(*node, path,
                   {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
                    "backoffLimit", "suspend", "managedBy", "schedulingPolicy"});
  reader.Choice(*node, path, "cleanPodPolicy", kCleanPodPolicies, out.clean_pod_policy);
  reader.Whole(*node, path, "ttlSecondsAfterFinished", out.ttl_seconds_after_finished);
  reader.Whole(*node, path, "activeDeadlineSeconds", out.active_deadline_seconds);
  reader.Whole(*node, path, "backoffLimit", out.backoff_limit);
  reader.Flag(*node, path, "suspend", out.suspend);
  reader.Text(*node, path, "managedBy", out.managed_by);
  if (const Node* managed_by = FieldReader::Member(*node, "managedBy");
      managed_by && managed_by->scalar == base::Json("")) {
    reader.Fail(*managed_by, Below(path, "managedBy"), "must not be empty");
  }
  const std::string scheduling_path = Below(path, "schedulingPolicy");
  if (const Node* scheduling = FieldReader::Member(*node, "schedulingPolicy");
      scheduling && reader.IsMap(*scheduling, scheduling_path)) {
    out.scheduling_policy = DecodeScheduling(*scheduling, scheduling_path, reader);
  }
}

void WarnOfPodRestartPolicy(const Node& replica, const std::string& path, RestartPolicy policy,
                            FieldReader& reader) {
  const Node* pod_template = FieldReader::Member(replica, "template");
  const Node* spec = pod_template ? FieldReader::Member(*pod_template, "spec") : nullptr;
  const Node* written = spec ? FieldReader::Member(*spec, "restartPolicy") : nullptr;
  if (!written) return;
  // As training-operator v1.9, which says so in an event at every pod.
  reader.Warn(*written, Below(path, "template.spec.restartPolicy"),
              fmt::format("is overridden by the replica's restartPolicy, {}", Name(policy)));
}

ReplicaSpec DecodeReplica(const Node& node, const std::string& path, FieldReader& reader) {
  ReplicaSpec out;
  if (node.kind != Node::Kind::kNull && !reader.IsMap(node, path)) return out;
  reader.KnownOnly(node, path, {"replicas", "restartPolicy", "template"});
  reader.Whole(node, path, "replicas", out.replicas);
  // As training-operator v1.9: an empty restartPolicy is none.
  if (const Node* policy = FieldReader::Member(node, "restartPolicy");
      policy && policy->scalar != base::Json("")) {
    reader.Choice(node, path, "restartPolicy", kRestartPolicies, out.restart_policy);
  }
  CheckPodTemplate(node, path, reader);
  WarnOfPodRestartPolicy(node, path, out.restart_policy, reader);
  if (const Node* pod_template = FieldReader::Member(node, "template")) {
    out.pod_template = base::ToJson(*pod_template);
    AddPort(out.pod_template, kDefaultPort);
    out.port = PortOf(out.pod_template);
  }
  return out;
}

void DecodeReplicas(const Node& spec, JobSpec& out, FieldReader& reader) {
  const std::string path = "spec.tfReplicaSpecs";
  const Node* replicas = FieldReader::Member(spec, "tfReplicaSpecs");
  if (!replicas) return reader.Require(spec, path, "is required");
  if (!reader.IsMap(*replicas, path)) return;
  std::map<Role, std::string> written;
  for (const base::NodeMember& member : replicas->members) {
    const std::string here = Below(path, member.key);
    const auto role = RoleFromName(member.key);
    if (!role) {
      std::vector<std::string> names;
      for (Role known : kRoles) names.emplace_back(Name(known));
      reader.FailUnknown(member, here, "unknown replica type", member.key, names);
      continue;
    }
    if (auto [first, is_new] = written.emplace(*role, member.key); !is_new) {
      reader.Fail(member, here, "is given twice, also as " + first->second);
      continue;
    }
    out.replicas[*role] = DecodeReplica(member.value, here, reader);
  }
}

void DecodeSpec(const Node& root, JobSpec& out, FieldReader& reader) {
  const Node* spec = FieldReader::Member(root, "spec");
  if (!spec) return reader.Require(root, "spec", "is required");
  if (!reader.IsMap(*spec, "spec")) return;
  reader.KnownOnly(*spec, "spec",
                   {"tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker",
                    "tfConfigForSingleReplica"});
  reader.Choice(*spec, "spec", "successPolicy", kSuccessPolicies, out.success_policy);
  reader.Flag(*spec, "spec", "enableDynamicWorker", out.enable_dynamic_worker);
  reader.Flag(*spec, "spec", "tfConfigForSingleReplica", out.tf_config_for_single_replica);
  DecodeRunPolicy(*spec, out.run_policy, reader);
  DecodeReplicas(*spec, out, reader);
}

// The parts of a path: a.b[c.d][0] is a, b, c.d, 0.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts(1);
  bool in_brackets = false;
  for (char c : path) {
    if (c == '[' && !in_brackets) {
      in_brackets = true;
      parts.emplace_back();
    } else if (c == ']' && in_brackets) {
      in_brackets = false;
    } else if (c == '.' && !in_brackets) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The node at a path or, where that ends early, the last one on the way.
const Node& Locate(const Node& root, const std::string& path) {
  const Node* node = &root;
  for (const std::string& part : PartsOf(path)) {
    const Node* next = node->Find(part);
    for (const base::NodeMember& member : node->members) {
      // Replica types are known in any letter case.
      if (!next && base::Lower(member.key) == base::Lower(part)) next = &member.value;
    }
    if (!next) break;
    node = next;
  }
  return *node;
}

// Accepted, since training-operator accepts it, but most likely not what was meant.
void WarnOfOddities(const Node& root, const JobSpec& spec, FieldReader& reader) {
  int64_t total = 0;
  for (const auto& [role, replica] : spec.replicas) total += std::max(0, replica.replicas);
  if (total == 0)
    reader.Warn(Locate(root, "spec.tfReplicaSpecs"), "spec.tfReplicaSpecs",
                "asks for no replicas: nothing will run");
  const auto& scheduling = spec.run_policy.scheduling_policy;
  if (scheduling && scheduling->min_available && *scheduling->min_available > total && total > 0) {
    const std::string path = "spec.runPolicy.schedulingPolicy.minAvailable";
    reader.Warn(
        Locate(root, path), path,
        fmt::format("is {}, more than all replicas ({}): a gang scheduler would wait for ever",
                    *scheduling->min_available, total));
  }
}

bool IsWithin(const std::string& path, const std::string& outer) {
  if (outer.empty()) return true;
  if (!path.starts_with(outer)) return false;
  return path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[';
}

// The rules for any job, but no complaint about what was reported already or could not be read.
void AddRuleErrors(const Node& root, const Job& job, FieldReader& reader) {
  const std::vector<FieldError> found = reader.errors();
  for (FieldError& error : Validate(job)) {
    const bool told = std::ranges::any_of(
        found, [&](const FieldError& other) { return IsWithin(error.path, other.path); });
    if (!told) reader.Fail(Locate(root, error.path), error.path, error.detail);
  }
}

Decoded DecodeTree(Node root, Spelling (*rewrite)(Node&, FieldReader&)) {
  FieldReader reader;
  Decoded out;
  const Spelling spelling = rewrite(root, reader);
  out.spelling = spelling.name;
  if (spelling.is_job) {
    reader.KnownOnly(root, "", {"apiVersion", "kind", "metadata", "spec", "status"});
    DecodeMetadata(root, out.job, reader);
    out.says_namespace = !out.job.metadata.name_space.empty();
    if (!out.says_namespace) out.job.metadata.name_space = "default";
    DecodeSpec(root, out.job.spec, reader);
    AddRuleErrors(root, out.job, reader);
    if (reader.errors().empty()) WarnOfOddities(root, out.job.spec, reader);
  }
  for (FieldError& error : reader.errors()) error.path = spelling.Written(error.path);
  out.errors = reader.InOrder();
  out.warnings = std::move(reader.warnings());
  return out;
}

}  // namespace

Decoded DecodeJob(std::string_view text) {
  auto root = base::ReadYaml(text);
  if (!root) {
    Decoded out;
    out.errors.push_back({"", root.error().line, root.error().column, root.error().detail});
    return out;
  }
  return DecodeTree(std::move(*root), RewriteAsV1);
}

Decoded DecodeJobObject(const base::Json& object) {
  return DecodeTree(base::ToNode(object), RewriteAsV1);
}

Decoded DecodeJobNode(base::Node root) {
  const auto rewrite = IsPlainJob(root) ? RewritePlainJob : RewriteAsV1;
  return DecodeTree(std::move(root), rewrite);
}

std::string Describe(const std::vector<FieldError>& errors, const std::string& file) {
  std::string out;
  for (const FieldError& error : errors) {
    out += file;
    if (error.line) out += fmt::format(":{}:{}", error.line, error.column);
    out += ": ";
    if (!error.path.empty()) out += error.path + ": ";
    out += error.detail + "\n";
  }
  return out;
}

}  // namespace api
