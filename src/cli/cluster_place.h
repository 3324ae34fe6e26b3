// A cluster as a place of jobs.
#pragma once

#include <memory>
#include <string>

#include "api/tfjob.h"
#include "base/result.h"
#include "cli/args.h"
#include "cli/cluster.h"
#include "cli/place.h"

namespace cli {

std::unique_ptr<Place> OpenClusterPlace(Cluster cluster, const Args& args);

// What a job there leaves behind. `again` is what a command must say to mean the same place.
Kept KeptThere(const api::Job& job, const std::string& again);
// " --on kubernetes -n team": what was typed and must be typed again, or nothing.
std::string TypedAgain(const Args& args);

// When an event of the cluster was last seen, whichever way it says so.
std::string TimeOfEvent(const base::Json& event);
// What happened to an object, oldest first: objects with time, type, reason and message.
base::Result<std::vector<base::Json>> EventsOf(Cluster& cluster, const std::string& name_space,
                                               const std::string& name, const std::string& uid);

// Asks whoever keeps a job to end it (core/wishes.h).
kube::Request StopRequest(const std::string& name_space, const std::string& name,
                          const std::string& by);

// How a job that is there is kept.
base::Result<Store> StoreOf(Cluster& cluster, const std::string& name_space,
                            const std::string& name);
// The owner reference of what goes with a job.
base::JsonObject OwnerOf(const base::Json& job, Store store);
// The same of one by name, in a list; empty: it is gone.
base::JsonArray OwnersThere(Cluster& cluster, const std::string& name_space,
                            const std::string& name);

}  // namespace cli
