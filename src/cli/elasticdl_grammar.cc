#include "cli/elasticdl_grammar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "base/strings.h"

namespace cli {
namespace {

using base::Invalid;
using base::JsonObject;
using base::Result;

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr size_t kMostLabel = 63;  // characters between two dots of a domain name

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}
// [1-9][0-9]*
bool IsCount(std::string_view text) { return AllDigits(text) && text.front() != '0'; }

// 2, 0.5, .5 or 1.
bool IsDecimal(std::string_view text) {
  const size_t dot = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, dot));
  if (dot < text.size()) digits += text.substr(dot + 1);
  return AllDigits(digits);
}

Result<std::string> Cpu(std::string_view text) {
  if (text.ends_with('m') ? IsCount(text.substr(0, text.size() - 1)) : IsDecimal(text))
    return std::string(text);
  return Invalid(fmt::format("invalid cpu request spec: {}: must be like 0.5, 2 or 500m",
                             base::OneLine(text)));
}

Result<std::string> Memory(std::string_view key, std::string_view text) {
  const size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view suffix = text.substr(unit);
  const bool known = (suffix.size() == 1 || (suffix.size() == 2 && suffix[1] == 'i')) &&
                     std::string_view("EPTGMK").find(suffix[0]) != std::string_view::npos;
  if (!known || !IsCount(text.substr(0, unit))) {
    return Invalid(fmt::format(
        "invalid {} request spec: {}: must be a whole number with one of the units E, P, T, G, M, "
        "K, Ei, Pi, Ti, Gi, Mi and Ki, like 1024Mi",
        key, base::OneLine(text)));
  }
  // Kubernetes knows a thousand by its small letter only.
  return suffix == "K" ? std::string(text.substr(0, unit)) + "k" : std::string(text);
}

Result<std::string> Gpus(std::string_view text) {
  if (AllDigits(text)) return std::string(text);
  return Invalid(
      fmt::format("invalid gpu request spec: {}: must be a whole number", base::OneLine(text)));
}

