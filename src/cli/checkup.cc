#include "cli/checkup.h"

#include <fmt/core.h>

#include "base/json.h"
#include "io/terminal.h"

namespace cli {
namespace {

struct Look {
  const char* word;
  const char* colour;
};

Look LookOf(Health health) {
  switch (health) {
    case Health::kGood:
      return {"ok", "32"};
    case Health::kNote:
      return {"note", "33"};
    case Health::kBad:
      break;
  }
  return {"bad", "31"};
}

}  // namespace

int Report(const std::vector<Finding>& findings, bool json) {
  const io::Terminal terminal = io::TerminalOf(1);
  bool bad = false;
  base::JsonArray list;
  for (const Finding& f : findings) {
    bad |= f.health == Health::kBad;
    const auto [word, colour] = LookOf(f.health);
    list.push_back(base::JsonObject{{"health", word}, {"what", f.what}, {"fix", f.fix}});
    if (json) continue;
    const std::string shown = terminal.colour ? fmt::format("\x1b[{}m{:<4}\x1b[0m", colour, word)
                                              : fmt::format("{:<4}", word);
    fmt::print("{}  {}\n", shown, f.what);
    if (!f.fix.empty()) fmt::print("      fix: {}\n", f.fix);
  }
  if (json) fmt::print("{}", base::IndentedJson(list));
  return bad ? 1 : 0;
}

}  // namespace cli
