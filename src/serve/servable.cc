#include "serve/servable.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <pthread.h>

#include "base/strings.h"
#include "io/files.h"
#include "serve/row_check.h"
#include "serve/warmup.h"

namespace serve {
namespace {

using tensor::Tensor;

constexpr size_t kMostModelFile = size_t{2} << 30;  // what protobuf can read
constexpr base::Duration kQuickRun = std::chrono::milliseconds(10);
constexpr base::Duration kFirstRetry = std::chrono::milliseconds(500);
constexpr base::Duration kLastRetry = std::chrono::seconds(30);

// A small model loses more by sharing its work between threads than it gains: one of 2 MB runs six
// times as often on one thread as on two.
constexpr int64_t kSmallModel = 4 << 20;

int ThreadsFor(const Seen& files) {
  int64_t size = 0;
  for (const FileSeen& file : files) size += file.size;
  return size <= kSmallModel ? 1
                             : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

std::string FrameOf(const Signature& signature,
                    std::span<const std::vector<Tensor>* const> requests) {
  std::string frame(tensor::kHeadBytes, '\0');
  tensor::AppendRun(signature.index, requests, frame);
  return frame;
}

// A run on this thread's time; kUnavailable if the runtime did not survive it or takes too long.
Answer<std::vector<Tensor>> RunNow(Runtime& runtime, const Signature& signature,
                                   const std::vector<Tensor>& inputs, Steady::time_point until) {
  auto promise = std::make_shared<std::promise<Answer<std::vector<Tensor>>>>();
  auto answer = promise->get_future();
  const std::vector<Tensor>* const of_one = &inputs;
  runtime.Run(FrameOf(signature, {&of_one, 1}),
              [promise](auto outputs) { promise->set_value(std::move(outputs)); });
  if (answer.wait_until(until) != std::future_status::ready)
    return Refused(Code::kUnavailable, "no answer in time");
  return answer.get();
}

// Runs one by one; false when the runtime did not survive it, or takes too long.
bool WarmUp(Runtime& runtime, const Warmup& warmup, base::Duration patience) {
  const auto until = Steady::now() + patience;
  return std::ranges::all_of(warmup.runs, [&](const WarmupRun& run) {
    const auto answer = RunNow(runtime, *run.signature, run.inputs, until);
    return answer || answer.error().code != Code::kUnavailable;
  });
}

}  // namespace

Servable::Servable(const Engine& engine, std::string model, int64_t version, Counters& counters)
    : engine_(engine),
      model_(std::move(model)),
      version_(version),
      counts_(counters.Of(model_)),
      batcher_(engine.limits) {}

Servable::~Servable() { Stop(); }

void Servable::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (starting_) starting_->Kill();
    changed_.notify_all();
  }
  if (keeper_.joinable()) keeper_.join();
  std::vector<std::shared_ptr<Runtime>> runtimes;
  {
    const std::lock_guard lock(mutex_);
    runtimes.swap(ended_);
    for (std::shared_ptr<Runtime>* each : {&runtime_, &starting_})
      if (*each) runtimes.push_back(std::exchange(*each, nullptr));
  }
  // Without the lock: the callbacks of a runtime that ends take it.
  for (const auto& runtime : runtimes) runtime->Stop();
  std::vector<Pending> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = batcher_.TakeAll();
  }
  for (Pending& each : waiting) Fail(each, {Code::kUnavailable, "the model is being unloaded"});
}

Answer<std::shared_ptr<Servable>> Servable::Load(const Engine& engine, std::string model,
                                                 int64_t version, const std::string& directory,
                                                 Counters& counters) {
  std::shared_ptr<Servable> out(new Servable(engine, std::move(model), version, counters));
  const Seen files = Look(directory);
  auto snapshot = Snapshot::Of(directory, files);
  if (!snapshot) return Refused(Code::kUnavailable, snapshot.error().text());
  out->files_ = std::move(*snapshot);
  const std::string& held = out->files_.path().empty() ? directory : out->files_.path();
  auto text = io::ReadFile(held + "/saved_model.pb", kMostModelFile);
  if (!text) return Refused(Code::kNotFound, text.error().text());
  auto signatures = ReadSignatures(*text);
  if (!signatures) return Refused(Code::kInvalidArgument, signatures.error().text());
  out->signatures_ = std::move(*signatures);
  out->directory_ = held;
  out->threads_ = engine.threads > 0 ? engine.threads : ThreadsFor(files);
  for (const auto& [name, signature] : out->signatures_.by_name) out->counts_.Signature(name);
  TRY(out->StartRuntime());
  // What was loaded must be what was looked at, and not a mixture with what somebody wrote
  // meanwhile.
  if (Look(directory) != files)
    return Refused(Code::kUnavailable, "the files changed while they were loaded");
  out->keeper_ = std::jthread([self = out.get()] {
    pthread_setname_np(pthread_self(), "keeper");
    self->Keep();
  });
  return out;
}

Answer<> Servable::StartRuntime() {
  const auto started = TryToStart();
  const std::lock_guard lock(mutex_);
  if (starting_) ended_.push_back(std::move(starting_));
  starting_.reset();
  return started;
}

