#include "backend/local/kept_code.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>

#include "io/files.h"

namespace backend::local {
namespace {

namespace fs = std::filesystem;
using base::Result;

// More than projects have; a home directory may have more.
constexpr size_t kMostEntries = 20'000, kMostFiles = 1'000;
constexpr uintmax_t kMostBytes = 8 << 20;

bool IsPython(const fs::path& path) { return path.extension() == ".py"; }

bool IsLeftOut(const fs::path& folder, const std::string& without) {
  const std::string name = folder.filename().string();
  std::error_code ignored;
  return name.starts_with('.') || name == "__pycache__" || name == "node_modules" ||
         name == "site-packages" || folder == without || fs::exists(folder / "pyvenv.cfg", ignored);
}

// The Python files below a folder, by their paths there; nothing if there are too many.
std::optional<std::vector<fs::path>> PythonFiles(const fs::path& root, bool deep,
                                                 const std::string& without) {
  std::vector<fs::path> out;
  std::deque<fs::path> folders = {root};
  size_t entries = 0;
  uintmax_t bytes = 0;
  for (; !folders.empty(); folders.pop_front()) {
    std::error_code error;
    for (auto it = fs::directory_iterator(folders.front(), error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
      if (++entries > kMostEntries) return std::nullopt;
      std::error_code ignored;
      if (it->is_directory(ignored)) {
        if (deep && !it->is_symlink(ignored) && !IsLeftOut(it->path(), without))
          folders.push_back(it->path());
      } else if (IsPython(it->path()) && it->is_regular_file(ignored)) {
        out.push_back(it->path().lexically_relative(root));
        bytes += it->file_size(ignored);
        if (out.size() > kMostFiles || bytes > kMostBytes) return std::nullopt;
      }
    }
  }
  return out;
}

Result<> Copy(const fs::path& from, const fs::path& to) {
  TRY(io::MakeDirs(to.parent_path().string()));
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  // The job cannot import a file that is gone or that cannot be read.
  if (!error || error == std::errc::permission_denied ||
      error == std::errc::no_such_file_or_directory)
    return {};
  return base::FromErrno("keep " + from.string(), error.value());
}

bool IsSame(const fs::path& a, const fs::path& b) {
  std::error_code first, second;
  if (fs::file_size(a, first) != fs::file_size(b, second) || first || second) return false;
  return io::ReadFile(a.string()) == io::ReadFile(b.string());
}

// Gives the copy of a folder what is in the original and is not Python.
Result<> LinkTheRest(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (auto it = fs::directory_iterator(from, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const fs::path name = it->path().filename(), here = to / name;
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(here, ignored);
    if (fs::is_directory(status)) {
      TRY(LinkTheRest(it->path(), here));
    } else if (!fs::exists(status) && !IsPython(name) && name != "__pycache__") {
      std::error_code linked;
      fs::create_symlink(it->path(), here, linked);
      if (linked) return base::FromErrno("link " + here.string(), linked.value());
    }
  }
  return {};
}

}  // namespace

Result<bool> KeepCode(const std::string& script, std::string_view script_text,
                      const std::string& copy, const std::string& without) {
  TRY(io::MakeDirs(copy));
  for (const std::string& name : io::ListDir(copy)) {
    if (name != "command") TRY(io::RemoveTree(copy + "/" + name));  // that one is of --command
  }
  const fs::path root = io::DirName(script);
  auto files = PythonFiles(root, true, without);
  const bool all = files.has_value();
  if (!all) files = PythonFiles(root, false, without);
  for (const fs::path& file : files.value_or(std::vector<fs::path>())) {
    if (*file.begin() == "command") continue;
    TRY(Copy(root / file, copy / file));
  }
  TRY(io::WriteFile(copy + "/" + io::BaseName(script), script_text));
  return all;
}

std::vector<std::string> ChangedCode(const std::string& script, const std::string& copy) {
  std::vector<std::string> out;
  const fs::path root = io::DirName(script), own = fs::path(script).filename();
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(copy, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_regular_file(ignored)) continue;
    const fs::path file = it->path().lexically_relative(copy);
    if ((IsPython(file) || file == own) && !IsSame(it->path(), root / file))
      out.push_back(file.string());
  }
  std::ranges::sort(out);
  return out;
}

Result<std::string> ScriptToRun(const std::string& script, const std::string& copy) {
  if (ChangedCode(script, copy).empty()) return script;
  TRY(LinkTheRest(io::DirName(script), copy));
  return copy + "/" + io::BaseName(script);
}

}  // namespace backend::local
