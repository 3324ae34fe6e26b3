#include "kube/discovery.h"

#include <fmt/core.h>

namespace kube {

using base::Json;
using base::Result;

Result<Kind> FindKind(Client& client, const std::string& api_version, const std::string& kind) {
  const auto unknown = [&] {
    return base::Invalid(fmt::format("the cluster knows no {} of {}", kind, api_version));
  };
  if (api_version.empty() || kind.empty()) return unknown();
  const bool core = api_version.find('/') == std::string::npos;
  auto list = client.Get((core ? "/api/" : "/apis/") + api_version);
  if (!list) {
    if (list.error().kind() == base::ErrorKind::kNotFound) return unknown();
    return std::unexpected(list.error());
  }
  const Json* resources = base::Find(*list, "resources");
  if (!resources || !resources->is_array()) return unknown();
  for (const Json& resource : resources->get_array()) {
    const std::string name = base::StringOr(resource, "name");
    if (base::StringOr(resource, "kind") != kind || name.find('/') != std::string::npos) continue;
    return Kind{api_version, name, base::BoolOr(resource, "namespaced")};
  }
  return unknown();
}

}  // namespace kube
