#include "kube/kubeconfig.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/strings.h"
#include "base/yaml.h"
#include "io/certificate.h"
#include "io/files.h"
#include "kube/exec_plugin.h"

namespace kube {
namespace {

using base::Error;
using base::ErrorKind;
using base::Invalid;
using base::Node;
using base::Result;

constexpr size_t kMostFile = size_t{1} << 20;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// An entry of clusters, users or contexts, and what it takes to read it and to complain of it.
struct Entry {
  const Node* node = nullptr;  // the map below "cluster", "user" or "context"
  std::string directory;       // that relative paths start from
  std::string who;             // "kubeconfig /f: user \"alice\""

  std::unexpected<Error> Refuse(const std::string& text) const {
    return Invalid(who + ": " + text);
  }

  bool Has(std::string_view key) const {
    const Node* member = node->Find(key);
    return member && member->kind != Node::Kind::kNull;
  }

  Result<std::string> Text(std::string_view key) const {
    if (!Has(key)) return "";
    const Node& member = *node->Find(key);
    if (member.kind != Node::Kind::kString) return Refuse(fmt::format("{} must be text", key));
    return std::string(member.scalar.get_string());
  }

  Result<bool> Flag(std::string_view key) const {
    if (!Has(key)) return false;
    const Node& member = *node->Find(key);
    if (member.kind != Node::Kind::kBool) {
      return Refuse(fmt::format("{} must be true or false", key));
    }
    return member.scalar.get_bool();
  }

  // The file that a key names; empty when it names none.
  Result<std::string> FilePath(std::string_view key) const {
    std::string path = TRY(Text(key));
    if (path.empty() || path.starts_with('/')) return path;
    return directory + "/" + path;
  }

  // What is written in KEY-data, or else in the file named by KEY; empty when there is neither.
  Result<std::string> Pem(std::string_view key) const {
    const std::string data = TRY(Text(fmt::format("{}-data", key)));
    if (!data.empty()) {
      auto bytes = base::DecodeBase64(data);
      if (!bytes) {
        return Refuse(fmt::format("{}-data is not base64: copy it again, whole", key));
      }
      return *std::move(bytes);
    }
    const std::string path = TRY(FilePath(key));
    if (path.empty()) return "";
    auto text = io::ReadFile(path, kMostFile);
    if (!text) return Refuse(fmt::format("{}: {}", key, text.error().text()));
    return text;
  }
};

// The files, merged.
class Config {
 public:
  static Result<Config> Read(const std::vector<std::string>& paths) {
    Config config;
    for (const std::string& path : paths) {
      const auto text = io::ReadFile(path, kMostFile);
      if (!text && text.error().kind() == ErrorKind::kNotFound) continue;  // as kubectl
      if (!text) return Invalid("kubeconfig: " + text.error().text());
      auto root = base::ReadYaml(*text);
      if (!root) return Invalid(fmt::format("kubeconfig {}:{}", path, root.error().Text()));
      if (root->kind == Node::Kind::kNull) continue;
      if (root->kind != Node::Kind::kMap) {
        return Invalid(fmt::format("kubeconfig {}: not a kubeconfig (no map)", path));
      }
      config.files_.push_back({path, *std::move(root)});
    }
    return config;
  }

  bool empty() const { return files_.empty(); }
  std::string paths() const {
    std::vector<std::string> out;
    for (const File& file : files_) out.push_back(file.path);
    return base::Join(out, ":");
  }

  std::string CurrentContext() const {
    for (const File& file : files_) {
      const Node* name = file.root.Find("current-context");
      if (name && name->kind == Node::Kind::kString && !name->scalar.get_string().empty()) {
        return std::string(name->scalar.get_string());
      }
    }
    return "";
  }

  // `kind` is "cluster", "user" or "context".
  std::optional<Entry> Find(const std::string& kind, std::string_view name) const {
    for (const File& file : files_) {
      for (const Node& item : ItemsOf(file, kind)) {
        const Node* value = item.Find(kind);
        if (NameOf(item) != name || !value || value->kind != Node::Kind::kMap) continue;
        return Entry{
            .node = value,
            .directory = io::DirName(io::AbsolutePath(file.path)),
            .who = fmt::format("kubeconfig {}: {} \"{}\"", file.path, kind, base::OneLine(name))};
      }
    }
    return std::nullopt;
  }

