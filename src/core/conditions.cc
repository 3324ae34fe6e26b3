#include "core/conditions.h"

#include <algorithm>

namespace core {

void SetCondition(api::JobStatus& status, std::string type, bool value, std::string reason,
                  std::string message, base::Time now) {
  if (api::Has(status, "Failed")) return;
  now = std::chrono::floor<std::chrono::seconds>(now);
  api::Condition added{.type = type,
                       .status = value,
                       .reason = reason,
                       .message = std::move(message),
                       .last_update = now,
                       .last_transition = now};
  if (const api::Condition* old = api::FindCondition(status, type)) {
    if (old->status == value && old->reason == reason) return;
    if (old->status == value) added.last_transition = old->last_transition;
  }
  const std::string rival = type == "Running"      ? "Restarting"
                            : type == "Restarting" ? "Running"
                                                   : "";
  std::erase_if(status.conditions,
                [&](const api::Condition& c) { return c.type == type || c.type == rival; });
  if (type == "Succeeded" || type == "Failed") {
    for (api::Condition& c : status.conditions) {
      if (c.type == "Running" || c.type == "Restarting" || c.type == "Suspended") c.status = false;
    }
  }
  status.conditions.push_back(std::move(added));
}

}  // namespace core
