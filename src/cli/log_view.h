// Turns what replicas print into what a person reads: whole lines with a stable prefix, progress
// bars collapsed, tracebacks never interleaved, lines that many replicas print at once folded into
// one.
//
// No I/O and no clock. One LogView serves all replicas of a job.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/status.h"
#include "base/time.h"
#include "events/progress.h"

namespace cli {

struct LogLine {
  api::ReplicaId id;
  std::string text;
  base::Time time;                  // when it was seen
  std::set<api::ReplicaId> others;  // of the same role, who printed the same within kFold
};

class LogView {
 public:
  // raw: every line as it is, nothing collapsed or folded.
  explicit LogView(bool raw) : raw_(raw) {}

  // Who may say something. A line waits for the same words of others no longer than until all of
  // its role have said them; where nobody is expected, they may be any number.
  void Expect(const std::vector<api::ReplicaId>& replicas);
  void Feed(api::ReplicaId id, std::string_view bytes, base::Time now);
  // Lines that are complete. A traceback comes whole; one that does not end within kPatience comes
  // as it is.
  std::vector<LogLine> Take(base::Time now);
  // Everything, complete or not: the replicas have ended.
  std::vector<LogLine> TakeAll();
  // When to call Take again although nothing was fed.
  std::optional<base::Time> look_again() const;

  // What the lines of a replica said of its progress; nullptr before its first line.
  const events::ProgressTracker* progress(api::ReplicaId id) const;
  // When a replica last printed.
  std::optional<base::Time> last(api::ReplicaId id) const;

 private:
  static constexpr base::Duration kPatience = std::chrono::seconds(1);
  static constexpr base::Duration kFold = std::chrono::milliseconds(300);

  struct Source {
    std::string partial;
    std::vector<std::string> traceback;  // held until it is whole
    bool in_frames = false;
    base::Time since;  // of the first line held
    base::Time last;
    events::ProgressTracker progress;
  };

  void AddLine(api::ReplicaId id, Source& source, std::string_view line, base::Time now);
  void Release(api::ReplicaId id, Source& source, base::Time now);
  void AddReady(LogLine line);
  base::Time DueTime(const LogLine& line) const;

  const bool raw_;
  std::map<api::Role, size_t> expected_;
  std::map<api::ReplicaId, Source> sources_;
  std::vector<LogLine> ready_;  // in the order of their times
};

// "worker/0  text", padded to `width`, in the role's colour. "worker/* x8" where eight replicas
// said it.
std::string Prefixed(const LogLine& line, size_t width, bool colour);
// The width that fits the prefixes of these replicas.
size_t PrefixWidth(const std::vector<api::ReplicaId>& replicas);

}  // namespace cli
