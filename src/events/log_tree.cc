#include "events/log_tree.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <tuple>

#include <dirent.h>

namespace events {
namespace {

constexpr std::string_view kMark = "tfevents";

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The seconds after "tfevents.", 0 when there are none.
int64_t BegunAt(std::string_view name) {
  int64_t seconds = 0;
  const size_t mark = name.find(kMark);
  for (size_t i = mark + kMark.size() + 1; mark != name.npos && i < name.size(); ++i) {
    if (name[i] < '0' || name[i] > '9' || seconds > INT64_MAX / 20) break;
    seconds = seconds * 10 + (name[i] - '0');
  }
  return seconds;
}

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

enum class Kind { kDirectory, kFile, kOther };

Kind KindOf(const std::string& path, const dirent& entry) {
  if (entry.d_type == DT_DIR) return Kind::kDirectory;
  if (entry.d_type == DT_REG) return Kind::kFile;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return Kind::kOther;
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return Kind::kOther;
  if (S_ISDIR(status.st_mode)) return Kind::kDirectory;
  return S_ISREG(status.st_mode) ? Kind::kFile : Kind::kOther;
}

}  // namespace

bool BegunBefore(std::string_view path, std::string_view other) {
  const std::string_view a = NameOf(path);
  const std::string_view b = NameOf(other);
  return std::tuple(BegunAt(a), a) < std::tuple(BegunAt(b), b);
}

struct LogTree::Visit {
  std::string path;
  std::string run;
  int depth = 0;
};

const std::vector<const EventFile*>& LogTree::Scan(base::Time now, Problems* problems) {
  ++scan_;
  files_.clear();
  std::set<std::pair<dev_t, ino_t>> visited;
  std::vector<Visit> to_visit = {{root_, ".", 0}};
  while (!to_visit.empty()) {
    const Visit visit = std::move(to_visit.back());
    to_visit.pop_back();
    struct stat status;
    if (stat(visit.path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (visited.size() == kMaxDirectories) {
      problems->Report(root_ + ": more than " + std::to_string(kMaxDirectories) +
                       " directories, the rest is not read");
      break;
    }
    if (!visited.emplace(status.st_dev, status.st_ino).second) continue;

    Listing& listing = listings_[visit.path];
    listing.scan = scan_;
    if (!IsCurrent(listing, status, now) && List(visit, &listing, problems)) {
      if (!SameTime(listing.modified, status.st_mtim)) listing.first_listed = now;
      listing.modified = status.st_mtim;
      listing.listed = now;
      listing.settled = now - listing.first_listed > kSettled;
    }
    for (const EventFile& file : listing.files) files_.push_back(&file);
    if (visit.depth == kMaxDepth) continue;
    for (const std::string& name : listing.directories) {
      to_visit.push_back({visit.path + "/" + name, visit.run == "." ? name : visit.run + "/" + name,
                          visit.depth + 1});
    }
  }
  std::erase_if(listings_, [this](const auto& entry) { return entry.second.scan != scan_; });
  return files_;
}

bool LogTree::IsCurrent(const Listing& listing, const struct stat& status, base::Time now) const {
  return listing.settled && now - listing.listed < kRenew &&
         SameTime(listing.modified, status.st_mtim);
}

bool LogTree::List(const Visit& visit, Listing* listing, Problems* problems) {
  listing->directories.clear();
  listing->files.clear();
  listing->settled = false;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(visit.path.c_str()), closedir);
  if (!directory) {
    if (errno != ENOENT) problems->Report(visit.path + ": " + std::strerror(errno));
    return false;
  }
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool marked = name.contains(kMark);
    if (entry->d_type == DT_REG && !marked) continue;
    std::string path = visit.path + "/" + entry->d_name;
    const Kind kind = KindOf(path, *entry);
    if (kind == Kind::kDirectory) listing->directories.emplace_back(name);
    if (kind == Kind::kFile && marked) listing->files.push_back({visit.run, std::move(path)});
  }
  // Descending, because the last one pushed is the first one visited.
  std::ranges::sort(listing->directories, std::greater<>());
  std::ranges::sort(listing->files, BegunBefore, &EventFile::path);
  return true;
}

}  // namespace events
