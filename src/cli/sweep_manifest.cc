#include "cli/sweep_manifest.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/manifest.h"
#include "api/substitute.h"
#include "api/template.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "sweep/study.h"

namespace cli {
namespace {

using base::Invalid;
using base::Node;
using base::Result;

// A name with '-' cannot stand in ${…}.
std::string ReferenceName(const sweep::Parameter& parameter) {
  std::string name = parameter.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

bool Mentions(std::string_view text, const std::string& name) {
  return text.contains("${" + name + "}") || text.contains("${{" + name + "}}");
}

// Removes what stands for inactive parameters.
class Pruner {
 public:
  explicit Pruner(std::set<std::string> inactive) : inactive_(std::move(inactive)) {}

  void Apply(Node& node) const {
    for (Node& item : node.items) Apply(item);
    for (base::NodeMember& member : node.members) {
      if (member.key == "args" || member.key == "command") PruneWords(member.value.items);
      if (member.key == "env") PruneVariables(member.value.items);
      Apply(member.value);
    }
  }

  // A Template may require a value for a parameter that nothing mentions anymore.
  void PruneDeclarations(Node& root) const {
    for (base::NodeMember& member : root.members) {
      if (member.key != "parameters") continue;
      std::erase_if(member.value.items, [&](const Node& declaration) {
        const Node* name = declaration.Find("name");
        return name && name->scalar.is_string() &&
               inactive_.contains(std::string(name->scalar.get_string()));
      });
    }
  }

  // An inactive parameter that is still mentioned somewhere, or "".
  std::string Mentioned(const Node& node) const {
    if (node.scalar.is_string()) {
      if (std::string found = MentionedIn(node.scalar.get_string()); !found.empty()) return found;
    }
    for (const Node& item : node.items) {
      if (std::string found = Mentioned(item); !found.empty()) return found;
    }
    for (const base::NodeMember& member : node.members) {
      std::string found = MentionedIn(member.key);
      if (found.empty()) found = Mentioned(member.value);
      if (!found.empty()) return found;
    }
    return "";
  }

 private:
  std::string MentionedIn(std::string_view text) const {
    const auto found =
        std::ranges::find_if(inactive_, [&](const std::string& n) { return Mentions(text, n); });
    return found == inactive_.end() ? "" : *found;
  }

  bool IsInactive(std::string_view text) const {
    return std::ranges::any_of(inactive_, [&](const std::string& name) {
      return text == "${" + name + "}" || text == "${{" + name + "}}";
    });
  }

  static std::string_view TextOf(const Node& node) {
    return node.scalar.is_string() ? std::string_view(node.scalar.get_string()) : "";
  }

  void PruneWords(std::vector<Node>& words) const {
    std::vector<Node> kept;
    for (Node& word : words) {
      const std::string_view text = TextOf(word);
      const size_t equals = text.starts_with('-') ? text.find('=') : text.npos;
      if (equals != text.npos && IsInactive(text.substr(equals + 1))) continue;
      if (!IsInactive(text)) {
        kept.push_back(std::move(word));
        continue;
      }
      const std::string_view before = kept.empty() ? "" : TextOf(kept.back());
      if (before.starts_with('-') && !before.contains('=')) kept.pop_back();
    }
    words = std::move(kept);
  }

  void PruneVariables(std::vector<Node>& variables) const {
    std::erase_if(variables, [&](const Node& variable) {
      const Node* value = variable.Find("value");
      return value && IsInactive(TextOf(*value));
    });
  }

  const std::set<std::string> inactive_;
};

// A Template wants values for its own parameters; what else it has stays as it is.
void GiveToTemplate(Node& root, const api::Values& values) {
  for (base::NodeMember& member : root.members) {
    if (member.key != "parameters") continue;
    for (Node& parameter : member.value.items) {
      const Node* name = parameter.Find("name");
      if (!name || !name->scalar.is_string()) continue;
      const auto value = values.find(std::string_view(name->scalar.get_string()));
      if (value == values.end()) continue;
      std::erase_if(parameter.members, [](const base::NodeMember& m) { return m.key == "value"; });
      parameter.members.push_back(
          {.key = "value", .value = base::ToNode(base::Json(value->second))});
    }
  }
}

}  // namespace

Result<std::string> ManifestOf(const SweepPlan& plan, const sweep::Trial& trial) {
  auto root = base::ReadYaml(plan.manifest);
  if (!root) return Invalid(root.error().Text());
  api::Values values;
  std::set<std::string> inactive;
  for (size_t i = 0; i < plan.settings.space.size(); ++i) {
    const sweep::Parameter& p = plan.settings.space[i];
    const std::string name = ReferenceName(p);
    if (!Mentions(plan.manifest, name))
      return Invalid(fmt::format("{}: the manifest has no ${{{}}} in it", p.name, name));
    if (trial.point[i] == sweep::kInactive) {
      inactive.insert(name);
    } else {
      values[name] = sweep::Text(p, trial.point[i]);
    }
  }
  // For what must differ between trials, an output directory say.
  values.try_emplace("trial", fmt::format("{}-t{}", plan.name, trial.number));
  const Pruner pruner(std::move(inactive));
  pruner.Apply(*root);
  if (const std::string left = pruner.Mentioned(*root); !left.empty()) {
    return Invalid(
        fmt::format("${{{}}} has no value in some trials: make it an argument of its own, such as "
                    "--{}=${{{}}}, or the value of a variable in env",
                    left, left, left));
  }
  if (api::IsTemplate(*root)) {
    pruner.PruneDeclarations(*root);
    GiveToTemplate(*root, values);
  }
  api::FieldReader reader;
  api::Substitution(reader).Apply(*root, values);
  if (const auto errors = reader.InOrder(); !errors.empty())
    return Invalid(api::Describe(errors, "the manifest"));
  return base::WriteYaml(base::ToJson(*root));
}

Result<> CheckManifest(const SweepPlan& plan, const std::string& file) {
  sweep::Study study(plan.settings);
  sweep::Trial trial = study.Ask();
  const std::string text = TRY(ManifestOf(plan, trial));
  const api::Manifest manifest = api::ReadManifest(text, {}, [](size_t) { return size_t{0}; });
  if (!manifest.errors.empty()) return Invalid(api::Describe(manifest.errors, file));
  // With as much left out as possible.
  for (size_t i = 0; i < plan.settings.space.size(); ++i) {
    if (!plan.settings.space[i].when.empty()) trial.point[i] = sweep::kInactive;
  }
  TRY(ManifestOf(plan, trial));
  return {};
}

}  // namespace cli
