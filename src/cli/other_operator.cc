#include "cli/other_operator.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "base/strings.h"
#include "cli/object.h"
#include "kube/api.h"

namespace cli {
namespace {

using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

constexpr std::string_view kScheme = "enable-scheme";
constexpr std::string_view kGroup = "kubeflow.org";

// What training-operator v1.9 runs beside TFJob, and MXJob of those before it.
constexpr std::array<std::string_view, 6> kOtherKinds = {"PyTorchJob", "MPIJob", "XGBoostJob",
                                                         "PaddleJob",  "JAXJob", "MXJob"};

bool IsTheirs(const Json& deployment) {
  constexpr std::array<std::string_view, 3> kNames = {"training-operator", "tf-operator",
                                                      "tf-job-operator"};
  const Json& labels = At(At(deployment, "metadata"), "labels");
  return std::ranges::find(kNames, Metadata(deployment, "name")) != kNames.end() ||
         base::StringOr(labels, "control-plane") == "kubeflow-training-operator";
}

// What follows the name of this flag in a word: "=value", or nothing where the next word is the
// value. One dash does as well as two.
std::optional<std::string_view> After(std::string_view flag, std::string_view word) {
  if (!word.starts_with('-')) return std::nullopt;
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  if (!word.starts_with(flag)) return std::nullopt;
  word.remove_prefix(flag.size());
  if (!word.empty() && word.front() != '=') return std::nullopt;
  return word;
}

std::vector<std::string> ValuesOf(std::string_view flag, const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto rest = After(flag, words[i]);
    if (rest && !rest->empty()) out.emplace_back(rest->substr(1));
    if (rest && rest->empty() && i + 1 < words.size()) out.push_back(words[i + 1]);
  }
  return out;
}

JsonArray Without(std::string_view flag, const std::vector<std::string>& words) {
  JsonArray out;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto rest = After(flag, words[i]);
    if (!rest) out.emplace_back(words[i]);
    if (rest && rest->empty()) ++i;
  }
  return out;
}

std::vector<std::string> TextsAt(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  for (const Json& word : ListAt(object, key)) {
    if (word.is_string()) out.emplace_back(word.get_string());
  }
  return out;
}

// An entry of a ValidatingWebhookConfiguration.
bool IsAboutTfJobs(const Json& webhook) {
  const auto names = [](const Json& rule, std::string_view key, std::string_view text) {
    const std::vector<std::string> all = TextsAt(rule, key);
    return std::ranges::find(all, text) != all.end();
  };
  return std::ranges::any_of(ListAt(webhook, "rules"), [&](const Json& rule) {
    return names(rule, "apiGroups", kGroup) && names(rule, "resources", "tfjobs");
  });
}

const Json& Template(const Json& deployment) { return At(At(deployment, "spec"), "template"); }

// The container that is the operator: the first, by its manifests of any age.
const Json& Container(const Json& deployment) {
  static const Json kNothing;
  const JsonArray& all = ListAt(At(Template(deployment), "spec"), "containers");
  return all.empty() ? kNothing : all.front();
}

JsonObject OfTemplate(Json containers) {
  return {{"spec",
           JsonObject{{"template",
                       JsonObject{{"spec", JsonObject{{"containers", std::move(containers)}}}}}}}};
}

}  // namespace

Result<std::vector<OtherKind>> FindOtherKinds(kube::Client& client) {
  std::vector<OtherKind> out;
  auto served = client.Get("/apis/" + std::string(api::kApiVersion));
  if (!served && served.error().kind() == ErrorKind::kNotFound) return out;
  if (!served) return std::unexpected(served.error());
  for (const Json& resource : ListAt(*served, "resources")) {
    const std::string kind = base::StringOr(resource, "kind"),
                      name = base::StringOr(resource, "name");
    const bool known = std::ranges::find(kOtherKinds, kind) != kOtherKinds.end();
    if (!known || name.find('/') != std::string::npos) continue;
    const JsonArray objects = TRY(client.List(kube::Path(api::kApiVersion, name)));
    const auto live = std::ranges::count_if(objects, [](const Json& object) {
      return !Holds(object, "Succeeded") && !Holds(object, "Failed");
    });
    out.push_back({kind, base::Lower(kind), static_cast<size_t>(live)});
  }
  return out;
}

Result<OtherOperator> OtherOperator::Find(Cluster& cluster, const std::string& named) {
  std::vector<OtherOperator> found;
  for (Json& one : TRY(cluster.client().List(kube::Path("apps/v1", "deployments")))) {
    OtherOperator other(std::move(one));
    if (named.empty() ? IsTheirs(other.deployment_) : other.Name() == named)
      found.push_back(std::move(other));
  }
  if (found.empty() && !named.empty())
    return base::Invalid("--operator: there is no Deployment " + named);
  if (found.empty()) {
    return base::Invalid(
        fmt::format("no training-operator was found on the cluster of context {}: say --operator "
                    "NAMESPACE/NAME if it is called otherwise; where none is, trainyard install",
                    cluster.context()));
  }
  // One that was set aside before may still lie there.
  std::ranges::stable_partition(found, &OtherOperator::Runs);
  if (found.size() > 1 && found[1].Runs()) {
    return base::Invalid(fmt::format("both {} and {} look after TFJobs: say --operator",
                                     found[0].Name(), found[1].Name()));
  }
  return std::move(found.front());
}

OtherOperator::OtherOperator(Json deployment) : deployment_(std::move(deployment)) {}

