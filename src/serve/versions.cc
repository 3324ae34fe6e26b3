#include "serve/versions.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "io/files.h"

namespace serve {

std::map<int64_t, std::string> VersionsBelow(const std::string& base_path) {
  if (io::Exists(base_path + "/saved_model.pb")) {
    const auto number = base::ParseInt(io::BaseName(base_path));
    return {{number.value_or(-1) >= 0 ? *number : 1, base_path}};
  }
  std::map<int64_t, std::string> out;
  for (const std::string& name : io::ListDir(base_path)) {
    const auto number = base::ParseInt(name);
    if (number && *number >= 0 && io::IsDirectory(base_path + "/" + name))
      out.emplace(*number, base_path + "/" + name);  // of 1 and 001, the first
  }
  return out;
}

std::string MissingOf(const Seen& files) {
  std::set<std::string> names;
  for (const FileSeen& file : files) {
    if (file.size > 0) names.insert(file.name);
  }
  if (!names.contains("saved_model.pb")) return "no saved_model.pb";
  const bool variables = std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with("variables/"); });
  if (!variables) return "";
  if (!names.contains("variables/variables.index")) return "no variables/variables.index";
  // variables.data-00000-of-00002: all of them.
  int64_t shards = 0, of = 0;
  for (const std::string& name : names) {
    const size_t at = name.rfind("-of-");
    if (!name.starts_with("variables/variables.data-") || at == std::string::npos) continue;
    ++shards;
    of = std::max(of, base::ParseInt(std::string_view(name).substr(at + 4)).value_or(0));
  }
  if (of == 0 || shards < of) return "not all of variables/variables.data";
  return "";
}

}  // namespace serve
