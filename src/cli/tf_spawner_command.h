// The parts of the command `tf-spawner`, each the whole of what one command line does; they return
// its exit status.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/args.h"
#include "cli/cluster.h"

namespace cli {

// `-d` on a cluster: all that carries the tag, and nothing else. Returns when the pods are gone.
int DeleteSpawned(const Args& args, const std::string& tag, const std::string& context);

// The same two on this machine, as `run` and `delete` do it.
int SpawnHere(const Args& args, const std::string& tag);
int DeleteSpawnedHere(const Args& args, const std::string& tag);

// Asks, as TF-Spawner does, unless --yes has answered.
bool IsConfirmed(const Args& args, const std::string& tag);

// Says what went wrong on the cluster, or that Ctrl-C did; its exit status.
int Failed(const Cluster& cluster, const base::Error& error);

}  // namespace cli
