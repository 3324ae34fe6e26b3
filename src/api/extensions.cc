#include "api/extensions.h"

#include <fmt/core.h>

#include "base/duration.h"
#include "base/strings.h"

namespace api {
namespace {

using base::Node;

constexpr std::string_view kPrefix = "trainyard.dev/";
constexpr std::string_view kRestartScope = "trainyard.dev/restart-scope";
constexpr std::string_view kElastic = "trainyard.dev/elastic";
constexpr std::string_view kStartDeadline = "trainyard.dev/start-deadline";
constexpr std::string_view kWaitForEvaluator = "trainyard.dev/wait-for-evaluator";
constexpr std::string_view kEvaluatorInCluster = "trainyard.dev/evaluator-in-cluster";
constexpr std::string_view kEndLeftovers = "trainyard.dev/end-leftovers";
constexpr std::string_view kStoppedBy = "trainyard.dev/stopped-by";
constexpr std::string_view kLife = "trainyard.dev/life";
constexpr std::string_view kOutput = "trainyard.dev/output";
constexpr std::string_view kDialect = "trainyard.dev/dialect";
constexpr std::string_view kTfConfig = "trainyard.dev/tf-config";
constexpr std::string_view kHighPriority = "trainyard.dev/high-priority";

constexpr int64_t kMostLives = 1'000'000'000;

void DecodeFlag(const Node& node, const std::string& path, const std::string& text, bool& out,
                FieldReader& reader) {
  if (text == "true" || text == "false") {
    out = text == "true";
  } else {
    reader.Fail(node, path, "must be \"true\" or \"false\", not " + Quoted(text));
  }
}

// Numbers of workers, with commas in between; an empty text is none of them.
std::optional<std::vector<int32_t>> ParseWorkers(const std::string& text) {
  std::vector<int32_t> out;
  if (text.empty()) return out;
  for (std::string_view part : base::Split(text, ',')) {
    const auto number = base::ParseInt(part);
    if (!number || *number < 0 || *number >= kMaxReplicas) return std::nullopt;
    out.push_back(static_cast<int32_t>(*number));
  }
  return out;
}

std::string WorkersText(const std::vector<int32_t>& workers) {
  std::vector<std::string> parts;
  for (int32_t worker : workers) parts.push_back(std::to_string(worker));
  return base::Join(parts, ",");
}

void DecodeOne(const Node& node, const std::string& path, std::string_view key,
               const std::string& text, Extensions& out, FieldReader& reader) {
  if (key == kRestartScope) {
    for (RestartScope scope : {RestartScope::kAuto, RestartScope::kReplica, RestartScope::kJob}) {
      if (text == Name(scope)) {
        out.restart_scope = scope;
        return;
      }
    }
    reader.Fail(node, path, "must be Auto, Replica or Job, not " + Quoted(text));
  } else if (key == kElastic) {
    out.elastic = ParseElastic(text);
    if (!out.elastic) {
      reader.Fail(node, path,
                  fmt::format("must be MIN:MAX workers, 1 <= MIN <= MAX <= {}, not {}",
                              kMaxReplicas, Quoted(text)));
    }
  } else if (key == kStartDeadline) {
    if (auto deadline = base::ParseDuration(text)) {
      out.start_deadline = *deadline;
    } else {
      reader.Fail(node, path, deadline.error().text() + ": " + Quoted(text));
    }
  } else if (key == kWaitForEvaluator) {
    DecodeFlag(node, path, text, out.wait_for_evaluator, reader);
  } else if (key == kEvaluatorInCluster) {
    DecodeFlag(node, path, text, out.evaluator_in_cluster, reader);
  } else if (key == kEndLeftovers) {
    DecodeFlag(node, path, text, out.end_leftovers, reader);
  } else if (key == kTfConfig) {
    DecodeFlag(node, path, text, out.tf_config, reader);
  } else if (key == kDialect) {
    for (Dialect dialect : {Dialect::kTfJob, Dialect::kElasticDl}) {
      if (text == Name(dialect)) {
        out.dialect = dialect;
        return;
      }
    }
    reader.Fail(node, path, "must be TFJob or ElasticDL, not " + Quoted(text));
  } else if (key == kHighPriority) {
    out.high_priority = ParseWorkers(text);
    if (!out.high_priority) {
      reader.Fail(node, path, "must be numbers of workers like 0,3, not " + Quoted(text));
    }
  } else if (key == kStoppedBy) {
    out.stopped_by = text;
  } else if (key == kOutput) {
    out.output = text;
  } else if (key == kLife) {
    const auto life = base::ParseInt(text);
    if (life && *life >= 0 && *life <= kMostLives) {
      out.life = static_cast<int32_t>(*life);
    } else {
      reader.Fail(node, path,
                  fmt::format("must be a number from 0 to {}, not {}", kMostLives, Quoted(text)));
    }
  } else {
    const std::vector<std::string> known = {std::string(kRestartScope),
                                            std::string(kElastic),
                                            std::string(kStartDeadline),
                                            std::string(kWaitForEvaluator),
                                            std::string(kEvaluatorInCluster),
                                            std::string(kEndLeftovers),
                                            std::string(kStoppedBy),
                                            std::string(kLife),
                                            std::string(kOutput),
                                            std::string(kDialect),
                                            std::string(kTfConfig),
                                            std::string(kHighPriority)};
    reader.FailUnknown(node, path, "unknown annotation", key, known);
  }
}

}  // namespace

std::optional<Elastic> ParseElastic(const std::string& text) {
  const auto parts = base::Split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto min = base::ParseInt(parts[0]);
  const auto max = base::ParseInt(parts[1]);
  if (!min || !max || *min < 1 || *max < *min || *max > kMaxReplicas) return std::nullopt;
  return Elastic{static_cast<int32_t>(*min), static_cast<int32_t>(*max)};
}

Extensions DecodeExtensions(const Node& annotations, const std::string& path, FieldReader& reader) {
  Extensions out;
  for (const base::NodeMember& member : annotations.members) {
    if (!member.key.starts_with(kPrefix)) continue;
    // To Kubernetes null is the empty text; other values were reported as no text.
    const bool is_text = member.value.kind == Node::Kind::kString;
    if (!is_text && member.value.kind != Node::Kind::kNull) continue;
    const std::string text(is_text ? std::string_view(member.value.scalar.get_string()) : "");
    DecodeOne(member.value, BelowKey(path, member.key), member.key, text, out, reader);
  }
  return out;
}

void EncodeExtensions(const Extensions& extensions,
                      std::map<std::string, std::string>& annotations) {
  // Read what is there: an annotation that says the same already stays as its author wrote it.
  base::JsonObject written;
  for (const auto& [key, value] : annotations) written[key] = value;
  FieldReader ignored;
  const Extensions there = DecodeExtensions(base::ToNode(written), "", ignored);
  const auto set = [&](std::string_view key, bool same, const std::string& value) {
    if (!same) annotations[std::string(key)] = value;
  };
  set(kRestartScope, there.restart_scope == extensions.restart_scope,
      std::string(Name(extensions.restart_scope)));
  set(kWaitForEvaluator, there.wait_for_evaluator == extensions.wait_for_evaluator,
      extensions.wait_for_evaluator ? "true" : "false");
  set(kEvaluatorInCluster, there.evaluator_in_cluster == extensions.evaluator_in_cluster,
      extensions.evaluator_in_cluster ? "true" : "false");
  set(kEndLeftovers, there.end_leftovers == extensions.end_leftovers,
      extensions.end_leftovers ? "true" : "false");
  set(kTfConfig, there.tf_config == extensions.tf_config, extensions.tf_config ? "true" : "false");
  set(kDialect, there.dialect == extensions.dialect, std::string(Name(extensions.dialect)));
  if (extensions.high_priority) {
    set(kHighPriority, there.high_priority == extensions.high_priority,
        WorkersText(*extensions.high_priority));
  } else {
    annotations.erase(std::string(kHighPriority));
  }
  const auto set_text = [&](std::string_view key, const std::string& there_is,
                            const std::string& value) {
    if (value.empty() && !there_is.empty()) annotations.erase(std::string(key));
    set(key, value == there_is || value.empty(), value);
  };
  set_text(kStoppedBy, there.stopped_by, extensions.stopped_by);
  set_text(kOutput, there.output, extensions.output);
  set(kLife, there.life == extensions.life, std::to_string(extensions.life));
  if (extensions.elastic) {
    set(kElastic, there.elastic == extensions.elastic,
        fmt::format("{}:{}", extensions.elastic->min, extensions.elastic->max));
  } else {
    annotations.erase(std::string(kElastic));
  }
  if (extensions.start_deadline) {
    // Microseconds are exact; whole seconds read better.
    const int64_t micros = extensions.start_deadline->count();
    set(kStartDeadline, there.start_deadline == extensions.start_deadline,
        micros % 1'000'000 == 0 ? fmt::format("{}s", micros / 1'000'000)
                                : fmt::format("{}us", micros));
  } else {
    annotations.erase(std::string(kStartDeadline));
  }
}

}  // namespace api
