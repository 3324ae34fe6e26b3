#include "serve/models.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <pthread.h>

#include "base/strings.h"
#include "io/files.h"
#include "serve/versions.h"

namespace serve {
namespace {

// While files change the disk is looked at more often than `poll`.
constexpr base::Duration kSoon = std::chrono::milliseconds(200);
constexpr base::Duration kTryAgain = std::chrono::seconds(30);
constexpr size_t kMostConfig = 1 << 20;
constexpr size_t kMostEnded = 100;  // versions whose end is remembered

const Status kFine{.code = static_cast<Code>(0), .text = ""};
const Answer<> kStopping = Refused(Code::kUnavailable, "the server is stopping");

// Files as old as that are settled the first time they are seen.
bool AreOld(const Seen& files, base::Duration settled) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t limit = now.tv_sec * 1'000'000'000 + now.tv_nsec -
                        std::chrono::duration_cast<std::chrono::nanoseconds>(settled).count();
  return std::ranges::all_of(files, [&](const FileSeen& file) { return file.changed_ns < limit; });
}

}  // namespace

Models::Models(const Engine& engine, Counters& counters, Options options)
    : engine_(engine), counters_(counters), options_(std::move(options)) {
  thread_ = std::jthread([this] {
    pthread_setname_np(pthread_self(), "models");
    Loop();
  });
}

Models::~Models() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
  StopReloads();
  for (const auto& [name, model] : models_)
    for (const auto& [version, servable] : model.loaded) servable->Stop();
  for (const auto& servable : retired_) servable->Stop();
}

void Models::Configure(std::vector<ModelConfig> configs) {
  const std::lock_guard lock(mutex_);
  configure_ = std::move(configs);
  changed_.notify_all();
}

void Models::Reload(std::vector<ModelConfig> configs, Reloaded done) {
  {
    const std::lock_guard lock(mutex_);
    if (!no_reloads_) {
      reloads_.emplace_back(std::move(configs), std::move(done));
      changed_.notify_all();
      return;
    }
  }
  done(kStopping);
}

void Models::StopReloads() {
  std::vector<Reloaded> all;
  {
    const std::lock_guard lock(mutex_);
    no_reloads_ = true;
    if (reloading_) all.push_back(std::exchange(reloading_, nullptr));
    for (auto& [configs, done] : reloads_) all.push_back(std::move(done));
    reloads_.clear();
  }
  for (Reloaded& done : all) done(kStopping);
}

void Models::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    Look();
    lock.lock();
    changed_.notify_all();  // whoever waits until it is ready
    const bool soon = !retired_.empty() || std::ranges::any_of(models_, [](const auto& entry) {
      return std::ranges::any_of(entry.second.tried,
                                 [](const auto& tried) { return !tried.second.failed; });
    });
    changed_.wait_for(lock, soon ? std::min(kSoon, options_.poll) : options_.poll,
                      [&] { return stopping_ || configure_ || !reloads_.empty(); });
  }
}

void Models::Look() {
  {
    const std::lock_guard lock(mutex_);
    for (ModelConfig& config : std::exchange(configure_, {}).value_or(std::vector<ModelConfig>()))
      models_[config.name].config = config;
  }
  ReadConfigFile();
  TakeReload();
  for (const auto& [name, model] : models_) LookAt(name);
  Reap();
}

void Models::TakeReload() {
  std::vector<ModelConfig> configs;
  {
    const std::lock_guard lock(mutex_);
    if (reloads_.empty()) return;
    configs = std::move(reloads_.front().first);
    reloading_ = std::move(reloads_.front().second);
    reloads_.pop_front();
  }
  Answer<> replaced = Replace(configs);
  Reloaded done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(reloading_, nullptr);
  }
  if (done) done(std::move(replaced));
}

