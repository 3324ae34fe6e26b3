#include "master/syncs.h"

namespace master {

bool Syncs::Arrive(const std::string& name, int32_t worker, const std::set<int32_t>& running) {
  std::set<int32_t>& missing = missing_.try_emplace(name, running).first->second;
  missing.erase(worker);
  return missing.empty();
}

bool Syncs::Wait(const std::string& name, bool notify) {
  if (notify) notified_.insert(name);
  return notified_.contains(name);
}

void Syncs::Delete(const std::string& name) {
  missing_.erase(name);
  notified_.erase(name);
}

void Syncs::DeleteAll() { *this = {}; }

bool Syncs::Keep(const std::set<int32_t>& running) {
  size_t gone = 0;
  for (auto& [name, missing] : missing_)
    gone += std::erase_if(missing, [&](int32_t each) { return !running.contains(each); });
  return gone > 0;
}

base::Json Syncs::ToJson() const {
  base::JsonObject points;
  for (const auto& [name, missing] : missing_)
    points[name] = base::JsonArray(missing.begin(), missing.end());
  return base::JsonObject{{"points", std::move(points)},
                          {"signals", base::JsonArray(notified_.begin(), notified_.end())}};
}

base::Result<Syncs> Syncs::FromJson(const base::Json& json) {
  const base::Json& points = base::At(json, "points");
  const base::Json& signals = base::At(json, "signals");
  if (!points.is_object() || !signals.is_array()) return base::Invalid("no points and signals");
  Syncs syncs;
  for (const auto& [name, missing] : points.get_object()) {
    if (!missing.is_array()) return base::Invalid("a point without a list of workers");
    std::set<int32_t>& workers = syncs.missing_[name];
    for (const base::Json& worker : missing.get_array()) {
      if (!worker.is_int64()) return base::Invalid("a worker that is no number");
      workers.insert(static_cast<int32_t>(worker.get_int64()));
    }
  }
  for (const base::Json& name : signals.get_array()) {
    if (!name.is_string()) return base::Invalid("a signal that is no text");
    syncs.notified_.insert(std::string(name.get_string()));
  }
  return syncs;
}

}  // namespace master
