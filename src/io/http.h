// What is asked of a server over HTTP, what it answered, and whom to trust on the way. Values only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace io {

struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // http or https, encoded
  std::vector<std::string> headers;  // "Accept: application/json"
  std::string body;
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // The first of this name (in lower case); empty when there is none.
  std::string_view Header(std::string_view name) const;
};

// Certificates and keys are PEM text.
struct Tls {
  std::string ca;           // the only authorities trusted; empty: those of the system
  std::string certificate;  // shown to the server, with its chain; empty: none
  std::string key;
  std::string server_name;   // that the server's certificate must carry; empty: the URL's host
  bool skip_verify = false;  // anybody may be the server

  bool operator==(const Tls&) const = default;
};

}  // namespace io
