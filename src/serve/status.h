// What a client is told when there is no answer: a code as gRPC numbers them, and one line.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/result.h"

namespace serve {

enum class Code {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

struct Status {
  Code code = Code::kInternal;
  std::string text;

  bool operator==(const Status&) const = default;
};

template <typename T = void>
using Answer = std::expected<T, Status>;

inline std::unexpected<Status> Refused(Code code, std::string text) {
  return std::unexpected(Status{code, std::move(text)});
}
inline std::unexpected<Status> BadRequest(std::string text) {
  return Refused(Code::kInvalidArgument, std::move(text));
}

// "INVALID_ARGUMENT"
std::string_view NameOf(Code code);

// A message of any origin as one line to read: TensorFlow's have line breaks and tabs.
std::string Readable(std::string_view text, size_t most = 4000);

// The status line that TensorFlow Serving answers with over HTTP.
int HttpStatusOf(Code code);

}  // namespace serve
