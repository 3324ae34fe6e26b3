// Sends requests as fast as the server takes them, and fairly.
//
// How many are under way at once is learned from the server's answers: more while they come
// quickly, fewer when they slow down, and a pause when it says that it has too many (429, 503).
// Whose turn it is goes round by namespace, so that ten thousand jobs of one do not hold up another
// one's only job. What can wait (events) goes when nothing else does.
//
// One thread. Nothing is sent but from Advance.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backend/cluster/fair_queue.h"
#include "base/time.h"
#include "kube/transport.h"

namespace backend::cluster {

class Pacer {
 public:
  using Make = std::move_only_function<kube::Request()>;

  explicit Pacer(kube::Transport& transport);
  ~Pacer();

  // `make` is called when the request's turn has come, so that what waits costs no memory. The
  // namespace's requests that wait are sent by priority.
  void Submit(const std::string& name_space, Make make, kube::Transport::Answer answer,
              Priority priority = Priority::kNormal);
  // A door for what can wait: its requests go when no other waits, and few at a time, so that one
  // that comes then finds the server free. They have no time limit of their own while they wait,
  // and streams are not opened through it.
  kube::Transport& idle() { return idle_door_; }

  void Advance(base::Time now);
  // When Advance has something to do that no answer announces: the end of a pause.
  std::optional<base::Time> next() const;

  size_t waiting() const { return urgent_.size() + idle_.size(); }
  // The server has more to do than it can do at once, for us or for others: requests wait that
  // cannot be sent yet, not only such that can wait, or the last answer was slow.
  bool IsBusy() const { return urgent_.size() > 0 || slow_; }
  // A namespace's requests that can be sent before long are few enough to ask for more.
  bool HasRoom(const std::string& name_space) const { return urgent_.size(name_space) < window(); }
  // The same for requests with kFirst, which wait for each other only.
  bool HasRoomFirst(const std::string& name_space) const {
    return urgent_.size_first(name_space) < window();
  }
  size_t window() const;

 private:
  struct Waiting {
    Make make;
    kube::Transport::Answer answer;
  };
  struct Shared;
  class IdleDoor : public kube::Transport {
   public:
    explicit IdleDoor(Pacer& pacer) : pacer_(pacer) {}
    void Send(kube::Request request, base::Duration timeout, Answer answer) override;
    std::unique_ptr<kube::Stream> Open(kube::Request request, base::Duration silence, Data data,
                                       Answer end) override;

   private:
    Pacer& pacer_;
  };

  bool SendNext(base::Time now);
  void Send(Waiting one, bool idle, base::Time now);
  void Learn(base::Time now);

  kube::Transport& transport_;
  FairQueue<Waiting> urgent_;  // by namespace
  std::deque<Waiting> idle_;
  IdleDoor idle_door_{*this};
  double window_;
  base::Duration quick_{0};  // how fast the server answers when it is not busy; 0: not known yet
  bool slow_ = false;        // the last answer, compared with that
  std::optional<base::Time> paused_until_;
  base::Time reduced_at_;
  std::shared_ptr<Shared> shared_;  // with the answers under way, which may outlive this
};

}  // namespace backend::cluster
