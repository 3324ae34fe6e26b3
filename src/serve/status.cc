#include "serve/status.h"

namespace serve {

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kFailedPrecondition:
      return 412;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kAborted:
      return 409;
    case Code::kInternal:
      break;
  }
  return 500;
}

}  // namespace serve
