// Commands and their flags as data, and the parser that reads a command line against them.
//
// One table (cli/table.cc) feeds the parser, the help texts, shell completion and the man page, so
// they cannot disagree. A refusal is one line that names the flag, the value, what would be valid,
// and the nearest name when one is unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cli {

struct Flag {
  std::string_view name;        // "workers": given as --workers
  char letter = 0;              // 'w': given as -w; 0: none
  std::string_view value = "";  // "N": takes a value of this kind; empty: a switch
  std::string_view help;
};

class Args;

struct Command {
  std::string_view name;
  std::string_view operands;  // "[JOB]": as the usage line shows them
  std::string_view summary;   // one line
  std::vector<Flag> flags;
  int most_operands = 1;
  bool takes_rest = false;  // words after -- are the script's
  int (*run)(const Args&) = nullptr;
  bool reads_words = false;  // it has a parser of its own: every word is in rest()
  bool on_cluster = false;   // without --on it means a cluster
};

// What was typed after the command's name.
class Args {
 public:
  bool Has(std::string_view flag) const { return values_.contains(flag); }
  // The value given last.
  std::string Get(std::string_view flag, std::string_view fallback = "") const;
  // Every value, in the order given.
  std::vector<std::string> All(std::string_view flag) const;
  // The whole number given with a flag, or the fallback; refused outside [least, most].
  base::Result<int64_t> Number(std::string_view flag, int64_t fallback, int64_t least,
                               int64_t most) const;
  // One of `valid`, or the fallback.
  base::Result<std::string> OneOf(std::string_view flag, std::string_view fallback,
                                  const std::vector<std::string>& valid) const;

  const std::vector<std::string>& operands() const { return operands_; }
  std::string operand(size_t i) const { return i < operands_.size() ? operands_[i] : ""; }
  const std::vector<std::string>& rest() const { return rest_; }
  std::string name_space() const { return Get("namespace", "default"); }
  bool json() const { return Has("json"); }

 private:
  friend base::Result<Args> Parse(const Command& command, const std::vector<std::string>& words);
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> operands_;
  std::vector<std::string> rest_;
};

// Flags that every command has; their help differs where the command means a cluster by default.
const std::vector<Flag>& CommonFlags(bool on_cluster = false);

base::Result<Args> Parse(const Command& command, const std::vector<std::string>& words);

std::string Usage(const Command& command);  // what --help prints

}  // namespace cli
