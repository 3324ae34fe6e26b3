// The conventions of the Kubernetes API: where an object lives, what an error says, how a change is
// written. Values only.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "kube/transport.h"

namespace kube {

// Path("v1", "pods", "team-a", "x", "log") is /api/v1/namespaces/team-a/pods/x/log, and
// Path("kubeflow.org/v1", "tfjobs") is /apis/kubeflow.org/v1/tfjobs. What is empty is left out.
std::string Path(std::string_view api_version, std::string_view resource, std::string_view ns = "",
                 std::string_view name = "", std::string_view subresource = "");

// `path` with a query. Values are encoded; those that are empty are left out.
std::string WithQuery(
    std::string path,
    std::initializer_list<std::pair<std::string_view, std::string_view>> parameters);

// What the metadata of an object says, as text: "name", "uid".
std::string Metadata(const base::Json& object, std::string_view key);

// As a path segment or the value of a query.
std::string PercentEncoded(std::string_view text);

// What the server refused, in its words: "403 Forbidden: pods is forbidden: ...". Nothing for an
// answer of the 200s.
//
//   404 kNotFound; 409 (there already, or changed meanwhile) kTaken; 401 and 403 kForbidden;
//   other 400s kInvalid; 410, 429 and the 500s kUnavailable; what is no answer of an API server
//   kInternal
std::optional<base::Error> ErrorOf(const Response& response);

// The JSON merge patch (RFC 7386) that makes `to` out of `from`. A null that is a member of an
// object in `to` cannot be written so and counts as absent.
base::Json MergePatch(const base::Json& from, const base::Json& to);

}  // namespace kube
