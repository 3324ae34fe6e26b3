#include "backend/cluster/creations.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"

namespace backend::cluster {
namespace {

// More objects of one kind than this share an event.
constexpr size_t kMostSingle = 8;
// Of those that share an event, so many are named.
constexpr size_t kMostNamed = 10;

// One text for each item, or, for many, one that names the first `most_named`.
std::vector<std::string> Texts(const std::string& prefix, const std::set<std::string>& items,
                               size_t most_named) {
  std::vector<std::string> out(items.begin(), items.end());
  if (items.size() > kMostSingle) {
    out.resize(std::min(items.size(), most_named));
    std::string all = base::Join(out, ", ");
    if (out.size() < items.size()) all += fmt::format(" and {} more", items.size() - out.size());
    out = {std::move(all)};
  }
  for (std::string& text : out) text = prefix + text;
  return out;
}

}  // namespace

std::vector<core::Event> Creations::TakeEvents() {
  std::vector<core::Event> out;
  const auto kinds = std::exchange(kinds_, {});
  for (const auto& [kind, of] : kinds) {
    const std::string prefix = fmt::format("Created {}: ", base::Lower(kind));
    for (std::string& text : Texts(prefix, of.names, kMostNamed)) {
      out.push_back({false, "SuccessfulCreate" + kind, std::move(text)});
    }
  }
  for (const auto& [kind, of] : kinds) {
    for (std::string& text : Texts("Error creating: ", of.errors, 1)) {
      out.push_back({true, "FailedCreate" + kind, std::move(text)});
    }
  }
  return out;
}

}  // namespace backend::cluster
