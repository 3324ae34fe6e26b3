// A table of what a server answers to.
#pragma once

#include <string>
#include <vector>

#include "io/http_message.h"

namespace io {

struct HttpRoute {
  std::string method;  // "GET" answers HEAD as well
  std::string path;    // exactly this
  ServerHandler handler;
};

// 404 when no route has the path; 405, with those that there are, when none has the method.
ServerHandler Routes(std::vector<HttpRoute> routes);

}  // namespace io
