#include "serve/status.h"

#include "base/strings.h"

namespace serve {

std::string Readable(std::string_view text, size_t most) {
  std::string words;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space) words += c;
    if (space && !words.empty() && !words.ends_with(' ')) words += ' ';
  }
  if (words.ends_with(' ')) words.pop_back();
  return base::CleanUtf8(base::OneLine(words, most));
}

std::string_view NameOf(Code code) {
  switch (code) {
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return static_cast<int>(code) == 0 ? "OK" : "UNKNOWN";
}

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kCancelled:
      return 499;  // as nginx: nobody reads it
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
