// A place in a JSON text, and what stands there: for reading large arrays of numbers straight into
// memory. Strict as RFC 8259, but for NaN, Infinity and -Infinity, which TensorFlow Serving takes
// as well. Pure; it refers to the text.
#pragma once

#include <string>
#include <string_view>

#include "serve/status.h"

namespace serve {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // The next character that is no space; 0 at the end.
  char Peek();
  // Steps over this character if it is the next.
  bool Eat(char c);
  Answer<> Expect(char c);
  bool AtEnd() { return Peek() == 0; }

  Answer<std::string> String();
  // A number as it is written, of a valid form.
  Answer<std::string_view> Number();
  // Steps over a number of the usual length, and reads it. False for any other, which is not
  // touched.
  bool ShortReal(double& value);
  Answer<bool> Bool();
  // Steps over a value of any kind, looking at its brackets only: its text.
  Answer<std::string_view> Skip();

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