// A configuration after the first that cannot be served (yet) is tried again now and then.
void Models::ReadConfigFile() {
  if (options_.config_file.empty()) return;
  const auto text = io::ReadFile(options_.config_file, kMostConfig);
  if (!text) return;
  if (*text != config_text_) {
    const bool first = config_text_.empty();
    config_text_ = *text;
    refused_config_.reset();
    config_refusal_.clear();
    auto configs = ParseConfig(*text);
    if (!configs)
      return options_.say(fmt::format("{}: {}: the models stay as they were", options_.config_file,
                                      configs.error().text()));
    if (first) return Configure(std::move(*configs));
    options_.say(fmt::format("{} has changed", options_.config_file));
    refused_config_ = std::move(*configs);
    config_again_ = {};
  }
  if (!refused_config_ || Steady::now() < config_again_) return;
  const auto replaced = Replace(*refused_config_);
  if (replaced) return refused_config_.reset();
  if (config_refusal_ != replaced.error().text)
    options_.say(fmt::format("{}: {}: the models stay as they were", options_.config_file,
                             Readable(replaced.error().text, 400)));
  config_refusal_ = replaced.error().text;
  // What is missing on disk costs nothing to look for; a version that does not load does.
  const bool missing = replaced.error().code == Code::kFailedPrecondition;
  config_again_ = Steady::now() + (missing ? options_.poll : kTryAgain);
}

// First loads what is new, which nobody sees yet, and then exchanges everything at once.
Answer<> Models::Replace(const std::vector<ModelConfig>& configs) {
  std::map<std::string, Loaded> next;
  for (const ModelConfig& config : configs) next[config.name] = TRY(Prepare(config));
  std::vector<std::shared_ptr<Servable>> fresh, gone;
  {
    const std::lock_guard lock(mutex_);
    std::map<std::string, Model, std::less<>> models;
    for (const ModelConfig& config : configs) {
      Model& model = models[config.name];
      if (const auto old = models_.find(config.name); old != models_.end()) {
        model = std::move(old->second);
        if (model.config.base_path != config.base_path) model.tried.clear();
      }
      model.config = config;
      for (auto& [version, servable] : next[config.name]) {
        Loaded::node_type same = model.loaded.extract(version);
        if (!same.empty() && same.mapped() == servable) continue;
        fresh.push_back(servable);
        if (!same.empty()) gone.push_back(std::move(same.mapped()));
      }
      for (auto& [version, servable] : model.loaded) gone.push_back(std::move(servable));
      model.loaded = std::move(next[config.name]);
      for (const auto& [version, servable] : model.loaded) model.tried.erase(version);
    }
    for (auto& [name, model] : models_) {
      if (models.contains(name)) continue;
      for (auto& [version, servable] : model.loaded) gone.push_back(std::move(servable));
    }
    models_ = std::move(models);
    counters_.models_ready.Add(static_cast<double>(fresh.size()) -
                               static_cast<double>(gone.size()));
  }
  for (const auto& servable : gone) {
    Report(servable->model(), servable->version(), State::kUnloading);
    retired_.push_back(servable);
  }
  for (const auto& servable : fresh) Announce(*servable);
  return {};
}

// The versions that a configuration means: those that are loaded already, and new ones.
Answer<Models::Loaded> Models::Prepare(const ModelConfig& config) {
  const auto refused = [&](const std::string& text) {
    return Refused(Code::kFailedPrecondition, fmt::format("model '{}': {}", config.name, text));
  };
  const auto current = models_.find(config.name);
  const bool same = current != models_.end() && current->second.config.base_path == config.base_path;
  Loaded out;
  std::map<int64_t, std::string> found = VersionsBelow(config.base_path);
  std::erase_if(found, [](const auto& entry) { return !MissingOf(serve::Look(entry.second)).empty(); });
  std::set<int64_t> there;
  for (const auto& [version, directory] : found) there.insert(version);
  if (same && (there.empty() || config.policy.kind == VersionPolicy::Kind::kSpecific)) {
    for (const auto& [version, servable] : current->second.loaded) there.insert(version);
  }
  const std::vector<int64_t> wanted = Wanted(config.policy, {there.begin(), there.end()});
  if (wanted.empty()) return refused(fmt::format("no version to serve in {}", config.base_path));
  for (const int64_t version : config.policy.specific) {
    if (!there.contains(version))
      return refused(fmt::format("no version {} in {}", version, config.base_path));
  }
  for (const auto& [label, version] : config.labels) {
    if (!std::ranges::count(wanted, version))
      return refused(fmt::format("label '{}' names version {}, which would not be served",
                                 base::OneLine(label), version));
  }
  for (const int64_t version : wanted) {
    const auto loaded = same ? current->second.loaded.find(version) : Loaded::iterator();
    if (same && loaded != current->second.loaded.end()) {
      out[version] = loaded->second;
      continue;
    }
    TRY(AwaitSettled(found.at(version)));
    auto fresh = Servable::Load(engine_, config.name, version, found.at(version), counters_);
    if (!fresh)
      return Refused(fresh.error().code, fmt::format("{} version {} does not load: {}", config.name,
                                                     version, fresh.error().text));
    out[version] = std::move(*fresh);
  }
  return out;
}

