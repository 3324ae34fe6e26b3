#include "cli/wait_for.h"

#include <algorithm>

#include <fmt/core.h>

#include "cli/findings.h"
#include "cli/progress_line.h"
#include "io/clock.h"
#include "io/terminal.h"

namespace cli {
namespace {

using base::Error;
using base::ErrorKind;
using base::Result;
using base::Time;
using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 200ms;
constexpr base::Duration kAskWhyAgain = 1s;
// A registry that was away for a moment is asked again by the kubelet after 10 and 20 seconds.
constexpr base::Duration kMostForAnImage = 30s;
// Of one that is never asked for, it can only be loaded into the node by hand.
constexpr base::Duration kMostForNever = 5s;

// What was told of the reason so far.
class Reason {
 public:
  // Prints a reason that is new.
  void Tell(const std::string& what, const std::optional<Trouble>& trouble, Time now) {
    const bool image = trouble && IsAboutTheImage(*trouble);
    if (!image) image_since_.reset();
    if (image && !image_since_) image_since_ = now;
    // The kubelet alternates between two reasons for an image.
    const std::string key = image ? "image" : trouble ? trouble->what : "";
    if (key != told_ && trouble)
      fmt::print(stderr, "trainyard: waiting for {}: {}\n", what, InOneLine(*trouble));
    told_ = key;
    text_ = trouble ? InOneLine(*trouble) : "";
  }

  bool IsHopeless(Time now) const {
    const bool never = text_.starts_with("ErrImageNeverPull") || text_.starts_with("InvalidImage");
    return image_since_ && now - *image_since_ > (never ? kMostForNever : kMostForAnImage);
  }
  std::string Suffix() const { return text_.empty() ? "" : ": " + text_; }

 private:
  std::string told_, text_;
  std::optional<Time> image_since_;
};

}  // namespace

Result<> WaitFor(Cluster& cluster, const std::string& what, Time until,
                 const std::function<Result<bool>()>& holds,
                 const std::function<std::optional<Trouble>()>& why) {
  ProgressLine line;
  Reason reason;
  const bool is_seen = io::TerminalOf(2).is_terminal;
  Time say = io::Now() + 2s, ask = io::Now() + kAskWhyAgain;
  while (!TRY(holds())) {
    const Time now = io::Now();
    if (Interrupted()) return std::unexpected(Error(ErrorKind::kUnavailable, "interrupted"));
    if (now >= until || reason.IsHopeless(now)) {
      return std::unexpected(
          Error(ErrorKind::kUnavailable, "gave up waiting for " + what + reason.Suffix()));
    }
    line.Show("waiting for " + what);
    if (!is_seen && now >= say) {
      fmt::print(stderr, "trainyard: waiting for {}\n", what);
      say = Time::max();
    }
    if (why && now >= ask) {
      reason.Tell(what, why(), now);
      ask = io::Now() + kAskWhyAgain;
    }
    cluster.server().Poll(kLookAgain);
  }
  return {};
}

}  // namespace cli