Answer<> Servable::TryToStart() {
  const Warmup warmup = WarmupOf(signatures_, directory_);
  const tensor::Load load{.directory = directory_,
                          .temporary = !files_.path().empty(),
                          .threads = threads_,
                          .signatures = signatures_.ForRuntime()};
  bool warm = true;
  while (true) {
    auto started = Runtime::Start(
        {.program = engine_.program, .libraries = engine_.libraries, .runs = engine_.runs},
        [this] { Ended(); });
    if (!started) return Refused(Code::kInternal, started.error().text());
    const std::shared_ptr<Runtime> runtime = std::move(*started);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return Refused(Code::kUnavailable, "the model is being unloaded");
      if (starting_) ended_.push_back(std::move(starting_));
      starting_ = runtime;
    }
    tensorflow_ = TRY(runtime->Load(load, engine_.load_time));
    if (warm && !WarmUp(*runtime, warmup, engine_.run_time)) {
      if (warmup.recorded)
        return Refused(Code::kInternal, "the model does not survive its own warm-up requests");
      warm = false;  // zeros were our idea: without them then
      continue;
    }
    if (!CheckRows(*runtime)) continue;
    const std::lock_guard lock(mutex_);
    starting_.reset();
    runtime_ = runtime;
    broken_ = false;
    running_ = 0;
    failures_ = 0;
    return {};
  }
}

// Decides for each signature, once, whether requests may share a batch. False if the runtime did not
// survive it: on with the next one, without the signature that it ended with.
bool Servable::CheckRows(Runtime& runtime) {
  for (auto& [name, signature] : signatures_.by_name) {
    if (!signature.has_rows || !signature.trouble.empty() || signature.batches ||
        !signature.why_alone.empty() || engine_.limits.rows <= 1)
      continue;
    if (engine_.batch_all) {
      signature.batches = true;
      continue;
    }
    if (!signature.effect.empty()) {
      signature.why_alone = "it has side effects: " + base::OneLine(signature.effect);
      continue;
    }
    bool survived = true;
    const auto until = Steady::now() + engine_.check_time;
    const auto run = [&](std::vector<Tensor> inputs) {
      auto outputs = RunNow(runtime, signature, inputs, until + std::chrono::seconds(1));
      survived = outputs || outputs.error().code != Code::kUnavailable;
      if (!survived) runtime.Kill();
      return outputs;
    };
    signature.why_alone = WhyNotRowWise(signature, engine_.limits.rows, run, until);
    signature.batches = signature.why_alone.empty();
    if (!survived) return false;
  }
  return true;
}

void Servable::Ended() {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
}

void Servable::Submit(const Signature& signature, std::vector<Tensor> inputs,
                      std::optional<int64_t> rows, Caller caller, Done done) {
  Pending pending{.signature = &signature,
                  .inputs = std::move(inputs),
                  .rows = rows.value_or(0),
                  .arrived = Steady::now(),
                  .caller = std::move(caller),
                  .done = std::move(done)};
  bool taken = false, stopping = false;
  {
    const std::lock_guard lock(mutex_);
    stopping = stopping_;
    taken = !stopping && batcher_.Add(pending);
    counts_.waiting.Set(static_cast<double>(batcher_.waiting()));
  }
  if (stopping) return Fail(pending, {Code::kUnavailable, "the model is being unloaded"});
  if (!taken)
    return Fail(pending, {Code::kResourceExhausted,
                          fmt::format("{} requests wait for this model already: try again later",
                                      engine_.limits.waiting)});
  Dispatch();
}

void Servable::Dispatch() {
  while (true) {
    std::vector<Pending> batch, dropped;
    std::shared_ptr<Runtime> runtime;
    {
      const std::lock_guard lock(mutex_);
      // One more than it works on: it finds the next one there when it is done. Not if runs take
      // long: a request that is there can no longer be dropped.
      const int most = small_ && quick_ ? engine_.runs + 1 : engine_.runs;
      if (!runtime_ || broken_ || running_ >= most) return;
      batch = batcher_.Take(Steady::now(), dropped);
      counts_.waiting.Set(static_cast<double>(batcher_.waiting()));
      if (batch.empty()) {
        if (batcher_.look_again()) changed_.notify_all();
      } else {
        if (running_++ == 0) busy_since_ = Steady::now();
        runtime = runtime_;
      }
    }
    Drop(std::move(dropped));
    if (batch.empty()) return;
    Send(*runtime, std::move(batch));
  }
}

void Servable::Drop(std::vector<Pending> requests) {
  const auto now = Steady::now();
  for (Pending& each : requests)
    Fail(each, WhyDropped(each, now).value_or(Status{Code::kCancelled, "the client has gone"}));
}

void Servable::CountRefused(const Signature& signature, Code code) const {
  counts_.all->Failed(model_, signature.name, code);
}

void Servable::Fail(Pending& request, Status status) {
  CountRefused(*request.signature, status.code);
  request.done(std::unexpected(std::move(status)));
}

