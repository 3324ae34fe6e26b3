// A request is two entries on the agenda: it arrives, and its answer comes. A stream is pumped:
// each change of the store makes one entry that hands out all the lines there are by then, so that
// lines keep their order whatever the delays.
#include "backend/sim/sim_transport.h"

#include <algorithm>
#include <list>
#include <utility>

#include <fmt/core.h>

namespace backend::sim {

using base::Duration;
using base::Error;
using base::ErrorKind;
using base::Result;
using base::Time;
using kube::Request;
using kube::Response;
using namespace std::chrono_literals;

const char* Name(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kKilledBefore:
      return "killed-before";
    case Fault::kKilledStored:
      return "killed-stored";
    case Fault::kKilledAnswered:
      return "killed-answered";
    case Fault::kAnswerLost:
      return "answer-lost";
    case Fault::kErrorBefore:
      return "error-before";
    case Fault::kErrorAfter:
      return "error-after";
    case Fault::kConflict:
      return "conflict";
    case Fault::kThrottled:
      return "throttled";
    case Fault::kGone:
      return "gone";
    case Fault::kStall:
      return "stall";
  }
  return "";
}

namespace {

constexpr Duration kBookmarkEvery = 60s;

std::unexpected<Error> Broken(const char* how) {
  return std::unexpected(Error(ErrorKind::kUnavailable, how));
}

Response Failure(int code, std::string reason, std::string message) {
  return ResponseOf({.code = code, .reason = std::move(reason), .message = std::move(message)});
}

Response InternalFailure() {
  return Failure(500, "InternalError", "Internal error occurred: simulated");
}

// As its own concurrency limit answers.
Response Throttled() {
  Response response = Failure(429, "TooManyRequests", "Too many requests, please try again later.");
  response.retry_after = 1s;
  return response;
}

}  // namespace

struct OpenStream {
  kube::Transport::Data data;
  kube::Transport::Answer end;
  Duration silence;
  Watcher watcher;
  bool begun = false;
  bool closed = false;
  bool pumping = false;  // an entry on the agenda will
  Time heard;
};

struct SimTransport::State : std::enable_shared_from_this<SimTransport::State> {
  using StreamPtr = std::shared_ptr<OpenStream>;
  struct Call {
    Answer answer;
    bool done = false;
  };

  World world;
  std::function<void()> killed;
  std::function<void(int32_t)> on_write;
  Weather weather;
  Plan plan;
  std::optional<Version> stale;
  bool stale_lists = false;
  Time stalled_until;
  bool dead = false;
  bool news = false;
  std::list<std::weak_ptr<OpenStream>> streams;

  State(World in, std::function<void()> on_kill) : world(in), killed(std::move(on_kill)) {}

  Duration Delay() {
    Duration delay = world.random.Between(weather.quickest, weather.slowest);
    if (world.agenda.now() < stalled_until) delay += stalled_until - world.agenda.now();
    return delay;
  }

  // Does it when its time has come, if the process still lives.
  template <typename Deed>
  void Later(Duration in, Deed deed) {
    world.agenda.In(in, [weak = weak_from_this(), deed = std::move(deed)]() mutable {
      if (const auto self = weak.lock(); self && !self->dead) deed(*self);
    });
  }

  void Kill() {
    if (std::exchange(dead, true)) return;
    world.agenda.In(0s, [killed = std::exchange(killed, nullptr)] {
      if (killed) killed();
    });
  }

  // ---- Requests

  Fault DrawnFault(bool write) {
    Random& random = world.random;
    if (random.Chance(weather.failed)) {
      return random.Chance(50) ? Fault::kErrorBefore : Fault::kErrorAfter;
    }
    if (random.Chance(weather.throttled)) return Fault::kThrottled;
    if (write && random.Chance(weather.refused)) return Fault::kConflict;
    return random.Chance(weather.lost) ? Fault::kAnswerLost : Fault::kNone;
  }

  void Come(const std::shared_ptr<Call>& call, Result<Response> response) {
    if (std::exchange(call->done, true)) return;
    news = true;
    std::exchange(call->answer, nullptr)(std::move(response));
  }

