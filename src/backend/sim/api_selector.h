// Which objects a list or a watch is about: label and field selectors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/sim/api_status.h"
#include "base/json.h"

namespace backend::sim {

class Selector {
 public:
  // "app=a,tier!=db,x in (a,b),y notin (c),z,!w"; fields: "metadata.name=a,status.phase!=Failed".
  static Outcome<Selector> Parse(const Resource& resource, std::string_view labels,
                                 std::string_view fields);

  bool Matches(const base::Json& object) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    bool of_field = false;
    std::vector<std::string> path;
    enum class What { kIn, kNotIn, kExists, kMissing } what = What::kIn;
    std::vector<std::string> values;
  };
  std::vector<Rule> rules_;
};

}  // namespace backend::sim
