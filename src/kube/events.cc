#include "kube/events.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/json.h"
#include "base/strings.h"
#include "kube/api.h"

namespace kube {
namespace {

using base::Json;
using base::JsonObject;

constexpr size_t kMostWaiting = 4096;
constexpr size_t kMostRemembered = 4096;
constexpr size_t kUnderWay = 4;
constexpr size_t kLongestMessage = 1024;  // the server refuses longer ones
constexpr base::Duration kPatience = std::chrono::seconds(10);
// As client-go: 25 at once for an object, then one in five minutes; ten of one reason within ten
// minutes, then all further ones as one.
constexpr double kBurst = 25;
constexpr base::Duration kRefill = std::chrono::minutes(5);
constexpr int32_t kAlike = 10;
constexpr base::Duration kAlikeWithin = std::chrono::minutes(10);

std::string Cut(const std::string& text) {
  if (text.size() <= kLongestMessage) return text;
  size_t end = kLongestMessage - 3;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

struct Events::Shared {
  size_t under_way = 0;
  std::vector<Words> lost;  // not there any more, or never stored: tell anew next time
};

Events::Events(Transport& transport, std::string component)
    : transport_(transport),
      component_(std::move(component)),
      shared_(std::make_shared<Shared>()) {}
Events::~Events() = default;

void Events::Tell(const ObjectRef& about, bool warning, const std::string& reason,
                  const std::string& message) {
  if (waiting_.size() >= kMostWaiting) {
    ++dropped_;
    return;
  }
  waiting_.push_back({about, warning, reason, Cut(message)});
}

void Events::Advance(base::Time now) {
  for (const Words& words : std::exchange(shared_->lost, {})) told_.erase(words);
  while (!waiting_.empty() && shared_->under_way < kUnderWay) {
    News news = std::move(waiting_.front());
    waiting_.pop_front();
    if (MayTell(news.about, now)) {
      Send(std::move(news), now);
    } else {
      ++dropped_;
    }
  }
  Forget();
}

// Whatever there is to do waits for an answer.
std::optional<base::Time> Events::next() const { return std::nullopt; }

bool Events::MayTell(const ObjectRef& about, base::Time now) {
  auto [it, fresh] = allowances_.try_emplace(about.uid, Allowance{kBurst, now});
  Allowance& allowance = it->second;
  allowance.tokens =
      std::min(kBurst, allowance.tokens + static_cast<double>((now - allowance.refilled).count()) /
                                              static_cast<double>(kRefill.count()));
  allowance.refilled = now;
  if (allowance.tokens < 1) return false;
  allowance.tokens -= 1;
  return true;
}

void Events::Send(News news, base::Time now) {
  Alike& alike = alike_[{news.about.uid, news.reason}];
  if (now - alike.since > kAlikeWithin) alike = {.since = now};
  std::string spoken = news.message;
  if (++alike.number > kAlike) {
    news.message = "(combined from similar events)";
    spoken = "(combined from similar events): " + spoken;
  }
  const Words words{news.about.uid, news.reason, news.message};
  const auto known = told_.find(words);
  Request request;
  if (known != told_.end()) {
    Told& told = known->second;
    const Json patch = JsonObject{{"count", ++told.count},
                                  {"message", Cut(spoken)},
                                  {"lastTimestamp", base::FormatTime(now)}};
    request = {"PATCH", told.path, "application/merge-patch+json", base::CompactJson(patch)};
  } else {
    const std::string name =
        fmt::format("{}.{:x}{:x}", news.about.name, now.time_since_epoch().count(), ++number_);
    const std::string time = base::FormatTime(now);
    const Json event =
        JsonObject{{"apiVersion", "v1"},
                   {"kind", "Event"},
                   {"metadata", JsonObject{{"name", name}, {"namespace", news.about.name_space}}},
                   {"involvedObject", JsonObject{{"apiVersion", news.about.api_version},
                                                 {"kind", news.about.kind},
                                                 {"namespace", news.about.name_space},
                                                 {"name", news.about.name},
                                                 {"uid", news.about.uid}}},
                   {"type", news.warning ? "Warning" : "Normal"},
                   {"reason", news.reason},
                   {"message", Cut(spoken)},
                   {"source", JsonObject{{"component", component_}}},
                   {"reportingComponent", component_},
                   {"reportingInstance", ""},
                   {"firstTimestamp", time},
                   {"lastTimestamp", time},
                   {"count", 1}};
    request = {"POST", Path("v1", "events", news.about.name_space), "application/json",
               base::CompactJson(event)};
    told_[words] = {.path = Path("v1", "events", news.about.name_space, name), .first = now};
  }
  ++shared_->under_way;
  transport_.Send(std::move(request), kPatience,
                  [shared = shared_, words](base::Result<Response> response) {
                    --shared->under_way;
                    if (!response || ErrorOf(*response)) shared->lost.push_back(words);
                  });
}

// Memory is bounded; what is forgotten is told anew.
void Events::Forget() {
  if (told_.size() > kMostRemembered) told_.clear();
  if (alike_.size() > kMostRemembered) alike_.clear();
  if (allowances_.size() > kMostRemembered) {
    std::erase_if(allowances_, [](const auto& entry) { return entry.second.tokens > kBurst - 2; });
    if (allowances_.size() > 4 * kMostRemembered) allowances_.clear();
  }
}

}  // namespace kube
