// Workers that do nothing but take shards and report them, each over a connection of its own, to
// measure a master.
//
//   shards_load PORT published|ours WORKERS SECONDS|SHARDS MOST
//
// published: elasticai_api's protocol, one shard a call. ours: MOST shards a call. With an x behind
// the number ("1000000x") it ends after so many shards. The set "bench" is registered first.
// Prints: shards, seconds, seconds of its own processor time.
//
// gRPC's own client costs more of a processor than the server that is to be measured, so this one
// speaks just as much HTTP/2 as a call needs, in one thread: headers that HPACK has in its table
// after the first call, one DATA frame each way, and a look at whether an answer has one.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "elastic.pb.h"
#include "shards.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kRecords = 10'000'000'000;
constexpr int64_t kShard = 64;

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "shards_load: %s\n", what);
  std::_Exit(1);
}

// What is asked and answered, in either protocol.
struct Published {
  static constexpr const char* kRegister = "/proto.Master/report_dataset_shard_params";
  static constexpr const char* kTake = "/proto.Master/get_dataset_task";
  static constexpr const char* kReport = "/proto.Master/report_dataset_task_result";

  Published(int number, int) {
    take.set_worker_id(number);
    take.set_dataset_name("bench");
    report.set_dataset_name("bench");
  }
  static std::string Registration() {
    proto::ReportDatasetShardParamsRequest request;
    request.set_dataset_name("bench");
    request.set_dataset_size(kRecords);
    request.set_batch_size(kShard);
    request.set_num_minibatches_per_shard(1);
    request.set_num_epochs(1);
    return request.SerializeAsString();
  }
  void Taken(std::string_view bytes) {
    if (!task.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || task.task_id() == 0)
      Fail("no shard");
    report.set_task_id(task.task_id());
  }
  int64_t Reported(std::string_view) const { return 1; }

  proto::GetDatasetTaskRequest take;
  proto::Task task;
  proto::ReportDatasetTaskResultRequest report;
};

struct Ours {
  static constexpr const char* kRegister = "/trainyard.Shards/Register";
  static constexpr const char* kTake = "/trainyard.Shards/Take";
  static constexpr const char* kReport = "/trainyard.Shards/Report";

  Ours(int number, int most) {
    take.set_number(number);
    take.set_set("bench");
    take.set_most(most);
    report.set_number(number);
    report.set_set("bench");
  }
  static std::string Registration() {
    trainyard::RegisterRequest request;
    request.set_set("bench");
    request.set_size(kRecords);
    request.set_shard_size(kShard);
    request.set_epochs(1);
    return request.SerializeAsString();
  }
  void Taken(std::string_view bytes) {
    if (!taken.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
        taken.leases().empty())
      Fail("no shards");
    report.clear_done();
    for (const auto& lease : taken.leases()) report.add_done(lease.id());
  }
  int64_t Reported(std::string_view bytes) {
    if (!reported.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) Fail("no reply");
    return reported.counted();
  }

  trainyard::TakeRequest take;
  trainyard::TakeReply taken;
  trainyard::ReportRequest report;
  trainyard::ReportReply reported;
};

// One call at a time over one connection.
class Line {
 public:
  explicit Line(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address{.sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                              .sin_zero = {}};
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      Fail("cannot connect");
    const int one = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    out_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    Frame(4, 0, 0, std::string("\0\4\x7f\xff\xff\xff", 6));  // windows that never close
    Frame(8, 0, 0, std::string("\x7f\xff\0\0", 4));
  }
  int fd() const { return fd_; }

  // `added`: the path is in the server's table of headers at this index, 0 for not yet.
  void Ask(const char* path, int added, const google::protobuf::Message& message) {
    message.SerializeToString(&body_);
    Ask(path, added, body_);
  }
  void Ask(const char* path, int added, const std::string& message) {
    std::string headers = "\x83\x86";  // POST, http
    const int first = 61 + added_;     // the oldest of the table
    if (added_ == 0) {
      Add(headers, "\x41", "127.0.0.1");
      Add(headers, "\x5f", "application/grpc");
      Add(headers, std::string("\x40\x02te", 4), "trailers");
    } else {
      for (int i = 0; i < 3; ++i) headers += static_cast<char>(0x80 | (first - i));
    }
    if (added == 0)
      Add(headers, "\x44", path);
    else
      headers += static_cast<char>(0x80 | (first - added + 1));
    Frame(1, 4, stream_, headers);
    std::string data(5, '\0');
    const uint32_t size = htonl(static_cast<uint32_t>(message.size()));
    memcpy(data.data() + 1, &size, 4);
    Frame(0, 1, stream_, data + message);
    stream_ += 2;
    Send();
  }
  int added() const { return added_; }

