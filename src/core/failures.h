// What has gone wrong with a job's current replicas, and which of it is the cause of the rest.
#pragma once

#include <optional>
#include <vector>

#include "core/reconcile.h"
#include "core/view.h"

namespace core {

struct Failure {
  api::ReplicaId id;
  Ending ending;
  Meaning meaning = Meaning::kPermanent;  // never kFine or kUnclear
  std::optional<base::Time> started;
  bool inferred = false;       // no ending was seen: the replica is gone, or about to be
  bool silent = false;         // its host does not answer: whoever waits for it is not told
  bool blames_a_peer = false;  // it exited because it lost a peer, by its own words
};

// Endings that somebody must answer, those taken away without an ending among them; earliest first.
std::vector<Failure> FailuresIn(const View& view);

// Which of these endings, all of one gang in one attempt, brought about the others. The earliest,
// but: a disruption began before the ending that shows it (a pod has its grace to die in), so it
// comes first whenever it ended; endings closer together than the clock tells apart have no order,
// and then one that allows a restart wins; and one that only says that a peer was lost yields to
// one with a cause of its own. Where all say so, a member whose host is silent is the cause.
struct Cause {
  const Failure* failure = nullptr;  // null: too early to tell
  base::Time settled;                // when it will be told at the latest
};
Cause FirstCause(const View& view, const std::vector<Failure>& failures, const Policy& policy);

// With parameter servers, where replicas fail alone: until when the judgement of an ending that
// blames a peer waits, because the host of a peer may be silent without anybody knowing it yet.
// Nothing: it is judged now.
std::optional<base::Time> WaitsUntil(const View& view, const Failure& failure,
                                     const Policy& policy);

}  // namespace core
