#include "cli/code_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "io/files.h"

namespace cli {

namespace fs = std::filesystem;
using base::Invalid;
using base::Result;

namespace {

Result<> CheckLink(const fs::path& link, const fs::path& root) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  if (error) return Invalid(fmt::format("{}: a link that leads nowhere", link.string()));
  if (*target.lexically_relative(root).begin() == "..")
    return Invalid(fmt::format("{}: a link that leads out of {}", link.string(), root.string()));
  return {};
}

}  // namespace

Result<std::vector<std::string>> CodeFiles(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  const fs::path root = fs::canonical(directory, error);
  for (auto it = fs::recursive_directory_iterator(root, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || name == "__pycache__") {
      it.disable_recursion_pending();
      continue;
    }
    if (it->is_symlink(error)) TRY(CheckLink(it->path(), root));
    if (it->is_regular_file(error)) out.push_back(it->path().lexically_relative(root).string());
  }
  if (error) return Invalid(fmt::format("{}: {}", directory, error.message()));
  std::ranges::sort(out);
  return out;
}

Result<std::string> ScriptIn(const std::string& directory) {
  std::vector<std::string> scripts;
  for (const std::string& file : io::ListDir(directory)) {
    if (file.ends_with(".py")) scripts.push_back(file);
  }
  for (const char* name : {"__main__.py", "main.py", "train.py"}) {
    if (std::ranges::find(scripts, name) != scripts.end()) return directory + "/" + name;
  }
  if (scripts.size() == 1) return directory + "/" + scripts.front();
  return Invalid(
      fmt::format("{}: none of its {} scripts is named main.py or train.py: name the one to run",
                  directory, scripts.size()));
}

}  // namespace cli
