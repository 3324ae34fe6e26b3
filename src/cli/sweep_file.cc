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

// "1,2,3" of a list or a single value. On a command line a comma and `word` end a value.
std::optional<std::string> Values(FieldReader& reader, const Node& node, const std::string& path,
                                  std::string_view word) {
  if (node.kind != Node::Kind::kList) return Scalar(reader, node, path);
  std::string values;
  for (const std::string& choice : Scalars(reader, node, path)) {
    if (choice.contains(',') || choice.contains(word)) {
      reader.Fail(node, path, fmt::format("a value cannot have a comma or \"{}\"", word));
      return std::nullopt;
    }
    values += (values.empty() ? "" : ",") + choice;
  }
  return values;
}

// " when optimizer=sgd and layers=2,3" of {optimizer: sgd, layers: [2, 3]}.
std::string Conditions(FieldReader& reader, const Node& map, const std::string& path) {
  std::string conditions;
  if (!reader.IsMap(map, path)) return conditions;
  if (map.members.empty()) reader.Fail(map, path, "names no parameter");
  for (const base::NodeMember& member : map.members) {
    const auto values = Values(reader, member.value, api::Below(path, member.key), " and ");
    conditions += fmt::format("{}{}={}", conditions.empty() ? " when " : " and ", member.key,
                              values.value_or(""));
  }
  return conditions;
}

std::string Without(std::string_view prefix, std::string_view text) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return std::string(text);
}

void ReadParameters(FieldReader& reader, const Node& root, SweepFile& file) {
  const Node* map = FieldReader::Member(root, "parameters");
  if (!map || !reader.IsMap(*map, "parameters")) return;
  sweep::Space space;
  for (const base::NodeMember& member : map->members) {
    const std::string path = api::Below("parameters", member.key);
    const Node* values = &member.value;
    std::string conditions;
    if (member.value.kind == Node::Kind::kMap) {
      reader.KnownOnly(member.value, path, {"values", "when"});
      values = FieldReader::Member(member.value, "values");
      if (!values) {
        reader.Fail(member.value, api::Below(path, "values"),
                    "is missing: for example {values: 0.0..0.99, when: {optimizer: sgd}}");
        continue;
      }
      if (const Node* when = FieldReader::Member(member.value, "when"))
        conditions = Conditions(reader, *when, api::Below(path, "when"));
    }
    const auto text = Values(reader, *values, path, " when ");
    if (!text) continue;
    const std::string flag = fmt::format("{}={}{}", member.key, *text, conditions);
    auto parameter = sweep::ParseParameter(flag);
    if (!parameter) {
      reader.Fail(*values, path, Without(member.key + ": ", parameter.error().text()));
      continue;
    }
    space.push_back(*std::move(parameter));
    file.flags.push_back("--param=" + flag);
  }
  // A condition can only be checked beside all parameters.
  if (space.size() < map->members.size()) return;
  for (size_t i = 0; i < space.size(); ++i) {
    const Node& value = map->members[i].value;
    const Node* when = value.Find("when");
    if (auto good = sweep::CheckConditions(space, i); !good) {
      reader.Fail(when ? *when : value, api::Below(api::Below("parameters", space[i].name), "when"),
                  Without(space[i].name + ": when: ", good.error().text()));
    }
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
