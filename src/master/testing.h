// A master with its server, in this process, for tests.
#pragma once

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "elastic.grpc.pb.h"
#include "io/testing/temp_dir.h"
#include "master/master.h"
#include "master/server.h"
#include "shards.grpc.pb.h"

namespace master {

inline ledger::HostMember Live(int32_t number) {
  return {.name = "worker-" + std::to_string(number) + "@0", .number = number};
}

inline ledger::HostMember In(ledger::MemberState state, int32_t number) {
  ledger::HostMember member = Live(number);
  member.state = state;
  return member;
}

class MasterTest : public testing::Test {
 protected:
  MasterTest() { Start({Live(0), Live(1)}); }

  void Start(std::vector<ledger::HostMember> members) {
    auto opened = LedgerFile::Open(dir_.path(), {.uid = "u-1", .name = "mnist"}, {});
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    master_ = std::make_unique<Master>(
        std::move(*opened), dir_.path(),
        Master::Options{.introduction = introduction_, .longest_hold = longest_hold_});
    auto server = Server::Listen({}, *master_);
    ASSERT_TRUE(server.has_value()) << server.error().text();
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::InsecureChannelCredentials());
    stub_ = proto::Master::NewStub(channel_);
    shards_ = trainyard::Shards::NewStub(channel_);
    Members(std::move(members));
  }

  void Restart(std::vector<ledger::HostMember> members) {
    server_.reset();
    master_.reset();
    Start(std::move(members));
  }

  void Members(std::vector<ledger::HostMember> members) {
    master_->Heed({.seq = ++seq_, .members = std::move(members)});
  }

  ledger::DataReport Data() {
    std::promise<ledger::DataReport> promise;
    master_->Report([&](ledger::DataReport data) {
      for (auto& event : data.events) events_.push_back(event);
      promise.set_value(std::move(data));
    });
    return promise.get_future().get();
  }

  int Events(const std::string& reason) {
    Data();
    return static_cast<int>(std::ranges::count(events_, reason, &ledger::EventReport::reason));
  }

  grpc::Status Register(const std::string& name, int64_t size, int32_t batch, int32_t epochs,
                        int32_t minibatches = 1) {
    proto::ReportDatasetShardParamsRequest request;
    request.set_dataset_name(name);
    request.set_dataset_size(size);
    request.set_batch_size(batch);
    request.set_num_epochs(epochs);
    request.set_num_minibatches_per_shard(minibatches);
    grpc::ClientContext context;
    google::protobuf::Empty empty;
    return stub_->report_dataset_shard_params(&context, request, &empty);
  }

  // As 1.0.0's fetch_shard: nothing at the end of the data, and on any error.
  std::optional<proto::Task> Get(int32_t number, const std::string& name = "iris") {
    grpc::ClientContext context;
    return Get(context, number, name);
  }

  std::optional<proto::Task> Get(grpc::ClientContext& context, int32_t number,
                                 const std::string& name) {
    proto::GetDatasetTaskRequest request;
    request.set_worker_id(number);
    request.set_dataset_name(name);
    proto::Task task;
    status_ = stub_->get_dataset_task(&context, request, &task);
    if (!status_.ok() || task.type() != proto::TRAINING) return std::nullopt;
    return task;
  }

  // A call that will be held, on a thread of its own; it is held when this returns.
  std::future<std::optional<proto::Task>> HeldGet(int32_t number,
                                                  const std::string& name = "iris") {
    auto future = std::async(std::launch::async, [this, number, name] {
      const auto stub = proto::Master::NewStub(channel_);
      proto::GetDatasetTaskRequest request;
      request.set_worker_id(number);
      request.set_dataset_name(name);
      grpc::ClientContext context;
      proto::Task task;
      const grpc::Status status = stub->get_dataset_task(&context, request, &task);
      return status.ok() && task.type() == proto::TRAINING ? std::optional(task) : std::nullopt;
    });
    while (master_->Held() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return future;
  }

  grpc::Status Report(int32_t id, const std::string& error = "") {
    proto::ReportDatasetTaskResultRequest request;
    request.set_task_id(id);
    request.set_err_message(error);
    request.set_dataset_name("iris");
    grpc::ClientContext context;
    google::protobuf::Empty empty;
    return stub_->report_dataset_task_result(&context, request, &empty);
  }

  trainyard::TakeReply Take(int32_t number, int32_t most, std::vector<int32_t> holding = {}) {
    trainyard::TakeRequest request;
    request.set_number(number);
    request.set_set("iris");
    request.set_most(most);
    request.mutable_holding()->Add(holding.begin(), holding.end());
    grpc::ClientContext context;
    trainyard::TakeReply reply;
    status_ = shards_->Take(&context, request, &reply);
    return reply;
  }

  static std::vector<int32_t> Ids(const trainyard::TakeReply& reply) {
    std::vector<int32_t> ids;
    for (const auto& lease : reply.leases()) ids.push_back(lease.id());
    return ids;
  }

  base::Duration introduction_ = std::chrono::seconds(10);
  base::Duration longest_hold_ = std::chrono::seconds(20);
  const io::testing::TempDir dir_;
  std::unique_ptr<Master> master_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::Master::Stub> stub_;
  std::unique_ptr<trainyard::Shards::Stub> shards_;
  grpc::Status status_;
  std::vector<ledger::EventReport> events_;
  int64_t seq_ = 0;
};

}  // namespace master
