#include "cli/sweep_file.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "api/field_reader.h"
#include "base/yaml.h"
#include "cli/commands.h"
#include "sweep/space.h"

namespace cli {
namespace {

using api::FieldReader;
using base::Node;

// A number is taken as it would be typed.
std::optional<std::string> Scalar(FieldReader& reader, const Node& node, const std::string& path) {
  switch (node.kind) {
    case Node::Kind::kString:
      return std::string(node.scalar.get_string());
    case Node::Kind::kBool:
      return node.scalar.get_bool() ? "true" : "false";
    case Node::Kind::kInt:
      return base::CompactJson(node.scalar);
    case Node::Kind::kDouble:
      return fmt::format("{}", node.scalar.is_double() ? node.scalar.get_double() : 0.0);
    default:
      reader.Fail(node, path, "must be a text or a number, not " + api::Shown(node));
      return std::nullopt;
  }
}

std::vector<std::string> Scalars(FieldReader& reader, const Node& list, const std::string& path) {
  std::vector<std::string> out;
  if (!reader.IsList(list, path)) return out;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (auto text = Scalar(reader, list.items[i], api::BelowIndex(path, i)))
      out.push_back(*std::move(text));
  }
  return out;
}

void ReadParameters(FieldReader& reader, const Node& root, SweepFile& file) {
  const Node* map = FieldReader::Member(root, "parameters");
  if (!map || !reader.IsMap(*map, "parameters")) return;
  for (const base::NodeMember& member : map->members) {
    const std::string path = api::Below("parameters", member.key);
    std::string values;
    if (member.value.kind == Node::Kind::kList) {
      std::vector<std::string> choices = Scalars(reader, member.value, path);
      if (std::ranges::any_of(choices, [](const std::string& c) { return c.contains(','); })) {
        reader.Fail(member.value, path, "a value cannot have a comma");
        continue;
      }
      for (const std::string& choice : choices) values += (values.empty() ? "" : ",") + choice;
    } else if (auto text = Scalar(reader, member.value, path)) {
      values = *std::move(text);
    } else {
      continue;
    }
    if (auto parameter = sweep::ParseValues(member.key, values); !parameter) {
      std::string detail = parameter.error().text();
      if (detail.starts_with(member.key + ": ")) detail.erase(0, member.key.size() + 2);
      reader.Fail(member.value, path, detail);
      continue;
    }
    file.flags.push_back(fmt::format("--param={}={}", member.key, values));
  }
}

void ReadNumber(FieldReader& reader, const Node& root, std::string_view key, int64_t least,
                int64_t most, SweepFile& file) {
  const Node* member = FieldReader::Member(root, key);
  if (!member) return;
  const std::string path(key);
  const auto value = reader.Whole(*member, path, most);
  if (!value) return;
  if (*value < least) {
    reader.Fail(*member, path, fmt::format("must be from {} to {}, not {}", least, most, *value));
    return;
  }
  file.flags.push_back(fmt::format("--{}={}", key, *value));
}

void ReadWord(FieldReader& reader, const Node& root, std::string_view key,
              const std::vector<std::string>& valid, SweepFile& file) {
  const Node* member = FieldReader::Member(root, key);
  if (!member) return;
  const std::string path(key);
  const auto text = reader.Text(*member, path);
  if (!text) return;
  if (!valid.empty() && !std::ranges::count(valid, *text)) {
    reader.Fail(*member, path,
                fmt::format("must be one of {}, not {}", api::Listed(valid), api::Quoted(*text)));
    return;
  }
  file.flags.push_back(fmt::format("--{}={}", key, *text));
}

void ReadRunFlags(FieldReader& reader, const Node& root, SweepFile& file) {
  const Node* map = FieldReader::Member(root, "run");
  if (!map || !reader.IsMap(*map, "run")) return;
  std::vector<std::string> known;
  for (const Flag& flag : SweptRunFlags()) known.emplace_back(flag.name);
  reader.KnownOnly(*map, "run", known);
  for (const base::NodeMember& member : map->members) {
    if (!std::ranges::count(known, member.key)) continue;
    if (auto text = Scalar(reader, member.value, api::Below("run", member.key)))
      file.flags.push_back(fmt::format("--{}={}", member.key, *text));
  }
}

}  // namespace

base::Result<SweepFile> ReadSweepFile(std::string_view text, const std::string& name) {
  const auto root = base::ReadYaml(text);
  if (!root) return base::Invalid(name + ":" + root.error().Text());
  FieldReader reader;
  SweepFile file;
  if (root->kind != Node::Kind::kMap) {
    return base::Invalid(name + ": must be a map with script, parameters, metric …");
  }
  if (root->Find("apiVersion") && root->Find("kind"))
    return base::Invalid(name + ": is a manifest, not a sweep: give it with -f");
  reader.KnownOnly(
      *root, "",
      {"script", "manifest", "args", "parameters", "metric", "goal", "trials", "parallel",
       "algorithm", "prune", "seed", "window", "async", "name", "output", "run"});
  reader.Text(*root, "", "script", file.script);
  reader.Text(*root, "", "manifest", file.manifest);
  if (file.script.empty() == file.manifest.empty()) {
    reader.Require(*root, "script", "give a script or a manifest, one of them");
  }
  if (const Node* args = FieldReader::Member(*root, "args"))
    file.arguments = Scalars(reader, *args, "args");
  if (!FieldReader::Member(*root, "parameters"))
    reader.Require(*root, "parameters", "what is to be searched? for example lr: log:1e-4..1e-1");
  ReadParameters(reader, *root, file);
  ReadWord(reader, *root, "metric", {}, file);
  ReadWord(reader, *root, "name", {}, file);
  ReadWord(reader, *root, "output", {}, file);
  ReadWord(reader, *root, "goal", {"min", "max"}, file);
  ReadWord(reader, *root, "algorithm", {"grid", "random", "tpe", "gp"}, file);
  ReadWord(reader, *root, "prune", {"asha", "median", "none"}, file);
  ReadNumber(reader, *root, "trials", 1, 100'000, file);
  ReadNumber(reader, *root, "parallel", 1, 1000, file);
  ReadNumber(reader, *root, "window", 1, 1000, file);
  ReadNumber(reader, *root, "seed", 0, std::numeric_limits<int64_t>::max(), file);
  bool async = false;
  reader.Flag(*root, "", "async", async);
  if (async) file.flags.emplace_back("--async");
  ReadRunFlags(reader, *root, file);
  if (const auto errors = reader.InOrder(); !errors.empty())
    return base::Invalid(api::Describe(errors, name));
  return file;
}

}  // namespace cli