std::string OtherOperator::NameSpace() const { return Metadata(deployment_, "namespace"); }
std::string OtherOperator::Name() const {
  return NameSpace() + "/" + Metadata(deployment_, "name");
}
std::string OtherOperator::Path() const {
  return kube::Path("apps/v1", "deployments", NameSpace(), Metadata(deployment_, "name"));
}

std::vector<std::string> OtherOperator::Words() const {
  std::vector<std::string> out = TextsAt(Container(deployment_), "command");
  for (std::string& word : TextsAt(Container(deployment_), "args")) out.push_back(std::move(word));
  return out;
}

bool OtherOperator::Runs() const {
  const std::vector<std::string> schemes = ValuesOf(kScheme, Words());
  return base::IntOr(At(deployment_, "spec"), "replicas", 1) > 0 &&
         (schemes.empty() || std::ranges::any_of(schemes, [](const std::string& scheme) {
            return base::Lower(scheme) == "tfjob";
          }));
}

std::string OtherOperator::Flag(std::string_view name) const {
  const std::vector<std::string> said = ValuesOf(name, Words());
  return said.empty() ? "" : said.back();
}

std::string OtherOperator::Variable(std::string_view name) const {
  for (const Json& entry : ListAt(Container(deployment_), "env")) {
    if (base::StringOr(entry, "name") == name) return base::StringOr(entry, "value");
  }
  return "";
}

void OtherOperator::CopySettings(DeploymentWish& wish) const {
  for (const char* flag : {"gang-scheduler-name", "namespace"}) {
    if (const std::string said = Flag(flag); !said.empty())
      wish.flags.push_back(fmt::format("--{}={}", flag, said));
  }
  for (const char* name : {"KUBEFLOW_NAMESPACE", "CUSTOM_CLUSTER_DOMAIN"}) {
    if (const std::string value = Variable(name); !value.empty()) wish.variables[name] = value;
  }
}

std::vector<Change> OtherOperator::StandDown(const std::vector<OtherKind>& keep) const {
  if (!Runs()) return {};
  const auto scale = [](int64_t to) { return JsonObject{{"spec", JsonObject{{"replicas", to}}}}; };
  if (keep.empty()) {
    return {{"scale to 0: Deployment " + Name(), Path(), scale(0),
             scale(base::IntOr(At(deployment_, "spec"), "replicas", 1))}};
  }
  const Json before = At(At(Template(deployment_), "spec"), "containers");
  Json after = before;
  JsonObject& container = after.get_array().front().get_object();
  const JsonArray command = Without(kScheme, TextsAt(Container(deployment_), "command"));
  if (!command.empty()) container["command"] = command;
  JsonArray args = Without(kScheme, TextsAt(Container(deployment_), "args"));
  for (const OtherKind& kind : keep)
    args.emplace_back(fmt::format("--{}={}", kScheme, kind.scheme));
  container["args"] = std::move(args);
  return {{"restart without TFJob: Deployment " + Name(), Path(), OfTemplate(std::move(after)),
           OfTemplate(before)}};
}

// Other systems have webhooks for TFJobs too, Kueue for one: what counts is who answers.
Result<bool> OtherOperator::Answers(kube::Client& client, const Json& webhook) const {
  const Json& service = At(At(webhook, "clientConfig"), "service");
  if (base::StringOr(service, "namespace") != NameSpace()) return false;
  auto there =
      client.Get(kube::Path("v1", "services", NameSpace(), base::StringOr(service, "name")));
  if (!there && there.error().kind() == ErrorKind::kNotFound) return false;
  if (!there) return std::unexpected(there.error());
  const Json& selector = At(At(*there, "spec"), "selector");
  const Json& labels = At(At(Template(deployment_), "metadata"), "labels");
  if (!selector.is_object() || selector.get_object().empty()) return false;
  return std::ranges::all_of(selector.get_object(), [&](const auto& entry) {
    return At(labels, entry.key()) == entry.value();
  });
}

Result<std::vector<Change>> OtherOperator::DropWebhooks(kube::Client& client) const {
  std::vector<Change> out;
  const std::string path =
      kube::Path("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations");
  for (const Json& configuration : TRY(client.List(path))) {
    JsonArray rest;
    for (const Json& webhook : ListAt(configuration, "webhooks")) {
      const bool drop = IsAboutTfJobs(webhook) && TRY(Answers(client, webhook));
      if (!drop) rest.push_back(webhook);
    }
    const JsonArray& before = ListAt(configuration, "webhooks");
    if (rest.size() == before.size()) continue;
    const std::string name = Metadata(configuration, "name");
    out.push_back({"take out TFJob: ValidatingWebhookConfiguration " + name, path + "/" + name,
                   JsonObject{{"webhooks", std::move(rest)}}, JsonObject{{"webhooks", before}}});
  }
  return out;
}

Result<bool> OtherOperator::HasSettled(kube::Client& client) const {
  const Json now = TRY(client.Get(Path()));
  const Json& status = At(now, "status");
  const int64_t wanted = base::IntOr(At(now, "spec"), "replicas", 1);
  if (base::IntOr(status, "observedGeneration") < base::IntOr(At(now, "metadata"), "generation") ||
      base::IntOr(status, "updatedReplicas") != wanted) {
    return false;
  }
  std::string selector;
  const Json& labels = At(At(At(now, "spec"), "selector"), "matchLabels");
  if (!labels.is_object()) return base::IntOr(status, "replicas") == wanted;
  for (const auto& [key, value] : labels.get_object()) {
    selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", std::string_view(key),
                            std::string_view(value.as_string()));
  }
  const JsonArray pods = TRY(client.List(kube::Path("v1", "pods", NameSpace()), selector));
  return std::cmp_equal(pods.size(), wanted);
}

}  // namespace cli
