#include "backend/sim/api_names.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/strings.h"

namespace backend::sim {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlnum(char c) { return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z'); }

std::string TooLong(size_t most) { return fmt::format("must be no more than {} characters", most); }

// One label of a domain name.
bool IsLabel(std::string_view text, bool letter_first) {
  if (text.empty() || text.back() == '-' || !(IsLower(text[0]) || IsDigit(text[0]))) return false;
  if (letter_first && !IsLower(text[0])) return false;
  return std::ranges::all_of(text, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

// "MyName", "my.name"
bool IsWord(std::string_view text) {
  if (text.empty() || !IsAlnum(text.front()) || !IsAlnum(text.back())) return false;
  return std::ranges::all_of(text,
                             [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string Rule(std::string_view what, std::string_view examples, std::string_view regex) {
  return fmt::format("{} (e.g. {}, regex used for validation is '{}')", what, examples, regex);
}

constexpr std::string_view kLabelRegex = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kWordRegex = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kWordRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

}  // namespace

Faults WrongName(NameRule rule, std::string_view name) {
  Faults faults;
  const size_t most = rule == NameRule::kSubdomain ? 253 : 63;
  if (name.size() > most) faults.push_back(TooLong(most));
  switch (rule) {
    case NameRule::kSubdomain:
      if (!std::ranges::all_of(base::Split(name, '.'),
                               [](std::string_view part) { return IsLabel(part, false); })) {
        faults.push_back(
            Rule("a lowercase RFC 1123 subdomain must consist of lower case "
                 "alphanumeric characters, '-' or '.', and must start and end with an "
                 "alphanumeric character",
                 "'example.com'", fmt::format("{0}(\\.{0})*", kLabelRegex)));
      }
      break;
    case NameRule::kLabel:
      if (!IsLabel(name, false)) {
        faults.push_back(
            Rule("a lowercase RFC 1123 label must consist of lower case alphanumeric "
                 "characters or '-', and must start and end with an alphanumeric "
                 "character",
                 "'my-name',  or '123-abc'", kLabelRegex));
      }
      break;
    case NameRule::kLabel1035:
      if (!IsLabel(name, true)) {
        faults.push_back(
            Rule("a DNS-1035 label must consist of lower case alphanumeric characters "
                 "or '-', start with an alphabetic character, and end with an "
                 "alphanumeric character",
                 "'my-name',  or 'abc-123'", "[a-z]([-a-z0-9]*[a-z0-9])?"));
      }
      break;
  }
  return faults;
}

Faults WrongQualifiedName(std::string_view name) {
  const std::string word = Rule(kWordRule, "'MyName',  or 'my.name',  or '123-abc'", kWordRegex);
  const std::vector<std::string_view> parts = base::Split(name, '/');
  if (parts.size() > 2) {
    return {"a qualified name " + word +
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
  }
  Faults faults;
  if (parts.size() == 2 && parts[0].empty()) {
    faults.push_back("prefix part must be non-empty");
  } else if (parts.size() == 2) {
    for (const std::string& fault : WrongName(NameRule::kSubdomain, parts[0])) {
      faults.push_back("prefix part " + fault);
    }
  }
  if (parts.back().empty()) faults.push_back("name part must be non-empty");
  if (parts.back().size() > 63) faults.push_back("name part " + TooLong(63));
  if (!IsWord(parts.back())) faults.push_back("name part " + word);
  return faults;
}

Faults WrongLabelValue(std::string_view value) {
  Faults faults;
  if (value.size() > 63) faults.push_back(TooLong(63));
  if (!value.empty() && !IsWord(value)) {
    faults.push_back(
        Rule("a valid label must be an empty string or consist of alphanumeric "
             "characters, '-', '_' or '.', and must start and end with an "
             "alphanumeric character",
             "'MyValue',  or 'my_value',  or '12345'", fmt::format("({})?", kWordRegex)));
  }
  return faults;
}

Faults WrongPortName(std::string_view name) {
  Faults faults;
  if (name.size() > 15) faults.push_back(TooLong(15));
  if (!std::ranges::all_of(name, [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; })) {
    faults.push_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!std::ranges::any_of(name, IsLower))
    faults.push_back("must contain at least one letter (a-z)");
  if (name.find("--") != std::string_view::npos) {
    faults.push_back("must not contain consecutive hyphens");
  }
  if (!name.empty() && (name.front() == '-' || name.back() == '-')) {
    faults.push_back("must not begin or end with a hyphen");
  }
  return faults;
}

}  // namespace backend::sim
