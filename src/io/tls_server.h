// The server's side of TLS (1.2 and up) over a socket that does not block.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace io {

// A certificate with its chain, and its key; shared by all connections.
class TlsIdentity {
 public:
  // Both PEM. Refused when they do not belong together.
  static base::Result<std::shared_ptr<const TlsIdentity>> Make(const std::string& certificate,
                                                               const std::string& key);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

 private:
  friend class TlsConnection;
  explicit TlsIdentity(void* context) : context_(context) {}
  void* context_;
};

// One connection; the socket stays its owner's.
class TlsConnection {
 public:
  enum class Now { kDone, kWaitToRead, kWaitToWrite, kOver };

  TlsConnection(std::shared_ptr<const TlsIdentity> identity, int socket);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // All that has come, behind what `in` has; the handshake is done on the way.
  Now Read(std::string& in);
  // As much as can be written; `written` grows by it.
  Now Write(std::string_view bytes, size_t& written);
  // Tells the client that nothing more will come.
  void Finish();

 private:
  Now Judge(int result);
  std::shared_ptr<const TlsIdentity> identity_;
  void* ssl_;
};

}  // namespace io
