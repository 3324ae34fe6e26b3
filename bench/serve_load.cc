// Clients that ask as soon as they are answered, at little cost to themselves.
//
//   serve_load rest HOST PORT PATH CLIENTS SECONDS ROWS    one thread, CLIENTS connections
//   serve_load grpc HOST PORT MODEL CLIENTS SECONDS ROWS   CLIENTS calls at a time, one connection
//
// Each request is ROWS pictures of 28x28. Prints requests a second, the median and the 99th
// percentile in milliseconds, and how many failed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serving.pb.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Tally {
  std::mutex mutex;
  std::vector<float> ms;
  int64_t failed = 0;

  void Add(Clock::time_point begun, bool good) {
    const float took = std::chrono::duration<float, std::milli>(Clock::now() - begun).count();
    const std::lock_guard lock(mutex);
    if (good) ms.push_back(took);
    if (!good) ++failed;
  }

  void Print(double seconds) {
    std::sort(ms.begin(), ms.end());
    const auto at = [&](double part) {
      return ms.empty() ? 0.0
                        : static_cast<double>(
                              ms[static_cast<size_t>(part * static_cast<double>(ms.size() - 1))]);
    };
    printf("%.1f %.3f %.3f %lld\n", static_cast<double>(ms.size()) / seconds, at(0.5), at(0.99),
           static_cast<long long>(failed));
  }
};

float Pixel(int i) { return static_cast<float>(i % 256) / 256.0f; }

std::string Picture() {
  std::string out = "[";
  for (int y = 0; y < 28; ++y) {
    out += y ? ", [" : "[";
    for (int x = 0; x < 28; ++x) {
      char text[32];
      snprintf(text, sizeof text, "%s[%g]", x ? ", " : "", static_cast<double>(Pixel(28 * y + x)));
      out += text;
    }
    out += "]";
  }
  return out + "]";
}

std::string RestRequest(const char* host, const char* port, const char* path, int rows) {
  std::string body = "{\"instances\": [";
  for (int i = 0; i < rows; ++i) body += (i ? ", " : "") + Picture();
  body += "]}";
  return std::string("POST ") + path + " HTTP/1.1\r\nHost: " + host + ":" + port +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

struct Connection {
  int fd = -1;
  std::string in;
  Clock::time_point begun;
};

int Connect(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(atoi(port)));
  inet_pton(AF_INET, host, &address.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) exit(1);
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

void SendAll(Connection& to, const std::string& bytes) {
  to.begun = Clock::now();
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = send(to.fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (put <= 0) exit(1);
    done += static_cast<size_t>(put);
  }
}

// Whether a whole answer has come; it is taken.
bool TakeAnswer(Connection& from, bool& good) {
  const size_t head = from.in.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  const char* length = strcasestr(from.in.c_str(), "content-length: ");
  const size_t size = head + 4 + (length ? strtoul(length + 16, nullptr, 10) : 0);
  if (from.in.size() < size) return false;
  good = from.in.compare(9, 3, "200") == 0;
  from.in.erase(0, size);
  return true;
}

void Rest(char** argv, int clients, int rows, double seconds, Tally& tally) {
  const std::string request = RestRequest(argv[2], argv[3], argv[4], rows);
  const int poll = epoll_create1(0);
  std::vector<Connection> connections(static_cast<size_t>(clients));
  for (Connection& each : connections) {
    each.fd = Connect(argv[2], argv[3]);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &each}};
    epoll_ctl(poll, EPOLL_CTL_ADD, each.fd, &event);
    SendAll(each, request);
  }
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  char buffer[65536];
  while (Clock::now() < until) {
    epoll_event events[64];
    const int ready = epoll_wait(poll, events, 64, 100);
    for (int i = 0; i < ready; ++i) {
      Connection& each = *static_cast<Connection*>(events[i].data.ptr);
      const ssize_t got = recv(each.fd, buffer, sizeof buffer, 0);
      if (got <= 0) exit(1);
      each.in.append(buffer, static_cast<size_t>(got));
      bool good = false;
      if (!TakeAnswer(each, good)) continue;
      tally.Add(each.begun, good);
      SendAll(each, request);
    }
  }
}

// One of the calls that are always under way; the answer is not decoded.
struct Caller {
  grpc::GenericStub& stub;
  const grpc::ByteBuffer& request;
  Tally& tally;
  Clock::time_point until;
  std::unique_ptr<grpc::ClientContext> context;
  grpc::ByteBuffer answer;
  Clock::time_point begun;
  std::atomic<int>& left;

  void Call() {
    context = std::make_unique<grpc::ClientContext>();
    begun = Clock::now();
    stub.UnaryCall(context.get(), "/tensorflow.serving.PredictionService/Predict", {}, &request,
                   &answer, [this](grpc::Status status) {
                     tally.Add(begun, status.ok());
                     if (Clock::now() < until) return Call();
                     --left;
                   });
  }
};

void Grpc(char** argv, int clients, int rows, double seconds, Tally& tally) {
  tensorflow::serving::PredictRequest request;
  request.mutable_model_spec()->set_name(argv[4]);
  auto& image = (*request.mutable_inputs())["image"];
  image.set_dtype(tensorflow::DT_FLOAT);
  for (const int size : {rows, 28, 28, 1}) image.mutable_tensor_shape()->add_dim()->set_size(size);
  image.set_tensor_content(std::string(static_cast<size_t>(rows) * 784 * sizeof(float), '\0'));
  const std::string bytes = request.SerializeAsString();
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer buffer(&slice, 1);
  grpc::GenericStub stub(grpc::CreateChannel(std::string(argv[2]) + ":" + argv[3],
                                             grpc::InsecureChannelCredentials()));
  std::atomic<int> left = clients;
  std::vector<std::unique_ptr<Caller>> callers;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  for (int i = 0; i < clients; ++i) {
    callers.emplace_back(new Caller{stub, buffer, tally, until, nullptr, {}, {}, left});
    callers.back()->Call();
  }
  while (left > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  Tally warm, tally;
  const int clients = atoi(argv[5]);
  const double seconds = atof(argv[6]);
  const int rows = atoi(argv[7]);
  const bool rest = strcmp(argv[1], "rest") == 0;
  (rest ? Rest : Grpc)(argv, clients, rows, 0.3, warm);
  (rest ? Rest : Grpc)(argv, clients, rows, seconds, tally);
  tally.Print(seconds);
}
