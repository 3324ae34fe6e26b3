#include "serve/config.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "base/strings.h"
#include "serving.pb.h"

namespace serve {
namespace {

using base::Invalid;
using base::Result;

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text.empty())
      text = fmt::format("line {}, column {}: {}", line + 1, column + 1, base::OneLine(message));
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  std::string text;
};

Result<ModelConfig> ModelOf(const tensorflow::serving::ModelConfig& from) {
  ModelConfig out{.name = from.name(), .base_path = from.base_path()};
  if (!IsModelName(out.name))
    return Invalid(fmt::format("model '{}': a name has letters, digits and . _ - only, at most 128",
                               base::OneLine(out.name)));
  const std::string where = fmt::format("model '{}': ", out.name);
  if (!out.base_path.starts_with('/'))
    return Invalid(where + "base_path must be a directory, from / on");
  if (!from.model_platform().empty() && from.model_platform() != "tensorflow")
    return Invalid(fmt::format("{}model_platform '{}': only tensorflow is served", where,
                               base::OneLine(from.model_platform())));
  const auto& policy = from.model_version_policy();
  if (policy.has_all()) {
    out.policy.kind = VersionPolicy::Kind::kAll;
  } else if (policy.has_specific()) {
    out.policy.kind = VersionPolicy::Kind::kSpecific;
    out.policy.specific.assign(policy.specific().versions().begin(),
                               policy.specific().versions().end());
    if (out.policy.specific.empty()) return Invalid(where + "specific names no versions");
  } else if (policy.has_latest() && policy.latest().num_versions() > 0) {
    out.policy.latest = policy.latest().num_versions();
  }
  out.labels.insert(from.version_labels().begin(), from.version_labels().end());
  return out;
}

}  // namespace

bool IsModelName(const std::string& name) {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Result<std::vector<ModelConfig>> FromProto(const tensorflow::serving::ModelServerConfig& config) {
  if (config.has_custom_model_config()) return Invalid("custom_model_config is not served");
  std::vector<ModelConfig> out;
  std::set<std::string> names;
  for (const auto& model : config.model_config_list().config()) {
    out.push_back(TRY(ModelOf(model)));
    if (!names.insert(out.back().name).second)
      return Invalid(fmt::format("model '{}' is there twice", out.back().name));
  }
  if (out.empty()) return Invalid("no models in it: model_config_list { config { … } }");
  return out;
}

Result<std::vector<ModelConfig>> ParseConfig(const std::string& text) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  tensorflow::serving::ModelServerConfig config;
  if (!parser.ParseFromString(text, &config)) return Invalid(error.text);
  return FromProto(config);
}

std::vector<int64_t> Wanted(const VersionPolicy& policy, const std::vector<int64_t>& versions) {
  std::vector<int64_t> out = versions;
  std::ranges::sort(out);
  switch (policy.kind) {
    case VersionPolicy::Kind::kAll:
      break;
    case VersionPolicy::Kind::kLatest:
      if (out.size() > policy.latest)
        out.erase(out.begin(), out.end() - static_cast<ptrdiff_t>(policy.latest));
      break;
    case VersionPolicy::Kind::kSpecific:
      std::erase_if(out, [&](int64_t version) {
        return std::ranges::find(policy.specific, version) == policy.specific.end();
      });
      break;
  }
  return out;
}

}  // namespace serve
