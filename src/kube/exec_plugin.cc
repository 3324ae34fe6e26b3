#include "kube/exec_plugin.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strings.h"
#include "io/files.h"
#include "io/process.h"

namespace kube {
namespace {

using base::Error;
using base::ErrorKind;
using base::Invalid;
using base::Json;
using base::JsonObject;
using base::Result;

constexpr size_t kMostOutput = size_t{1} << 20;

// Those that the clouds' own tools write into kubeconfigs, and the common login helpers.
constexpr std::array<std::string_view, 10> kKnown = {"aws",
                                                     "aws-iam-authenticator",
                                                     "gke-gcloud-auth-plugin",
                                                     "kubelogin",
                                                     "kubectl-oidc_login",
                                                     "doctl",
                                                     "oci",
                                                     "tsh",
                                                     "ibmcloud",
                                                     "pinniped"};

bool Contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Variables that would make a known program run somebody else's code.
bool ChangesWhatIsRun(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  constexpr std::array<std::string_view, 8> kNames = {
      "PATH",       "ENV",          "BASH_ENV",        "IFS",
      "GCONV_PATH", "NODE_OPTIONS", "AWS_CONFIG_FILE", "CLOUDSDK_PYTHON"};
  return name.empty() || name.starts_with("LD_") || name.starts_with("PYTHON") ||
         name.starts_with("PERL") || name.starts_with("RUBY") || Contains(kNames, name);
}

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

std::string InfoFor(const Access& access) {
  JsonObject spec{{"interactive", false}};
  if (access.exec->wants_cluster) {
    JsonObject cluster{{"server", access.server}};
    if (!access.tls.ca.empty()) {
      cluster["certificate-authority-data"] = base::EncodeBase64(access.tls.ca);
    }
    if (!access.tls.server_name.empty()) cluster["tls-server-name"] = access.tls.server_name;
    if (access.tls.skip_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!access.proxy.empty()) cluster["proxy-url"] = access.proxy;
    spec["cluster"] = std::move(cluster);
  }
  return base::CompactJson(JsonObject{{"apiVersion", access.exec->api_version},
                                      {"kind", "ExecCredential"},
                                      {"spec", std::move(spec)}});
}

Result<std::string> OutputOf(const ExecPlugin& plugin, const std::string& info,
                             base::Duration timeout) {
  io::Spawn spawn{.argv = {plugin.program}, .env = io::Environment(), .error = 2};
  spawn.argv.insert(spawn.argv.end(), plugin.args.begin(), plugin.args.end());
  std::erase_if(spawn.env, [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    return name == "KUBERNETES_EXEC_INFO=" ||
           std::ranges::any_of(plugin.env, [&](const auto& e) { return e.starts_with(name); });
  });
  spawn.env.insert(spawn.env.end(), plugin.env.begin(), plugin.env.end());
  spawn.env.push_back("KUBERNETES_EXEC_INFO=" + info);
  io::Ended ended = TRY(io::RunToItsEnd(spawn, timeout, kMostOutput));
  if (ended.status != 0) {
    return std::unexpected(Error(
        ErrorKind::kUnavailable,
        fmt::format("it ended with status {}: log in again with it, or run it by hand to see why",
                    ended.status)));
  }
  return std::move(ended.output);
}

}  // namespace

Result<> Allow(ExecPlugin& plugin, const std::string& directory, const std::string& allowed) {
  const std::string shown = base::OneLine(plugin.command);
  if (plugin.command.empty()) return Invalid("no command");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Invalid(fmt::format(
        "{}: apiVersion {} is not known: client.authentication.k8s.io/v1 and v1beta1 are; make the "
        "kubeconfig anew with a newer version of its tool",
        shown, base::OneLine(plugin.api_version)));
  }
  for (const std::string& entry : plugin.env) {
    if (ChangesWhatIsRun(entry)) {
      return Invalid(
          fmt::format("{}: its env sets {}, which changes what is run: set it in your "
                      "own environment if you mean it",
                      shown, base::OneLine(entry.substr(0, entry.find('=')))));
    }
  }
  const bool is_path = plugin.command.contains('/');
  std::string path = plugin.command;
  if (is_path && !path.starts_with('/')) path = directory + "/" + path;
  const std::vector<std::string_view> more = base::Split(allowed, ',');
  const auto is_named = [&](std::string_view name) {
    return std::ranges::any_of(more, [&](auto word) { return base::Trim(word) == name; });
  };
  // A path is as good as the name if the name means that file here.
  const std::string name = io::BaseName(plugin.command);
  // kubectl itself would run what another kubeconfig names, so only this one of its plugins.
  const bool is_login = name == "kubectl" && !plugin.args.empty() && plugin.args[0] == "oidc-login";
  const bool known = Contains(kKnown, name) || is_login || is_named(name);
  const std::string found = io::FindProgram(name);
  const bool may = is_path ? is_named(path) || is_named(plugin.command) ||
                                 (known && !found.empty() && IsSameFile(found, path))
                           : known;
  if (!may) {
    return Invalid(fmt::format(
        "it wants to run the program {0}, which is not a known one: if you trust it, set "
        "TRAINYARD_EXEC_PLUGINS={0}",
        shown));
  }
  plugin.program = is_path ? path : found;
  if (plugin.program.empty() || !io::Exists(plugin.program)) {
    return Invalid(fmt::format("the program {} is not on PATH: install it, then try again", shown));
  }
  return {};
}

Result<ExecCredential> ReadExecCredential(const std::string& text) {
  const auto json = base::ParseJson(text);
  const Json* status = json ? base::Find(*json, "status") : nullptr;
  if (!status || base::StringOr(*json, "kind") != "ExecCredential") {
    return Invalid("printed no ExecCredential with a status");
  }
  ExecCredential out{.token = base::StringOr(*status, "token"),
                     .certificate = base::StringOr(*status, "clientCertificateData"),
                     .key = base::StringOr(*status, "clientKeyData")};
  if (out.certificate.empty() != out.key.empty()) {
    return Invalid("printed a certificate without its key, or the other way");
  }
  if (out.token.empty() && out.certificate.empty()) {
    return Invalid("printed neither a token nor a certificate");
  }
  if (const std::string time = base::StringOr(*status, "expirationTimestamp"); !time.empty()) {
    out.expires = base::ParseTime(time);
    if (!out.expires) return Invalid("printed an expirationTimestamp that is no time");
  }
  return out;
}

Result<ExecCredential> RunExecPlugin(const Access& access, base::Duration timeout) {
  const std::string doing = "exec plugin " + base::OneLine(access.exec->command);
  const std::string text = TRY_AS(doing, OutputOf(*access.exec, InfoFor(access), timeout));
  return TRY_AS(doing, ReadExecCredential(text));
}

}  // namespace kube
