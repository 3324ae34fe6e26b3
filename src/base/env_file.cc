#include "base/env_file.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"

namespace base {
namespace {

// A file of the wrong kind has thousands of wrong lines; the first few tell as much.
constexpr size_t kMaxTold = 20;

bool IsKey(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// What is wrong with a line that is neither blank nor a comment, or nothing.
std::string_view WrongWith(std::string_view line) {
  const size_t equals = line.find('=');
  if (line.find('\0') != std::string_view::npos) return "has a NUL byte";
  if (equals == std::string_view::npos) return "no '='";
  if (line.starts_with("export ")) return "begins with 'export', which is for a shell";
  if (equals == 0) return "no name before '='";
  if (!IsKey(line.substr(0, equals))) {
    return "the name before '=' must be letters, digits and _, not beginning with a digit";
  }
  return {};
}

}  // namespace

Result<std::map<std::string, std::string>> ParseEnvFile(std::string_view text) {
  if (text.size() > kMaxEnvFile) return Invalid("larger than 1 MiB");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::map<std::string, std::string> variables;
  std::vector<std::string> errors;
  size_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (const std::string_view wrong = WrongWith(line); !wrong.empty()) {
      errors.push_back(fmt::format("line {}: {}", number, wrong));
      continue;
    }
    const size_t equals = line.find('=');
    variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  if (errors.empty()) return variables;
  if (errors.size() > kMaxTold) {
    const size_t untold = errors.size() - kMaxTold;
    errors.resize(kMaxTold);
    errors.push_back(fmt::format("and {} more lines", untold));
  }
  return Invalid(Join(errors, "; "));
}

}  // namespace base
