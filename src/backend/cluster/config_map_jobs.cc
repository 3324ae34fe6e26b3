#include "backend/cluster/config_map_jobs.h"

#include <optional>

#include <fmt/core.h>

#include "api/tfjob.h"
#include "base/strings.h"
#include "kube/api.h"

namespace backend::cluster {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using kube::Request;
using kube::Response;

constexpr std::string_view kSuffix = "-job";
constexpr int kMostTries = 5;

JsonObject ObjectOr(const Json& value, std::string_view key) {
  const Json* found = base::Find(value, key);
  return found && found->is_object() ? found->get_object() : JsonObject();
}

std::string WithoutSuffix(std::string name) {
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

// RFC 7386.
void Merge(Json& into, const Json& patch) {
  if (!patch.is_object()) {
    into = patch;
    return;
  }
  if (!into.is_object()) into.emplace_object();
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      into.get_object().erase(key);
    } else {
      Merge(into.get_object()[key], value);
    }
  }
}

// A request for TFJobs, taken apart.
struct Asked {
  std::string ns, name, subresource, query;
};

std::optional<Asked> Parse(const std::string& path) {
  const size_t mark = path.find('?');
  std::string_view rest = std::string_view(path).substr(0, mark);
  constexpr std::string_view kBase = "/apis/kubeflow.org/v1/";
  if (!rest.starts_with(kBase)) return std::nullopt;
  std::vector<std::string> parts;
  for (std::string_view part : base::Split(rest.substr(kBase.size()), '/'))
    parts.emplace_back(part);
  Asked out;
  if (mark != std::string::npos) out.query = path.substr(mark);
  size_t at = 0;
  if (parts.size() > 2 && parts[0] == "namespaces") {
    out.ns = parts[1];
    at = 2;
  }
  if (parts.size() <= at || parts[at] != "tfjobs") return std::nullopt;
  if (parts.size() > at + 1) out.name = parts[at + 1];
  if (parts.size() > at + 2) out.subresource = parts[at + 2];
  return out;
}

// Lists and watches are of those ConfigMaps that are jobs.
std::string QueryFor(const Asked& asked, bool is_list) {
  std::string out, selector = fmt::format("{}={}", kKeptLabel, kKeptAs);
  const std::string_view query = std::string_view(asked.query).substr(asked.query.empty() ? 0 : 1);
  for (std::string_view part : base::Split(query, '&')) {
    if (part.empty()) continue;
    constexpr std::string_view kLabels = "labelSelector=", kFields = "fieldSelector=";
    if (part.starts_with(kLabels)) {
      selector += "%2C" + std::string(part.substr(kLabels.size()));
    } else {
      out += (out.empty() ? "?" : "&") + std::string(part);
      if (part.starts_with(kFields)) out += kSuffix;  // metadata.name=NAME
    }
  }
  if (!is_list) return out;
  const std::string encoded = selector.find("%2C") == std::string::npos
                                  ? kube::PercentEncoded(selector)
                                  : kube::PercentEncoded(selector.substr(0, selector.find("%2C"))) +
                                        selector.substr(selector.find("%2C"));
  return out + (out.empty() ? "?" : "&") + "labelSelector=" + encoded;
}

std::string PathFor(const Asked& asked, const std::string& method) {
  const std::string name = asked.name.empty() ? "" : asked.name + std::string(kSuffix);
  return kube::Path("v1", "configmaps", asked.ns, name) +
         QueryFor(asked, method == "GET" && name.empty());
}

// A list of ConfigMaps, one of them, or a Status: whatever it is, as TFJobs would have it.
Json Translated(Json answer) {
  const std::string kind = base::StringOr(answer, "kind");
  if (kind == "ConfigMap") return JobFromConfigMap(answer);
  Json* items = answer.is_object() ? answer.get_object().if_contains("items") : nullptr;
  if (items && items->is_array()) {
    for (Json& item : items->get_array()) item = JobFromConfigMap(item);
    answer.get_object()["kind"] = "TFJobList";
    answer.get_object()["apiVersion"] = api::kApiVersion;
  }
  return answer;
}

kube::Transport::Answer Translating(kube::Transport::Answer answer) {
  return [answer = std::move(answer)](Result<Response> response) mutable {
    if (response) {
      if (auto json = base::ParseJson(response->body))
        response->body = base::CompactJson(Translated(*std::move(json)));
    }
    answer(std::move(response));
  };
}

// What is to be owned by a TFJob is owned by its ConfigMap.
void GiveToConfigMap(Request& request) {
  if (request.body.find("\"ownerReferences\"") == std::string::npos) return;
  auto object = base::ParseJson(request.body);
  if (!object || !object->is_object()) return;
  Json* metadata = object->get_object().if_contains("metadata");
  Json* owners = metadata && metadata->is_object()
                     ? metadata->get_object().if_contains("ownerReferences")
                     : nullptr;
  if (!owners || !owners->is_array()) return;
  for (Json& owner : owners->get_array()) {
    if (base::StringOr(owner, "kind") != api::kKind) continue;
    owner.get_object()["apiVersion"] = "v1";
    owner.get_object()["kind"] = "ConfigMap";
    owner.get_object()["name"] = base::StringOr(owner, "name") + std::string(kSuffix);
  }
  request.body = base::CompactJson(*object);
}

Response Conflict(const std::string& name) {
  return {.status = 409,
          .body = base::CompactJson(
              JsonObject{{"kind", "Status"},
                         {"status", "Failure"},
                         {"reason", "Conflict"},
                         {"message", fmt::format("the job {} was changed by somebody else", name)},
                         {"code", 409}})};
}

}  // namespace

