#include "io/unix_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace io {
namespace {

using base::Result;

constexpr int kPatienceMs = 1000;
constexpr size_t kMostBytes = 64 << 10;

Result<sockaddr_un> Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty())
    return base::Invalid("no directory of our own for sockets: set XDG_RUNTIME_DIR");
  if (path.size() >= sizeof address.sun_path) {
    return base::Invalid("socket path is longer than the 107 bytes that the system allows: " +
                         path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Up to and without the newline; what came until the end or the time-out.
std::string ReadLine(int fd, int patience_ms) {
  std::string line;
  char buffer[4096];
  while (line.size() < kMostBytes) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, patience_ms) <= 0) break;
    const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
    if (size <= 0) break;
    line.append(buffer, static_cast<size_t>(size));
    if (const size_t end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
  }
  return line;
}

void SendLine(int fd, std::string line) {
  line += '\n';
  size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t size = send(fd, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    sent += static_cast<size_t>(size);
  }
}

}  // namespace

Result<RequestServer> RequestServer::Listen(const std::string& path) {
  const sockaddr_un address = TRY(Address(path));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::FromErrno("socket", errno);
  unlink(path.c_str());  // of a supervisor that was killed: we hold the job's lock
  const mode_t before = umask(0077);
  const int bound = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  umask(before);
  if (bound != 0) return base::FromErrno("bind " + path, error);
  if (listen(fd.get(), 16) != 0) return base::FromErrno("listen " + path, errno);
  return RequestServer(std::move(fd), path);
}

RequestServer::~RequestServer() {
  if (fd_.valid()) unlink(path_.c_str());
}

void RequestServer::Serve(const std::function<std::string(const std::string&)>& answer) {
  const Fd client(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client.valid()) return;
  const std::string line = ReadLine(client.get(), kPatienceMs);
  if (!line.empty()) SendLine(client.get(), answer(line));
}

Fd HoldName(const std::string& name) {
  Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CHECK(name.size() < sizeof address.sun_path);
  // Abstract: the name begins with a zero byte, and belongs to no file.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) fd.reset();
  return fd;
}

Result<std::string> Request(const std::string& path, const std::string& line) {
  const sockaddr_un address = TRY(Address(path));
  const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::FromErrno("socket", errno);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return std::unexpected(base::Error(base::ErrorKind::kUnavailable, "nobody listens at " + path));
  }
  SendLine(fd.get(), line);
  const std::string answer = ReadLine(fd.get(), 30 * kPatienceMs);
  if (answer.empty()) {
    return std::unexpected(
        base::Error(base::ErrorKind::kUnavailable, "the supervisor gave no answer"));
  }
  return answer;
}

}  // namespace io
