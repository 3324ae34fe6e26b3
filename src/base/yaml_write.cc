// Writing YAML: the block style kubectl prints.
//
// Text stands plain where reading it back gives the same text, as a literal block where it has
// lines, and in double quotes otherwise. What libyaml's reader refuses raw (control characters,
// U+FEFF) and what it takes for line breaks (U+0085, U+2028, U+2029) is always escaped.
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "base/yaml.h"
#include "base/yaml_scalar.h"

namespace base {
namespace {

// libyaml reads a key on one line only up to 1024 bytes; longer ones take the form "? key".
constexpr size_t kMaxSimpleKey = 1000;

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 1;
};

// The character at `at` of UTF-8 text; a stray byte stands for U+FFFD.
CodePoint Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || at + bytes > text.size()) return {0xFFFD, 1};
  uint32_t value = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  return {value, bytes};
}

bool IsPrintable(uint32_t c) {
  return (c >= 0x20 && c < 0x7F) || (c >= 0xA0 && c < 0xD800 && c != 0x2028 && c != 0x2029) ||
         (c >= 0xE000 && c < 0xFFFD && c != 0xFEFF) || (c >= 0x10000 && c < 0x110000);
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = Decode(text, at);
    if (c.value == '"' || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (IsPrintable(c.value)) {
      out += text.substr(at, c.bytes);
    } else {
      out += fmt::format("\\u{:04x}", c.value);
    }
    at += c.bytes;
  }
  return out + '"';
}

bool IsAllPrintable(std::string_view text, bool lines) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = Decode(text, at);
    if (!IsPrintable(c.value) && !(lines && (c.value == '\n' || c.value == '\t'))) return false;
    at += c.bytes;
  }
  return true;
}

bool IsPlain(std::string_view text) {
  if (text.empty() || text == "<<" || !ResolvePlain(text).is_string()) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  // "---" and "..." would end the document at the start of a line.
  if (text.starts_with("---") || text.starts_with("...")) return false;
  constexpr std::string_view kIndicators = ",[]{}#&*!|>'\"%@`=";
  if (kIndicators.find(text.front()) != std::string_view::npos) return false;
  // "-x" is fine and common in arguments; "- x", "?", ": x" are not.
  if (std::string_view("-?:").find(text.front()) != std::string_view::npos &&
      (text.size() == 1 || text[1] == ' ')) {
    return false;
  }
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) {
    return false;
  }
  return IsAllPrintable(text, false);
}

// A literal block's indentation is taken from its first line, which therefore must not begin with
// white space.
bool IsLiteral(std::string_view text) {
  return text.find('\n') != std::string_view::npos && text.front() != '\n' && text.front() != ' ' &&
         text.front() != '\t' && IsAllPrintable(text, true);
}

std::string Literal(std::string_view text, int indent) {
  const bool ends = text.ends_with('\n');
  std::string out = !ends ? "|-" : text.ends_with("\n\n") ? "|+" : "|";
  if (ends) text.remove_suffix(1);
  const std::string pad(static_cast<size_t>(indent), ' ');
  while (true) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    out += '\n';
    if (!line.empty()) out += pad;
    out += line;
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string out = fmt::format("{}", value);
  // Without a point or an exponent it would read back as an integer.
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string Scalar(const Json& value, int indent) {
  if (const auto* text = value.if_string()) {
    if (IsPlain(*text)) return std::string(*text);
    return IsLiteral(*text) ? Literal(*text, indent) : Quoted(*text);
  }
  return value.is_double() ? Number(value.get_double()) : CompactJson(value);
}

bool HasChildren(const Json& value) {
  return (value.is_object() && !value.get_object().empty()) ||
         (value.is_array() && !value.get_array().empty());
}

// Writes a value whose first line is begun already: after "- ", or at the start of a line.
void WriteBlock(const Json& value, int indent, std::string& out);

void WriteMember(std::string_view key, const Json& value, int indent, std::string& out) {
  const std::string pad(static_cast<size_t>(indent), ' ');
  const std::string name = IsPlain(key) ? std::string(key) : Quoted(key);
  out += name.size() > kMaxSimpleKey ? "? " + name + "\n" + pad + ":" : name + ":";
  if (!HasChildren(value)) {
    out += " " + Scalar(value, indent + 2) + "\n";
    return;
  }
  const int inner = value.is_array() ? indent : indent + 2;
  out += "\n" + std::string(static_cast<size_t>(inner), ' ');
  WriteBlock(value, inner, out);
}

void WriteBlock(const Json& value, int indent, std::string& out) {
  const std::string pad(static_cast<size_t>(indent), ' ');
  bool first = true;
  if (!HasChildren(value)) {
    out += Scalar(value, indent + 2) + "\n";
  } else if (const JsonObject* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (!first) out += pad;
      first = false;
      WriteMember(key, member, indent, out);
    }
  } else {
    for (const Json& item : value.get_array()) {
      if (!first) out += pad;
      first = false;
      out += "- ";
      WriteBlock(item, indent + 2, out);
    }
  }
}

}  // namespace

std::string WriteYaml(const Json& value) {
  std::string out;
  WriteBlock(value, 0, out);
  return out;
}

}  // namespace base