Json JobFromConfigMap(const Json& config_map) {
  JsonObject out{{"apiVersion", api::kApiVersion}, {"kind", api::kKind}};
  JsonObject metadata = ObjectOr(config_map, "metadata");
  const Json wrapped = metadata;
  metadata["name"] = WithoutSuffix(base::StringOr(wrapped, "name"));
  if (Json* labels = metadata.if_contains("labels"); labels && labels->is_object())
    labels->get_object().erase(kKeptLabel);
  out["metadata"] = std::move(metadata);
  const Json data = ObjectOr(config_map, "data");
  for (const char* part : {"spec", "status"}) {
    if (auto value = base::ParseJson(base::StringOr(data, part))) out[part] = *std::move(value);
  }
  return out;
}

Json ConfigMapFromJob(const Json& job) {
  JsonObject metadata = ObjectOr(job, "metadata");
  metadata["name"] = base::StringOr(Json(metadata), "name") + std::string(kSuffix);
  JsonObject labels = ObjectOr(Json(metadata), "labels");
  labels[kKeptLabel] = kKeptAs;
  metadata["labels"] = std::move(labels);
  JsonObject data;
  for (const char* part : {"spec", "status"}) {
    if (const Json* value = base::Find(job, part)) data[part] = base::CompactJson(*value);
  }
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", std::move(metadata)},
                    {"data", std::move(data)}};
}

struct ConfigMapJobs::Change {
  Asked asked;
  Json patch;
  base::Duration timeout;
  Answer answer;
  std::string version;  // that it was decided on; empty: any
  int tries = 0;
};

void ConfigMapJobs::Send(Request request, base::Duration timeout, Answer answer) {
  const auto asked = Parse(request.path);
  if (!asked) {
    GiveToConfigMap(request);
    return behind_.Send(std::move(request), timeout, std::move(answer));
  }
  if (request.method == "PATCH") {
    auto patch = base::ParseJson(request.body);
    auto change = std::make_shared<Change>();
    change->asked = *asked;
    change->patch = patch.value_or(Json());
    change->timeout = timeout;
    change->answer = std::move(answer);
    change->version = base::StringOr(Json(ObjectOr(change->patch, "metadata")), "resourceVersion");
    return Look(std::move(change));
  }
  if (request.method == "POST") {
    if (auto job = base::ParseJson(request.body))
      request.body = base::CompactJson(ConfigMapFromJob(*job));
  }
  request.path = PathFor(*asked, request.method);
  behind_.Send(std::move(request), timeout, Translating(std::move(answer)));
}

void ConfigMapJobs::Look(std::shared_ptr<Change> change) {
  Asked whole = change->asked;
  whole.query.clear();
  behind_.Send({.path = PathFor(whole, "GET")}, change->timeout,
               [this, change](Result<Response> found) {
                 if (!found || kube::ErrorOf(*found)) return change->answer(std::move(found));
                 auto config_map = base::ParseJson(found->body);
                 if (!config_map) return change->answer(std::unexpected(config_map.error()));
                 Write(change, JobFromConfigMap(*config_map));
               });
}

void ConfigMapJobs::Write(std::shared_ptr<Change> change, const Json& job) {
  const std::string there = base::StringOr(Json(ObjectOr(job, "metadata")), "resourceVersion");
  if (!change->version.empty() && change->version != there)
    return change->answer(Conflict(change->asked.name));
  Json patched = job;
  Merge(patched, change->patch);
  // Of the status only that, of the rest all but that: as the subresource has it.
  JsonObject data;
  const char* part = change->asked.subresource == "status" ? "status" : "spec";
  if (const Json* value = base::Find(patched, part)) data[part] = base::CompactJson(*value);
  JsonObject metadata =
      change->asked.subresource.empty() ? ObjectOr(change->patch, "metadata") : JsonObject();
  metadata["resourceVersion"] = there;
  Asked whole = change->asked;
  whole.query.clear();
  Request request{.method = "PATCH",
                  .path = PathFor(whole, "PATCH"),
                  .content_type = "application/merge-patch+json",
                  .body = base::CompactJson(
                      JsonObject{{"metadata", std::move(metadata)}, {"data", std::move(data)}})};
  behind_.Send(std::move(request), change->timeout, [this, change](Result<Response> written) {
    const bool quicker = written && written->status == 409;
    if (quicker && change->version.empty() && ++change->tries < kMostTries) return Look(change);
    Translating(std::move(change->answer))(std::move(written));
  });
}

std::unique_ptr<kube::Stream> ConfigMapJobs::Open(Request request, base::Duration silence,
                                                  Data data, Answer end) {
  const auto asked = Parse(request.path);
  if (!asked) return behind_.Open(std::move(request), silence, std::move(data), std::move(end));
  request.path = PathFor(*asked, request.method);
  auto translate = [line = std::string(), data = std::move(data)](std::string_view bytes) mutable {
    line += bytes;
    size_t begin = 0;
    std::string out;
    for (size_t at; (at = line.find('\n', begin)) != std::string::npos; begin = at + 1) {
      auto event = base::ParseJson(std::string_view(line).substr(begin, at - begin));
      Json* object =
          event && event->is_object() ? event->get_object().if_contains("object") : nullptr;
      // A bookmark is a ConfigMap without a name, and only its version counts.
      if (object) *object = Translated(std::move(*object));
      out += event ? base::CompactJson(*event) : line.substr(begin, at - begin);
      out += '\n';
    }
    line.erase(0, begin);
    if (!out.empty()) data(out);
  };
  return behind_.Open(std::move(request), silence, std::move(translate), std::move(end));
}

}  // namespace backend::cluster