  // Reads what is there. True: the answer is whole.
  bool Read() {
    std::array<char, 64 << 10> bytes;
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got <= 0) Fail("the connection is closed");
    in_.append(bytes.data(), static_cast<size_t>(got));
    size_t at = 0;
    bool whole = false;
    while (in_.size() - at >= 9) {
      const auto* head = reinterpret_cast<const unsigned char*>(in_.data() + at);
      const size_t size = head[0] << 16 | head[1] << 8 | head[2];
      if (in_.size() - at < 9 + size) break;
      whole |= Take(head[3], head[4], std::string_view(in_).substr(at + 9, size));
      at += 9 + size;
    }
    in_.erase(0, at);
    if (!out_.empty()) Send();
    return whole;
  }
  // The answer that Read has found.
  std::string_view Answer() {
    answer_.swap(message_);
    message_.clear();
    // An error has headers and no message.
    if (answer_.size() < 5) Fail("a call was refused");
    return std::string_view(answer_).substr(5);
  }

 private:
  void Add(std::string& headers, const std::string& name, const std::string& value) {
    headers += name;
    headers += static_cast<char>(value.size());
    headers += value;
    ++added_;
  }
  void Frame(int type, int flags, uint32_t stream, const std::string& payload) {
    const size_t size = payload.size();
    for (const int shift : {16, 8, 0}) out_ += static_cast<char>(size >> shift);
    out_ += static_cast<char>(type);
    out_ += static_cast<char>(flags);
    for (const int shift : {24, 16, 8, 0}) out_ += static_cast<char>(stream >> shift);
    out_ += payload;
  }
  void Send() {
    if (send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out_.size()))
      Fail("cannot send");
    out_.clear();
  }
  bool Take(int type, int flags, std::string_view payload) {
    if (type == 0) message_ += payload;
    if (type == 3 || type == 7) Fail("the server ends the call");
    if (type == 4 && !(flags & 1)) Frame(4, 1, 0, "");
    if (type == 6 && !(flags & 1)) Frame(6, 1, 0, std::string(payload));
    return type <= 1 && (flags & 1);
  }

  const int fd_;
  uint32_t stream_ = 1;
  int added_ = 0;  // headers in the server's table
  std::string in_, out_, body_, message_, answer_;
};

template <typename Protocol>
class Worker {
 public:
  Worker(uint16_t port, int number, int most) : line_(port), protocol_(number, most) {}
  int fd() const { return line_.fd(); }

  void Register() {
    line_.Ask(Protocol::kRegister, 0, Protocol::Registration());
    while (!line_.Read()) {
    }
    line_.Answer();
  }
  void Take() {
    reporting_ = false;
    line_.Ask(Protocol::kTake, take_at_, protocol_.take);
    if (take_at_ == 0) take_at_ = line_.added();
  }
  // Shards that were reported, and -1 while the worker waits for an answer.
  int64_t Go() {
    if (!line_.Read()) return -1;
    const std::string_view answer = line_.Answer();
    if (reporting_) return protocol_.Reported(answer);
    protocol_.Taken(answer);
    reporting_ = true;
    line_.Ask(Protocol::kReport, report_at_, protocol_.report);
    if (report_at_ == 0) report_at_ = line_.added();
    return -1;
  }

 private:
  Line line_;
  Protocol protocol_;
  bool reporting_ = false;
  int take_at_ = 0, report_at_ = 0;
};

template <typename Protocol>
void Drive(uint16_t port, int workers, const std::string& much, int most) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Worker<Protocol>>> all;
  for (int i = 0; i < workers; ++i) {
    all.push_back(std::make_unique<Worker<Protocol>>(port, i, most));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = all.back().get()}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, all.back()->fd(), &event);
  }
  all.front()->Register();
  const bool counted = much.ends_with("x");
  const int64_t most_shards = counted ? std::atoll(much.c_str()) : INT64_MAX;
  const auto start = Clock::now();
  const std::chrono::milliseconds lasts(std::lround(std::atof(much.c_str()) * 1000));
  const auto end = counted ? Clock::time_point::max() : start + lasts;
  int64_t shards = 0;
  for (const auto& worker : all) worker->Take();
  for (int working = workers; working > 0;) {
    std::array<epoll_event, 64> events;
    const int ready = epoll_wait(epoll, events.data(), events.size(), -1);
    const bool over = shards >= most_shards || Clock::now() >= end;
    for (int i = 0; i < ready; ++i) {
      auto* worker = static_cast<Worker<Protocol>*>(events[static_cast<size_t>(i)].data.ptr);
      const int64_t reported = worker->Go();
      if (reported < 0) continue;
      shards += reported;
      if (over)
        --working;
      else
        worker->Take();
    }
  }
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%ld %.6f %.6f\n", static_cast<long>(shards),
         std::chrono::duration<double>(Clock::now() - start).count(),
         static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
             static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const int workers = std::atoi(argv[3]), most = std::atoi(argv[5]);
  if (argv[2] == std::string("ours"))
    Drive<Ours>(port, workers, argv[4], most);
  else
    Drive<Published>(port, workers, argv[4], most);
}
