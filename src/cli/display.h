// What a person sees while a job runs: log lines scroll by, a live block stays below them; one
// summary line now and then where the output is no terminal; JSON lines for machines.
//
// Nothing here ever blocks: when the terminal is stopped (Ctrl-S) or a pipe is full, output waits
// in memory, and the job goes on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/tfjob.h"
#include "base/time.h"
#include "cli/live_block.h"
#include "cli/log_view.h"
#include "cli/place.h"
#include "io/terminal.h"

namespace cli {

// What a job's world looks like at the moment, beside its status.
class Scene {
 public:
  virtual ~Scene() = default;
  // "running", "starting"; nothing when the replica is not there.
  virtual std::optional<std::string> StateOf(api::ReplicaId id) const = 0;
  virtual std::map<api::ReplicaId, Used> Measure(base::Time now) = 0;
};

class Display {
 public:
  // quiet: nobody looks, so nothing is shown and nothing costs anything.
  Display(bool quiet, bool json);

  // Something of ours to say between the log lines.
  void Say(const std::string& line);
  void set_note(std::string note) { note_ = std::move(note); }
  void Touch() { stale_ = true; }  // something has changed
  void Resized();

  // Draws if there is news and it is time; `last` draws all there is, without the block, and waits
  // for the output.
  void Show(const api::Job& job, Scene& scene, LogView& lines, base::Time now, bool last);
  // When to call Show again; nothing when only news make it worth while.
  std::optional<base::Time> look_again(const LogView& lines) const;

 private:
  LiveModel Model(const api::Job& job, const Scene& scene, const LogView& lines,
                  base::Time now) const;
  void Print(const LogLine& line, size_t width, base::Time now);
  void Write(bool all);

  const bool quiet_;
  const bool json_;
  io::Terminal terminal_;

  std::map<api::ReplicaId, Used> samples_;
  std::vector<double> losses_;
  std::vector<std::string> said_;
  std::string note_;
  std::string pending_;  // not written yet
  int block_lines_ = 0;
  bool stale_ = true;
  base::Time drawn_, sampled_, summary_;
};

}  // namespace cli
