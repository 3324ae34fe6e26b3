// What a client is told when there is no answer: a code as gRPC numbers them, and one line.
#pragma once

#include <expected>
#include <string>

#include "base/result.h"

namespace serve {

enum class Code {
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

// The status line that TensorFlow Serving answers with over HTTP.
int HttpStatusOf(Code code);

}  // namespace serve