  std::vector<std::string> Names(const std::string& kind) const {
    std::vector<std::string> names;
    for (const File& file : files_) {
      for (const Node& item : ItemsOf(file, kind)) {
        const std::string name = NameOf(item);
        if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    }
    return names;
  }

 private:
  struct File {
    std::string path;
    Node root;
  };

  static const std::vector<Node>& ItemsOf(const File& file, const std::string& kind) {
    static const std::vector<Node> none;
    const Node* list = file.root.Find(kind + "s");
    return list ? list->items : none;
  }

  static std::string NameOf(const Node& item) {
    const Node* name = item.Find("name");
    if (!name || name->kind != Node::Kind::kString) return "";
    return std::string(name->scalar.get_string());
  }

  std::vector<File> files_;
};

Result<Entry> Named(const Config& config, const std::string& kind, const std::string& name) {
  if (auto entry = config.Find(kind, name)) return *std::move(entry);
  std::vector<std::string> names = config.Names(kind);
  const auto near = base::Nearest(name, names);
  std::string text =
      fmt::format("kubeconfig {}: no {} named \"{}\"", config.paths(), kind, base::OneLine(name));
  if (near) text += fmt::format("; did you mean \"{}\"?", base::OneLine(*near));
  if (names.empty()) return Invalid(text + " (there is none)");
  constexpr size_t kMostNames = 20;
  const bool more = names.size() > kMostNames;
  names.resize(std::min(names.size(), kMostNames));
  for (std::string& shown : names) shown = base::OneLine(shown);
  return Invalid(
      fmt::format("{} (there are: {}{})", text, base::Join(names, ", "), more ? ", ..." : ""));
}

Result<> ReadCluster(const Entry& cluster, Access& access) {
  access.server = TRY(cluster.Text("server"));
  while (access.server.ends_with('/')) access.server.pop_back();
  if (!access.server.starts_with("https://") && !access.server.starts_with("http://")) {
    return cluster.Refuse("server must be an address that begins with https://");
  }
  access.proxy = TRY(cluster.Text("proxy-url"));
  access.tls.server_name = TRY(cluster.Text("tls-server-name"));
  access.tls.ca = TRY(cluster.Pem("certificate-authority"));
  access.tls.skip_verify = TRY(cluster.Flag("insecure-skip-tls-verify"));
  if (access.tls.skip_verify && !access.tls.ca.empty()) {
    return cluster.Refuse(
        "it names a certificate authority and says insecure-skip-tls-verify: remove the latter");
  }
  if (!access.tls.ca.empty()) {
    if (const auto ca = io::ValidityOf(access.tls.ca); !ca) {
      return cluster.Refuse("certificate-authority: " + ca.error().text());
    }
  }
  if (access.tls.skip_verify) {
    access.warnings.push_back(cluster.who +
                              " says insecure-skip-tls-verify: anybody on the way can read and "
                              "change what is sent; name its certificate-authority instead");
  }
  if (access.server.starts_with("http://")) {
    access.warnings.push_back(cluster.who + " is reached without encryption (http://)");
  }
  return {};
}

Result<> ReadClientCertificate(const Entry& user, base::Time now, Access& access) {
  access.tls.certificate = TRY(user.Pem("client-certificate"));
  access.tls.key = TRY(user.Pem("client-key"));
  if (access.tls.certificate.empty() != access.tls.key.empty()) {
    return user.Refuse("client-certificate and client-key belong together: one is missing");
  }
  if (access.tls.certificate.empty()) return {};
  const auto valid = io::ValidityOf(access.tls.certificate);
  if (!valid) return user.Refuse("client-certificate: " + valid.error().text());
  if (valid->to < now) {
    return user.Refuse(fmt::format(
        "the client certificate expired on {}: ask for a new kubeconfig or renew it (kubeadm certs "
        "renew admin.conf)",
        base::FormatTime(valid->to)));
  }
  // Clocks differ a little.
  if (valid->from > now + std::chrono::minutes(5)) {
    return user.Refuse(
        fmt::format("the client certificate is valid only from {} on: is the clock "
                    "of this machine right?",
                    base::FormatTime(valid->from)));
  }
  return {};
}

Result<ExecPlugin> ReadExecPlugin(const Entry& user, const std::string& allowed) {
  const Node* node = user.node->Find("exec");
  if (node->kind != Node::Kind::kMap) return user.Refuse("exec must be a map");
  const Entry exec{.node = node, .directory = user.directory, .who = user.who + ": exec"};
  ExecPlugin plugin;
  plugin.command = TRY(exec.Text("command"));
  plugin.api_version = TRY(exec.Text("apiVersion"));
  plugin.wants_cluster = TRY(exec.Flag("provideClusterInfo"));
  if (TRY(exec.Text("interactiveMode")) == "Always") {
    return exec.Refuse(fmt::format(
        "{} wants to ask questions (interactiveMode: Always), which it cannot here: log in with it "
        "first and set interactiveMode to IfAvailable",
        base::OneLine(plugin.command)));
  }
  if (const Node* args = node->Find("args")) {
    for (const Node& arg : args->items) {
      if (arg.kind != Node::Kind::kString) return exec.Refuse("args must be a list of text");
      plugin.args.emplace_back(arg.scalar.get_string());
    }
  }
  if (const Node* env = node->Find("env")) {
    for (const Node& item : env->items) {
      const Entry variable{.node = &item, .directory = "", .who = exec.who + ": env"};
      plugin.env.push_back(TRY(variable.Text("name")) + "=" + TRY(variable.Text("value")));
    }
  }
  TRY_AS(exec.who, Allow(plugin, exec.directory, allowed));
  return plugin;
}

Result<> ReadUser(const Entry& user, const Where& where, base::Time now, Access& access) {
  if (user.Has("auth-provider")) {
    return user.Refuse(
        "auth-provider is not supported, and kubectl dropped it too: make the kubeconfig anew with "
        "your cloud's command, which puts an exec plugin there");
  }
  for (const char* key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.Has(key)) {
      return user.Refuse(fmt::format(
          "it acts as somebody else ({}), which is not supported: use a context without it", key));
    }
  }
  TRY(ReadClientCertificate(user, now, access));
  access.username = TRY(user.Text("username"));
  access.password = TRY(user.Text("password"));
  access.token_file = TRY(user.FilePath("tokenFile"));
  if (access.token_file.empty()) access.token = TRY(user.Text("token"));
  const bool has_token = !access.token.empty() || !access.token_file.empty();
  if (has_token && !access.username.empty()) {
    return user.Refuse("it has a token and a username: remove one of them");
  }
  // As client-go: a token or password makes the plugin unnecessary.
  if (user.Has("exec") && !has_token && access.username.empty()) {
    access.exec = TRY(ReadExecPlugin(user, where.exec_plugins));
  }
  return {};
}

Result<Access> FromConfig(const Config& config, const Where& where, base::Time now) {
  Access access;
  access.context = where.context.empty() ? config.CurrentContext() : where.context;
  if (access.context.empty()) {
    return Invalid(fmt::format(
        "kubeconfig {}: no current-context: choose one with kubectl config use-context NAME",
        config.paths()));
  }
  const Entry context = TRY(Named(config, "context", access.context));
  if (const std::string ns = TRY(context.Text("namespace")); !ns.empty()) access.ns = ns;
  TRY(ReadCluster(TRY(Named(config, "cluster", TRY(context.Text("cluster")))), access));
  const std::string user = TRY(context.Text("user"));
  if (!user.empty()) TRY(ReadUser(TRY(Named(config, "user", user)), where, now, access));
  return access;
}

Result<Access> FromServiceAccount(const Where& where) {
  const auto read = [&](const std::string& name) {
    return io::ReadFile(where.service_account + "/" + name, kMostFile);
  };
  Access access{.context = "in-cluster"};
  const bool is_v6 = where.service_host.contains(':');
  access.server = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", where.service_host,
                              is_v6 ? "]" : "", where.service_port);
  access.tls.ca = TRY_AS("service account", read("ca.crt"));
  access.token_file = where.service_account + "/token";
  if (const auto ns = read("namespace")) access.ns = base::Trim(*ns);
  return access;
}

}  // namespace

