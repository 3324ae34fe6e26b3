#include "serve/json_cursor.h"

#include <array>
#include <charconv>

#include <fmt/core.h>

#include "base/strings.h"

namespace serve {
namespace {

constexpr size_t kDeepest = 128;

// Quotes and brackets.
constexpr auto kMarks = [] {
  std::array<bool, 256> out{};
  for (const unsigned char c : {'"', '[', ']', '{', '}'}) out[c] = true;
  return out;
}();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace

std::unexpected<Status> JsonCursor::Error(std::string_view what) const {
  return BadRequest(fmt::format("JSON at byte {}: {}", at_ + 1, what));
}

Answer<> JsonCursor::Expect(char c) {
  if (!Eat(c)) return Error(fmt::format("'{}' expected", c));
  return {};
}

bool JsonCursor::EatWord(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

Answer<bool> JsonCursor::Bool() {
  Peek();
  if (EatWord("true")) return true;
  if (EatWord("false")) return false;
  return Error("true or false expected");
}

Answer<std::string_view> JsonCursor::Number() {
  Peek();
  const size_t begin = at_;
  const auto digits = [&] {
    const size_t first = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > first;
  };
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  if (at_ < text_.size() && (text_[at_] == 'N' || text_[at_] == 'I')) {
    if (EatWord("Infinity") || (at_ == begin && EatWord("NaN")))
      return text_.substr(begin, at_ - begin);
    return Error("a number expected");
  }
  const size_t whole = at_;
  if (!digits()) return Error("a number expected");
  if (text_[whole] == '0' && at_ > whole + 1) return Error("a number that begins with 0");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!digits()) return Error("digits expected");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!digits()) return Error("digits expected");
  }
  return text_.substr(begin, at_ - begin);
}

Answer<> JsonCursor::Escape(std::string& out) {
  if (at_ >= text_.size()) return Error("a string without an end");
  const char c = text_[at_++];
  constexpr std::string_view kPlain = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  if (const size_t i = kPlain.find(c); i != std::string_view::npos) {
    out += kMeant[i];
    return {};
  }
  const auto four = [&](uint32_t& code) {
    const std::string_view hex = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (hex.size() < 4 || error != std::errc() || end != hex.data() + 4) return false;
    at_ += 4;
    return true;
  };
  uint32_t code = 0;
  if (c != 'u' || !four(code)) return Error("an escape that there is not");
  if (code >= 0xd800 && code < 0xdc00) {
    uint32_t low = 0;
    if (!EatWord("\\u") || !four(low) || low < 0xdc00 || low >= 0xe000)
      return Error("half of a character");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return Error("half of a character");
  }
  AppendUtf8(code, out);
  return {};
}

Answer<std::string> JsonCursor::String() {
  TRY(Expect('"'));
  std::string out;
  while (at_ < text_.size()) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20) {
      ++at_;
    }
    out += text_.substr(begin, at_ - begin);
    if (at_ >= text_.size()) break;
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') return Error("a control character in a string");
    TRY(Escape(out));
  }
  return Error("a string without an end");
}

// Steps over a string, without a look at what it says.
bool JsonCursor::SkipString() {
  while (++at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ >= text_.size()) return false;
  ++at_;
  return true;
}

Answer<std::string_view> JsonCursor::Skip() {
  const char first = Peek();
  const size_t begin = at_;
  if (first != '[' && first != '{' && first != '"') {
    at_ = std::min(text_.find_first_of(" \n\t\r,:[]{}\"", at_), text_.size());
    if (at_ == begin) return Error("a value expected");
    return text_.substr(begin, at_ - begin);
  }
  std::string open;
  do {
    while (at_ < text_.size() && !kMarks[static_cast<unsigned char>(text_[at_])]) ++at_;
    if (at_ >= text_.size()) return Error("the text ends early");
    const char c = text_[at_];
    if (c == '"') {
      if (!SkipString()) return Error("a string without an end");
      continue;
    }
    ++at_;
    if (c == '[' || c == '{') {
      if (open.size() == kDeepest) return Error("brackets too deep");
      open += c == '[' ? ']' : '}';
    } else {
      if (open.empty() || open.back() != c) return Error("a bracket that does not fit");
      open.pop_back();
    }
  } while (!open.empty());
  return text_.substr(begin, at_ - begin);
}

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace serve
