#include "kube/kubeconfig.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "io/clock.h"
#include "io/testing/certificates.h"
#include "io/testing/temp_dir.h"

namespace kube {
namespace {

using base::ErrorKind;
using io::testing::Authority;
using io::testing::KeyPair;

constexpr const char* kSecret = "canary-1d8f";

class KubeconfigTest : public ::testing::Test {
 protected:
  // A kubeconfig of one context "main" with these fields of its cluster and its user.
  static std::string Config(const std::string& cluster, const std::string& user) {
    return fmt::format(R"(
apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: {{cluster: home, user: alice, namespace: team-a}}
clusters:
- name: home
  cluster: {{{}}}
users:
- name: alice
  user: {{{}}}
)",
                       cluster, user);
  }

  base::Result<Access> Find(const std::string& text, const std::string& context = "") {
    return FindAccess({.context = context, .kubeconfig = dir.Write("config", text)}, io::Now());
  }

  // The text of the refusal, which must not have the secret in it.
  std::string Refusal(const std::string& text, const std::string& context = "") {
    const auto access = Find(text, context);
    if (access) return "";
    EXPECT_EQ(access.error().kind(), ErrorKind::kInvalid);
    EXPECT_FALSE(access.error().text().contains(kSecret)) << access.error().text();
    EXPECT_FALSE(access.error().text().contains('\n'));
    return access.error().text();
  }

  std::string RefusedUser(const std::string& user) {
    const std::string text = Refusal(Config("server: 'https://h'", user));
    const std::string begin = "kubeconfig " + dir.path() + "/config: user \"alice\": ";
    EXPECT_TRUE(text.starts_with(begin)) << text;
    return text.substr(std::min(begin.size(), text.size()));
  }

  static std::string Data(const std::string& pem) { return base::EncodeBase64(pem); }

  io::testing::TempDir dir;
};

TEST_F(KubeconfigTest, ReadsServerNamespaceAndToken) {
  const auto access = Find(
      Config("server: 'https://10.0.0.1:6443/', tls-server-name: kube, proxy-url: 'http://p:1'",
             std::string("token: ") + kSecret));
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->context, "main");
  EXPECT_EQ(access->ns, "team-a");
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->tls.server_name, "kube");
  EXPECT_EQ(access->proxy, "http://p:1");
  EXPECT_EQ(access->token, kSecret);
  EXPECT_TRUE(access->warnings.empty());
}

TEST_F(KubeconfigTest, ReadsCertificatesFromDataAndFromFilesBesideIt) {
  const Authority authority;
  const KeyPair alice = authority.Issue({.name = "alice"});
  const auto by_data = Find(
      Config("server: 'https://h', certificate-authority-data: " + Data(authority.certificate()),
             "client-certificate-data: " + Data(alice.certificate) +
                 ", client-key-data: " + Data(alice.key)));
  ASSERT_TRUE(by_data) << by_data.error().text();
  EXPECT_EQ(
      by_data->tls,
      (io::Tls{.ca = authority.certificate(), .certificate = alice.certificate, .key = alice.key}));
  dir.Write("pki/ca.crt", authority.certificate());
  dir.Write("pki/alice.crt", alice.certificate);
  const std::string key = dir.Write("alice.key", alice.key);
  const auto by_file = Find(Config("server: 'https://h', certificate-authority: pki/ca.crt",
                                   "client-certificate: pki/alice.crt, client-key: " + key));
  ASSERT_TRUE(by_file) << by_file.error().text();
  EXPECT_EQ(by_file->tls, by_data->tls);
}

