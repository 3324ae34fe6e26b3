#include "kube/socket.h"

#include <fmt/core.h>

#include "base/version.h"
#include "kube/api.h"

namespace kube {

base::Result<std::unique_ptr<io::WebSocket>> OpenSocket(Server& server, const std::string& path,
                                                        std::vector<std::string> protocols) {
  const Credentials& credentials = *TRY(server.credentials());
  const Access& access = credentials.access();
  io::HttpRequest request{.url = access.server + path,
                          .headers = {fmt::format("User-Agent: trainyard/{}", base::kVersion)}};
  if (!credentials.authorization().empty()) {
    request.headers.push_back("Authorization: " + credentials.authorization());
  }
  auto opened = TRY(io::WebSocket::Connect({.request = std::move(request),
                                            .protocols = std::move(protocols),
                                            .tls = credentials.tls(),
                                            .proxy = access.proxy}));
  if (auto* socket = std::get_if<std::unique_ptr<io::WebSocket>>(&opened)) {
    return std::move(*socket);
  }
  const auto& answer = std::get<io::HttpResponse>(opened);
  if (auto error = ErrorOf({.status = answer.status, .body = answer.body})) {
    return std::unexpected(*std::move(error));
  }
  return std::unexpected(base::Error(base::ErrorKind::kUnavailable,
                                     fmt::format("{} instead of a WebSocket", answer.status)));
}

}  // namespace kube
