#include "master/server.h"

#include <thread>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <pthread.h>

#include "base/strings.h"
#include "elastic.grpc.pb.h"
#include "master/elastic_service.h"
#include "master/shards_service.h"
#include "shards.grpc.pb.h"

namespace master {
namespace {

constexpr int kMostMessage = 64 << 20;
// A held call may last for hours: the line is tried now and then so that no middle box forgets it.
// A process that is stopped or starved answers late, and must not lose its call for that.
constexpr int kTryLineMs = 60'000;
constexpr int kLineTimeoutMs = 600'000;
// Calls and ends of calls whose changes may share a write. More would only delay the first of them.
constexpr int kMostAtOnce = 256;

// What no service of ours has. Owns itself.
class UnknownCall : public Tag {
 public:
  UnknownCall(Master& master, grpc::AsyncGenericService& service,
              grpc::ServerCompletionQueue* queue)
      : master_(master), service_(service), queue_(queue), stream_(&context_) {
    service.RequestCall(&context_, &stream_, queue, queue, this);
  }

  void Ready(bool ok) override {
    if (!ok || std::exchange(refused_, true)) {
      delete this;
      return;
    }
    new UnknownCall(master_, service_, queue_);
    const std::string method = base::OneLine(base::CleanUtf8(context_.method()), 200);
    const std::string text = fmt::format("this master has no method {}", method);
    master_.Once("method " + method, "MethodUnknown",
                 fmt::format("{}; {} asked for it", text, context_.peer()));
    stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, text}, this);
  }

 private:
  Master& master_;
  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  bool refused_ = false;
};

}  // namespace

class Server::Services {
 public:
  Services(Master& master, const ServerOptions& options)
      : elastic_(master, options.minibatches, options.seed), shards_(master), master_(master) {}

  void RegisterAt(grpc::ServerBuilder& builder) {
    builder.RegisterService(&elastic_calls_);
    builder.RegisterService(&shards_calls_);
    builder.RegisterAsyncGenericService(&unknown_calls_);
    queue_ = builder.AddCompletionQueue();
    errands_ = std::make_unique<Errands>(queue_.get());
  }

  void Run() {
    AwaitElastic();
    AwaitShards();
    new UnknownCall(master_, unknown_calls_, queue_.get());
    thread_ = std::thread([this] { Serve(); });
    pthread_setname_np(thread_.native_handle(), "calls");
  }

  void Stop() {
    if (server) {
      server->Shutdown(std::chrono::system_clock::now());
      server->Wait();  // until no call is left
    }
    queue_->Shutdown();
    if (thread_.joinable()) return thread_.join();
    void* tag = nullptr;
    for (bool ok = false; queue_->Next(&tag, &ok);) {
    }
  }

  std::unique_ptr<grpc::Server> server;
  int port = 0;

 private:
  template <typename Async, typename Service, typename Request, typename Reply>
  void Await(Async& async, Service& service,
             typename CallOf<Service, Async, Request, Reply>::Method::Ask ask,
             void (Service::*serve)(Call&, const Request&, Reply&), bool watched = false) {
    CallOf<Service, Async, Request, Reply>::Await(
        {ask, serve, &service, &async, queue_.get(), errands_.get(), watched});
  }
  void AwaitElastic();
  void AwaitShards();

  void Serve() {
    using Status = grpc::CompletionQueue::NextStatus;
    const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    void* tag = nullptr;
    for (bool ok = false; queue_->Next(&tag, &ok);) {
      master_.Gather(true);
      int done = 0;
      do {
        static_cast<Tag*>(tag)->Ready(ok);
      } while (++done < kMostAtOnce && queue_->AsyncNext(&tag, &ok, at_once) == Status::GOT_EVENT);
      master_.Gather(false);
    }
  }

  ElasticService elastic_;
  ShardsService shards_;
  Master& master_;
  proto::Master::AsyncService elastic_calls_;
  trainyard::Shards::AsyncService shards_calls_;
  grpc::AsyncGenericService unknown_calls_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<Errands> errands_;
  std::thread thread_;
};

#define AWAIT(method, ...)                                                       \
  Await(elastic_calls_, elastic_, &proto::Master::AsyncService::Request##method, \
        &ElasticService::method __VA_OPT__(, ) __VA_ARGS__)
void Server::Services::AwaitElastic() {
  AWAIT(report_training_params);
  AWAIT(get_task, true);
  AWAIT(report_task_result);
  AWAIT(report_dataset_shard_params);
  AWAIT(get_dataset_task, true);
  AWAIT(report_dataset_task_result);
  AWAIT(reset_dataset);
  AWAIT(get_dataset_epoch);
  AWAIT(get_shard_checkpoint);
  AWAIT(report_shard_checkpoint);
  AWAIT(worker_sync);
  AWAIT(wait_worker_sync);
  AWAIT(delete_worker_sync);
  AWAIT(get_comm_rank);
  AWAIT(report_training_loop_status);
  AWAIT(reset_sync);
  AWAIT(barrier_sync);
  AWAIT(report_used_resource);
  AWAIT(report_model_metric);
  AWAIT(report_global_step);
  AWAIT(query_relaunch_ps_pod);
  AWAIT(ready_for_ps_relaunch);
  AWAIT(update_critical_worker);
  AWAIT(query_running_nodes);
  AWAIT(get_cluster_version);
  AWAIT(update_cluster_version);
  AWAIT(query_ps_address);
  AWAIT(query_ps_nodes);
  AWAIT(query_training_status);
  AWAIT(init_remote_lock);
  AWAIT(acquire_remote_lock);
  AWAIT(release_remote_lock);
  AWAIT(report_autotune_status);
  AWAIT(report_prestop);
}
#undef AWAIT

#define AWAIT(method, ...)                                                         \
  Await(shards_calls_, shards_, &trainyard::Shards::AsyncService::Request##method, \
        &ShardsService::method __VA_OPT__(, ) __VA_ARGS__)
void Server::Services::AwaitShards() {
  AWAIT(Register);
  AWAIT(Take, true);
  AWAIT(Report);
  AWAIT(Commit);
  AWAIT(Committed);
  AWAIT(Look);
  AWAIT(Checkpoint);
  AWAIT(Restore);
  AWAIT(Reset);
}
#undef AWAIT

base::Result<std::unique_ptr<Server>> Server::Listen(const ServerOptions& options, Master& master) {
  auto services = std::make_unique<Services>(master, options);
  const bool v6 = options.host.find(':') != std::string::npos;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      fmt::format("{}{}{}:{}", v6 ? "[" : "", options.host, v6 ? "]" : "", options.port),
      grpc::InsecureServerCredentials(), &services->port);
  services->RegisterAt(builder);
  builder.SetMaxReceiveMessageSize(kMostMessage);
  builder.SetMaxSendMessageSize(-1);
  // Two servers on one port would share its clients between them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kTryLineMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kLineTimeoutMs);
  // A client may try the line as well, as often as it likes: closing it would be an end of data.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  services->server = builder.BuildAndStart();
  if (!services->server || services->port == 0) {
    services->Stop();
    return std::unexpected(base::Error(
        base::ErrorKind::kTaken,
        fmt::format("cannot listen on {} port {}: another program has it, or the address is not of "
                    "this machine",
                    options.host, options.port)));
  }
  services->Run();
  return std::unique_ptr<Server>(new Server(std::move(services), master));
}

Server::Server(std::unique_ptr<Services> services, Master& master)
    : services_(std::move(services)), master_(master) {}

Server::~Server() {
  master_.Stop();
  services_->Stop();
}

uint16_t Server::port() const { return static_cast<uint16_t>(services_->port); }

}  // namespace master
