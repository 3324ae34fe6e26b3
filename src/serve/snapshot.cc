#include "serve/snapshot.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace serve {
namespace {

using base::Result;
namespace fs = std::filesystem;

constexpr size_t kMostHeld = 256;  // descriptors; a model with more files is read where it lies

int64_t ChangedNs(const struct stat& of) {
  return of.st_mtim.tv_sec * 1'000'000'000 + of.st_mtim.tv_nsec;
}

}  // namespace

Seen Look(const std::string& directory) {
  Seen out;
  std::error_code error;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto it = fs::recursive_directory_iterator(directory, options, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    struct stat now{};
    if (stat(it->path().c_str(), &now) != 0 || out.size() == kMostFiles || it.depth() > 16)
      return {};
    if (!S_ISREG(now.st_mode)) continue;
    out.push_back({.name = it->path().string().substr(directory.size() + 1),
                   .size = now.st_size,
                   .changed_ns = ChangedNs(now),
                   .inode = now.st_ino});
  }
  if (error) return {};
  std::ranges::sort(out);
  return out;
}

Result<Snapshot> Snapshot::Of(const std::string& directory, const Seen& files) {
  Snapshot out;
  if (files.size() > kMostHeld) return out;
  const char* base = getenv("TMPDIR");
  std::string path = fmt::format("{}/trainyard-model-XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(path.data())) return base::FromErrno("a directory for links", errno);
  out.path_ = path;
  for (const FileSeen& file : files) {
    io::Fd fd(open((directory + "/" + file.name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return base::FromErrno(directory + "/" + file.name, errno);
    const std::string link = path + "/" + file.name;
    TRY(io::MakeDirs(io::DirName(link)));
    const std::string target = fmt::format("/proc/{}/fd/{}", getpid(), fd.get());
    if (symlink(target.c_str(), link.c_str()) != 0) return base::FromErrno(link, errno);
    out.files_.push_back(std::move(fd));
  }
  out.seen_ = files;
  return out;
}

bool Snapshot::Overwritten() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    struct stat now{};
    if (fstat(files_[i].get(), &now) != 0 || now.st_size != seen_[i].size ||
        ChangedNs(now) != seen_[i].changed_ns)
      return true;
  }
  return false;
}

Snapshot& Snapshot::operator=(Snapshot&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(files_, other.files_);
  std::swap(seen_, other.seen_);
  return *this;
}

Snapshot::~Snapshot() {
  if (!path_.empty())
    base::IgnoreError(io::RemoveTree(path_), "links in a temporary directory harm nobody");
}

}  // namespace serve
