// Who may ask. With a token, whoever has it; without, whoever reaches the port, but no web page of
// somebody else's: its browser tells where it comes from, and a name that is not ours in Host is
// one that was made to point here. Pure.
#pragma once

#include <string>
#include <string_view>

#include "io/http_message.h"
#include "serve/status.h"

namespace serve {

class Guard {
 public:
  // `host` is the address that is listened on.
  Guard(std::string token, std::string host) : token_(std::move(token)), host_(std::move(host)) {}

  Answer<> CheckHttp(const io::ServerRequest& request) const;
  // `authorization`: of the metadata of a gRPC call; empty: none.
  Answer<> CheckToken(std::string_view authorization) const;
  bool has_token() const { return !token_.empty(); }

 private:
  std::string token_;
  std::string host_;
};

}  // namespace serve
