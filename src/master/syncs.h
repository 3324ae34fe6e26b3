// Points at which workers wait for each other, by name, as ElasticDL 1.0.0 has them.
//
// The first worker who arrives at a point fixes who must come: those who run then. The point is
// ready when each of them came or is gone, and stays so until it is deleted. A signal is a point
// without workers: ready once somebody notified it. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace master {

class Syncs {
 public:
  // Whether the point is ready, now that this worker is there.
  bool Arrive(const std::string& name, int32_t worker, const std::set<int32_t>& running);
  // Whether the signal was given, now that this call gave it or did not.
  bool Wait(const std::string& name, bool notify);
  void Delete(const std::string& name);
  void DeleteAll();
  // Nobody but these runs any more. True: a point changed.
  bool Keep(const std::set<int32_t>& running);

  // For a restart.
  base::Json ToJson() const;
  static base::Result<Syncs> FromJson(const base::Json& json);

  bool operator==(const Syncs&) const = default;

 private:
  std::map<std::string, std::set<int32_t>, std::less<>> missing_;  // of each point
  std::set<std::string, std::less<>> notified_;
};

}  // namespace master
