#include "cli/place.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/cluster_place.h"
#include "cli/local_place.h"

namespace cli {

using base::Error;
using base::ErrorKind;
using base::Result;

Result<std::unique_ptr<Place>> PlaceOf(const Args& args) {
  const std::optional<std::string> context = TRY(ContextOf(args));
  if (!context) return OpenLocalPlace();
  return OpenClusterPlace(TRY(Cluster::Connect(*context)), args);
}

Result<std::unique_ptr<PlacedJob>> FindJob(Place& place, const Args& args,
                                           const std::string& name) {
  return place.Find(place.NamespaceOf(args), name);
}

Result<FoundJob> FindJob(const Args& args) {
  FoundJob out{.place = TRY(PlaceOf(args))};
  out.job = TRY(FindJob(*out.place, args, args.operand(0)));
  return out;
}

Error NoSuchJob(const std::string& name_space, const std::string& name,
                const std::vector<std::string>& names) {
  if (name.empty()) {
    return Error(ErrorKind::kNotFound, "there is no job yet: trainyard run SCRIPT starts one");
  }
  const auto nearest = base::Nearest(name, names);
  return Error(ErrorKind::kNotFound,
               fmt::format("no job named {} in namespace {}{}", name, name_space,
                           nearest ? fmt::format(": did you mean {}?", *nearest) : ""));
}

std::string UserName() {
  const passwd* user = getpwuid(getuid());
  return user ? user->pw_name : fmt::format("uid {}", getuid());
}

}  // namespace cli
