#include "cli/watch.h"

#include <algorithm>

#include <sys/stat.h>

#include "backend/local/replica.h"

namespace cli {
namespace {

using api::ReplicaId;
using api::Role;

constexpr size_t kMostMetrics = 32;
constexpr std::string_view kOfEpoch = "epoch_";
constexpr uint64_t kEventBytesAtOnce = 64 << 20;

}  // namespace

ReplicaId Leader(const api::JobSpec& spec) {
  for (Role role : {Role::kChief, Role::kMaster, Role::kWorker}) {
    if (api::ReplicasOf(spec, role) > 0) return {role, 0};
  }
  return {Role::kPs, 0};
}

JobWatch::JobWatch(backend::local::JobDir dir, bool raw)
    : dir_(std::move(dir)), view_(raw), event_files_(dir_.File("tensorboard")) {
  for (const std::string& file : io::ListDir(dir_.File("logs"))) {
    if (!file.ends_with(".log")) continue;
    const auto id = api::ReplicaIdFrom(file.substr(0, file.size() - 4));
    struct stat info;
    if (!id || stat(dir_.LogFile(*id).c_str(), &info) != 0) continue;
    tails_.try_emplace(*id, dir_.LogFile(*id)).first->second.SkipTo(info.st_size);
  }
}

bool JobWatch::ReadLogs(const api::JobSpec& spec, base::Time now) {
  bool grew = false;
  for (ReplicaId id : backend::local::ReplicasInOrder(spec))
    tails_.try_emplace(id, dir_.LogFile(id));
  for (auto& [id, tail] : tails_) {
    const std::string bytes = tail.ReadNew();
    if (bytes.empty()) continue;
    grew = true;
    NoteTime(dir_.LogFile(id), tail.offset(), now);
    view_.Feed(id, bytes, now);
  }
  return grew;
}

api::Progress JobWatch::ReadProgress(const api::Job& job, base::Time now) {
  api::Progress progress;
  if (const events::ProgressTracker* tracker = view_.progress(Leader(job.spec))) {
    const events::Progress seen = tracker->At(now);
    progress.percent = seen.percent;
    progress.step = seen.global_step;
    if (!api::IsTerminal(job.status)) progress.remaining = seen.eta;
    for (const events::Metric& metric : seen.metrics) progress.metrics[metric.name] = metric.value;
  }
  if (event_files_.Poll(now, kEventBytesAtOnce).scalars > 0) event_advance_ = now;
  for (const auto& [run, series] : event_files_.runs()) {
    for (const auto& [tag, values] : series) {
      if (!values.latest() || progress.metrics.size() >= kMostMetrics) continue;
      // Keras' own names for what its log lines have said already.
      if (tag.starts_with(kOfEpoch) && progress.metrics.contains(tag.substr(kOfEpoch.size())))
        continue;
      progress.metrics.try_emplace(run == "." ? tag : run + "/" + tag, values.latest()->value);
      if (!progress.step) progress.step = values.latest()->step;
    }
  }
  if (api::Has(job.status, "Succeeded")) progress.percent = 100;
  return progress;
}

std::optional<base::Duration> JobWatch::SinceAdvance(const api::JobSpec& spec,
                                                     base::Time now) const {
  std::optional<base::Time> latest = event_advance_;
  for (ReplicaId id : backend::local::ReplicasInOrder(spec)) {
    if (id.role == Role::kPs || id.role == Role::kEvaluator) continue;
    const events::ProgressTracker* tracker = view_.progress(id);
    if (tracker && tracker->last_advance()) {
      latest = std::max(latest.value_or(base::Time()), *tracker->last_advance());
    }
  }
  if (!latest || *latest < restarted_) return std::nullopt;
  return now - *latest;
}

}  // namespace cli
