#include "backend/sim/api_selector.h"

#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_names.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Json;

// Splits at commas that are not within parentheses.
std::vector<std::string_view> Requirements(std::string_view text) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      out.push_back(base::Trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return out;
}

// The fields that can be selected by, of each kind.
bool IsSelectable(const Resource& resource, std::string_view field) {
  if (field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced)) {
    return true;
  }
  return &resource == &kPods && (field == "spec.nodeName" || field == "status.phase" ||
                                 field == "spec.restartPolicy" || field == "spec.schedulerName");
}

const Json* At(const Json& object, const std::vector<std::string>& path) {
  const Json* at = &object;
  for (const std::string& key : path) {
    at = at ? base::Find(*at, key) : nullptr;
  }
  return at;
}

std::vector<std::string> Listed(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view value : base::Split(text, ',')) out.emplace_back(base::Trim(value));
  return out;
}

}  // namespace

Outcome<Selector> Selector::Parse(const Resource& resource, std::string_view labels,
                                  std::string_view fields) {
  Selector selector;
  const auto unable = [&](std::string_view why) {
    return BadRequest(fmt::format("unable to parse requirement: {}", why));
  };
  for (std::string_view text : Requirements(labels)) {
    if (base::Trim(labels).empty()) break;
    Rule rule;
    std::string_view key = text;
    const size_t open = text.find('(');
    if (open != std::string_view::npos && text.ends_with(')')) {
      const std::string_view head = base::Trim(text.substr(0, open));
      const size_t space = head.find_first_of(" \t");
      const std::string_view word =
          space == std::string_view::npos ? "" : base::Trim(head.substr(space));
      if (word != "in" && word != "notin")
        return unable(fmt::format("found '{}', expected: in, notin", word));
      rule.what = word == "in" ? Rule::What::kIn : Rule::What::kNotIn;
      rule.values = Listed(text.substr(open + 1, text.size() - open - 2));
      key = head.substr(0, space);
    } else if (text.starts_with('!')) {
      rule.what = Rule::What::kMissing;
      key = base::Trim(text.substr(1));
    } else if (const size_t equals = text.find('='); equals != std::string_view::npos) {
      const bool negated = equals > 0 && text[equals - 1] == '!';
      const bool doubled = equals + 1 < text.size() && text[equals + 1] == '=';
      rule.what = negated ? Rule::What::kNotIn : Rule::What::kIn;
      key = base::Trim(text.substr(0, negated ? equals - 1 : equals));
      rule.values = {std::string(base::Trim(text.substr(equals + (doubled ? 2 : 1))))};
    } else {
      rule.what = Rule::What::kExists;
    }
    if (key.empty()) return unable("found ',', expected: !, identifier, or 'end of string'");
    if (const Faults wrong = WrongQualifiedName(key); !wrong.empty()) {
      return unable(fmt::format("<nil>: Invalid value: \"{}\": {}", key, wrong.front()));
    }
    for (const std::string& value : rule.values) {
      if (const Faults wrong = WrongLabelValue(value); !wrong.empty()) {
        return unable(
            fmt::format("values[0][{}]: Invalid value: \"{}\": {}", key, value, wrong.front()));
      }
    }
    rule.path = {"metadata", "labels", std::string(key)};
    selector.rules_.push_back(std::move(rule));
  }
  for (std::string_view text : Requirements(fields)) {
    if (text.empty()) continue;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
      return BadRequest(fmt::format("invalid selector: '{}'; can't understand '{}'", fields, text));
    }
    const bool negated = equals > 0 && text[equals - 1] == '!';
    const bool doubled = equals + 1 < text.size() && text[equals + 1] == '=';
    const std::string_view field = text.substr(0, negated ? equals - 1 : equals);
    if (!IsSelectable(resource, field)) {
      return BadRequest(fmt::format("field label not supported: {}", field));
    }
    Rule rule{.of_field = true, .what = negated ? Rule::What::kNotIn : Rule::What::kIn};
    for (std::string_view part : base::Split(field, '.')) rule.path.emplace_back(part);
    rule.values = {std::string(text.substr(equals + (doubled ? 2 : 1)))};
    selector.rules_.push_back(std::move(rule));
  }
  return selector;
}

bool Selector::Matches(const Json& object) const {
  return std::ranges::all_of(rules_, [&](const Rule& rule) {
    const Json* found = At(object, rule.path);
    const bool there = found && found->is_string();
    std::string value = there ? std::string(found->as_string()) : "";
    switch (rule.what) {
      case Rule::What::kIn:
        return (there || rule.of_field) &&
               std::ranges::find(rule.values, value) != rule.values.end();
      case Rule::What::kNotIn:
        return (!there && !rule.of_field) ||
               std::ranges::find(rule.values, value) == rule.values.end();
      case Rule::What::kExists:
        return there;
      case Rule::What::kMissing:
        return !there;
    }
    return false;
  });
}

}  // namespace backend::sim
