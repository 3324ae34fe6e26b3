#include "backend/cluster/pacer.h"

#include <algorithm>
#include <vector>

namespace backend::cluster {
namespace {

constexpr double kFirstWindow = 32;
constexpr double kLargestWindow = 64;
// Slow answers alone do not make it smaller than this: whoever keeps the server busy may be
// somebody else, who does not yield, and what we get done is our share of what it has under way. A
// larger share of a server that is busy is of no use: scheduler and kubelets get less, so pods
// exist sooner and run later. A server that cannot take as many says so (429); by default it takes
// 200 writes at once.
constexpr double kSmallestSlowWindow = 16;
constexpr size_t kIdleAtOnce = 4;
constexpr base::Duration kPatience = std::chrono::seconds(30);
constexpr base::Duration kPause = std::chrono::seconds(1);
constexpr base::Duration kLongestPause = std::chrono::seconds(30);
// Answers slower than so many times a quick one, and by more than this, mean a busy server.
constexpr int kSlow = 4;
constexpr base::Duration kSlack = std::chrono::milliseconds(25);

bool IsOverload(const base::Result<kube::Response>& answer) {
  return !answer || answer->status == 429 || answer->status == 503 || answer->status == 504;
}

}  // namespace

struct Pacer::Shared {
  struct Answered {
    base::Time sent;
    bool overload = false;
    std::optional<base::Duration> retry_after;
  };
  size_t under_way = 0;
  size_t idle_under_way = 0;       // of these
  std::vector<Answered> answered;  // since the last Advance
};

Pacer::Pacer(kube::Transport& transport)
    : transport_(transport), window_(kFirstWindow), shared_(std::make_shared<Shared>()) {}
Pacer::~Pacer() = default;

size_t Pacer::window() const { return static_cast<size_t>(window_); }

void Pacer::Submit(const std::string& name_space, Make make, kube::Transport::Answer answer,
                   Priority priority) {
  urgent_.Push(name_space, {std::move(make), std::move(answer)}, priority);
}

void Pacer::IdleDoor::Send(kube::Request request, base::Duration, Answer answer) {
  pacer_.idle_.push_back(
      {[request = std::move(request)]() mutable { return std::move(request); }, std::move(answer)});
}

std::unique_ptr<kube::Stream> Pacer::IdleDoor::Open(kube::Request, base::Duration, Data, Answer) {
  CHECK(false);
}

void Pacer::Advance(base::Time now) {
  Learn(now);
  if (paused_until_ && now < *paused_until_) return;
  paused_until_.reset();
  while (shared_->under_way < window() && SendNext(now)) {
  }
}

std::optional<base::Time> Pacer::next() const {
  return waiting() > 0 ? paused_until_ : std::nullopt;
}

bool Pacer::SendNext(base::Time now) {
  if (std::optional<Waiting> one = urgent_.Pop()) {
    Send(std::move(*one), false, now);
    return true;
  }
  if (idle_.empty() || shared_->idle_under_way >= kIdleAtOnce) return false;
  Send(std::move(idle_.front()), true, now);
  idle_.pop_front();
  return true;
}

void Pacer::Send(Waiting one, bool idle, base::Time now) {
  shared_->under_way += 1;
  shared_->idle_under_way += idle;
  transport_.Send(one.make(), kPatience,
                  [shared = shared_, idle, now,
                   answer = std::move(one.answer)](base::Result<kube::Response> response) mutable {
                    shared->under_way -= 1;
                    shared->idle_under_way -= idle;
                    shared->answered.push_back({now, IsOverload(response),
                                                response ? response->retry_after : std::nullopt});
                    answer(std::move(response));
                  });
}

void Pacer::Learn(base::Time now) {
  for (const Shared::Answered& one : std::exchange(shared_->answered, {})) {
    const base::Duration took = std::max(now - one.sent, base::Duration(1));
    if (one.overload) {
      paused_until_ = now + std::min(one.retry_after.value_or(kPause), kLongestPause);
      window_ = std::max(1.0, window_ / 2);
      reduced_at_ = now;
      continue;
    }
    // The quickest answer of late; forgotten slowly, since a server may become slower for good.
    quick_ = quick_.count() == 0 ? took : std::min(quick_ + quick_ / 256, took);
    slow_ = took > quick_ * kSlow + kSlack;
    if (slow_) {
      // Once for each window of answers: they all tell of the same crowd.
      if (one.sent >= reduced_at_) {
        window_ = std::max(std::min(window_, kSmallestSlowWindow), window_ * 0.8);
        reduced_at_ = now;
      }
    } else {
      window_ = std::min(kLargestWindow, window_ + 1 / window_);
    }
  }
}

}  // namespace backend::cluster
