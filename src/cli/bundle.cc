#include "cli/bundle.h"

#include <fmt/core.h>

#include "base/base64.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "cli/code_files.h"
#include "io/files.h"

namespace cli {
namespace {

using base::Invalid;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr size_t kMostFiles = 1000;

bool IsText(std::string_view bytes) {
  return bytes.find('\0') == std::string_view::npos && base::CleanUtf8(bytes) == bytes;
}

// Keys of a ConfigMap are no paths; which file is which is said by the volume.
std::string KeyOf(const Code& code, const std::string& path) {
  return fmt::format("file-{}", std::distance(code.begin(), code.find(path)));
}

JsonObject Metadata(const std::string& name, const std::string& name_space) {
  return {{"name", name},
          {"namespace", name_space},
          {"labels", JsonObject{{"app.kubernetes.io/managed-by", "trainyard"}}}};
}

Result<> TooMuch(const std::string& directory) {
  return Invalid(
      fmt::format("{} holds more than the 1 MiB that a ConfigMap takes: name the script alone, or "
                  "make an image "
                  "of it: trainyard package {} -t IMAGE",
                  directory, directory));
}

}  // namespace

Result<Code> PackDirectory(const std::string& directory) {
  Code out;
  size_t bytes = 0;
  for (const std::string& path : TRY(CodeFiles(directory))) {
    std::string content = TRY(io::ReadFile(directory + "/" + path));
    bytes += content.size();
    if (bytes > kMostCode || out.size() >= kMostFiles) TRY(TooMuch(directory));
    out[path] = std::move(content);
  }
  return out;
}

Json CodeConfigMap(const std::string& name, const std::string& name_space, const Code& code) {
  JsonObject data, binary;
  for (const auto& [path, content] : code) {
    if (IsText(content)) {
      data[KeyOf(code, path)] = content;
    } else {
      binary[KeyOf(code, path)] = base::EncodeBase64(content);
    }
  }
  JsonObject out{
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", Metadata(name, name_space)}};
  if (!data.empty()) out["data"] = std::move(data);
  if (!binary.empty()) out["binaryData"] = std::move(binary);
  return out;
}

Json CodeVolume(const std::string& config_map, const Code& code) {
  JsonArray items;
  for (const auto& [path, content] : code)
    items.push_back(JsonObject{{"key", KeyOf(code, path)}, {"path", path}});
  return JsonObject{{"name", "trainyard-code"},
                    {"configMap", JsonObject{{"name", config_map}, {"items", std::move(items)}}}};
}

Json EnvSecret(const std::string& name, const std::string& name_space, const Values& values) {
  JsonObject data;
  for (const auto& [key, value] : values) data[key] = base::EncodeBase64(value);
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Secret"},
                    {"metadata", Metadata(name, name_space)},
                    {"type", "Opaque"},
                    {"data", std::move(data)}};
}

Result<OutputWish> ParseOutput(const std::string& text) {
  OutputWish out;
  if (text.empty())
    return Invalid("--output: must be CLAIM[/PATH], new[:SIZE[:CLASS]], a URL or none");
  if (text == "none") {
    out.kind = OutputWish::Kind::kNone;
  } else if (text.find("://") != std::string::npos) {
    out.kind = OutputWish::Kind::kUrl;
    out.url = text;
    while (out.url.ends_with('/')) out.url.pop_back();
  } else if (text == "new" || text.starts_with("new:")) {
    const auto parts = base::Split(text, ':');
    if (parts.size() > 3)
      return Invalid("--output: must be new[:SIZE[:CLASS]], not '" + text + "'");
    if (parts.size() > 1) {
      out.size = parts[1];
      TRY_AS("--output", base::ParseMemory(out.size));
    }
    if (parts.size() > 2) out.storage_class = parts[2];
  } else {
    if (text.starts_with('/') || text.starts_with('.')) {
      return Invalid(
          fmt::format("--output {}: a directory of this machine is not on the cluster: name a "
                      "claim, or use new",
                      text));
    }
    out.kind = OutputWish::Kind::kClaim;
    const size_t slash = text.find('/');
    out.claim = text.substr(0, slash);
    if (slash != std::string::npos) out.path = text.substr(slash + 1);
    for (std::string_view part : base::Split(out.path, '/')) {
      if (part == "..") return Invalid("--output: '..' leads out of the claim");
    }
  }
  return out;
}

Json OutputClaim(const std::string& name, const std::string& name_space, const OutputWish& wish,
                 bool shared) {
  JsonObject spec{{"accessModes", JsonArray{Json(shared ? "ReadWriteMany" : "ReadWriteOnce")}},
                  {"resources", JsonObject{{"requests", JsonObject{{"storage", wish.size}}}}}};
  if (!wish.storage_class.empty()) spec["storageClassName"] = wish.storage_class;
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "PersistentVolumeClaim"},
                    {"metadata", Metadata(name, name_space)},
                    {"spec", std::move(spec)}};
}

}  // namespace cli
