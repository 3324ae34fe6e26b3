// Files and directories: whole reads, atomic durable writes, locks that die with their holder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace io {

// A file descriptor that is closed at the end of its life.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Refuses more than `limit` bytes.
base::Result<std::string> ReadFile(const std::string& path, size_t limit = 64 << 20);
// The last `bytes` of a file, or all of it.
base::Result<std::string> ReadTail(const std::string& path, size_t bytes);

// Either the old content or the new, whatever happens to this process.
base::Result<> ReplaceFile(const std::string& path, std::string_view content, int mode = 0644);
// The same whatever happens to the machine, and on the disk before it returns.
base::Result<> ReplaceFileDurably(const std::string& path, std::string_view content,
                                  int mode = 0644);
// Overwrites in place; for what need not survive a crash of the machine.
base::Result<> WriteFile(const std::string& path, std::string_view content, int mode = 0644);
base::Result<> AppendFile(const std::string& path, std::string_view content);

base::Result<> MakeDirs(const std::string& path);
base::Result<> RemoveTree(const std::string& path);
bool Exists(const std::string& path);
bool IsDirectory(const std::string& path);
std::vector<std::string> ListDir(
    const std::string& path);  // sorted, without . and ..; empty if unreadable

// An exclusive lock on a file, held until the object or the process ends. kTaken: somebody else
// holds it.
class Lock {
 public:
  static base::Result<Lock> TryTake(const std::string& path);
  static base::Result<Lock> Wait(const std::string& path);  // for short critical sections
  static bool IsHeld(const std::string& path);

  // Who inherits this descriptor holds the lock as well, until the last of them is gone.
  int fd() const { return fd_.get(); }

 private:
  explicit Lock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

std::string BaseName(const std::string& path);
std::string DirName(const std::string& path);  // "." when there is none
std::string AbsolutePath(const std::string& path);  // normalized, without a slash at its end
// The program of this name on PATH, or the path itself when it has a slash; empty when there is
// none to execute.
std::string FindProgram(const std::string& name);

}  // namespace io
