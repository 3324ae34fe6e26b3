#include "io/unpack.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace io {
namespace {

using base::Result;

Result<Fd> OpenDirectory(const Fd& parent, const std::string& name, const std::string& path) {
  if (mkdirat(parent.get(), name.c_str(), 0755) != 0 && errno != EEXIST)
    return base::FromErrno(path, errno);
  Fd out(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!out.valid()) return base::FromErrno(path, errno);
  return out;
}

}  // namespace

Result<Unpack> Unpack::Into(const std::string& directory) {
  Fd root(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return base::FromErrno(directory, errno);
  return Unpack(std::move(root));
}

Result<Fd> Unpack::Parent(const std::string& path, std::string& leaf) const {
  if (path.starts_with('/')) return base::Invalid("tar: an absolute name: " + path);
  std::vector<std::string> parts;
  for (std::string_view part : base::Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return base::Invalid("tar: a name that leads upwards: " + path);
    parts.emplace_back(part);
  }
  Fd at(fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
  leaf = parts.empty() ? "" : parts.back();
  for (size_t i = 0; i + 1 < parts.size(); ++i) at = TRY(OpenDirectory(at, parts[i], path));
  return at;
}

Result<> Unpack::Begin(const base::TarEntry& entry) {
  file_.reset();
  path_ = entry.path;
  std::string leaf;
  const Fd parent = TRY(Parent(entry.path, leaf));
  if (entry.kind == base::TarEntry::Kind::kOther)
    return base::Invalid("tar: neither a file nor a directory: " + entry.path);
  if (leaf.empty()) return {};
  if (entry.kind == base::TarEntry::Kind::kDirectory) {
    TRY(OpenDirectory(parent, leaf, entry.path));
    return {};
  }
  file_ = Fd(openat(parent.get(), leaf.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry.mode | 0600));
  if (!file_.valid()) return base::FromErrno(entry.path, errno);
  ++files_;
  return {};
}

Result<> Unpack::Data(std::string_view bytes) {
  while (file_.valid() && !bytes.empty()) {
    const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::FromErrno(path_, errno);
    bytes_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<> Unpack::End() {
  file_.reset();
  return {};
}

}  // namespace io
