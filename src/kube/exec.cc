// The first byte of each message names a channel. v5 is v4 with an end of input.
#include "kube/exec.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/strings.h"
#include "kube/api.h"
#include "kube/socket.h"

namespace kube {
namespace {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::Result;

constexpr char kInput = 0, kOutput = 1, kError = 2, kStatus = 3, kResize = 4;
constexpr char kCloseChannel = static_cast<char>(255);
constexpr size_t kMostInMessage = 32 << 10;

}  // namespace

Result<int> ReadExecStatus(std::string_view text) {
  const auto status = base::ParseJson(text);
  if (!status) return std::unexpected(Error(ErrorKind::kUnavailable, "its end cannot be read"));
  if (base::StringOr(*status, "status") == "Success") return 0;
  const Json* details = base::Find(*status, "details");
  const Json* causes = details ? base::Find(*details, "causes") : nullptr;
  if (base::StringOr(*status, "reason") == "NonZeroExitCode" && causes && causes->is_array()) {
    for (const Json& cause : causes->get_array()) {
      if (base::StringOr(cause, "reason") != "ExitCode") continue;
      const auto code = base::ParseInt(base::StringOr(cause, "message"));
      if (code && *code > 0 && *code < 256) return static_cast<int>(*code);
    }
  }
  return std::unexpected(
      Error(ErrorKind::kUnavailable, base::OneLine(base::StringOr(*status, "message"), 300)));
}

Result<std::unique_ptr<Exec>> Exec::Start(Server& server, const Target& target) {
  std::string path = WithQuery(Path("v1", "pods", target.ns, target.pod, "exec"),
                               {{"stdout", "true"},
                                {"stderr", target.terminal ? "" : "true"},
                                {"stdin", target.input ? "true" : ""},
                                {"tty", target.terminal ? "true" : ""},
                                {"container", target.container}});
  for (const std::string& word : target.command) path += "&command=" + PercentEncoded(word);
  auto socket = TRY_AS(fmt::format("exec in pod {}", target.pod),
                       OpenSocket(server, path, {"v5.channel.k8s.io", "v4.channel.k8s.io"}));
  return std::unique_ptr<Exec>(new Exec(std::move(socket)));
}

void Exec::Write(std::string_view input) {
  for (; !input.empty(); input.remove_prefix(std::min(input.size(), kMostInMessage))) {
    socket_->Send(kInput + std::string(input.substr(0, kMostInMessage)));
  }
}

bool Exec::CloseInput() {
  if (socket_->protocol() != "v5.channel.k8s.io") return false;
  socket_->Send(std::string{kCloseChannel, kInput});
  return true;
}

void Exec::Resize(int columns, int rows) {
  socket_->Send(kResize + fmt::format(R"({{"Width":{},"Height":{}}})", columns, rows));
}

Result<> Exec::Advance(const std::function<void(int fd, std::string_view bytes)>& output) {
  auto went = socket_->Advance([&](std::string_view message) {
    if (message.size() < 2) return;  // each channel begins with an empty message
    const std::string_view rest = message.substr(1);
    if (message[0] == kOutput || message[0] == kError) output(message[0], rest);
    if (message[0] == kStatus && !status_) status_ = ReadExecStatus(rest);
  });
  if (status_) return {};
  TRY(std::move(went));
  if (socket_->closed()) {
    return std::unexpected(
        Error(ErrorKind::kUnavailable, "the connection ended before the command did"));
  }
  return {};
}

}  // namespace kube
