#include "api/plain_job.h"

#include <fmt/core.h>

#include "api/tfjob.h"
#include "api/tree.h"

namespace api {
namespace {

using base::Node;

constexpr std::string_view kPolicies[] = {"backoffLimit", "activeDeadlineSeconds",
                                          "ttlSecondsAfterFinished", "suspend"};
// About several pods, or about who keeps the Job.
constexpr std::string_view kIgnored[] = {
    "backoffLimitPerIndex", "completionMode",   "managedBy",
    "manualSelector",       "maxFailedIndexes", "podFailurePolicy",
    "podReplacementPolicy", "selector",         "successPolicy"};

void CheckFields(const Node& spec, FieldReader& reader) {
  std::vector<std::string> known = {"template", "parallelism", "completions"};
  known.insert(known.end(), std::begin(kPolicies), std::end(kPolicies));
  known.insert(known.end(), std::begin(kIgnored), std::end(kIgnored));
  reader.KnownOnly(spec, "spec", known);
  for (std::string_view key : kIgnored) {
    if (const Node* member = FieldReader::Member(spec, key)) {
      reader.Warn(*member, Below("spec", key), "is ignored: the Job becomes a TFJob of one worker");
    }
  }
  for (std::string_view key : {"parallelism", "completions"}) {
    const std::string path = Below("spec", key);
    const Node* member = FieldReader::Member(spec, key);
    const auto count = member ? reader.Whole(*member, path) : std::nullopt;
    if (count && *count != 1) {
      reader.Fail(
          *member, path,
          fmt::format("must be 1, not {}: replicas that know of each other are a TFJob's", *count));
    }
  }
}

Node TakePolicies(Node& spec) {
  Node out = MapNode(spec);
  for (std::string_view key : kPolicies) {
    if (!IsEmpty(FindIn(spec, key))) Put(out, std::string(key), Take(spec, key));
  }
  if (!out.Find("backoffLimit")) {
    Node limit = base::ToNode(kBackoffLimitOfJob);
    Place(limit, spec);
    Put(out, "backoffLimit", std::move(limit));
  }
  return out;
}

// As an API server: a Job's pods must say one of the two.
void TakeRestartPolicy(Node& pod_spec, FieldReader& reader) {
  const std::string path = "spec.template.spec.restartPolicy";
  const Node written = Take(pod_spec, "restartPolicy");
  if (IsEmpty(&written)) return reader.Fail(pod_spec, path, "is required: OnFailure or Never");
  const auto text = reader.Text(written, path);
  if (text && *text != "OnFailure" && *text != "Never") {
    reader.Fail(written, path, "must be OnFailure or Never, not " + Quoted(*text));
  }
}

void Replace(Node& map, std::string_view key, std::string_view text) {
  Node* written = FindIn(map, key);
  *written = TextNode(text, *written);
}

void NameContainer(Node& pod_spec) {
  Node* containers = FindIn(pod_spec, "containers");
  if (!containers || containers->items.size() != 1) return;
  Node& only = containers->items.front();
  if (!TextIn(only, "name").empty()) Replace(only, "name", kContainerName);
}

Node TakeWorker(Node& spec, FieldReader& reader) {
  Node worker = MapNode(spec);
  if (Node* pod_template = FindIn(spec, "template"); !IsEmpty(pod_template)) {
    Node* pod_spec = FindIn(*pod_template, "spec");
    if (pod_spec && pod_spec->kind == Node::Kind::kMap) {
      TakeRestartPolicy(*pod_spec, reader);
      NameContainer(*pod_spec);
    }
    Put(worker, "template", std::move(*pod_template));
  }
  Put(worker, "restartPolicy", TextNode(Name(RestartPolicy::kOnFailure), spec));
  return worker;
}

}  // namespace

bool IsPlainJob(const Node& root) {
  return TextIn(root, "apiVersion") == "batch/v1" && TextIn(root, "kind") == "Job";
}

Spelling RewritePlainJob(Node& root, FieldReader& reader) {
  Replace(root, "apiVersion", kApiVersion);
  Replace(root, "kind", kKind);
  Spelling out{.name = "batch/v1 Job",
               .moved = {{"spec.runPolicy", "spec"},
                         {"spec.tfReplicaSpecs", "spec"},
                         {"spec.tfReplicaSpecs.Worker", "spec"}}};
  Node* spec = FindIn(root, "spec");
  if (!spec || spec->kind != Node::Kind::kMap) return out;
  CheckFields(*spec, reader);
  Node job = MapNode(*spec);
  Put(job, "runPolicy", TakePolicies(*spec));
  Put(*MapIn(job, "tfReplicaSpecs"), "Worker", TakeWorker(*spec, reader));
  *spec = std::move(job);
  return out;
}

}  // namespace api
