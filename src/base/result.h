// Errors as values.
//
// What the user, the disk, the network or another process may do is a Result; what only a bug can
// do is a CHECK. An error carries a kind, chosen by how the caller handles it, and a text that
// reads as a path of intentions: "run mnist.py: read env file x.env: line 3: no '='".
//
//   Result<Config> Load(const std::string& path) {
//     std::string text = TRY(ReadFile(path));
//     return TRY_AS("parse " + path, Parse(text));
//   }
#pragma once

#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>

namespace base {

enum class ErrorKind {
  kInvalid,      // the input is wrong: say so, change nothing, exit status 2
  kNotFound,     // what was named does not exist
  kTaken,        // it exists already, or another process holds it
  kForbidden,    // no right to it
  kUnavailable,  // cannot be reached or done now; may work later
  kInternal,     // the system failed in a way that nobody can branch on
};

class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& text() const { return text_; }
  // The same error, with what was being done put before it.
  Error Context(const std::string& doing) && { return Error(kind_, doing + ": " + text_); }

  bool operator==(const Error&) const = default;

 private:
  ErrorKind kind_;
  std::string text_;
};

template <typename T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> Invalid(std::string text) {
  return std::unexpected(Error(ErrorKind::kInvalid, std::move(text)));
}

// An error of the kind that fits an errno value, its text "what: strerror".
std::unexpected<Error> FromErrno(const std::string& what, int error_number);

// Drops an error on purpose; the words say why that is right.
template <typename T>
void IgnoreError(const Result<T>&, const char* /*why*/) {}

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace base

// Only a bug makes this false.
#define CHECK(condition) \
  ((condition) ? (void)0 : ::base::CheckFailed(#condition, __FILE__, __LINE__))

// The value of a Result, or return its error from the calling function. Each use has names of its
// own, so that one may stand inside another.
#define TRY(expression) TRY_NAMED_(TRY_JOIN_(try_result_, __COUNTER__), expression, error())
#define TRY_AS(doing, expression) \
  TRY_NAMED_(TRY_JOIN_(try_result_, __COUNTER__), expression, error().Context(doing))

#define TRY_NAMED_(name, expression, error_of)                   \
  ({                                                             \
    auto name = (expression);                                    \
    if (!name) return std::unexpected(std::move(name).error_of); \
    std::move(name).value();                                     \
  })
#define TRY_JOIN_(a, b) TRY_JOIN_NOW_(a, b)
#define TRY_JOIN_NOW_(a, b) a##b
