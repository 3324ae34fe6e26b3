#include "core/dialect.h"

#include <fmt/core.h>

namespace core {

std::string ReplicaName(const api::Job& job, api::ReplicaId id) {
  const bool elasticdl = job.extensions.dialect == Dialect::kElasticDl;
  return fmt::format("{}-{}{}", job.metadata.name, elasticdl ? "edljob-" : "", api::ToString(id));
}

std::string MasterName(const api::Job& job) {
  const bool elasticdl = job.extensions.dialect == Dialect::kElasticDl;
  return fmt::format("{}{}-master", elasticdl ? "elasticdl-" : "", job.metadata.name);
}

int32_t ElasticDlPort(api::Role role) { return role == api::Role::kPs ? 2222 : 3333; }

bool UsesClient(const api::Job& job) {
  return job.extensions.elastic || job.extensions.dialect == Dialect::kElasticDl;
}

}  // namespace core
