#include "io/http_routes.h"

#include <utility>

#include "base/strings.h"

namespace io {

ServerHandler Routes(std::vector<HttpRoute> routes) {
  return [routes = std::move(routes)](const ServerRequest& request) mutable -> ServerResponse {
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    std::vector<std::string> allowed;
    for (HttpRoute& route : routes) {
      if (route.path != request.path) continue;
      if (route.method == method) return route.handler(request);
      allowed.push_back(route.method == "GET" ? "GET, HEAD" : route.method);
    }
    if (allowed.empty()) return {.status = 404, .body = "there is nothing here\n"};
    return {.status = 405,
            .body = "not by this method\n",
            .headers = {{"Allow", base::Join(allowed, ", ")}}};
  };
}

}  // namespace io
