// What `doctor` finds, and how it says so.
#pragma once

#include <string>
#include <vector>

namespace cli {

enum class Health { kGood, kNote, kBad };

struct Finding {
  Health health;
  std::string what;
  std::string fix;
};

// Prints them; the exit status of `doctor`.
int Report(const std::vector<Finding>& findings, bool json);

}  // namespace cli
