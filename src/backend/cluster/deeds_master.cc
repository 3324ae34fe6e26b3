// The deeds for an elastic job that is given to a master: it is there, with all that it needs.
#include <algorithm>

#include <fmt/core.h>

#include "backend/cluster/deeds.h"
#include "backend/cluster/master_objects.h"
#include "core/dialect.h"
#include "kube/api.h"

namespace backend::cluster {
namespace {

using base::At;
using base::Error;
using base::ErrorKind;
using base::Json;
using kube::Request;

MasterWish WishFor(const api::Job& job, const Settings& settings) {
  MasterWish out = MasterFor(job);
  out.image = settings.master_image;
  out.own_role = false;
  out.tfjob = true;
  out.settings = settings;
  return out;
}

// Of the kinds that a master needs.
std::string PathOfObject(const Json& object, bool with_name) {
  const std::string kind = base::StringOr(object, "kind");
  const char* resource = kind == "ServiceAccount" ? "serviceaccounts"
                         : kind == "RoleBinding"  ? "rolebindings"
                         : kind == "Service"      ? "services"
                                                  : "jobs";
  return kube::Path(base::StringOr(object, "apiVersion"), resource,
                    kube::Metadata(object, "namespace"),
                    with_name ? kube::Metadata(object, "name") : "");
}

bool HasEnded(const Json& batch_job) {
  const Json& conditions = At(At(batch_job, "status"), "conditions");
  return conditions.is_array() && std::ranges::any_of(conditions.get_array(), [](const Json& c) {
           const std::string type = base::StringOr(c, "type");
           return (type == "Complete" || type == "Failed") && base::StringOr(c, "status") == "True";
         });
}

// The same binding to the role of that name in the namespace: an operator of one namespace has
// that, and may not speak of roles of the cluster.
std::optional<Json> BoundHere(const Json& object) {
  if (base::StringOr(At(object, "roleRef"), "kind") != "ClusterRole") return std::nullopt;
  Json out = object;
  out.at("roleRef").get_object()["kind"] = "Role";
  return out;
}

Error Taken(const Json& object) {
  return Error(ErrorKind::kTaken, base::StringOr(object, "kind") + " " +
                                      kube::Metadata(object, "name") + " is not of this job");
}

}  // namespace

void Deeds::EnsureMaster(const JobPtr& job, std::function<void(MasterLook)> found, Done done) {
  const std::string space = job->metadata.name_space, name = core::MasterName(*job);
  const std::string path = kube::Path("batch/v1", "jobs", space, name);
  const auto there = std::make_shared<Json>();
  Ask(
      space, [path] { return Request{.path = path}; },
      [there](const Json* object) { *there = *object; },
      [=, this](std::optional<Error> error) {
        if (error && error->kind() == ErrorKind::kNotFound) {
          const auto objects = std::make_shared<std::vector<Json>>(
              MasterObjects(WishFor(*job, settings_), OwnerReference(*job)));
          return MakeMaster(job, objects, 0, [=](std::optional<Error> second) {
            if (!second) found({.state = MasterLook::kMade});
            done(std::move(second));
          });
        }
        if (error) return done(std::move(error));
        const Json& metadata = At(*there, "metadata");
        if (OwnerOf(metadata) != job->metadata.uid) return done(Taken(*there));
        const bool deleting = base::Find(metadata, "deletionTimestamp");
        // Of a life before: another is made once it has gone.
        if (!deleting && HasEnded(*there)) {
          return Delete(
              space, path, base::StringOr(metadata, "uid"), std::nullopt,
              {{"propagationPolicy", "Background"}},
              [found](const Json*) { found({.state = MasterLook::kGoes}); }, [](const Json*) {},
              done);
        }
        if (deleting || base::IntOr(At(*there, "status"), "ready") > 0) {
          found({.state = deleting ? MasterLook::kGoes : MasterLook::kRuns});
          return done(std::nullopt);
        }
        LookAtMaster(job, found, done);
      });
}

// Why its pod does not run.
void Deeds::LookAtMaster(const JobPtr& job, std::function<void(MasterLook)> found, Done done) {
  const std::string space = job->metadata.name_space, name = core::MasterName(*job);
  const std::string path = kube::Path("v1", "pods", space) +
                           "?labelSelector=" + kube::PercentEncoded("job-name=" + name);
  Ask(
      space, [path] { return Request{.path = path}; },
      [found, name, space](const Json* list) {
        MasterLook out{.state = MasterLook::kWaits};
        if (const Json& items = At(*list, "items"); items.is_array()) {
          for (const Json& pod : items.get_array()) out.pods.push_back(ReadTroubled(pod));
        }
        // Some seconds after it was made: a quota, or a rule of the cluster.
        if (out.pods.empty()) {
          out.pods.push_back(
              {.trouble = "FailedCreateMaster",
               .trouble_message = fmt::format("{} has no pod yet: kubectl describe job {} -n {}",
                                              name, name, space)});
        }
        found(std::move(out));
      },
      std::move(done));
}

// One after the other. What is there already is ours from a turn that was broken off, or goes with
// a job of this name before this one and is waited for.
void Deeds::MakeMaster(const JobPtr& job, std::shared_ptr<const std::vector<Json>> objects,
                       size_t next, Done done) {
  if (next == objects->size()) return done(std::nullopt);
  const Json& object = (*objects)[next];
  const std::string space = job->metadata.name_space;
  const auto go_on = [=, this](std::optional<Error> error) {
    error ? done(std::move(error)) : MakeMaster(job, objects, next + 1, done);
  };
  Ask(
      space,
      [path = PathOfObject(object, false), body = base::CompactJson(object)] {
        return Request{"POST", path, kJson, body};
      },
      [](const Json*) {},
      [=, this](std::optional<Error> error) {
        if (error && error->kind() == ErrorKind::kForbidden) {
          if (auto here = BoundHere((*objects)[next])) {
            auto others = std::make_shared<std::vector<Json>>(*objects);
            (*others)[next] = *std::move(here);
            return MakeMaster(job, others, next, done);
          }
        }
        if (!error || error->kind() != ErrorKind::kTaken) return go_on(std::move(error));
        auto other = std::make_shared<bool>();
        Ask(
            space, [path = PathOfObject((*objects)[next], true)] { return Request{.path = path}; },
            [=](const Json* found) {
              *other = OwnerOf(At(*found, "metadata")) != job->metadata.uid;
            },
            [=](std::optional<Error> second) {
              if (!second && *other) second = Taken((*objects)[next]);
              go_on(std::move(second));
            });
      });
}

}  // namespace backend::cluster
