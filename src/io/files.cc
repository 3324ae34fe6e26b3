#include "io/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace io {

using base::FromErrno;
using base::Result;

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() { return std::exchange(fd_, -1); }

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

namespace {

Result<std::string> ReadFrom(const Fd& fd, const std::string& path, size_t limit) {
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t size = read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FromErrno("read " + path, errno);
    if (size == 0) return content;
    content.append(buffer, static_cast<size_t>(size));
    if (content.size() > limit) {
      return base::Invalid(fmt::format("read {}: more than {} bytes", path, limit));
    }
  }
}

Result<> WriteAll(const Fd& fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t size = write(fd.get(), content.data(), content.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FromErrno("write " + path, errno);
    content.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

Result<> Replace(const std::string& path, std::string_view content, int mode, bool durably) {
  const std::string part = path + ".part";
  const auto undo = [&](std::unexpected<base::Error> error) {
    unlink(part.c_str());
    return error;
  };
  const Fd fd(open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return FromErrno("write " + part, errno);
  if (auto written = WriteAll(fd, part, content); !written) {
    return undo(std::unexpected(written.error()));
  }
  if (durably && fdatasync(fd.get()) != 0) return undo(FromErrno("sync " + part, errno));
  if (rename(part.c_str(), path.c_str()) != 0) return undo(FromErrno("rename " + part, errno));
  if (durably) {
    // The name is durable only when the directory is.
    const Fd dir(open(DirName(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (dir.valid()) fsync(dir.get());
  }
  return {};
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FromErrno("read " + path, errno);
  struct stat info;
  if (fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return base::Invalid("read " + path + ": is a directory");
  }
  return ReadFrom(fd, path, limit);
}

Result<std::string> ReadTail(const std::string& path, size_t bytes) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FromErrno("read " + path, errno);
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  lseek(fd.get(), std::max<off_t>(0, size - static_cast<off_t>(bytes)), SEEK_SET);
  return ReadFrom(fd, path, bytes + (16 << 20));
}

Result<> ReplaceFile(const std::string& path, std::string_view content, int mode) {
  return Replace(path, content, mode, false);
}

Result<> ReplaceFileDurably(const std::string& path, std::string_view content, int mode) {
  return Replace(path, content, mode, true);
}

Result<> WriteFile(const std::string& path, std::string_view content, int mode) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return FromErrno("write " + path, errno);
  return WriteAll(fd, path, content);
}

Result<> AppendFile(const std::string& path, std::string_view content) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return FromErrno("append to " + path, errno);
  return WriteAll(fd, path, content);
}

Result<> MakeDirs(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FromErrno("make directory " + path, error.value());
  return {};
}

Result<> RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FromErrno("remove " + path, error.value());
  return {};
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::vector<std::string> ListDir(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = opendir(path.c_str());
  if (!dir) return names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(dir);
  std::ranges::sort(names);
  return names;
}

namespace {

// A lock of the open file, not of the process: who inherits the descriptor holds it too. Unlike
// flock(2), one can ask whether it is held without taking it, so a look never gets in the way of
// who wants it.
flock WholeFile(short type) {
  flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<Lock> Lock::TryTake(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return FromErrno("lock " + path, errno);
  flock lock = WholeFile(F_WRLCK);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) {
      return std::unexpected(
          base::Error(base::ErrorKind::kTaken, path + " is held by another process"));
    }
    return FromErrno("lock " + path, errno);
  }
  return Lock(std::move(fd));
}

Result<Lock> Lock::Wait(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return FromErrno("lock " + path, errno);
  flock lock = WholeFile(F_WRLCK);
  while (fcntl(fd.get(), F_OFD_SETLKW, &lock) != 0) {
    if (errno != EINTR) return FromErrno("lock " + path, errno);
  }
  return Lock(std::move(fd));
}

bool Lock::IsHeld(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  flock lock = WholeFile(F_WRLCK);
  return fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::string BaseName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string DirName(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error) return path;
  std::string out = absolute.lexically_normal().string();
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

std::string FindProgram(const std::string& name) {
  const auto runs = [](const std::string& path) {
    return access(path.c_str(), X_OK) == 0 && !IsDirectory(path);
  };
  if (name.find('/') != std::string::npos) return runs(name) ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string_view dir : base::Split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const std::string candidate = std::string(dir.empty() ? "." : dir) + "/" + name;
    if (runs(candidate)) return candidate;
  }
  return "";
}

}  // namespace io
