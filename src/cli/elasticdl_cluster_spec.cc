#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/strings.h"
#include "cli/elasticdl_grammar.h"

namespace cli {
namespace {

using base::ArrayAt;
using base::Invalid;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::ObjectAt;
using base::Result;

constexpr std::string_view kEveryPod = "pod_spec";
constexpr std::string_view kService = "service_spec";

std::unexpected<base::Error> Unknown(std::string_view key, const std::vector<std::string>& known) {
  const auto nearest = base::Nearest(key, known);
  return Invalid(fmt::format("unknown key '{}': {}", base::OneLine(key),
                             nearest ? fmt::format("did you mean {}?", *nearest)
                                     : "must be one of " + base::Join(known, ", ")));
}

Result<> CheckPodPart(const JsonObject& part) {
  const std::vector<std::string> known = {"labels", "annotations", "affinity", "tolerations",
                                          "env"};
  for (const auto& [key, value] : part) {
    if (std::ranges::find(known, std::string_view(key)) == known.end()) return Unknown(key, known);
    const bool list = key == "tolerations" || key == "env";
    if (list ? !value.is_array() : !value.is_object()) {
      return Invalid(
          fmt::format("{}: must be {}", std::string_view(key), list ? "a list" : "an object"));
    }
    if (!list && key != "affinity" &&
        !std::ranges::all_of(value.get_object(),
                             [](const auto& item) { return item.value().is_string(); })) {
      return Invalid(fmt::format("{}: values must be text", std::string_view(key)));
    }
    if (list && !std::ranges::all_of(value.get_array(),
                                     [](const Json& item) { return item.is_object(); })) {
      return Invalid(fmt::format("{}: must be a list of objects", std::string_view(key)));
    }
  }
  return {};
}

void Append(JsonObject& to, std::string_view key, const JsonArray& items) {
  for (const Json& item : items) ArrayAt(to, key).push_back(item);
}

void Change(const JsonObject& part, JsonObject& pod) {
  for (const auto& [key, value] : part) {
    if (key == "labels" || key == "annotations") {
      JsonObject& to = ObjectAt(ObjectAt(pod, "metadata"), key);
      for (const auto& [name, text] : value.get_object()) to[name] = text;
    } else if (key == "affinity") {
      ObjectAt(pod, "spec")["affinity"] = value;
    } else if (key == "tolerations") {
      Append(ObjectAt(pod, "spec"), "tolerations", value.get_array());
    } else {
      for (Json& container : ArrayAt(ObjectAt(pod, "spec"), "containers")) {
        if (container.is_object()) Append(container.get_object(), "env", value.get_array());
      }
    }
  }
}

}  // namespace

Result<EdlClusterSpec> EdlClusterSpec::Parse(std::string_view text) {
  EdlClusterSpec out;
  text = base::Trim(text);
  if (text.empty()) return out;
  std::string json(text);
  if (!text.starts_with('{')) {
    const auto decoded = base::DecodeBase64(text);
    if (!decoded) return Invalid("neither a JSON object nor base64 of one");
    json = *decoded;
  }
  const Json read = TRY(base::ParseJson(json));
  if (!read.is_object()) return Invalid("must be a JSON object");
  std::vector<std::string> known = {std::string(kEveryPod), std::string(kService)};
  for (const char* who : {"master", "edl-master", "ps", "worker", "chief", "evaluator"})
    known.push_back(fmt::format("{}_pod_spec", who));
  for (const auto& [key, value] : read.get_object()) {
    if (std::ranges::find(known, std::string_view(key)) == known.end()) return Unknown(key, known);
    if (!value.is_object())
      return Invalid(fmt::format("{}: must be an object", std::string_view(key)));
    if (key != kService) TRY_AS(std::string(key), CheckPodPart(value.get_object()));
  }
  out.parts_ = read.get_object();
  return out;
}

void EdlClusterSpec::ChangePod(std::string_view who, JsonObject& pod) const {
  std::vector<std::string> keys = {std::string(kEveryPod), fmt::format("{}_pod_spec", who)};
  if (who == "edl-master") keys.insert(keys.begin() + 1, "master_pod_spec");  // as develop says it
  for (const std::string& key : keys) {
    if (const Json* part = parts_.if_contains(key)) Change(part->get_object(), pod);
  }
}

void EdlClusterSpec::ChangeService(JsonObject& service) const {
  const Json* part = parts_.if_contains(kService);
  if (!part) return;
  for (const auto& [key, value] : part->get_object()) ObjectAt(service, "spec")[key] = value;
}

}  // namespace cli
