// Keeps the models of a server as their configuration and the disk want them, on a thread of its
// own, named "models".
//
// It looks at the base paths every `poll`. A version is loaded when its files are all there and
// nobody has touched them for a while; it is warmed up before it is shown, and only then do those
// go that are not wanted any more, each when its last request has been answered. A version that
// does not load is tried again when its files change; until then, and when a base path is empty or
// gone, those that are loaded go on. Find may be called from any thread.
//
// A new configuration takes effect all at once, when all of its versions are loaded, or not at all.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serve/config.h"
#include "serve/servable.h"
#include "serve/snapshot.h"

namespace serve {

enum class State { kStart = 10, kLoading = 20, kAvailable = 30, kUnloading = 40, kEnd = 50 };

struct VersionStatus {
  int64_t version = 0;
  State state = State::kStart;
  Status status{.code = static_cast<Code>(0), .text = ""};  // why it is at its end
};

class Models {
 public:
  struct Options {
    base::Duration poll = std::chrono::seconds(1);
    base::Duration settled = std::chrono::seconds(1);  // files that nobody touched for so long
    std::string config_file;                           // read again when it changes; empty: none
    std::function<void(const std::string&)> say;       // a line for the person who looks on
  };

  Models(const Engine& engine, Counters& counters, Options options);
  ~Models();  // waits for nobody: what is being asked is answered with an error

  using Reloaded = std::move_only_function<void(Answer<>)>;

  // The first configuration. Its models are there at once; their versions come as they load.
  void Configure(std::vector<ModelConfig> configs);
  // Replaces the configuration. `done` is called once, on another thread: when the new one is
  // served, or with the reason why nothing has changed.
  void Reload(std::vector<ModelConfig> configs, Reloaded done);
  // Answers all reloads that are under way with an error, and all later ones.
  void StopReloads();
  // Waits until each model has a version that answers, or one has none that loads: why.
  Answer<> WaitUntilReady(const std::function<bool()>& stop);

  // Who answers for a model: a version, a label, or with neither the newest.
  Answer<std::shared_ptr<Servable>> Find(std::string_view model, std::optional<int64_t> version,
                                         std::string_view label) const;
  // By version, newest first; nothing if there is no such model.
  std::optional<std::vector<VersionStatus>> StatusOf(std::string_view model) const;
  std::vector<std::string> names() const;
  // That each model has a version that answers.
  bool ready() const;

 private:
  struct Tried {
    Seen files;
    Steady::time_point since;  // that they are like this
    bool failed = false;
    Steady::time_point again;  // a failure may pass
    Status why;
  };
  using Loaded = std::map<int64_t, std::shared_ptr<Servable>>;
  struct Model {
    ModelConfig config;
    Loaded loaded;
    std::map<int64_t, Tried> tried;  // on disk and not loaded; only the thread uses it
    std::map<int64_t, VersionStatus> status;
    bool looked = false;  // at the disk
  };

  void Loop();
  void Look();
  void TakeReload();
  Answer<> Replace(const std::vector<ModelConfig>& configs);
  Answer<Loaded> Prepare(const ModelConfig& config);
  Answer<> AwaitSettled(const std::string& directory);
  void LookAt(const std::string& name);
  void TryToLoad(const std::string& name, int64_t version, const std::string& directory);
  void Announce(const Servable& loaded);
  void DropOverwritten(const std::string& name);
  void Retire(const std::string& name, const std::vector<int64_t>& wanted);
  void Reap();
  void ReadConfigFile();
  void Report(const std::string& name, int64_t version, State state, Status status = {});

  const Engine& engine_;
  Counters& counters_;
  const Options options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Changed by the thread only, which therefore reads what only it changes without the lock.
  std::map<std::string, Model, std::less<>> models_;
  std::optional<std::vector<ModelConfig>> configure_;
  std::deque<std::pair<std::vector<ModelConfig>, Reloaded>> reloads_;
  Reloaded reloading_;  // of the one that the thread works on
  bool no_reloads_ = false;
  bool stopping_ = false;

  std::vector<std::shared_ptr<Servable>> retired_;  // the thread's
  std::string config_text_;                         // likewise, and what follows
  std::optional<std::vector<ModelConfig>> refused_config_;  // of the file, to be tried again
  Steady::time_point config_again_;
  std::string config_refusal_;
  std::jthread thread_;
};

}  // namespace serve
