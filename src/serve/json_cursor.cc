#include "serve/json_cursor.h"

#include <array>
#include <bit>
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

// Up to 19 digits with a point among them, without an exponent. The digits as a whole number and
// the power of ten are within half a unit of a double, and so is their quotient: the float is right
// unless the double lies next to the middle between two floats, which is left to those who read
// slowly.
bool ShortFloat(const char*& at, const char* end, float& value) {
  static constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                     1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1;
  constexpr uint64_t kMiddle = uint64_t{1} << 28;
  constexpr ptrdiff_t kMostDigits = 19;
  const char* from = at;
  const bool negative = from < end && *from == '-';
  from += negative;
  uint64_t digits = 0;
  const char* const first = from;
  for (; from < end && IsDigit(*from); ++from)
    digits = digits * 10 + static_cast<uint64_t>(*from - '0');
  ptrdiff_t count = from - first;
  if (count == 0 || (*first == '0' && count > 1)) return false;
  ptrdiff_t behind = 0;
  if (from < end && *from == '.') {
    const char* const point = ++from;
    for (; from < end && IsDigit(*from); ++from)
      digits = digits * 10 + static_cast<uint64_t>(*from - '0');
    behind = from - point;
    count += behind;
    if (behind == 0) return false;
  }
  if (count > kMostDigits) return false;  // of them, or of what they became
  const double size = static_cast<double>(digits) / kTens[behind];
  const uint64_t below = std::bit_cast<uint64_t>(size) & kBelowFloat;
  if (below - (kMiddle - 4) <= 8) return false;
  value = static_cast<float>(negative ? -size : size);
  at = from;
  return true;
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

std::optional<int64_t> JsonCursor::Floats(std::string& out) {
  if (Peek() != '[') return std::nullopt;
  const char* at = text_.data() + at_ + 1;
  const char* const end = text_.data() + text_.size();
  const auto spaces = [&] {
    while (at < end && (*at == ' ' || *at == '\n')) ++at;
  };
  const size_t before = out.size();
  std::array<float, 64> some;
  size_t have = 0;
  const auto flush = [&] {
    out.append(reinterpret_cast<const char*>(some.data()), have * sizeof(float));
    have = 0;
  };
  while (true) {
    spaces();
    if (!ShortFloat(at, end, some[have])) break;
    if (++have == some.size()) flush();
    spaces();
    if (at == end || (*at != ',' && *at != ']')) break;
    if (*at++ == ',') continue;
    flush();
    at_ = static_cast<size_t>(at - text_.data());
    return static_cast<int64_t>((out.size() - before) / sizeof(float));
  }
  out.resize(before);
  return std::nullopt;
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
