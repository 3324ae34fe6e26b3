// The server's side of a WebSocket, for tests: by hand, so that it can be wrong.
#pragma once

#include <string>

#include "io/testing/server.h"

namespace io::testing {

// Opens the socket as it should, with `more` behind it in one piece; the request.
std::string AcceptWebSocket(Connection& connection, const std::string& protocol,
                            const std::string& more = "");

// A frame of at most 64 KiB; `first` has its opcode, and whether it is the last of its message.
std::string Frame(unsigned char first, const std::string& text);

inline constexpr unsigned char kBinary = 0x82, kBegin = 0x02, kEnd = 0x80, kClose = 0x88,
                               kPing = 0x89;

// The next message of the client, unmasked; empty once it has closed.
std::string ReadMessage(Connection& connection);

}  // namespace io::testing