TEST_F(KubeconfigTest, OfTwoFilesTheFirstToNameSomethingCounts) {
  const std::string first = dir.Write("first/config", R"(
contexts:
- {name: a, context: {cluster: c, user: u}}
users:
- {name: u, user: {tokenFile: token}}
)");
  const std::string second = dir.Write("second/config", R"(
current-context: a
contexts:
- {name: a, context: {cluster: other, user: other}}
clusters:
- {name: c, cluster: {server: "https://second"}}
users:
- {name: u, user: {token: second}}
)");
  const auto access =
      FindAccess({.kubeconfig = ":" + dir.path() + "/missing:" + first + ":" + second}, io::Now());
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://second");
  EXPECT_EQ(access->token_file, dir.path() + "/first/token");
  EXPECT_EQ(access->token, "");
}

TEST_F(KubeconfigTest, WithoutKubeconfigItIsTheOneAtHome) {
  dir.Write(".kube/config", Config("server: 'https://at-home'", ""));
  EXPECT_EQ(FindAccess({.home = dir.path()}, io::Now())->server, "https://at-home");
}

TEST_F(KubeconfigTest, WithoutAnyItIsTheServiceAccountOfThePod) {
  dir.Write("account/token", kSecret);
  dir.Write("account/ca.crt", Authority().certificate());
  dir.Write("account/namespace", "team-b\n");
  Where where{.home = dir.path(),
              .service_host = "10.96.0.1",
              .service_port = "443",
              .service_account = dir.path() + "/account"};
  const auto access = FindAccess(where, io::Now());
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->ns, "team-b");
  EXPECT_EQ(access->token_file, dir.path() + "/account/token");
  where.service_host = "fd00::1";
  EXPECT_EQ(FindAccess(where, io::Now())->server, "https://[fd00::1]:443");
}

TEST_F(KubeconfigTest, WithNothingAtAllItSaysWhatToDo) {
  const auto access = FindAccess({.home = dir.path()}, io::Now());
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(access.error().text(),
            "no kubeconfig: " + dir.path() +
                "/.kube/config does not exist, and this is no pod of a cluster: get one from your "
                "cluster's administrator or set KUBECONFIG");
  EXPECT_FALSE(FindAccess({.kubeconfig = dir.path() + "/none", .home = dir.path()}, io::Now()));
}

TEST_F(KubeconfigTest, AnUnknownContextIsAnsweredWithThoseThereAre) {
  EXPECT_TRUE(
      Refusal(Config("server: 'https://h'", ""), "mian")
          .ends_with("no context named \"mian\"; did you mean \"main\"? (there are: main)"));
  EXPECT_TRUE(Refusal("contexts: []", "x").ends_with("no context named \"x\" (there is none)"));
}

TEST_F(KubeconfigTest, RefusesWithoutACurrentContext) {
  EXPECT_TRUE(Refusal("contexts: []").contains("kubectl config use-context"));
}

TEST_F(KubeconfigTest, RefusesAContextOfNothing) {
  EXPECT_TRUE(Refusal("current-context: a\ncontexts: [{name: a, context: {cluster: x}}]")
                  .contains("no cluster named \"x\""));
  EXPECT_TRUE(Refusal("current-context: a\ncontexts: [{name: a}, 7, [], {name: [a]}]")
                  .contains("no context named \"a\""));
}

TEST_F(KubeconfigTest, RefusesWhatIsNoKubeconfig) {
  for (const char* text : {"[]", "7", "a: [", "a: 1\na: 2", "\t", "contexts: 5",
                           "current-context: {}\ncontexts: {a: b}"}) {
    EXPECT_NE(Refusal(text), "") << text;
  }
}

TEST_F(KubeconfigTest, WarnsOfAClusterThatIsNotVerified) {
  const auto access = Find(Config("server: 'https://h', insecure-skip-tls-verify: true", ""));
  ASSERT_TRUE(access);
  EXPECT_TRUE(access->tls.skip_verify);
  ASSERT_EQ(access->warnings.size(), 1u);
  EXPECT_TRUE(access->warnings[0].contains("insecure-skip-tls-verify"));
  EXPECT_EQ(Find(Config("server: 'http://h'", ""))->warnings.size(), 1u);
}

