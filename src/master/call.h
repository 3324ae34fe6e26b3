// Calls of the gRPC services, all served by one thread (server.h).
//
// A service is a class with a function for each method,
//
//   void get_task(Call& call, const proto::GetTaskRequest& request, proto::Task& reply);
//
// that sees to it that call.Finish is called once, at any time and on any thread; request and
// reply live until then. gRPC's callback interface offers the same, but hands each call through
// several threads of its own.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

namespace master {

// Something that a completion queue gives back.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Ready(bool ok) = 0;
};

// What is to be done on the queue's thread. Many things that come at once wake it once.
class Errands : Tag {
 public:
  using Errand = std::move_only_function<void()>;

  explicit Errands(grpc::ServerCompletionQueue* queue) : queue_(queue) {}

  void Add(Errand errand) {
    const std::lock_guard lock(mutex_);
    errands_.push_back(std::move(errand));
    if (errands_.size() == 1) alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), this);
  }

 private:
  void Ready(bool) override {
    std::vector<Errand> errands;
    {
      const std::lock_guard lock(mutex_);
      errands.swap(errands_);
    }
    for (Errand& errand : errands) errand();
  }

  grpc::ServerCompletionQueue* const queue_;
  std::mutex mutex_;
  std::vector<Errand> errands_;
  grpc::Alarm alarm_;
};

class Call {
 public:
  virtual ~Call() = default;
  virtual void Finish(const grpc::Status& status = grpc::Status::OK) = 0;

  // When it is over, on the queue's thread: whether the client was gone before it had the answer.
  // To be set before the function of the method returns, and only if `watched` (below).
  std::function<void(bool cancelled)> over;
  // The client is gone or gave up, and the call is not finished. Before `over`.
  std::function<void()> cancelled;
};

// One call of one method; a new one waits for the next as soon as it begins. Owns itself.
template <typename Service, typename Async, typename Request, typename Reply>
class CallOf : public Call {
 public:
  struct Method {
    using Ask = void (Async::*)(grpc::ServerContext*, Request*,
                                grpc::ServerAsyncResponseWriter<Reply>*, grpc::CompletionQueue*,
                                grpc::ServerCompletionQueue*, void*);
    Ask ask;
    void (Service::*serve)(Call&, const Request&, Reply&);
    Service* service;
    Async* async;
    grpc::ServerCompletionQueue* queue;
    Errands* errands;
    bool watched;  // wants to know how it ends
  };

  static void Await(const Method& method) { new CallOf(method); }

  void Finish(const grpc::Status& status) override {
    method_.errands->Add([this, status] {
      if (status.ok())
        writer_.Finish(reply_, status, &finished_);
      else
        writer_.FinishWithError(status, &finished_);
    });
  }

 private:
  class Then : public Tag {
   public:
    Then(CallOf& call, void (CallOf::*then)(bool)) : call_(call), then_(then) {}
    void Ready(bool ok) override { (call_.*then_)(ok); }

   private:
    CallOf& call_;
    void (CallOf::*then_)(bool);
  };

  explicit CallOf(const Method& method) : method_(method), writer_(&context_) {
    if (method.watched) context_.AsyncNotifyWhenDone(&over_tag_);
    (method.async->*method.ask)(&context_, &request_, &writer_, method.queue, method.queue,
                                &begun_);
  }

  void Begun(bool ok) {
    if (!ok) {  // the server stops; who was to be told of its end is not
      delete this;
      return;
    }
    Await(method_);
    (method_.service->*method_.serve)(*this, request_, reply_);
  }
  void Finished(bool) { PartOver(); }
  void Over(bool) {
    was_cancelled_ = context_.IsCancelled();
    if (was_cancelled_ && cancelled) cancelled();
    PartOver();
  }
  void PartOver() {
    if (method_.watched && ++parts_ < 2) return;
    if (over) over(was_cancelled_);
    delete this;
  }

  const Method method_;
  grpc::ServerContext context_;
  Request request_;
  Reply reply_;
  grpc::ServerAsyncResponseWriter<Reply> writer_;
  Then begun_{*this, &CallOf::Begun}, finished_{*this, &CallOf::Finished},
      over_tag_{*this, &CallOf::Over};
  int parts_ = 0;
  bool was_cancelled_ = false;
};

}  // namespace master
