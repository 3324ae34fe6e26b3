#include "cli/header.h"

#include <fmt/core.h>

#include "base/crc32c.h"
#include "io/terminal.h"

namespace cli {

using api::Role;

std::string Shape(const api::JobSpec& spec) {
  std::string out;
  for (Role role : {Role::kChief, Role::kMaster, Role::kWorker, Role::kPs, Role::kEvaluator}) {
    const int32_t count = api::ReplicasOf(spec, role);
    if (count == 0) continue;
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}{}", count, api::LowerName(role),
                       count > 1 && role != Role::kPs ? "s" : "");
  }
  return out;
}

std::string Header(const api::Job& job, const std::string& where, const std::string& code,
                   const std::string& with, const std::string& as) {
  const io::Terminal terminal = io::TerminalOf(1);
  const std::string dot = terminal.unicode ? " · " : " - ";
  std::string out = job.metadata.name + dot + where + dot + Shape(job.spec);
  if (!code.empty()) out += dot + fmt::format("code {:08x}", base::Crc32c(code));
  if (!with.empty()) out += dot + with;
  if (!as.empty()) out += dot + as;
  return terminal.colour ? fmt::format("\x1b[1m{}\x1b[0m\n", out) : out + "\n";
}

}  // namespace cli
