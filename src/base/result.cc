#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace base {

std::unexpected<Error> FromErrno(const std::string& what, int error_number) {
  ErrorKind kind = ErrorKind::kInternal;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      kind = ErrorKind::kNotFound;
      break;
    case EEXIST:
    case EBUSY:
    case EADDRINUSE:
      kind = ErrorKind::kTaken;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      kind = ErrorKind::kForbidden;
      break;
    case EAGAIN:
    case EINTR:
    case ENOSPC:
    case EDQUOT:
    case ECONNREFUSED:
    case ETIMEDOUT:
      kind = ErrorKind::kUnavailable;
      break;
    default:
      break;
  }
  return std::unexpected(Error(kind, what + ": " + std::strerror(error_number)));
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace base
