// The command lines of ElasticDL's client, read as Python's argparse reads them.
//
// One table (elasticdl_table.cc) has the options of both published dialects, develop and 1.0.0. An
// option is given as --x=v or --x v, and by any beginning that is no other's: --num_ps means
// --num_ps_pods. A boolean takes a value or none: --x turns over what it is by default, and true,
// yes, t and y alone mean true. Where theirs drops what it does not know, ours refuses it, with the
// nearest name.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cli {

enum class EdlKind { kText, kWhole, kBool };

// Whether anything follows from an option here.
enum class EdlUse {
  kUsed,
  kLoop,  // of ElasticDL's own training loop, which this is not: told when it is given
  kNone,  // told when it is given
};

struct EdlOption {
  std::string_view name;  // "num_workers"
  EdlKind kind = EdlKind::kText;
  std::string_view fallback;
  std::string_view help;
  EdlUse use = EdlUse::kUsed;
  std::vector<std::string_view> choices = {};
  bool required = false;
};

struct EdlCommand {
  std::string_view name;     // "zoo build"
  std::string_view operand;  // "PATH": the one word that it needs; empty: it takes none
  std::string_view summary;
  std::vector<EdlOption> options;
};

const std::vector<EdlCommand>& EdlCommands();

class EdlArgs {
 public:
  bool help() const { return help_; }
  bool Given(std::string_view option) const { return values_.contains(option); }
  // As given last, or else by default.
  std::string Get(std::string_view option) const;
  bool IsTrue(std::string_view option) const;
  base::Result<int32_t> Number(std::string_view option, int32_t least, int32_t most) const;
  const std::string& operand() const { return operand_; }

  // What a person may not have meant, and what has no effect; a line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class EdlParser;
  const EdlCommand* command_ = nullptr;
  bool help_ = false;
  std::map<std::string, std::string, std::less<>> values_;
  std::string operand_;
  std::vector<std::string> warnings_;
};

// `words` are those after the command's name.
base::Result<EdlArgs> ParseEdl(const EdlCommand& command, const std::vector<std::string>& words);

std::string EdlUsage(const EdlCommand& command);  // what --help prints

}  // namespace cli