  void Send(Request request, Duration timeout, Answer answer) {
    if (dead) return;
    auto call = std::make_shared<Call>(std::move(answer));
    Later(timeout, [call](State& self) { self.Come(call, Broken("timed out")); });
    const std::optional<Target> target = TargetOf(request.path);
    if (weather.no_leases && target && target->resource == &kLeases) return;
    const bool write = Traffic::IsWrite(request);
    Fault fault = DrawnFault(write);
    const bool request_lost = fault == Fault::kAnswerLost && world.random.Chance(50);
    if (write) {
      const int32_t number = world.traffic.Sent(request);
      if (on_write) on_write(number);
      if (number == plan.write) fault = plan.fault;
    }
    if (fault == Fault::kKilledBefore) return Kill();
    if (fault == Fault::kStall) Stall(30s);
    if (fault == Fault::kGone) CutStreams(true);
    if (request_lost && fault == Fault::kAnswerLost) {
      return Later(Delay(), [call](State& self) { self.Come(call, Broken("connection reset")); });
    }
    Duration delay = Delay();
    if (world.random.Chance(weather.slow_answers)) delay += world.random.Between(1s, 60s);
    // On its way now: it arrives even if the sender dies.
    const auto pass = std::make_shared<Request>(std::move(request));
    world.agenda.In(delay, [weak = weak_from_this(), w = world, pass, call, fault] {
      Arrive(weak, w, *pass, call, fault);
    });
  }

  static void Arrive(const std::weak_ptr<State>& weak, const World& world, const Request& request,
                     const std::shared_ptr<Call>& call, Fault fault) {
    const std::shared_ptr<State> self = weak.lock();
    Result<Response> response = Broken("connection reset");
    switch (fault) {
      case Fault::kErrorBefore:
        response = InternalFailure();
        break;
      case Fault::kThrottled:
        response = Throttled();
        break;
      case Fault::kConflict:
        response = Failure(409, "Conflict", "Operation cannot be fulfilled: simulated");
        break;
      default: {
        const bool read = request.method == "GET";
        const std::optional<Target> target = TargetOf(request.path);
        const bool list = read && target && target->name.empty();
        const bool stale = list && self && self->stale_lists;
        response = read ? world.server.Serve(request, stale ? self->stale : std::nullopt)
                        : world.traffic.Served(world.server, request);
      }
    }
    if (!self || self->dead) return;
    if (fault == Fault::kKilledStored) return self->Kill();
    if (fault == Fault::kErrorAfter) response = InternalFailure();
    if (fault == Fault::kAnswerLost) response = Broken("connection reset");
    self->Later(self->Delay(), [call, fault, response = std::move(response)](State& then) mutable {
      if (fault == Fault::kKilledAnswered && !call->done) {
        const auto alive = then.shared_from_this();
        then.Kill();  // what it sends in answer to this does not leave any more
      }
      then.Come(call, std::move(response));
    });
  }

  // ---- Streams

  void Begin(const StreamPtr& stream, const Request& request) {
    if (stream->closed) return;
    Outcome<Watcher> watcher = world.server.Watch(request, stale);
    if (!watcher) return End(stream, ResponseOf(watcher.error()));
    stream->watcher = *std::move(watcher);
    stream->begun = true;
    Hear(stream);
    Pump(stream);
    if (stream->watcher.bookmarks) BookmarkIn(stream, kBookmarkEvery);
    if (const auto lasts = stream->watcher.lasts) {
      if (stream->watcher.bookmarks && *lasts > 4s) BookmarkIn(stream, *lasts - 2s);
      Later(*lasts, [stream](State& self) {
        self.Give(stream);
        self.End(stream, Response{.status = 200});
      });
    }
  }

  void Hear(const StreamPtr& stream) {
    stream->heard = world.agenda.now();
    Later(stream->silence, [stream](State& self) {
      if (self.world.agenda.now() - stream->heard >= stream->silence) {
        self.End(stream, Broken("nothing came for too long"));
      }
    });
  }

  void BookmarkIn(const StreamPtr& stream, Duration in) {
    Later(in, [stream](State& self) {
      if (stream->closed) return;
      self.Give(stream);
      if (!stream->closed && !self.weather.no_bookmarks && !stream->watcher.broken) {
        self.Data(stream, self.world.server.Bookmark(stream->watcher));
      }
      self.BookmarkIn(stream, kBookmarkEvery);
    });
  }

  void PumpAll() {
    for (const auto& weak : streams) {
      if (const StreamPtr stream = weak.lock(); stream && stream->begun) Pump(stream);
    }
    std::erase_if(streams, [](const auto& weak) { return weak.expired(); });
  }

