// The objects of one kind that we know of, reduced to what decisions need.
//
// Fed by a watch and by the answers to our own writes, whichever is newer: an object never goes
// back to an older version, so what is read here is never older than what this process did.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "kube/watch.h"

namespace backend::cluster {

struct Key {
  std::string name_space;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

// Object has: key, uid, job (the key of the job it belongs to), version.
template <typename Object>
class Collection : public kube::Watch::Sink {
 public:
  using Read = std::function<std::optional<Object>(const base::Json&)>;
  using Changed = std::function<void(const Key& job)>;

  // `read` gives nothing for what is none of ours. `changed` is told the job of each change.
  Collection(Read read, Changed changed) : read_(std::move(read)), changed_(std::move(changed)) {}

  const Object* Find(const Key& key) const {
    const auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : &it->second;
  }

  // In the order of their names.
  std::vector<const Object*> Of(const Key& job) const {
    std::vector<const Object*> out;
    const auto names = by_job_.find(job);
    if (names == by_job_.end()) return out;
    for (const std::string& name : names->second) {
      out.push_back(&objects_.at({job.name_space, name}));
    }
    return out;
  }

  const std::map<Key, Object>& all() const { return objects_; }
  // What the watch last complained of; empty while all is well.
  const std::string& trouble() const { return trouble_; }

  // The watch has told everything up to here.
  kube::Version heard() const { return heard_; }

  void Apply(const base::Json& object) override {
    trouble_.clear();
    Hear(object);
    Take(object, read_(object));
  }

  // From the answer to a request of ours, which may be ahead of the watch, or late: what the watch
  // must have told, and is not known, has gone since.
  void Learn(const base::Json& object) {
    std::optional<Object> read = read_(object);
    if (read && read->version <= heard_ && !objects_.contains(read->key)) return;
    Take(object, std::move(read));
  }

  void Remove(const base::Json& object) override {
    Hear(object);
    Forget(object);
  }

  // Of this UID only: a successor of the same name stays. `version` is the last that it had.
  void Drop(const Key& key, const std::string& uid, kube::Version version) {
    const auto known = objects_.find(key);
    if (known == objects_.end() || known->second.uid != uid) return;
    // A late word of an earlier version must not bring it back; a list ends the remembering.
    kube::Version& last = removed_[key];
    last = std::max({last, version, known->second.version});
    Erase(known);
  }

  // A list of what this one job had at `version` was asked for, and each of it learned: what does
  // not bear one of these names was gone by then.
  void Survey(const Key& job, const std::set<std::string>& names, kube::Version version) {
    std::vector<Object> gone;
    for (const Object* object : Of(job)) {
      if (!names.contains(object->key.name) && object->version <= version) gone.push_back(*object);
    }
    for (const Object& object : gone) Drop(object.key, object.uid, version);
    if (version > heard_) surveyed_[job] = std::max(surveyed_[job], version);
  }

  // A quiet watch has no other way to tell that it is open again.
  void Reached(kube::Version version) override {
    trouble_.clear();
    HearUpTo(version);
  }

  void ListBegin() override {
    listing_ = true;
    told_.clear();
  }

  void ListEnd(kube::Version version) override {
    listing_ = false;
    HearUpTo(version);
    trouble_.clear();
    for (auto it = objects_.begin(); it != objects_.end();) {
      const bool gone = !told_.contains(it->first) && it->second.version <= version;
      gone ? Erase(it++) : void(++it);
    }
    told_.clear();
    std::erase_if(removed_, [&](const auto& entry) { return entry.second <= version; });
  }

  void Trouble(const base::Error& error) override { trouble_ = error.text(); }

 private:
  static constexpr size_t kRemembered = 1024;

  // What a list tells comes in no order of versions: its end counts.
  void Hear(const base::Json& object) {
    if (!listing_) HearUpTo(kube::VersionOf(object));
  }

  void Take(const base::Json& object, std::optional<Object> read) {
    if (!read) return Forget(object);
    if (listing_) told_.insert(read->key);
    const auto known = objects_.find(read->key);
    if (known != objects_.end() && known->second.version >= read->version) return;
    // Gone by the time of a survey: the watch is still telling how that came to be.
    const auto surveyed = surveyed_.find(read->job);
    if (surveyed != surveyed_.end() && read->version <= surveyed->second) return;
    const auto gone = removed_.find(read->key);
    if (gone != removed_.end() && gone->second >= read->version) return;
    Insert(std::move(*read));
  }

  void HearUpTo(kube::Version version) {
    heard_ = std::max(heard_, version);
    std::erase_if(surveyed_, [&](const auto& entry) { return entry.second <= heard_; });
  }

  void Forget(const base::Json& object) {
    const base::Json* metadata = base::Find(object, "metadata");
    if (!metadata) return;
    Drop({base::StringOr(*metadata, "namespace"), base::StringOr(*metadata, "name")},
         base::StringOr(*metadata, "uid"), kube::VersionOf(object));
  }

  void Insert(Object object) {
    const Key key = object.key;
    if (const auto known = objects_.find(key); known != objects_.end()) Erase(known);
    removed_.erase(key);
    // Words come in the order of versions, so what was removed long before needs no remembering.
    if (removed_.size() > kRemembered) {
      std::erase_if(removed_, [&](const auto& e) { return e.second < object.version; });
    }
    const Key job = object.job;
    by_job_[job].insert(key.name);
    objects_.emplace(key, std::move(object));
    changed_(job);
  }

  void Erase(typename std::map<Key, Object>::iterator it) {
    const Key job = it->second.job;
    std::set<std::string>& names = by_job_[job];
    names.erase(it->first.name);
    if (names.empty()) by_job_.erase(job);
    objects_.erase(it);
    changed_(job);
  }

  const Read read_;
  const Changed changed_;
  std::map<Key, Object> objects_;
  std::map<Key, std::set<std::string>> by_job_;
  std::map<Key, kube::Version> removed_;
  std::map<Key, kube::Version> surveyed_;  // by the job: ahead of what was heard
  kube::Version heard_ = 0;
  bool listing_ = false;
  std::set<Key> told_;
  std::string trouble_;
};

}  // namespace backend::cluster
