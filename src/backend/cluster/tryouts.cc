#include "backend/cluster/tryouts.h"

namespace backend::cluster {
namespace {

constexpr size_t kKept = 4096;

size_t Hash(const api::Job& job, api::Role role) {
  return std::hash<std::string>()(job.metadata.name_space +
                                  base::CompactJson(job.spec.replicas.at(role).pod_template));
}

}  // namespace

bool Tryouts::Waits(const api::Job& job, api::Role role) {
  const auto known = templates_.find(Hash(job, role));
  if (known == templates_.end() || known->second.word != Template::kAsked) return false;
  known->second.waiting.insert({job.metadata.name_space, job.metadata.name});
  return true;
}

void Tryouts::Try(const Deeds::JobPtr& job, api::Role role, Deeds::Done done) {
  const size_t hash = Hash(*job, role);
  if (templates_.size() >= kKept) {
    std::erase_if(templates_, [](const auto& t) { return t.second.word != Template::kAsked; });
  }
  // One that was not taken is tried by every job for itself: the answer names its pod.
  if (templates_[hash].word == Template::kTaken) return done(std::nullopt);
  deeds_.TryPod(job, role, [this, hash, done = std::move(done)](std::optional<base::Error> error) {
    Template& one = templates_[hash];
    one.word = error ? Template::kNotTaken : Template::kTaken;
    for (const Key& key : std::exchange(one.waiting, {})) wake_(key);
    done(std::move(error));
  });
}

}  // namespace backend::cluster
