#include "backend/sim/api_store.h"

#include <algorithm>

namespace backend::sim {
namespace {

std::vector<Object> InNamespace(const std::map<std::string, Object>& table,
                                const std::string& name_space) {
  std::vector<Object> out;
  const std::string prefix = name_space.empty() ? "" : name_space + "/";
  for (auto it = table.lower_bound(prefix); it != table.end() && it->first.starts_with(prefix);
       ++it) {
    out.push_back(it->second);
  }
  return out;
}

Object WithVersion(base::Json object, Version version) {
  object.as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(version);
  return std::make_shared<const base::Json>(std::move(object));
}

}  // namespace

std::string KeyOf(const std::string& name_space, const std::string& name) {
  return name_space.empty() ? name : name_space + "/" + name;
}

const Store::Table& Store::TableOf(const Resource& resource) const {
  static const Table none;
  const auto it = tables_.find(&resource);
  return it == tables_.end() ? none : it->second;
}

Object Store::Get(const Resource& resource, const std::string& key) const {
  const Table& table = TableOf(resource);
  const auto it = table.find(key);
  return it == table.end() ? nullptr : it->second;
}

std::vector<Object> Store::List(const Resource& resource, const std::string& name_space) const {
  return InNamespace(TableOf(resource), name_space);
}

Store::Table Store::Rewound(const Resource& resource, Version at) const {
  Table table = TableOf(resource);
  for (auto it = changes_.rbegin(); it != changes_.rend() && it->version > at; ++it) {
    if (it->resource != &resource) continue;
    if (it->before) {
      table[it->key] = it->before;
    } else {
      table.erase(it->key);
    }
  }
  return table;
}

Object Store::GetAt(const Resource& resource, const std::string& key, Version at) const {
  const Table table = Rewound(resource, at);
  const auto it = table.find(key);
  return it == table.end() ? nullptr : it->second;
}

std::vector<Object> Store::ListAt(const Resource& resource, const std::string& name_space,
                                  Version at) const {
  return InNamespace(Rewound(resource, at), name_space);
}

Object Store::Put(const Resource& resource, const std::string& key, base::Json object) {
  Object& slot = tables_[&resource][key];
  Object before = slot;
  slot = WithVersion(std::move(object), ++version_);
  changes_.push_back(
      {.version = version_, .resource = &resource, .key = key, .before = before, .after = slot});
  return slot;
}

Object Store::Erase(const Resource& resource, const std::string& key) {
  Table& table = tables_[&resource];
  const auto it = table.find(key);
  if (it == table.end()) return nullptr;
  Object before = it->second;
  table.erase(it);
  Object last = WithVersion(*before, ++version_);
  changes_.push_back(
      {.version = version_, .resource = &resource, .key = key, .before = before, .last = last});
  return last;
}

void Store::Compact(Version version) {
  compacted_ = std::max(compacted_, std::min(version, version_));
  while (!changes_.empty() && changes_.front().version <= compacted_) changes_.pop_front();
}

const Change* Store::After(Version version) const {
  const auto it = std::ranges::upper_bound(changes_, version, {}, &Change::version);
  return it == changes_.end() ? nullptr : &*it;
}

}  // namespace backend::sim
