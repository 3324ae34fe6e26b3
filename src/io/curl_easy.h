// One transfer of libcurl, set up as all of ours are: TLS 1.2 or later and verified, HTTP/1.1, no
// redirects, no proxy from the environment, no other protocol than http and https, dead peers
// noticed by the kernel. For http_client.cc and websocket.cc; nobody else sees libcurl.
#pragma once

#include <memory>
#include <string>

#include <signal.h>

#include "base/result.h"
#include "io/http.h"

namespace io {

struct UrlParts {
  std::string address;  // "host:6443"
  std::string target;   // "/path?query"
};
// Of what is no URL: an address that says so.
UrlParts SplitUrl(const std::string& url);

class CurlEasy {
 public:
  // The request is kept here, since libcurl reads its body from where it lies. `proxy` empty: none.
  CurlEasy(HttpRequest request, std::shared_ptr<const Tls> tls, const std::string& proxy);
  ~CurlEasy();
  CurlEasy(const CurlEasy&) = delete;
  CurlEasy& operator=(const CurlEasy&) = delete;

  void* handle() const { return handle_; }  // a CURL*
  // What a failed transfer (a CURLcode) means, in words, with the server's address in front.
  base::Error ErrorOf(int code) const;
  // The same for a failure that we found.
  base::Error Failure(base::ErrorKind kind, const std::string& text) const;

 private:
  void TrustAndIdentity();
  void ConnectUnderAnotherName();

  void* handle_;
  HttpRequest request_;
  std::shared_ptr<const Tls> tls_;
  void* headers_ = nullptr;  // curl_slists
  void* connect_to_ = nullptr;
  char text_[256] = {};  // CURL_ERROR_SIZE
};

// While one lives, writing to a connection that the peer has closed raises no signal in this
// thread: OpenSSL has no way to ask for that itself.
class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t before_;
  bool pending_before_;
};

}  // namespace io
