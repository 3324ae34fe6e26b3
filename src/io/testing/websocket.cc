#include "io/testing/websocket.h"

#include <openssl/sha.h>

#include "base/base64.h"

namespace io::testing {
namespace {

std::string AcceptFor(const std::string& request) {
  const std::string name = "Sec-WebSocket-Key: ";
  const size_t at = request.find(name) + name.size();
  const std::string text =
      request.substr(at, request.find("\r\n", at) - at) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char hash[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  return base::EncodeBase64({reinterpret_cast<const char*>(hash), sizeof hash});
}

}  // namespace

std::string AcceptWebSocket(Connection& connection, const std::string& protocol,
                            const std::string& more) {
  const std::string request = connection.ReadRequest();
  connection.Write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Protocol: " +
      protocol + "\r\nSec-WebSocket-Accept: " + AcceptFor(request) + "\r\n\r\n" + more);
  return request;
}

std::string Frame(unsigned char first, const std::string& text) {
  std::string out(1, static_cast<char>(first));
  if (text.size() < 126) {
    out += static_cast<char>(text.size());
  } else {
    out += static_cast<char>(126);
    out += static_cast<char>(text.size() >> 8);
    out += static_cast<char>(text.size() & 255);
  }
  return out + text;
}

std::string ReadMessage(Connection& connection) {
  const auto read = [&](size_t count) { return connection.ReadExactly(count); };
  const std::string head = read(2);
  if (head.size() < 2 || static_cast<unsigned char>(head[0]) == kClose) return "";
  size_t length = static_cast<unsigned char>(head[1]) & 127;
  if (length == 126) {
    const std::string more = read(2);
    if (more.size() < 2) return "";
    length = static_cast<size_t>(static_cast<unsigned char>(more[0])) << 8 |
             static_cast<unsigned char>(more[1]);
  }
  const std::string mask = read(4);
  std::string text = read(length);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(text[i] ^ mask[i % 4]);
  return text;
}

}  // namespace io::testing