TEST_F(KubeconfigTest, RefusesAClusterThatCannotBeReached) {
  const std::string ca = Data(Authority().certificate());
  const std::pair<std::string, std::string> cases[] = {
      {"", "server must be an address"},
      {"server: 'ftp://h'", "server must be an address"},
      {"server: 5", "server must be text"},
      {"server: 'https://h', insecure-skip-tls-verify: 'yes'", "must be true or false"},
      {"server: 'https://h', insecure-skip-tls-verify: true, certificate-authority-data: " + ca,
       "remove the latter"},
      {"server: 'https://h', certificate-authority-data: '%%'", "is not base64"},
      {"server: 'https://h', certificate-authority-data: aGVsbG8=", "not a certificate"},
      {"server: 'https://h', certificate-authority: missing.crt", "No such file"}};
  for (const auto& [cluster, why] : cases) {
    EXPECT_TRUE(Refusal(Config(cluster, "")).contains(why)) << Refusal(Config(cluster, ""));
  }
}

TEST_F(KubeconfigTest, RefusesAnExpiredClientCertificate) {
  const KeyPair old = Authority().Issue({.valid_from_days = -20, .valid_days = 10});
  const std::string text = RefusedUser("client-certificate-data: " + Data(old.certificate) +
                                       ", client-key-data: " + Data(old.key));
  EXPECT_TRUE(text.starts_with("the client certificate expired on 2")) << text;
  const KeyPair early = Authority().Issue({.valid_from_days = 5});
  EXPECT_TRUE(RefusedUser("client-certificate-data: " + Data(early.certificate) +
                          ", client-key-data: " + Data(early.key))
                  .contains("is the clock"));
}

TEST_F(KubeconfigTest, RefusesAUserThatCannotBe) {
  const std::string certificate = Data(Authority().Issue({}).certificate);
  const std::string secret = kSecret;
  const std::pair<std::string, std::string> cases[] = {
      {"client-certificate-data: " + certificate, "one is missing"},
      {"client-key-data: " + Data(secret), "one is missing"},
      {"client-certificate-data: " + Data(secret) + ", client-key-data: " + Data(secret),
       "not a certificate"},
      {"client-key-data: '!" + secret + "'", "client-key-data is not base64"},
      {"client-key: missing", "No such file"},
      {"auth-provider: {name: gcp}", "auth-provider is not supported"},
      {"token: [" + secret + "]", "token must be text"},
      {"token: " + secret + ", username: u, password: " + secret, "remove one of them"},
      {"token: " + secret + ", as: root", "acts as somebody else (as)"},
      {"exec: 5", "exec must be a map"}};
  for (const auto& [user, why] : cases) {
    EXPECT_TRUE(RefusedUser(user).contains(why)) << RefusedUser(user);
  }
}

TEST_F(KubeconfigTest, ReadsAnExecPlugin) {
  const std::string program = dir.Write("login", "#!/bin/sh\n", 0755);
  const std::string text = Config(
      "server: 'https://h'",
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [a, 'b c'], "
      "env: [{name: X, value: z}], provideClusterInfo: true, interactiveMode: IfAvailable}");
  const auto access =
      FindAccess({.kubeconfig = dir.Write("config", text), .exec_plugins = "./login"}, io::Now());
  ASSERT_TRUE(access) << access.error().text();
  ASSERT_TRUE(access->exec);
  EXPECT_TRUE(access->exec->program.starts_with(dir.path()));
  EXPECT_EQ(access->exec->args, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(access->exec->env, (std::vector<std::string>{"X=z"}));
  EXPECT_TRUE(access->exec->wants_cluster);
  EXPECT_EQ(RefusedUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login}"),
            "exec: it wants to run the program ./login, which is not a known one: if you trust it, "
            "set TRAINYARD_EXEC_PLUGINS=./login");
}

TEST_F(KubeconfigTest, RefusesAPluginThatAsksQuestions) {
  EXPECT_TRUE(RefusedUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, "
                          "interactiveMode: Always}")
                  .contains("wants to ask questions"));
}

}  // namespace
}  // namespace kube