  void Pump(const StreamPtr& stream) {
    if (stream->closed || std::exchange(stream->pumping, true)) return;
    Duration delay = Delay();
    if (world.random.Chance(weather.held)) delay += world.random.Between(1s, 60s);
    Later(delay, [stream](State& self) {
      stream->pumping = false;
      self.Give(stream);
    });
  }

  // Hands out every line that there is.
  void Give(const StreamPtr& stream) {
    Random& random = world.random;
    const Version until = stale.value_or(world.server.store().version());
    while (!stream->closed && !dead) {
      const std::optional<std::string> line = world.server.Next(stream->watcher, until);
      if (!line) break;
      if (random.Chance(weather.cut)) {
        Data(stream, std::string_view(*line).substr(0, line->size() / 2));
        return End(stream, Broken("connection reset"));
      }
      if (random.Chance(weather.ended)) return End(stream, Response{.status = 200});
      if (random.Chance(weather.gone)) return TellGone(stream);
      Data(stream, *line);
      if (random.Chance(weather.doubled)) Data(stream, *line);
    }
    if (stream->watcher.broken && stream->watcher.before.empty()) {
      End(stream, Response{.status = 200});
    }
  }

  // In two pieces, as networks do.
  void Data(const StreamPtr& stream, std::string_view bytes) {
    if (stream->closed || dead) return;
    news = true;
    Hear(stream);
    const size_t cut = bytes.size() * static_cast<size_t>(world.random.Below(100)) / 100;
    if (cut > 0) stream->data(bytes.substr(0, cut));
    if (!stream->closed && !dead) stream->data(bytes.substr(cut));
  }

  void TellGone(const StreamPtr& stream) {
    Data(stream, ErrorEvent(Expired("too old resource version: 1 (2)").error()));
    End(stream, Response{.status = 200});
  }

  void End(const StreamPtr& stream, Result<Response> how) {
    if (dead || std::exchange(stream->closed, true)) return;
    news = true;
    std::exchange(stream->end, nullptr)(std::move(how));
  }

  void CutStreams(bool gone) {
    if (gone) world.server.Compact(world.server.store().version());
    for (const auto& weak : std::list(streams)) {
      Later(Delay(), [weak, gone](State& self) {
        const StreamPtr stream = weak.lock();
        if (!stream || stream->closed) return;
        gone ? self.TellGone(stream) : self.End(stream, Broken("connection reset"));
      });
    }
  }

  void Stall(Duration duration) {
    stalled_until = std::max(stalled_until, world.agenda.now() + duration);
  }
};

namespace {

struct Handle : kube::Stream {
  explicit Handle(std::shared_ptr<OpenStream> open) : stream(std::move(open)) {}
  ~Handle() override { stream->closed = true; }
  std::shared_ptr<OpenStream> stream;
};

}  // namespace

SimTransport::SimTransport(World world, std::function<void()> killed)
    : state_(std::make_shared<State>(world, std::move(killed))) {
  world.server.Listen([weak = std::weak_ptr(state_)](const Change&) {
    if (const auto self = weak.lock(); self && !self->dead) self->PumpAll();
  });
}

SimTransport::~SimTransport() { state_->dead = true; }

void SimTransport::Send(Request request, Duration timeout, Answer answer) {
  state_->Send(std::move(request), timeout, std::move(answer));
}

std::unique_ptr<kube::Stream> SimTransport::Open(Request request, Duration silence, Data data,
                                                 Answer end) {
  auto stream = std::make_shared<OpenStream>(
      OpenStream{.data = std::move(data), .end = std::move(end), .silence = silence});
  if (!state_->dead) {
    state_->streams.push_back(stream);
    state_->Later(state_->Delay(), [stream, request = std::move(request)](State& self) {
      self.Begin(stream, request);
    });
  }
  return std::make_unique<Handle>(stream);
}

void SimTransport::SetWeather(const Weather& weather) { state_->weather = weather; }
void SimTransport::SetPlan(Plan plan) { state_->plan = plan; }
void SimTransport::OnWrite(std::function<void(int32_t)> hook) {
  state_->on_write = std::move(hook);
}
void SimTransport::CutStreams(bool gone) { state_->CutStreams(gone); }
void SimTransport::Stall(Duration duration) { state_->Stall(duration); }
bool SimTransport::TakeNews() { return std::exchange(state_->news, false); }

void SimTransport::SetStale(std::optional<Version> version, bool lists) {
  state_->stale = version;
  state_->stale_lists = lists;
  state_->PumpAll();
}

}  // namespace backend::sim
