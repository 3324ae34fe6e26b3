// Finds the event files below a log directory, again and again.
//
// A directory that holds event files is a run, named by its path below the root ("train",
// "tune/trial-3/validation", "." for the root), as TensorBoard names it. A file is an event file if
// "tfevents" is in its name, as for TensorBoard.
//
// Scanning costs one stat a directory and one an event file: a directory is listed again only when
// its modification time changed. Two things can hide a change: the clock of the file system is
// coarse, so a listing is believed only once that time has stayed the same for kSettled; and some
// object stores never touch it, so every listing is renewed after kRenew.
//
// Links are followed; a directory is visited once a scan however many ways lead to it, so loops
// end. Depth and number of directories are bounded. A root that is not there yet is an empty tree.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "base/time.h"
#include "events/problems.h"

namespace events {

struct EventFile {
  std::string run;
  std::string path;
};

class LogTree {
 public:
  static constexpr int kMaxDepth = 16;
  static constexpr size_t kMaxDirectories = 20'000;
  static constexpr base::Duration kSettled = std::chrono::seconds(3);
  static constexpr base::Duration kRenew = std::chrono::seconds(30);

  explicit LogTree(std::string root) : root_(std::move(root)) {}

  // All event files; those of a run are neighbours, in the order in which they were begun.
  // Pointers are good until the next Scan.
  const std::vector<const EventFile*>& Scan(base::Time now, Problems* problems);

 private:
  struct Listing {
    struct timespec modified = {};
    base::Time first_listed;  // with this time
    base::Time listed;
    bool settled = false;
    std::vector<std::string> directories;  // names
    std::vector<EventFile> files;
    uint64_t scan = 0;  // the last one that came by
  };
  struct Visit;

  bool IsCurrent(const Listing& listing, const struct stat& status, base::Time now) const;
  bool List(const Visit& visit, Listing* listing, Problems* problems);

  std::string root_;
  uint64_t scan_ = 0;
  std::map<std::string, Listing> listings_;  // by path
  std::vector<const EventFile*> files_;
};

// Whether an event file was begun before another of its run: by the time in its name
// ("events.out.tfevents.1700000000.host..."), then by name.
bool BegunBefore(std::string_view path, std::string_view other);

}  // namespace events