void Servable::Send(Runtime& runtime, std::vector<Pending> batch) {
  std::vector<const std::vector<Tensor>*> requests;
  int64_t rows = 0;
  for (const Pending& each : batch) {
    requests.push_back(&each.inputs);
    rows += each.rows;
  }
  const Signature& signature = *batch.front().signature;
  counts_.Signature(signature.name).rows.Observe(static_cast<double>(std::max<int64_t>(rows, 1)));
  std::string frame = FrameOf(signature, requests);
  small_ = frame.size() <= runtime.small_frame();
  runtime.Run(std::move(frame),
              [self = shared_from_this(), batch = std::move(batch),
               sent = Steady::now()](Answer<std::vector<Tensor>> answer) mutable {
                self->quick_ = Steady::now() - sent < kQuickRun;
                self->Finish(std::move(batch), std::move(answer));
              });
}

void Servable::Finish(std::vector<Pending> batch, Answer<std::vector<Tensor>> answer) {
  const bool crashed = !answer && answer.error().code == Code::kUnavailable;
  const bool not_begun = !answer && answer.error().code == Code::kAborted;
  std::optional<std::vector<std::vector<Tensor>>> parts;
  if (answer && batch.size() > 1) {
    std::vector<int64_t> rows;
    for (const Pending& each : batch) rows.push_back(each.rows);
    parts = Share(*answer, rows);
  }
  // Of several, one may have been wrong, or the rows of the output are not those of the input: each
  // has a run of its own then, unless a second run would do something twice.
  const bool twice = batch.front().signature->effect.empty();
  const bool again = not_begun || (batch.size() > 1 && !parts && !crashed && twice);
  if (answer && batch.size() > 1 && !parts && !again)
    answer = Refused(Code::kInternal,
                     "its outputs do not have a row for each row of a batch: serve without --batch");
  {
    const std::lock_guard lock(mutex_);
    if (!crashed && !not_begun) --running_;
    busy_since_ = Steady::now();
    if (again) batcher_.PutBack(std::move(batch), !not_begun);
  }
  Dispatch();  // first of all: the runtime waits
  if (again) return;
  Counters::OfSignature& counts = counts_.Signature(batch.front().signature->name);
  const auto now = Steady::now();
  for (size_t i = 0; i < batch.size(); ++i) {
    counts.seconds.Observe(std::chrono::duration<double>(now - batch[i].arrived).count());
    if (answer) {
      counts.answered.Add();
      counts_.ok.Add();
    } else {
      CountRefused(*batch[i].signature, answer.error().code);
    }
    if (parts) {
      batch[i].done(std::move((*parts)[i]));
    } else if (i + 1 == batch.size()) {
      batch[i].done(std::move(answer));
    } else {
      batch[i].done(answer);
    }
  }
}

// Looks every second, when the runtime has ended, and when a batch has waited long enough. Requests
// whose time is over are answered here if the model is not free before.
void Servable::Keep() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = Steady::now();
    auto until = now + std::chrono::seconds(1);
    if (broken_) until = std::min(until, retry_);
    if (const auto look = batcher_.look_again()) until = std::min(until, *look);
    if (until > now) changed_.wait_until(lock, until);
    if (stopping_) return;
    // Those that nobody has any more go, without the lock: their last words need it.
    const auto unused =
        std::ranges::partition(ended_, [](const auto& runtime) { return runtime.use_count() > 1; });
    std::vector<std::shared_ptr<Runtime>> gone(unused.begin(), unused.end());
    ended_.erase(unused.begin(), unused.end());
    std::vector<Pending> dropped = batcher_.TakeDropped(Steady::now());
    lock.unlock();
    gone.clear();
    Drop(std::move(dropped));
    lock.lock();
    if (broken_ && Steady::now() >= retry_) {
      lock.unlock();
      StartAgain();
      lock.lock();
      continue;
    }
    if (runtime_ && running_ > 0 && Steady::now() > busy_since_ + engine_.run_time)
      runtime_->Kill();  // it hangs; Ended follows
    lock.unlock();
    Dispatch();
    lock.lock();
  }
}

void Servable::StartAgain() {
  {
    const std::lock_guard lock(mutex_);
    if (runtime_) ended_.push_back(std::move(runtime_));
    runtime_.reset();
  }
  counts_.restarts.Add();
  const bool overwritten = files_.Overwritten();
  const auto started =
      overwritten ? Refused(Code::kUnavailable, "the files of this version were overwritten")
                  : StartRuntime();
  if (!started) {
    std::vector<Pending> waiting;
    {
      const std::lock_guard lock(mutex_);
      overwritten_ = overwritten;
      const auto pause =
          std::min<base::Duration>(kFirstRetry * (1 << std::min(failures_++, 6)), kLastRetry);
      retry_ = Steady::now() + pause;
      broken_ = true;
      waiting = batcher_.TakeAll();
    }
    for (Pending& each : waiting)
      Fail(each, {Code::kUnavailable,
                  "the runtime of this model does not start again: " + started.error().text});
    return;
  }
  Dispatch();
}

bool Servable::overwritten() const {
  const std::lock_guard lock(mutex_);
  return overwritten_;
}

bool Servable::ready() const {
  const std::lock_guard lock(mutex_);
  return runtime_ && !broken_;
}

}  // namespace serve
