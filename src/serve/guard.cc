#include "serve/guard.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace serve {
namespace {

// Takes the same time wherever the difference is.
bool SameSecret(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return difference == 0;
}

std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// An address cannot be made to point elsewhere, as a name can.
bool IsAddress(std::string_view host) {
  return host.starts_with('[') ||
         (!host.empty() && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

}  // namespace

Answer<> Guard::CheckToken(std::string_view authorization) const {
  if (token_.empty()) return {};
  constexpr std::string_view kScheme = "bearer ";
  if (base::Lower(authorization.substr(0, kScheme.size())) == kScheme &&
      SameSecret(base::Trim(authorization.substr(kScheme.size())), token_))
    return {};
  return Refused(Code::kUnauthenticated, authorization.empty()
                                             ? "a token is needed: Authorization: Bearer …"
                                             : "not the token of this server");
}

Answer<> Guard::CheckHttp(const io::ServerRequest& request) const {
  const std::string_view host = request.Header("host");
  const std::string_view origin = request.Header("origin");
  if (!origin.empty()) {
    const size_t at = origin.find("://");
    if (at == std::string_view::npos || origin.substr(at + 3) != host)
      return Refused(Code::kPermissionDenied,
                     fmt::format("not for pages of {}", base::OneLine(origin)));
  }
  if (!token_.empty()) return CheckToken(request.Header("authorization"));
  const std::string_view name = WithoutPort(host);
  if (!IsAddress(name) && name != "localhost" && name != host_ && IsAddress(host_) &&
      (host_.starts_with("127.") || host_ == "[::1]"))
    return Refused(Code::kPermissionDenied,
                   fmt::format("this server is not called {}", base::OneLine(name)));
  return {};
}

}  // namespace serve
