// A place in a JSON text, and what stands there, for reading values straight into tensors. Strict
// as RFC 8259, but for NaN, Infinity and -Infinity, which TensorFlow Serving takes as well. Pure;
// it refers to the text.
#pragma once

#include <string>
#include <string_view>

#include "serve/status.h"

namespace serve {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // The next character that is no space; 0 at the end.
  char Peek() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c == 0 ? '?' : c;
    }
    return 0;
  }
  // Steps over this character if it is the next.
  bool Eat(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  Answer<> Expect(char c);
  bool AtEnd() { return Peek() == 0; }

  Answer<std::string> String();
  // A number as it is written, of a valid form.
  Answer<std::string_view> Number();
  Answer<bool> Bool();
  // Steps over a value of any kind, looking at its brackets only: its text.
  Answer<std::string_view> Skip();
  std::string_view rest() const { return text_.substr(at_); }
  // Goes on at a place in the rest.
  void StepTo(const char* place) { at_ = static_cast<size_t>(place - text_.data()); }

  std::unexpected<Status> Error(std::string_view what) const;

 private:
  bool SkipString();
  bool EatWord(std::string_view word);
  Answer<> Escape(std::string& out);

  std::string_view text_;
  size_t at_ = 0;
};

// With quotes; what is not UTF-8 is not for this.
void AppendJsonString(std::string_view text, std::string& out);

}  // namespace serve
