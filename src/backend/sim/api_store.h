// What an API server remembers: every object, one version counter over all of them, and what has
// changed since the last compaction.
//
// Objects are immutable once stored and shared by whoever looks at them, so a view of the past
// costs nothing to keep. One thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/sim/api_resource.h"
#include "base/json.h"
#include "kube/watch.h"

namespace backend::sim {

using kube::Version;
using Object = std::shared_ptr<const base::Json>;

// "namespace/name", the order in which objects are listed; the name alone where there is no
// namespace.
std::string KeyOf(const std::string& name_space, const std::string& name);

struct Change {
  Version version = 0;
  const Resource* resource = nullptr;
  std::string key;
  Object before;  // none: it was created
  Object after;   // none: it is gone
  // As it was last, under the version of the change. Only for what is gone.
  Object last;
};

class Store {
 public:
  Object Get(const Resource& resource, const std::string& key) const;
  // All of one namespace, or of all (empty), by key.
  std::vector<Object> List(const Resource& resource, const std::string& name_space) const;
  // The same as it was at an earlier version, which must not be compacted.
  Object GetAt(const Resource& resource, const std::string& key, Version at) const;
  std::vector<Object> ListAt(const Resource& resource, const std::string& name_space,
                             Version at) const;

  // Both raise the version.
  Object Put(const Resource& resource, const std::string& key, base::Json object);
  Object Erase(const Resource& resource, const std::string& key);  // as it was last

  Version version() const { return version_; }
  // Changes up to this version are forgotten.
  void Compact(Version version);
  Version compacted() const { return compacted_; }
  // The first change after this version, or nullptr.
  const Change* After(Version version) const;
  const std::deque<Change>& changes() const { return changes_; }

 private:
  using Table = std::map<std::string, Object>;
  const Table& TableOf(const Resource& resource) const;
  std::map<std::string, Object> Rewound(const Resource& resource, Version at) const;

  std::map<const Resource*, Table> tables_;  // never iterated: pointers have no fixed order
  std::deque<Change> changes_;
  Version version_ = 1;
  Version compacted_ = 0;
};

}  // namespace backend::sim
