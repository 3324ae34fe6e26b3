#include "cli/settings.h"

#include <cstdlib>

namespace cli {

backend::cluster::Settings SettingsFrom(const Args& args) {
  backend::cluster::Settings out;
  if (const char* domain = std::getenv("CUSTOM_CLUSTER_DOMAIN")) out.cluster_domain = domain;
  out.gang_scheduler = args.Get("gang-scheduler-name");
  return out;
}

}  // namespace cli
