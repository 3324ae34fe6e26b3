#include "master/server.h"

#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "base/strings.h"
#include "master/elastic_service.h"
#include "master/shards_service.h"

namespace master {
namespace {

constexpr int kMostMessage = 64 << 20;
// A held call may last for hours: the line is tried now and then so that no middle box forgets it.
// A process that is stopped or starved answers late, and must not lose its call for that.
constexpr int kTryLineMs = 60'000;
constexpr int kLineTimeoutMs = 600'000;

// What no service of ours has.
class UnknownMethods : public grpc::CallbackGenericService {
 public:
  explicit UnknownMethods(Master& master) : master_(master) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    class Refuse : public grpc::ServerGenericBidiReactor {
     public:
      explicit Refuse(const std::string& text) { Finish({grpc::StatusCode::UNIMPLEMENTED, text}); }
      void OnDone() override { delete this; }
    };
    const std::string method = base::OneLine(base::CleanUtf8(context->method()), 200);
    const std::string text = fmt::format("this master has no method {}", method);
    master_.Once("method " + method, "MethodUnknown",
                 fmt::format("{}; {} asked for it", text, context->peer()));
    return new Refuse(text);
  }

 private:
  Master& master_;
};

}  // namespace

class Server::Services {
 public:
  Services(Master& master, const ServerOptions& options)
      : elastic(master, options.minibatches, options.seed), shards(master), unknown(master) {}

  ElasticService elastic;
  ShardsService shards;
  UnknownMethods unknown;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

base::Result<std::unique_ptr<Server>> Server::Listen(const ServerOptions& options, Master& master) {
  auto services = std::make_unique<Services>(master, options);
  const bool v6 = options.host.find(':') != std::string::npos;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      fmt::format("{}{}{}:{}", v6 ? "[" : "", options.host, v6 ? "]" : "", options.port),
      grpc::InsecureServerCredentials(), &services->port);
  builder.RegisterService(&services->elastic);
  builder.RegisterService(&services->shards);
  builder.RegisterCallbackGenericService(&services->unknown);
  builder.SetMaxReceiveMessageSize(kMostMessage);
  builder.SetMaxSendMessageSize(-1);
  // Two servers on one port would share its clients between them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kTryLineMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kLineTimeoutMs);
  // A client may try the line as well, as often as it likes: closing it would be an end of data.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  services->server = builder.BuildAndStart();
  if (!services->server || services->port == 0)
    return std::unexpected(base::Error(
        base::ErrorKind::kTaken,
        fmt::format("cannot listen on {} port {}: another program has it, or the address is not of "
                    "this machine",
                    options.host, options.port)));
  return std::unique_ptr<Server>(new Server(std::move(services), master));
}

Server::Server(std::unique_ptr<Services> services, Master& master)
    : services_(std::move(services)), master_(master) {}

Server::~Server() {
  master_.Stop();
  services_->server->Shutdown(std::chrono::system_clock::now());
  services_->server->Wait();
}

uint16_t Server::port() const { return static_cast<uint16_t>(services_->port); }

}  // namespace master
