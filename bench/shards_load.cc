// Workers that do nothing but take shards and report them, each over a connection of its own, to
// measure a master.
//
//   shards_load PORT published|ours WORKERS SECONDS|SHARDS MOST
//
// published: elasticai_api's protocol, one shard a call. ours: MOST shards a call. With an x behind
// the number ("1000000x") it ends after so many shards. The set "bench" is registered first.
// Prints: shards, seconds.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "elastic.grpc.pb.h"
#include "shards.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kRecords = 10'000'000'000;
constexpr int64_t kShard = 64;

struct Run {
  Clock::time_point end = Clock::time_point::max();
  int64_t most_shards = INT64_MAX;
  std::atomic<int64_t> shards = 0;
  std::unique_ptr<std::latch> done;

  bool Over() const { return shards >= most_shards || Clock::now() >= end; }
};

[[noreturn]] void Fail(const grpc::Status& status) {
  fprintf(stderr, "shards_load: %d %s\n", status.error_code(), status.error_message().c_str());
  std::_Exit(1);
}

class Published {
 public:
  Published(Run& run, std::shared_ptr<grpc::Channel> channel, int number, int)
      : run_(run), stub_(proto::Master::NewStub(std::move(channel))) {
    get_.set_worker_id(number);
    get_.set_dataset_name("bench");
    report_.set_dataset_name("bench");
  }

  void Register() {
    proto::ReportDatasetShardParamsRequest request;
    request.set_dataset_name("bench");
    request.set_dataset_size(kRecords);
    request.set_batch_size(kShard);
    request.set_num_minibatches_per_shard(1);
    request.set_num_epochs(1);
    grpc::ClientContext context;
    google::protobuf::Empty empty;
    if (const auto status = stub_->report_dataset_shard_params(&context, request, &empty);
        !status.ok())
      Fail(status);
  }

  void Next() {
    if (run_.Over()) return run_.done->count_down();
    context_ = std::make_unique<grpc::ClientContext>();
    stub_->async()->get_dataset_task(context_.get(), &get_, &task_, [this](grpc::Status taken) {
      if (!taken.ok() || task_.task_id() == 0) Fail(taken);
      report_.set_task_id(task_.task_id());
      context_ = std::make_unique<grpc::ClientContext>();
      stub_->async()->report_dataset_task_result(context_.get(), &report_, &empty_,
                                                 [this](grpc::Status reported) {
                                                   if (!reported.ok()) Fail(reported);
                                                   ++run_.shards;
                                                   Next();
                                                 });
    });
  }

 private:
  Run& run_;
  std::unique_ptr<proto::Master::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  proto::GetDatasetTaskRequest get_;
  proto::Task task_;
  proto::ReportDatasetTaskResultRequest report_;
  google::protobuf::Empty empty_;
};

class Ours {
 public:
  Ours(Run& run, std::shared_ptr<grpc::Channel> channel, int number, int most)
      : run_(run), stub_(trainyard::Shards::NewStub(std::move(channel))) {
    take_.set_number(number);
    take_.set_set("bench");
    take_.set_most(most);
    report_.set_number(number);
    report_.set_set("bench");
  }

  void Register() {
    trainyard::RegisterRequest request;
    request.set_set("bench");
    request.set_size(kRecords);
    request.set_shard_size(kShard);
    request.set_epochs(1);
    grpc::ClientContext context;
    trainyard::RegisterReply reply;
    if (const auto status = stub_->Register(&context, request, &reply); !status.ok()) Fail(status);
  }

  void Next() {
    if (run_.Over()) return run_.done->count_down();
    context_ = std::make_unique<grpc::ClientContext>();
    stub_->async()->Take(context_.get(), &take_, &taken_, [this](grpc::Status taken) {
      if (!taken.ok() || taken_.leases().empty()) Fail(taken);
      report_.clear_done();
      for (const auto& lease : taken_.leases()) report_.add_done(lease.id());
      context_ = std::make_unique<grpc::ClientContext>();
      stub_->async()->Report(context_.get(), &report_, &reported_, [this](grpc::Status reported) {
        if (!reported.ok()) Fail(reported);
        run_.shards += reported_.counted();
        Next();
      });
    });
  }

 private:
  Run& run_;
  std::unique_ptr<trainyard::Shards::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  trainyard::TakeRequest take_;
  trainyard::TakeReply taken_;
  trainyard::ReportRequest report_;
  trainyard::ReportReply reported_;
};

template <typename Worker>
void Drive(Run& run, const std::string& address, int workers, int most) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection each
  std::vector<std::unique_ptr<Worker>> all;
  for (int i = 0; i < workers; ++i) {
    auto channel =
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
    all.push_back(std::make_unique<Worker>(run, std::move(channel), i, most));
  }
  all.front()->Register();
  run.done = std::make_unique<std::latch>(workers);
  const auto start = Clock::now();
  if (run.end != Clock::time_point::max()) run.end = start + (run.end - Clock::time_point());
  for (const auto& worker : all) worker->Next();
  run.done->wait();
  printf("%ld %.6f\n", static_cast<long>(run.shards.load()),
         std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string address = std::string("127.0.0.1:") + argv[1], much = argv[4];
  const int workers = std::atoi(argv[3]), most = std::atoi(argv[5]);
  Run run;
  if (much.ends_with("x"))
    run.most_shards = std::atoll(much.c_str());
  else
    run.end =
        Clock::time_point() + std::chrono::milliseconds(std::lround(std::atof(argv[4]) * 1000));
  if (argv[2] == std::string("ours"))
    Drive<Ours>(run, address, workers, most);
  else
    Drive<Published>(run, address, workers, most);
}
