#include "kube/api.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace kube {

using base::Error;
using base::ErrorKind;
using base::Json;
using base::JsonObject;

std::string Path(std::string_view api_version, std::string_view resource, std::string_view ns,
                 std::string_view name, std::string_view subresource) {
  // The core group alone has no name, and a root of its own.
  std::string path = api_version.contains('/') ? "/apis" : "/api";
  const auto add = [&](std::string_view segment) {
    if (!segment.empty()) path += "/" + PercentEncoded(segment);
  };
  for (const std::string_view part : base::Split(api_version, '/')) add(part);
  if (!ns.empty()) {
    add("namespaces");
    add(ns);
  }
  add(resource);
  add(name);
  add(subresource);
  return path;
}

std::string WithQuery(
    std::string path,
    std::initializer_list<std::pair<std::string_view, std::string_view>> parameters) {
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    path += separator;
    path += name;
    path += '=';
    path += PercentEncoded(value);
    separator = '&';
  }
  return path;
}

std::string Metadata(const base::Json& object, std::string_view key) {
  return base::StringOr(base::At(object, "metadata"), key);
}

std::string PercentEncoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~";  // beside letters and digits; RFC 3986, 2.3
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.contains(c);
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

namespace {

ErrorKind KindOf(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorKind::kForbidden;
    case 404:
      return ErrorKind::kNotFound;
    case 409:
      return ErrorKind::kTaken;
    case 410:
    case 429:
      return ErrorKind::kUnavailable;
    default:
      return status >= 500   ? ErrorKind::kUnavailable
             : status >= 400 ? ErrorKind::kInvalid
                             : ErrorKind::kInternal;
  }
}

}  // namespace

std::optional<Error> ErrorOf(const Response& response) {
  if (response.status >= 200 && response.status < 300) return std::nullopt;
  std::string text = std::to_string(response.status);
  const auto add = [&](std::string_view separator, std::string_view words) {
    if (!words.empty()) text += std::string(separator) + base::OneLine(words, 600);
  };
  // Proxies and load balancers answer with other things than a Status.
  if (const auto body = base::ParseJson(response.body)) {
    add(" ", base::StringOr(*body, "reason"));
    add(": ", base::StringOr(*body, "message"));
  } else {
    add(": ", base::Trim(std::string_view(response.body).substr(0, 200)));
  }
  return Error(KindOf(response.status), text);
}

Json MergePatch(const Json& from, const Json& to) {
  if (!from.is_object() || !to.is_object()) return to;
  JsonObject patch;
  for (const auto& [key, value] : from.get_object()) {
    const Json* wanted = base::Find(to, key);
    if (!wanted || wanted->is_null()) patch[key] = nullptr;
  }
  for (const auto& [key, wanted] : to.get_object()) {
    const Json* present = base::Find(from, key);
    if (wanted.is_null() || (present && *present == wanted)) continue;
    patch[key] = present ? MergePatch(*present, wanted) : wanted;
  }
  return patch;
}

}  // namespace kube
