#include "backend/local/gpus.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "backend/local/replica.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "core/restart_policy.h"
#include "io/unix_socket.h"

namespace backend::local {
namespace {

using api::ReplicaId;
using api::Role;
using base::Result;

// The file of a GPU has a line "GPU UUID:    GPU-…".
std::string UuidIn(const std::string& directory) {
  const auto text = io::ReadFile(directory + "/information");
  if (!text) return "";
  for (std::string_view line : base::Split(*text, '\n')) {
    if (!line.starts_with("GPU UUID:")) continue;
    const std::string_view uuid = base::Trim(line.substr(line.find(':') + 1));
    // Without the right to see it, the driver shows question marks.
    return uuid.contains('?') ? "" : std::string(uuid);
  }
  return "";
}

std::vector<Gpu> AllGpus(const std::string& proc) {
  std::vector<Gpu> out;
  for (const std::string& address : io::ListDir(proc)) {
    const std::string uuid = UuidIn(proc + "/" + address);
    out.push_back({address, uuid.empty() ? std::to_string(out.size()) : uuid});
  }
  return out;
}

// Returns how many GPUs the template of the role requests, if it names a number.
std::optional<size_t> Asked(const api::JobSpec& spec, Role role) {
  const base::Json* container = api::TensorFlowContainer(spec.replicas.at(role).pod_template);
  if (!container) return std::nullopt;
  const base::Json& limit =
      base::At(base::At(base::At(*container, "resources"), "limits"), "nvidia.com/gpu");
  if (limit.is_null()) return std::nullopt;
  const auto count = base::ParseQuantity(limit.is_string() ? std::string(limit.get_string())
                                                           : base::CompactJson(limit));
  return count ? static_cast<size_t>(std::max<int64_t>(*count, 0)) : 0;
}

std::string Counted(size_t count) {
  return fmt::format("{} GPU{} {} free", count, count == 1 ? "" : "s", count == 1 ? "is" : "are");
}

}  // namespace

std::vector<Gpu> GpusIn(const std::optional<std::string>& value, const std::string& proc) {
  const std::vector<Gpu> all = AllGpus(proc);
  if (!value) return all;
  std::vector<Gpu> out;
  std::set<std::string> seen;
  for (std::string_view part : base::Split(*value, ',')) {
    const std::string entry(base::Trim(part));
    Gpu gpu{entry, entry};
    if (const auto number = base::ParseInt(entry)) {
      if (*number < 0 || *number >= std::ssize(all)) break;
      gpu.address = all[static_cast<size_t>(*number)].address;
    } else if (!entry.starts_with("GPU-") && !entry.starts_with("MIG-")) {
      break;
    } else if (const auto it = std::ranges::find_if(
                   all, [&](const Gpu& g) { return g.entry.starts_with(entry); });
               it != all.end()) {  // CUDA takes the beginning of a UUID for the whole
      gpu.address = it->address;
    }
    if (seen.insert(gpu.address).second) out.push_back(std::move(gpu));
  }
  return out;
}

bool GpuLeases::Take(const Gpu& gpu) {
  if (held_.contains(gpu.address)) return true;
  io::Fd name = io::HoldName("trainyard/gpu/" + gpu.address);
  if (!name.valid()) return false;
  held_[gpu.address] = std::move(name);
  return true;
}

Result<GpuShares> GpuLeases::ShareOut(const api::Job& job, const std::vector<Gpu>& gpus) {
  GpuShares out;
  const std::vector<ReplicaId> all = ReplicasInOrder(job.spec);
  std::vector<ReplicaId> trainers;
  bool asked = false;
  for (ReplicaId id : all) {
    if (id.role == Role::kPs || id.role == Role::kEvaluator) continue;
    trainers.push_back(id);
    asked |= Asked(job.spec, id.role).value_or(0) > 0;
  }
  if (gpus.empty()) {
    if (asked) out.notice = "the job asks for GPUs and there are none: it trains on the CPU";
    return out;
  }
  const bool gang = core::ScopeOf(job) == api::RestartScope::kJob;
  const auto before = shares_;
  if (gang) shares_.clear();
  std::erase_if(shares_, [&](const auto& share) {
    return std::ranges::find(trainers, share.first) == trainers.end();
  });
  std::set<std::string> used;
  for (const auto& [id, share] : shares_) {
    for (const Gpu& gpu : share) used.insert(gpu.address);
  }
  std::vector<Gpu> free;
  for (const Gpu& gpu : gpus) {
    if (!used.contains(gpu.address) && Take(gpu)) free.push_back(gpu);
  }
  const size_t found = free.size();

  const size_t each = gang && !trainers.empty() ? std::max(found / trainers.size(), size_t{1}) : 1;
  size_t wanted = 0;
  std::vector<std::string> without;
  for (ReplicaId id : trainers) {
    if (shares_.contains(id)) continue;
    const size_t count = asked ? Asked(job.spec, id.role).value_or(0) : each;
    wanted += count;
    if (free.size() < count) {
      without.push_back(api::Spoken(id));
      continue;
    }
    const auto end = free.begin() + static_cast<ptrdiff_t>(count);
    shares_[id].assign(free.begin(), end);
    free.erase(free.begin(), end);
  }
  if (!without.empty() && gang) shares_.clear();
  if (!without.empty() && asked) shares_ = before;
  used.clear();
  for (const auto& [id, share] : shares_) {
    for (const Gpu& gpu : share) used.insert(gpu.address);
  }
  std::erase_if(held_, [&](const auto& lease) { return !used.contains(lease.first); });

  if (!without.empty() && asked) {
    return base::Invalid(fmt::format(
        "the job asks for {} GPU{} and {}: ask for fewer with --gpus, or run it when other jobs "
        "have ended",
        wanted, wanted == 1 ? "" : "s", Counted(found)));
  }
  if (!without.empty() && gang) {
    out.notice = fmt::format("{} replicas train and {}: all of them train on the CPU{}",
                             trainers.size(), Counted(found),
                             found > 0 ? fmt::format("; -w {} uses the GPU{}", found,
                                                     found == 1 ? "" : "s")
                                       : "");
    if (trainers.size() == 1) out.notice = "no GPU is free: the job trains on the CPU";
  } else if (!without.empty()) {
    out.notice = fmt::format("{} more replicas train and {}: {} on the CPU", wanted, Counted(found),
                             base::Join(without, ", "));
  }
  for (ReplicaId id : all) {
    std::vector<std::string> entries;
    for (const Gpu& gpu : shares_[id]) entries.push_back(gpu.entry);
    out.visible[id] = entries.empty() ? "-1" : base::Join(entries, ",");
  }
  std::erase_if(shares_, [](const auto& share) { return share.second.empty(); });
  return out;
}

}  // namespace backend::local
