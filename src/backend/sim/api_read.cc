// GET: one object, a list in pages, a watch.
#include <algorithm>

#include <fmt/core.h>

#include "backend/sim/api_object.h"
#include "backend/sim/api_server.h"
#include "base/strings.h"

namespace backend::sim {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

// The end of a page: which version the list is of, and the last key that was told. Version 0: of
// the latest, for whoever goes on with a list that has expired.
std::string PageEnd(Version version, const std::string& key) {
  std::string out = std::to_string(version) + ".";
  for (unsigned char c : key) out += fmt::format("{:02x}", c);
  return out;
}

struct Page {
  Version version = 0;
  std::string after;
};

std::optional<Page> PageOf(const std::string& token) {
  const size_t dot = token.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto version = base::ParseInt(token.substr(0, dot));
  if (!version || *version < 0) return std::nullopt;
  Page page{.version = static_cast<Version>(*version)};
  for (size_t i = dot + 1; i + 1 < token.size(); i += 2) {
    page.after += static_cast<char>(std::stoi(token.substr(i, 2), nullptr, 16));
  }
  return page;
}

std::string Line(std::string_view type, const Json& object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, base::CompactJson(object));
}

Outcome<std::optional<Version>> VersionIn(const Target& target) {
  const std::string text = target.Query("resourceVersion");
  if (text.empty()) return std::nullopt;
  const auto number = base::ParseInt(text);
  if (!number || *number < 0) {
    return BadRequest(
        fmt::format("{1}resourceVersion: Invalid value: \"{0}\": strconv.ParseUint: "
                    "parsing \"{0}\": invalid syntax",
                    text, target.Flag("watch") ? "" : "invalid resource version: "));
  }
  return static_cast<Version>(*number);
}

constexpr const char* kTooOldPage =
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list.";

}  // namespace

Outcome<Json> ApiServer::Read(const Target& target, std::optional<Version> at) const {
  const std::string key = KeyOf(target.name_space, target.name);
  const Object object =
      at ? store_.GetAt(*target.resource, key, *at) : store_.Get(*target.resource, key);
  if (!object) return NotFound(*target.resource, target.name);
  return *object;
}

Outcome<Json> ApiServer::List(const Target& target, std::optional<Version> at) const {
  const Resource& resource = *target.resource;
  const Selector selector =
      TRY(Selector::Parse(resource, target.Query("labelSelector"), target.Query("fieldSelector")));
  const std::optional<Version> asked = TRY(VersionIn(target));
  const bool exact = target.Query("resourceVersionMatch") == "Exact";
  Version version = std::min(at.value_or(store_.version()), store_.version());
  if (asked && *asked > version) {
    return std::unexpected(Refusal{
        .code = 504,
        .reason = "Timeout",
        .message =
            fmt::format("Timeout: Too large resource version: {}, current: {}", *asked, version),
        .details =
            JsonObject{{"causes", JsonArray{JsonObject{{"reason", "ResourceVersionTooLarge"},
                                                       {"message", "Too large resource version"}}}},
                       {"retryAfterSeconds", 1}}});
  }
  if (exact && asked) version = *asked;
  std::string after;
  if (const std::string token = target.Query("continue"); !token.empty()) {
    const std::optional<Page> page = PageOf(token);
    if (!page) return BadRequest("invalid continue token: continue key is not valid");
    if (page->version != 0 && page->version < store_.compacted()) {
      return Expired(kTooOldPage, PageEnd(0, page->after));
    }
    if (page->version != 0) version = page->version;
    after = page->after;
  }
  if (version < store_.compacted()) {
    return Expired("The resourceVersion for the provided list is too old.");
  }
  const auto limit = base::ParseInt(target.Query("limit"));
  // A list that may be of any version comes whole.
  const size_t most =
      limit && *limit > 0 && asked != Version{0} ? static_cast<size_t>(*limit) : SIZE_MAX;
  JsonArray items;
  JsonObject meta{{"resourceVersion", std::to_string(version)}};
  if (resource.custom) meta["continue"] = "";
  size_t left = 0;
  for (const Object& object : version == store_.version()
                                  ? store_.List(resource, target.name_space)
                                  : store_.ListAt(resource, target.name_space, version)) {
    const std::string key = KeyOf(NamespaceOf(*object), NameOf(*object));
    if (key <= after || !selector.Matches(*object)) continue;
    if (items.size() == most) {
      ++left;
      continue;
    }
    items.push_back(*object);
    if (!resource.custom) {  // the kind of the list says it
      items.back().as_object().erase("kind");
      items.back().as_object().erase("apiVersion");
    }
  }
  if (left > 0) {
    const Json& last = items.back();
    meta["continue"] = PageEnd(version, KeyOf(NamespaceOf(last), NameOf(last)));
    if (selector.empty()) meta["remainingItemCount"] = left;
  }
  return JsonObject{{"kind", std::string(resource.kind) + "List"},
                    {"apiVersion", resource.ApiVersion()},
                    {"metadata", std::move(meta)},
                    {"items", std::move(items)}};
}

