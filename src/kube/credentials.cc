#include "kube/credentials.h"

#include <algorithm>

#include "base/base64.h"
#include "base/strings.h"
#include "io/files.h"
#include "kube/exec_plugin.h"

namespace kube {
namespace {

using base::Result;
using namespace std::chrono_literals;

constexpr base::Duration kTokenFileAge = 1min;
constexpr base::Duration kBetweenRenewals = 10s;
constexpr base::Duration kPluginTimeout = 60s;
constexpr size_t kMostToken = 64 << 10;

bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

Credentials::Credentials(Access access) : access_(std::move(access)) {
  if (!access_.token.empty()) Take("Bearer " + access_.token);
  if (!access_.username.empty()) {
    Take("Basic " + base::EncodeBase64(access_.username + ":" + access_.password));
  }
}

void Credentials::Take(std::string authorization) {
  if (authorization == authorization_) return;
  authorization_ = std::move(authorization);
  ++generation_;
}

Result<> Credentials::ReadTokenFile() {
  const std::string text = TRY_AS("token", io::ReadFile(access_.token_file, kMostToken));
  const std::string token(base::Trim(text));
  if (!IsToken(token)) return base::Invalid("token: " + access_.token_file + " holds no token");
  Take("Bearer " + token);
  return {};
}

Result<> Credentials::AskPlugin() {
  ExecCredential credential = TRY(RunExecPlugin(access_, kPluginTimeout));
  if (!credential.token.empty() && !IsToken(credential.token)) {
    return base::Invalid("exec plugin " + base::OneLine(access_.exec->command) +
                         ": what it printed as a token is none");
  }
  expires_ = credential.expires;
  if (credential.certificate != access_.tls.certificate || credential.key != access_.tls.key) {
    if (!credential.certificate.empty()) {
      access_.tls.certificate = std::move(credential.certificate);
      access_.tls.key = std::move(credential.key);
      ++generation_;
    }
  }
  if (!credential.token.empty()) Take("Bearer " + credential.token);
  return {};
}

Result<> Credentials::Read(base::Time now) {
  read_ = now;
  if (!access_.token_file.empty()) return ReadTokenFile();
  if (access_.exec) return AskPlugin();
  return {};
}

Result<> Credentials::Refresh(base::Time now) {
  if (access_.token_file.empty() && !access_.exec) return {};
  // A clock that was set back counts as time that has passed.
  const bool stale = !read_ || now < *read_ ||
                     (!access_.token_file.empty() && now >= *read_ + kTokenFileAge) ||
                     (access_.exec && expires_ && now >= *expires_);
  if (!stale) return {};
  const bool soon_after = read_ && now >= *read_ && now < *read_ + kBetweenRenewals;
  if (soon_after && generation_ > 0) return {};
  auto read = Read(now);
  if (!read && generation_ > 0 && !access_.token_file.empty()) return {};  // the old one may do
  return read;
}

bool Credentials::Renew(uint64_t generation, base::Time now) {
  if (generation != generation_) return true;  // done already, for another request
  if (access_.token_file.empty() && !access_.exec) return false;
  if (renewed_ && now >= *renewed_ && now < *renewed_ + kBetweenRenewals) return false;
  renewed_ = now;
  return Read(now) && generation != generation_;
}

}  // namespace kube
