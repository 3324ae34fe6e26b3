#include "events/plain_text.h"

#include <algorithm>
#include <vector>

namespace events {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';

// How long the escape sequence is that text begins with (ECMA-48); the whole rest if it has no end.
size_t EscapeLength(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    for (size_t i = 2; i < text.size(); ++i) {
      if (text[i] >= 0x40 && text[i] <= 0x7e) return i + 1;
    }
    return text.size();
  }
  if (text[1] == ']') {
    for (size_t i = 2; i < text.size(); ++i) {
      if (text[i] == kBell) return i + 1;
      if (text[i] == kEscape && i + 1 < text.size() && text[i + 1] == '\\') return i + 2;
    }
    return text.size();
  }
  size_t length = 1;  // else intermediate bytes and a final one, as in "ESC ( B"
  while (length < text.size() && text[length] >= 0x20 && text[length] <= 0x2f) ++length;
  return std::min(length + 1, text.size());
}

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

bool HasVisible(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kEscape) {
      i += EscapeLength(text.substr(i)) - 1;
    } else if (static_cast<unsigned char>(text[i]) >= ' ') {
      return true;
    }
  }
  return false;
}

// What stands after the last carriage return that was written upon.
std::string_view LastRewrite(std::string_view line) {
  size_t end = line.size();
  while (true) {
    const size_t start = line.rfind('\r', end == 0 ? 0 : end - 1);
    if (start == line.npos || end == 0) return line.substr(0, end);
    const std::string_view rewrite = line.substr(start + 1, end - start - 1);
    if (HasVisible(rewrite)) return rewrite;
    end = start;
  }
}

}  // namespace

std::string StripAnsi(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text[i] == kEscape) {
      i += EscapeLength(text.substr(i));
    } else {
      plain += text[i++];
    }
  }
  return plain;
}

std::string CollapseCarriageReturns(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  line = LastRewrite(line);
  if (!line.contains('\b')) return std::string(line);

  // One cell is one character with the escapes before it.
  std::vector<std::string_view> cells;
  size_t cursor = 0;
  size_t begin = 0;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '\b') {
      if (cursor > 0) --cursor;
      begin = ++i;
      continue;
    }
    if (line[i] == kEscape) {
      i += EscapeLength(line.substr(i));
      continue;
    }
    ++i;
    while (i < line.size() && IsContinuation(line[i])) ++i;
    const std::string_view cell = line.substr(begin, i - begin);
    if (cursor < cells.size()) {
      cells[cursor] = cell;
    } else {
      cells.push_back(cell);
    }
    ++cursor;
    begin = i;
  }
  std::string text;
  for (const std::string_view cell : cells) text += cell;
  return text.append(line.substr(begin));
}

}  // namespace events