Outcome<Watcher> ApiServer::Watch(const kube::Request& request, std::optional<Version> at) {
  const std::optional<Target> target = TargetOf(request.path);
  if (!target || absent_.contains(target->resource)) {
    return std::unexpected(Refusal{.code = 404, .reason = "NotFound", .message = "page not found"});
  }
  Watcher watcher{.resource = target->resource,
                  .name_space = target->name_space,
                  .selector = TRY(Selector::Parse(*target->resource, target->Query("labelSelector"),
                                                  target->Query("fieldSelector"))),
                  .bookmarks = target->Flag("allowWatchBookmarks")};
  if (const auto lasts = base::ParseInt(target->Query("timeoutSeconds")); lasts && *lasts > 0) {
    watcher.lasts = std::chrono::seconds(*lasts);
  }
  Outcome<std::optional<Version>> read = VersionIn(*target);
  if (!read) {  // not a mistake of the client's, the real one thinks
    return std::unexpected(Refusal{.code = 500, .message = read.error().message});
  }
  const std::optional<Version> asked = *read;
  if (asked && *asked != 0) {
    watcher.at = *asked;
    if (*asked < store_.compacted()) {
      watcher.broken = true;
      watcher.before.push_back(ErrorEvent(
          Expired(fmt::format("too old resource version: {} ({})", *asked, store_.compacted()))
              .error()));
    }
    return watcher;
  }
  // From any version: what there is comes first.
  watcher.at = at.value_or(store_.version());
  for (const Object& object : store_.ListAt(*target->resource, target->name_space, watcher.at)) {
    if (watcher.selector.Matches(*object)) watcher.before.push_back(Line("ADDED", *object));
  }
  return watcher;
}

std::optional<std::string> ApiServer::Next(Watcher& watcher, Version until) const {
  if (!watcher.before.empty()) {
    std::string line = std::move(watcher.before.front());
    watcher.before.pop_front();
    return line;
  }
  if (watcher.broken) return std::nullopt;
  if (watcher.at < store_.compacted()) {
    watcher.broken = true;
    return ErrorEvent(
        Expired(fmt::format("too old resource version: {} ({})", watcher.at, store_.compacted()))
            .error());
  }
  while (const Change* change = store_.After(watcher.at)) {
    if (change->version > until) break;
    watcher.at = change->version;
    if (change->resource != watcher.resource) continue;
    const Json& some = change->after ? *change->after : *change->before;
    if (!watcher.name_space.empty() && NamespaceOf(some) != watcher.name_space) continue;
    const bool was = change->before && watcher.selector.Matches(*change->before);
    const bool is = change->after && watcher.selector.Matches(*change->after);
    if (is) return Line(was ? "MODIFIED" : "ADDED", *change->after);
    if (!was) continue;
    if (!change->after) return Line("DELETED", *change->last);
    // It is still there, but no longer what was asked for: told as it was, under the new version.
    Json last = *change->before;
    MetaOf(last)["resourceVersion"] = std::to_string(change->version);
    return Line("DELETED", last);
  }
  return std::nullopt;
}

std::string ApiServer::Bookmark(const Watcher& watcher) const {
  return Line("BOOKMARK",
              JsonObject{{"kind", watcher.resource->kind},
                         {"apiVersion", watcher.resource->ApiVersion()},
                         {"metadata", JsonObject{{"resourceVersion", std::to_string(watcher.at)},
                                                 {"creationTimestamp", nullptr}}}});
}

}  // namespace backend::sim
