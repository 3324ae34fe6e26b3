#include "kube/client.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "kube/api.h"

namespace kube {
namespace {

using base::Duration;
using base::Error;
using base::ErrorKind;
using base::Json;
using base::Result;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr Duration kBetweenLooks = 100ms;
constexpr int kMostPages = 10'000;

// What an answer outlives when we stop waiting for it.
struct Waiting {
  std::optional<Result<Response>> answer;
};

std::string Doing(const Request& request) {
  return request.method + " " + request.path.substr(0, request.path.find('?'));
}

// /api/v1/namespaces/NS/pods/NAME: the name of an object stands at an even place behind the version
// of its group, that of a collection at an odd one.
bool NamesAnObject(std::string_view path) {
  const auto parts = base::Split(path, '/');
  const size_t prefix = path.starts_with("/apis/") ? 4 : 3;
  return parts.size() > prefix + 1 && (parts.size() - prefix) % 2 == 0 && !parts.back().empty();
}

}  // namespace

Client::Client(Server& server, std::function<bool()> stopped)
    : Client(server, server, std::move(stopped)) {}

Client::Client(Server& server, Transport& door, std::function<bool()> stopped)
    : server_(server), door_(door), stopped_(std::move(stopped)) {}

Result<Response> Client::Call(Request request, Duration timeout) {
  const auto deadline = steady_clock::now() + timeout;
  const auto left = [&] {
    return std::chrono::duration_cast<Duration>(deadline - steady_clock::now());
  };
  const auto wait = [&](const std::function<bool()>& over) -> Result<> {
    while (!over()) {
      if (stopped_()) {
        return std::unexpected(Error(ErrorKind::kUnavailable, Doing(request) + ": interrupted"));
      }
      server_.Poll(std::clamp(left(), Duration(1000), kBetweenLooks));
    }
    return {};
  };
  for (;;) {
    const auto waiting = std::make_shared<Waiting>();
    door_.Send(request, left(), [waiting](auto answer) { waiting->answer = std::move(answer); });
    TRY(wait([&] { return waiting->answer.has_value(); }));
    if (!*waiting->answer) {
      return std::unexpected(std::move(waiting->answer->error()).Context(Doing(request)));
    }
    Response& response = **waiting->answer;
    const Duration pause = response.retry_after.value_or(0s);
    if (response.status != 429 || !response.retry_after || pause >= left()) {
      return std::move(response);
    }
    const auto again = steady_clock::now() + std::max(pause, kBetweenLooks);
    TRY(wait([&] { return steady_clock::now() >= again; }));
  }
}

Result<Json> Client::JsonOf(Request request) {
  const std::string doing = Doing(request);
  const Response response = TRY(Call(std::move(request)));
  if (auto error = ErrorOf(response)) return std::unexpected(std::move(*error).Context(doing));
  return TRY_AS(doing, base::ParseJson(response.body));
}

Result<Json> Client::Get(const std::string& path) { return JsonOf({.path = path}); }

Result<base::JsonArray> Client::List(const std::string& path, const std::string& label_selector) {
  base::JsonArray out;
  std::string token;
  for (int page = 0; page < kMostPages; ++page) {
    const Json list = TRY(Get(WithQuery(
        path, {{"labelSelector", label_selector}, {"limit", "500"}, {"continue", token}})));
    if (const Json* items = base::Find(list, "items"); items && items->is_array()) {
      for (const Json& item : items->get_array()) out.push_back(item);
    }
    const Json* metadata = base::Find(list, "metadata");
    token = metadata ? base::StringOr(*metadata, "continue") : "";
    if (token.empty()) return out;
  }
  return std::unexpected(Error(ErrorKind::kUnavailable, "GET " + path + ": the list does not end"));
}

Result<Json> Client::Create(const std::string& path, const Json& object) {
  return JsonOf({.method = "POST",
                 .path = path,
                 .content_type = "application/json",
                 .body = base::CompactJson(object)});
}

Result<Json> Client::Patch(const std::string& path, const Json& patch) {
  return JsonOf({.method = "PATCH",
                 .path = path,
                 .content_type = "application/merge-patch+json",
                 .body = base::CompactJson(patch)});
}

Result<> Client::Delete(const std::string& path, const std::string& uid) {
  if (!NamesAnObject(path)) return base::Invalid("DELETE " + path + ": it names no object");
  // Said, because a batch/v1 Job would leave its pods behind otherwise.
  base::JsonObject options{{"propagationPolicy", "Background"}};
  if (!uid.empty()) options["preconditions"] = base::JsonObject{{"uid", uid}};
  TRY(JsonOf({.method = "DELETE",
              .path = path,
              .content_type = "application/json",
              .body = base::CompactJson(options)}));
  return {};
}

}  // namespace kube
