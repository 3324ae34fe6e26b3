// How a replica gets its volumes without a container.
//
// Where we may (root), a mount namespace is all that is needed. Anybody else gets one together with
// a user namespace, in which he is himself: his own user and group are mapped to themselves, and
// with the next exec the rights that came with it are gone.
//
// A path that exists is mounted on. For one that does not, such as /data, there would have to be a
// directory, and on the machine nothing is to be made. So the root is built anew, on a tmpfs that
// only this namespace has: each entry of / is mounted there under its name (a symbolic link is made
// again), and where the way to a missing path leads through a directory, that one is built anew in
// the same manner, entry by entry, so that there is room for one more. Then the tmpfs becomes the
// root. It is read-only: a program that makes a file right in a directory that was built anew gets
// an error, where it would otherwise write into memory what is gone afterwards. Below the entries
// everything is the machine's own, as before.
//
// What is to be mounted is copied as a tree of mounts (open_tree) before anything is mounted, so
// what a mount hides does not matter. The tmpfs needs a directory to be put together on: any that
// exists, which is copied before for the same reason. Rejected: an overlay over the root, which
// needs a newer kernel for ordinary users, does not take every file system below it, and would keep
// writes to / in memory without a word; a directory made on the machine and removed afterwards,
// which a killed guard would leave there.
#include "mounts.h"

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace guard {
namespace {

constexpr int kMost = 64;             // mounts
constexpr int kMostEntries = 10'000;  // of directories that are built anew

char why[2 * PATH_MAX + 256];

__attribute__((format(printf, 1, 2))) const char* Fail(const char* format, ...) {
  const int error = errno;
  va_list words;
  va_start(words, format);
  const int size = vsnprintf(why, sizeof why, format, words);
  va_end(words);
  if (size > 0 && size < static_cast<int>(sizeof why)) {
    snprintf(why + size, sizeof why - static_cast<size_t>(size), ": %s", strerror(error));
  }
  return why;
}

struct Target {
  int from = -1;  // a tree of mounts
  bool is_directory = false;
  bool missing = false;
  char path[PATH_MAX];  // `to` without symbolic links
};

Target targets[kMost];
int target_count = 0;
int entries = 0;
const char* scratch = nullptr;  // where the new root is put together
int under_scratch = -1;         // the tree of mounts that is there otherwise

bool WriteText(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  const int error = errno;
  close(fd);
  errno = error;
  return written;
}

const char* EnterNamespace() {
  if (unshare(CLONE_NEWNS) == 0) return nullptr;
  const unsigned user = geteuid(), group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return Fail("a namespace of its own");
  char map[64];
  // Needed before a group may be mapped; some kernels have no such file.
  if (!WriteText("/proc/self/setgroups", "deny") && errno != ENOENT) return Fail("setgroups");
  snprintf(map, sizeof map, "%u %u 1", user, user);
  if (!WriteText("/proc/self/uid_map", map)) return Fail("map the user");
  snprintf(map, sizeof map, "%u %u 1", group, group);
  if (!WriteText("/proc/self/gid_map", map)) return Fail("map the group");
  return nullptr;
}

// Where `to` leads, symbolic links followed as far as there is something.
const char* Resolve(const char* to, Target& target) {
  char existing[PATH_MAX], rest[PATH_MAX] = "";
  if (snprintf(existing, sizeof existing, "%s", to) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return Fail("%s", to);
  }
  while (!realpath(existing, target.path)) {
    if (errno != ENOENT) return Fail("%s", to);
    target.missing = true;
    char* slash = strrchr(existing, '/');
    char longer[PATH_MAX];
    if (snprintf(longer, sizeof longer, "%s%s", slash, rest) >= PATH_MAX) return Fail("%s", to);
    memcpy(rest, longer, sizeof rest);
    *slash = 0;
    if (slash == existing) memcpy(existing, "/", 2);
  }
  if (strcmp(target.path, "/") == 0) target.path[0] = 0;
  const size_t size = strlen(target.path);
  if (size + strlen(rest) >= PATH_MAX) return Fail("%s", to);
  memcpy(target.path + size, rest, strlen(rest) + 1);
  return nullptr;
}

// Whether the way to a missing path leads through this directory.
bool IsOnTheWay(const char* directory) {
  const size_t size = strlen(directory);
  for (int i = 0; i < target_count; ++i) {
    if (targets[i].missing && strncmp(targets[i].path, directory, size) == 0 &&
        targets[i].path[size] == '/') {
      return true;
    }
  }
  return false;
}

// A copy of what is mounted at a path and below, which is nowhere yet.
int CopyTree(int directory, const char* path) {
  return open_tree(directory, path,
                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
}

bool Attach(int tree, const char* to) {
  return tree >= 0 && move_mount(tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool MakeFile(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

const char* Rebuild(int directory, const char* path);

// One entry of a directory that is built anew; `path` is its own.
const char* RebuildEntry(int directory, const char* name, const char* path) {
  char there[PATH_MAX];
  if (snprintf(there, sizeof there, "%s%s", scratch, path) >= PATH_MAX) return Fail("%s", path);
  struct stat status;
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return nullptr;  // gone again
  if (S_ISLNK(status.st_mode)) {
    char link[PATH_MAX];
    const ssize_t size = readlinkat(directory, name, link, sizeof link - 1);
    if (size < 0) return nullptr;
    link[size] = 0;
    return symlink(link, there) == 0 ? nullptr : Fail("%s", path);
  }
  const bool is_directory = S_ISDIR(status.st_mode);
  if (is_directory ? mkdir(there, 0755) != 0 : !MakeFile(there)) return Fail("%s", path);
  if (strcmp(path, scratch) == 0) return Attach(under_scratch, there) ? nullptr : Fail("%s", path);
  const int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return Fail("%s", path);
  const char* wrong = nullptr;
  if (is_directory && IsOnTheWay(path)) {
    wrong = Rebuild(fd, path);
  } else {
    const int tree = CopyTree(fd, "");
    if (!Attach(tree, there)) wrong = Fail("%s", path);
    if (tree >= 0) close(tree);
  }
  close(fd);
  return wrong;
}

const char* Rebuild(int directory, const char* path) {
  const int readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = readable < 0 ? nullptr : fdopendir(readable);
  if (!list) return Fail("%s/", path);
  const char* wrong = nullptr;
  while (const dirent* entry = wrong ? nullptr : readdir(list)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char below[PATH_MAX];
    if (++entries > kMostEntries) {
      errno = E2BIG;
      wrong = Fail("%s/ has too many entries", path);
    } else if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < PATH_MAX) {
      wrong = RebuildEntry(directory, entry->d_name, below);
    }
  }
  closedir(list);
  return wrong;
}

// Makes the place for a missing path, in the new root.
const char* MakePlace(const Target& target) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s%s", scratch, target.path) >= PATH_MAX)
    return Fail("%s", target.path);
  for (char* slash = path + strlen(scratch) + 1; (slash = strchr(slash, '/')); ++slash) {
    *slash = 0;
    if (mkdir(path, 0755) != 0 && errno != EEXIST) return Fail("%s", target.path);
    *slash = '/';
  }
  if (target.is_directory ? mkdir(path, 0755) != 0 : !MakeFile(path))
    return Fail("%s", target.path);
  return nullptr;
}

const char* BuildRoot() {
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (const char* candidate : {"/tmp", "/var", "/usr"}) {
    struct stat status;
    if (IsOnTheWay(candidate) || lstat(candidate, &status) != 0 || !S_ISDIR(status.st_mode))
      continue;
    under_scratch = CopyTree(AT_FDCWD, candidate);
    scratch = candidate;
    if (under_scratch >= 0) break;
  }
  if (root < 0 || under_scratch < 0) return Fail("/tmp");
  if (mount("tmpfs", scratch, "tmpfs", MS_NOSUID, "mode=0755") != 0) return Fail("a new root");
  if (const char* wrong = Rebuild(root, "")) return wrong;
  for (int i = 0; i < target_count; ++i) {
    if (!targets[i].missing) continue;
    if (const char* wrong = MakePlace(targets[i])) return wrong;
  }
  close(root);
  close(under_scratch);
  return nullptr;
}

const char* TakeRoot() {
  if (mount(nullptr, scratch, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, nullptr) != 0)
    return Fail("make the new root read-only");
  // The old root comes to lie upon the new one, and is taken off.
  if (chdir(scratch) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) return Fail("a new root");
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) return Fail("leave the old root");
  return nullptr;
}

}  // namespace

const char* EnterMounts(const Mount* mounts, int count) {
  if (count == 0) return nullptr;
  char directory[PATH_MAX];
  if (!getcwd(directory, sizeof directory)) return Fail("the working directory");
  if (count > kMost) {
    errno = E2BIG;
    return Fail("%d mounts", count);
  }
  if (const char* wrong = EnterNamespace()) return wrong;
  // What is mounted here is seen nowhere else.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return Fail("mounts of its own");
  bool missing = false;
  for (target_count = 0; target_count < count; ++target_count) {
    Target& target = targets[target_count];
    const Mount& wanted = mounts[target_count];
    target.from = CopyTree(AT_FDCWD, wanted.from);
    struct stat status;
    if (target.from < 0 || fstat(target.from, &status) != 0) return Fail("%s", wanted.from);
    target.is_directory = S_ISDIR(status.st_mode);
    if (const char* wrong = Resolve(wanted.to, target)) return wrong;
    missing |= target.missing;
  }
  if (missing) {
    if (const char* wrong = BuildRoot()) return wrong;
  }
  for (int i = 0; i < count; ++i) {
    char to[PATH_MAX];
    if (snprintf(to, sizeof to, "%s%s", missing ? scratch : "", targets[i].path) >= PATH_MAX ||
        !Attach(targets[i].from, to)) {
      return Fail("mount %s at %s", mounts[i].from, mounts[i].to);
    }
    close(targets[i].from);
  }
  if (missing) {
    if (const char* wrong = TakeRoot()) return wrong;
  }
  if (chdir(directory) != 0) return Fail("%s", directory);
  return nullptr;
}

}  // namespace guard