// A domain as in VENDOR/gpu: parts of letters, digits and '-', with dots in between.
bool IsVendor(std::string_view text) {
  return std::ranges::all_of(base::Split(text, '.'), [](std::string_view part) {
    return !part.empty() && part.size() <= kMostLabel &&
           std::ranges::all_of(part, [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
  });
}

// One KEY=VALUE of a list, blanks around both ignored.
Result<std::pair<std::string_view, std::string_view>> Pair(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Invalid(fmt::format("'{}': must be KEY=VALUE", base::OneLine(base::Trim(text))));
  }
  return std::pair{base::Trim(text.substr(0, equals)), base::Trim(text.substr(equals + 1))};
}

// One resource, under the name that Kubernetes has for it.
Result<std::pair<std::string, std::string>> Resource(std::string_view key, std::string_view value) {
  if (key == "cpu") return std::pair{std::string(key), TRY(Cpu(value))};
  if (key == "memory" || key == "ephemeral-storage" || key == "disk") {
    const std::string amount = TRY(Memory(key, value));
    return std::pair{std::string(key == "disk" ? "ephemeral-storage" : key), amount};
  }
  if (key == "gpu") return std::pair{std::string(kGpu), TRY(Gpus(value))};
  if (key.ends_with("/gpu")) {
    if (!IsVendor(key.substr(0, key.size() - 4))) {
      return Invalid(fmt::format("gpu resource name does not have a valid vendor name: {}",
                                 base::OneLine(key)));
    }
    return std::pair{std::string(key), TRY(Gpus(value))};
  }
  if (key.starts_with("nvidia.com/")) return std::pair{std::string(key), TRY(Gpus(value))};
  return Invalid(fmt::format(
      "{} is not in the allowed list of resource types: memory, disk, ephemeral-storage, cpu, gpu",
      base::OneLine(key)));
}

Result<EdlVolume> Volume(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string EdlVolume::*>, 5> kKeys = {{
      {"claim_name", &EdlVolume::claim_name},
      {"host_path", &EdlVolume::host_path},
      {"type", &EdlVolume::type},
      {"mount_path", &EdlVolume::mount_path},
      {"sub_path", &EdlVolume::sub_path},
  }};
  EdlVolume out;
  for (std::string_view item : base::Split(text, ',')) {
    const auto [key, value] = TRY(Pair(item));
    const auto known = std::ranges::find(
        kKeys, key, &std::pair<std::string_view, std::string EdlVolume::*>::first);
    if (known == kKeys.end()) {
      return Invalid(fmt::format(
          "unknown key '{}': must be one of claim_name, host_path, type, mount_path and sub_path",
          base::OneLine(key)));
    }
    std::string& member = out.*(known->second);
    if (!member.empty()) return Invalid(fmt::format("{} is given twice in one volume", key));
    if (value.empty()) return Invalid(fmt::format("{}: must not be empty", key));
    member = value;
  }
  return out;
}

Result<> CheckVolume(const EdlVolume& volume) {
  if (volume.claim_name.empty() == volume.host_path.empty()) {
    return Invalid("a volume has a claim_name or a host_path, and not both");
  }
  if (!volume.mount_path.starts_with('/') || volume.mount_path == "/") {
    return Invalid("a volume needs a mount_path, like mount_path=/data");
  }
  if (!volume.claim_name.empty() && !volume.type.empty()) {
    return Invalid("type is for a host_path, not for a claim_name");
  }
  if (!volume.host_path.empty() && !volume.host_path.starts_with('/')) {
    return Invalid(
        fmt::format("host_path: must begin with /, not '{}'", base::OneLine(volume.host_path)));
  }
  return {};
}

// What Kubernetes takes, which is more than most shells do.
bool IsVariable(std::string_view name) {
  return !name.empty() && !IsDigit(name.front()) && std::ranges::all_of(name, [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

Result<JsonObject> ParseEdlResources(std::string_view text) {
  JsonObject out;
  for (std::string_view item : base::Split(text, ',')) {
    const auto [key, value] = TRY(Pair(item));
    const auto [name, amount] = TRY(Resource(key, value));
    if (out.contains(name)) {
      return Invalid(fmt::format("the resource string contains duplicate resource names: {}",
                                 base::OneLine(key)));
    }
    out[name] = amount;
  }
  return out;
}

Result<std::vector<EdlVolume>> ParseEdlVolumes(std::string_view text) {
  std::vector<EdlVolume> out;
  for (std::string_view item : base::Split(text, ';')) {
    if (base::Trim(item).empty()) continue;
    EdlVolume volume = TRY(Volume(item));
    TRY(CheckVolume(volume));
    if (std::ranges::find(out, volume.mount_path, &EdlVolume::mount_path) != out.end()) {
      return Invalid(
          fmt::format("two volumes have the mount_path {}", base::OneLine(volume.mount_path)));
    }
    out.push_back(std::move(volume));
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseEdlEnvs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  if (base::Trim(text).empty()) return out;
  const auto add = [&](std::string_view name, std::string_view value) -> Result<> {
    name = base::Trim(name);
    // The rest may be a secret.
    if (!IsVariable(name)) {
      return Invalid(
          fmt::format("'{}' is no name of a variable: must be like A=1,B=2", base::OneLine(name)));
    }
    const auto same = std::ranges::find(out, name, &std::pair<std::string, std::string>::first);
    if (same != out.end()) {
      same->second = value;
    } else {
      out.emplace_back(name, value);
    }
    return {};
  };
  const size_t first = text.find('=');
  if (first == std::string_view::npos) return Invalid("no '=' in it: must be like A=1,B=2");
  std::string_view name = text.substr(0, first);
  size_t value = first + 1;  // where it begins
  size_t from = value;       // behind the '=' before
  for (size_t equals; (equals = text.find('=', from)) != std::string_view::npos;) {
    const size_t comma = text.substr(from, equals - from).rfind(',');
    if (comma != std::string_view::npos) {
      TRY(add(name, text.substr(value, from + comma - value)));
      name = text.substr(from + comma + 1, equals - (from + comma + 1));
      value = equals + 1;
    }
    from = equals + 1;
  }
  TRY(add(name, text.substr(value)));
  return out;
}

Result<std::vector<std::string>> ParseEdlPriority(std::string_view text, int32_t workers) {
  const auto count = static_cast<size_t>(workers);
  if (text.empty() || text == "high" || text == "low")
    return std::vector<std::string>(count, std::string(text));
  double fraction = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), fraction, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(fraction >= 0) ||
      fraction > 1) {
    return Invalid(fmt::format(
        "must be high, low, or which part of the workers is high, from 0 to 1 like 0.5, not '{}'",
        base::OneLine(text)));
  }
  std::vector<std::string> out(count, "low");
  const auto high = static_cast<size_t>(std::ceil(workers * fraction));
  for (size_t i = 0; i < high; ++i) out[i % 2 == 0 ? i / 2 : count - 1 - i / 2] = "high";
  return out;
}

Result<bool> DisablesRelaunch(std::string_view aux_params) {
  bool out = false;
  for (std::string_view item : base::Split(aux_params, ';')) {
    if (base::Trim(item).empty()) continue;
    const auto [key, value] = TRY(Pair(item));
    if (key != "disable_relaunch") {
      return Invalid(
          fmt::format("unknown parameter '{}': there is disable_relaunch", base::OneLine(key)));
    }
    if (value != "True" && value != "False") {
      return Invalid(
          fmt::format("disable_relaunch: must be True or False, not '{}'", base::OneLine(value)));
    }
    out = value == "True";
  }
  return out;
}

}  // namespace cli