Where Where::FromEnvironment(std::string context) {
  return {.context = std::move(context),
          .kubeconfig = Env("KUBECONFIG"),
          .home = Env("HOME"),
          .exec_plugins = Env("TRAINYARD_EXEC_PLUGINS"),
          .service_host = Env("KUBERNETES_SERVICE_HOST"),
          .service_port = Env("KUBERNETES_SERVICE_PORT")};
}

Result<Access> FindAccess(const Where& where, base::Time now) {
  std::vector<std::string> paths;
  for (const std::string_view path : base::Split(where.kubeconfig, ':')) {
    if (!path.empty()) paths.emplace_back(path);
  }
  const bool named = !paths.empty();
  if (!named && !where.home.empty()) paths.push_back(where.home + "/.kube/config");
  const Config config = TRY(Config::Read(paths));
  if (!config.empty()) return FromConfig(config, where, now);
  if (!named && where.context.empty() && !where.service_host.empty() &&
      io::Exists(where.service_account + "/token")) {
    return FromServiceAccount(where);
  }
  return std::unexpected(Error(
      ErrorKind::kNotFound,
      named ? fmt::format("no kubeconfig: KUBECONFIG names {}, and no such file has anything in "
                          "it: set it to the file of your cluster",
                          base::Join(paths, ":"))
            : fmt::format("no kubeconfig: {} does not exist, and this is no pod of a cluster: get "
                          "one from your cluster's administrator or set KUBECONFIG",
                          paths.empty() ? "~/.kube/config" : paths[0])));
}

}  // namespace kube