// Waits until nobody has touched the files for a while.
Answer<> Models::AwaitSettled(const std::string& directory) {
  Seen files = serve::Look(directory);
  auto since = AreOld(files, options_.settled) ? Steady::time_point() : Steady::now();
  const auto give_up = Steady::now() + kTryAgain;
  std::unique_lock lock(mutex_);
  while (Steady::now() < since + options_.settled) {
    if (Steady::now() > give_up || stopping_)
      return Refused(Code::kUnavailable, directory + ": its files keep changing");
    changed_.wait_for(lock, std::min(kSoon, options_.settled), [&] { return stopping_; });
    Seen now = serve::Look(directory);
    if (now == files) continue;
    files = std::move(now);
    since = Steady::now();
  }
  return {};
}

void Models::LookAt(const std::string& name) {
  ModelConfig config;
  {
    const std::lock_guard lock(mutex_);
    config = models_.find(name)->second.config;
  }
  const std::map<int64_t, std::string> found = VersionsBelow(config.base_path);
  std::vector<int64_t> whole;  // all of their files are there
  std::map<int64_t, Seen> seen;
  for (const auto& [version, directory] : found) {
    seen[version] = serve::Look(directory);
    if (MissingOf(seen[version]).empty()) whole.push_back(version);
  }
  DropOverwritten(name);
  const std::vector<int64_t> wanted = Wanted(config.policy, whole);
  Model& model = models_.find(name)->second;  // only this thread adds to it or takes away
  std::erase_if(model.tried, [&](const auto& entry) {
    return std::ranges::find(wanted, entry.first) == wanted.end();
  });
  bool all = true;
  for (const int64_t version : wanted) {
    if (model.loaded.contains(version)) continue;
    Tried& tried = model.tried[version];
    const auto now = Steady::now();
    if (tried.files != seen[version]) {
      tried = {.files = seen[version],
               .since = AreOld(seen[version], options_.settled) ? now - options_.settled : now};
      Report(name, version, State::kStart);
    }
    if (now >= tried.since + options_.settled && (!tried.failed || now >= tried.again))
      TryToLoad(name, version, found.at(version));
    all = all && model.loaded.contains(version);
  }
  // Nothing goes before what is to replace it has come; and with nothing left on disk, nothing
  // goes.
  if (all && !wanted.empty()) Retire(name, wanted);
  const std::lock_guard lock(mutex_);
  model.looked = true;
}

void Models::TryToLoad(const std::string& name, int64_t version, const std::string& directory) {
  Model& model = models_.find(name)->second;
  Report(name, version, State::kLoading);
  auto loaded = Servable::Load(engine_, name, version, directory, counters_);
  Tried& tried = model.tried[version];
  if (!loaded) {
    if (!tried.failed || tried.why != loaded.error())
      options_.say(fmt::format("{} version {} does not load: {}", name, version,
                               Readable(loaded.error().text, 400)));
    tried.failed = true;
    tried.again = Steady::now() + kTryAgain;
    tried.why = loaded.error();
    return Report(name, version, State::kEnd, loaded.error());
  }
  {
    const std::lock_guard lock(mutex_);
    model.loaded[version] = *loaded;
    counters_.models_ready.Add(1);
  }
  model.tried.erase(version);
  Announce(**loaded);
}

void Models::Announce(const Servable& loaded) {
  Report(loaded.model(), loaded.version(), State::kAvailable);
  options_.say(fmt::format("{} version {} is served, by TensorFlow {}", loaded.model(),
                           loaded.version(), loaded.tensorflow()));
  for (const auto& [name, signature] : loaded.signatures().by_name) {
    if (!signature.why_alone.empty())
      options_.say(fmt::format("{} version {}: requests to '{}' run one by one: {}", loaded.model(),
                               loaded.version(), base::OneLine(name), signature.why_alone));
  }
}

void Models::Retire(const std::string& name, const std::vector<int64_t>& wanted) {
  std::vector<int64_t> gone;
  {
    const std::lock_guard lock(mutex_);
    Model& model = models_.find(name)->second;
    for (auto it = model.loaded.begin(); it != model.loaded.end();) {
      if (std::ranges::find(wanted, it->first) != wanted.end()) {
        ++it;
        continue;
      }
      gone.push_back(it->first);
      retired_.push_back(std::move(it->second));
      it = model.loaded.erase(it);
      counters_.models_ready.Add(-1);
    }
  }
  for (const int64_t version : gone) Report(name, version, State::kUnloading);
}

