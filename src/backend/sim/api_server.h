// A model of a Kubernetes API server (1.34): what its clients can observe of storing, reading,
// watching, patching and deleting objects, in memory and without delay.
//
// It is deterministic: time comes from the agenda, names and uids from counters. What it leaves out
// of the real one is said where it is left out; what it does is compared with the real one by
// tests/cluster/test_conformance.py. Nothing happens here by itself: pods are run by a Kubelet
// (kubelet.h), dependents are removed by a Collector (collector.h).
//
// Not modelled: server-side apply and managedFields, JSON patch, deletion of collections and of
// namespaces, authorization, schemas of CRDs, warnings.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/sim/agenda.h"
#include "backend/sim/api_selector.h"
#include "backend/sim/api_status.h"
#include "backend/sim/api_store.h"
#include "kube/transport.h"

namespace backend::sim {

// Where a watch has got to. Lines are taken out of it with ApiServer::Next.
struct Watcher {
  const Resource* resource = nullptr;
  std::string name_space;
  Selector selector;
  bool bookmarks = false;
  std::optional<base::Duration> lasts;
  Version at = 0;                  // everything up to here was told
  std::deque<std::string> before;  // lines to tell first
  bool broken = false;             // an ERROR was told: nothing follows
};

class ApiServer {
 public:
  // There is a namespace "default" to begin with.
  explicit ApiServer(const Agenda& agenda);

  // Answers everything but watches. `at`: reads are answered as by a server that has heard of
  // nothing later than this version.
  kube::Response Serve(const kube::Request& request, std::optional<Version> at = std::nullopt);

  // Begins a watch, or refuses it with an HTTP status.
  Outcome<Watcher> Watch(const kube::Request& request, std::optional<Version> at = std::nullopt);
  // The next line for it, of changes up to `until`; nothing: there is none yet.
  std::optional<std::string> Next(Watcher& watcher, Version until) const;
  std::string Bookmark(const Watcher& watcher) const;

  const Store& store() const { return store_; }
  void Compact(Version version) { store_.Compact(version); }

  // Called after each change, in the order of being added.
  void Listen(std::function<void(const Change&)> listener);

  // The CRDs of gang schedulers exist only when they are installed.
  void Install(const Resource& resource) { absent_.erase(&resource); }

  // ---- Rules that tests inject ----

  // How many pods that have not ended a namespace may have.
  std::map<std::string, int64_t> pod_quota;
  // Asked about each object that passed the other rules.
  std::function<std::optional<Refusal>(const std::string& method, const Target& target,
                                       const base::Json& object)>
      admission;

 private:
  struct DeleteOptions {
    std::optional<int64_t> grace;
    std::optional<std::string> uid, version;
    std::string propagation;
    bool dry_run = false;
  };

  // Each in the file of its name: api_create.cc, api_update.cc, api_delete.cc, api_read.cc.
  Outcome<base::Json> Create(const Target& target, base::Json object, bool dry_run);
  Outcome<base::Json> CreateSubresource(const Target& target, const base::Json& object);
  Outcome<kube::Response> Put(const Target& target, base::Json object, bool dry_run);
  Outcome<base::Json> Patch(const Target& target, const kube::Request& request, bool dry_run);
  Outcome<base::Json> Update(const Target& target, const Object& old, base::Json next,
                             bool dry_run);
  Outcome<base::Json> Delete(const Target& target, DeleteOptions options);
  Outcome<DeleteOptions> OptionsOf(const Target& target, const std::string& body) const;
  Outcome<base::Json> Read(const Target& target, std::optional<Version> at) const;
  Outcome<base::Json> List(const Target& target, std::optional<Version> at) const;

  Outcome<kube::Response> Answer(const Target& target, const kube::Request& request,
                                 std::optional<Version> at);
  Outcome<base::Json> Decode(const Target& target, const std::string& body) const;
  Outcome<bool> DryRun(const Target& target, std::string_view options) const;
  Outcome<Object> Existing(const Target& target) const;
  Outcome<> CheckQuota(const Target& target, const base::Json& object) const;
  Object Stored(const Target& target, base::Json object);
  Object Erased(const Target& target);
  void Tell();

  const Agenda& agenda_;
  Store store_;
  std::set<const Resource*> absent_;
  std::vector<std::function<void(const Change&)>> listeners_;
  uint64_t uids_ = 0;
  uint64_t generated_ = 0;
};

}  // namespace backend::sim