// They are no longer what was loaded, and have no runtime: what is on disk now is loaded instead.
void Models::DropOverwritten(const std::string& name) {
  std::vector<int64_t> keep;
  for (const auto& [version, servable] : models_.find(name)->second.loaded) {
    if (!servable->overwritten())
      keep.push_back(version);
    else
      options_.say(fmt::format("{} version {} was overwritten: it is loaded anew", name, version));
  }
  if (keep.size() < models_.find(name)->second.loaded.size()) Retire(name, keep);
}

// Those whose last request has been answered; here, because this thread may wait for theirs.
void Models::Reap() {
  std::vector<std::pair<std::string, int64_t>> gone;
  std::erase_if(retired_, [&](const std::shared_ptr<Servable>& servable) {
    if (servable.use_count() > 1) return false;
    servable->Stop();
    gone.emplace_back(servable->model(), servable->version());
    return true;
  });
  for (const auto& [name, version] : gone) Report(name, version, State::kEnd);
}

void Models::Report(const std::string& name, int64_t version, State state, Status status) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  Model& model = found->second;
  if (state == State::kEnd && model.loaded.contains(version)) return;  // it is back
  if (state != State::kEnd) status = kFine;
  if (state == State::kEnd && status.text.empty()) status = kFine;
  model.status[version] = {.version = version, .state = state, .status = std::move(status)};
  if (model.status.size() > kMostEnded) {
    const auto old = std::ranges::find_if(
        model.status, [](const auto& entry) { return entry.second.state == State::kEnd; });
    if (old != model.status.end()) model.status.erase(old);
  }
}

Answer<> Models::WaitUntilReady(const std::function<bool()>& stop) {
  while (!stop()) {
    std::unique_lock lock(mutex_);
    bool all = !models_.empty() && !configure_;
    for (const auto& [name, model] : models_) {
      if (!model.loaded.empty()) continue;
      all = false;
      for (const auto& [version, status] : model.status) {
        if (status.state == State::kEnd && model.looked)
          return Refused(status.status.code, fmt::format("{} version {} does not load: {}", name,
                                                         version, status.status.text));
      }
    }
    if (all) return {};
  }
  return Refused(Code::kUnavailable, "stopped");
}

Answer<std::shared_ptr<Servable>> Models::Find(std::string_view model,
                                               std::optional<int64_t> version,
                                               std::string_view label) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  if (found == models_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, each] : models_) names.push_back(name);
    return Refused(Code::kNotFound,
                   fmt::format("no model '{}' here; there is: {}", base::OneLine(model),
                               base::OneLine(base::Join(names, ", "), 400)));
  }
  const Model& of = found->second;
  if (!label.empty()) {
    const auto labelled = of.config.labels.find(std::string(label));
    if (labelled == of.config.labels.end())
      return Refused(Code::kInvalidArgument,
                     fmt::format("model '{}' has no version with the label '{}'", found->first,
                                 base::OneLine(label)));
    version = labelled->second;
  }
  if (version) {
    const auto loaded = of.loaded.find(*version);
    if (loaded != of.loaded.end()) return loaded->second;
    return Refused(Code::kNotFound, fmt::format("model '{}' has no version {} that is served",
                                                found->first, *version));
  }
  if (!of.loaded.empty()) return of.loaded.rbegin()->second;
  std::string why;
  for (const auto& [number, status] : of.status) {
    if (!status.status.text.empty())
      why = fmt::format(": version {} does not load: {}", number, status.status.text);
  }
  return Refused(Code::kUnavailable,
                 fmt::format("no version of model '{}' is served{}", found->first, why));
}

std::optional<std::vector<VersionStatus>> Models::StatusOf(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  if (found == models_.end()) return std::nullopt;
  std::vector<VersionStatus> out;
  for (const auto& [version, status] : found->second.status) out.push_back(status);
  std::ranges::reverse(out);
  return out;
}

std::vector<std::string> Models::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, model] : models_) out.push_back(name);
  return out;
}

bool Models::ready() const {
  const std::lock_guard lock(mutex_);
  return !models_.empty() && std::ranges::all_of(models_, [](const auto& entry) {
    const auto& loaded = entry.second.loaded;
    return !loaded.empty() && loaded.rbegin()->second->ready();
  });
}

}  // namespace serve
