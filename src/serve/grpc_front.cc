// Each call is a reactor of gRPC's callback API: the method returns at once, and Finish is called
// when the model has answered. Request and response belong to gRPC until then.
#include "serve/grpc_front.h"

#include <algorithm>

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include "base/strings.h"
#include "serve/ask.h"
#include "serve/tensor_proto.h"
#include "serving.grpc.pb.h"

namespace serve {
namespace {

namespace tfs = tensorflow::serving;
using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

constexpr base::Duration kLongCall = std::chrono::hours(24);  // has no deadline

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code),
          Readable(status.text)};
}

Reactor* Finished(Context* context, const grpc::Status& status) {
  Reactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

// The context is there until Finish is called.
Caller CallerOf(Context* context) {
  Caller out{.gone = [context] { return context->IsCancelled(); }};
  const auto left = context->deadline() - std::chrono::system_clock::now();
  if (left < kLongCall) out.deadline = Steady::now() + left;
  return out;
}

Target TargetOf(const tfs::ModelSpec& spec) {
  Target out{.model = spec.name(), .signature = spec.signature_name()};
  if (spec.has_version()) out.version = spec.version().value();
  if (spec.version_choice_case() == tfs::ModelSpec::kVersionLabel) out.label = spec.version_label();
  return out;
}

void FillSpec(const Asked& asked, tfs::ModelSpec* spec) {
  spec->set_name(asked.servable->model());
  spec->mutable_version()->set_value(asked.servable->version());
  spec->set_signature_name(asked.signature ? asked.signature->name : "");
}

Answer<> CheckFilter(const tfs::PredictRequest& request, const Signature& signature) {
  for (const std::string& name : request.output_filter()) {
    if (!signature.Output(name))
      return BadRequest(fmt::format("no output '{}'; signature '{}' gives {}", base::OneLine(name),
                                    base::OneLine(signature.name), Describe(signature.outputs)));
  }
  return {};
}

void FillOutputs(const tfs::PredictRequest& request, const Answered& answered,
                 tfs::PredictResponse* response) {
  const auto& wanted = request.output_filter();
  for (size_t i = 0; i < answered.outputs.size(); ++i) {
    const std::string& name = answered.by.signature->outputs[i].name;
    if (wanted.empty() || std::ranges::find(wanted, name) != wanted.end())
      ToProto(answered.outputs[i], (*response->mutable_outputs())[name]);
  }
}

class Prediction : public tfs::PredictionService::CallbackService {
 public:
  Prediction(Models& models, Counters& counters, const Guard& guard)
      : models_(models), counters_(counters), guard_(guard) {}

  Reactor* Predict(Context* context, const tfs::PredictRequest* request,
                   tfs::PredictResponse* response) override {
    const auto prepare = [&]() -> Answer<std::pair<Asked, std::vector<tensor::Tensor>>> {
      TRY(Allowed(context));
      Asked asked = TRY(FindTarget(models_, TargetOf(request->model_spec())));
      TRY(CheckFilter(*request, *asked.signature));
      auto inputs = TRY(InputsOf(*request, *asked.signature));
      return std::pair(std::move(asked), std::move(inputs));
    };
    auto prepared = prepare();
    if (!prepared) return Refuse(context, request->model_spec(), prepared.error());
    Reactor* reactor = context->DefaultReactor();
    Ask(std::move(prepared->first), std::move(prepared->second), CallerOf(context),
        [reactor, request, response](Answer<Answered> answered) {
          if (!answered) return reactor->Finish(ToGrpc(answered.error()));
          FillSpec(answered->by, response->mutable_model_spec());
          FillOutputs(*request, *answered, response);
          reactor->Finish(grpc::Status::OK);
        });
    return reactor;
  }

  Reactor* Classify(Context* context, const tfs::ClassificationRequest* request,
                    tfs::ClassificationResponse* response) override {
    return Judge(context, *request, response, kClassifyMethod, &Classification);
  }

  Reactor* Regress(Context* context, const tfs::RegressionRequest* request,
                   tfs::RegressionResponse* response) override {
    return Judge(context, *request, response, kRegressMethod, &Regression);
  }

  Reactor* GetModelMetadata(Context* context, const tfs::GetModelMetadataRequest* request,
                            tfs::GetModelMetadataResponse* response) override {
    const auto answer = [&]() -> Answer<> {
      TRY(Allowed(context));
      if (request->metadata_field().empty())
        return BadRequest("metadata_field must name what is wanted: signature_def");
      for (const std::string& field : request->metadata_field()) {
        if (field != "signature_def")
          return BadRequest(
              fmt::format("no metadata '{}': only signature_def", base::OneLine(field)));
      }
      const Target target = TargetOf(request->model_spec());
      const auto servable = TRY(models_.Find(target.model, target.version, target.label));
      FillSpec({.servable = servable}, response->mutable_model_spec());
      (*response->mutable_metadata())["signature_def"].PackFrom(
          *servable->signatures().definitions);
      return {};
    }();
    return Finished(context, answer ? grpc::Status::OK : ToGrpc(answer.error()));
  }

 private:
  Reactor* Refuse(Context* context, const tfs::ModelSpec& spec, const Status& status) const {
    CountRefused(models_, counters_, spec.name(), status.code);
    return Finished(context, ToGrpc(status));
  }

  Answer<> Allowed(Context* context) const { return guard_.CheckToken(TokenOf(*context)); }

  static std::string_view TokenOf(const Context& context) {
    const auto found = context.client_metadata().find("authorization");
    if (found == context.client_metadata().end()) return "";
    return {found->second.data(), found->second.size()};
  }
  friend class ModelsFront;

  template <typename Request, typename Response, typename Make>
  Reactor* Judge(Context* context, const Request& request, Response* response,
                 std::string_view method, Make* make) {
    const auto prepare = [&]() -> Answer<std::pair<Asked, std::vector<tensor::Tensor>>> {
      TRY(Allowed(context));
      Asked asked = TRY(FindTarget(models_, TargetOf(request.model_spec())));
      TRY(CheckMethod(*asked.signature, method));
      auto inputs = TRY(ExamplesOf(request.input(), *asked.signature));
      return std::pair(std::move(asked), std::move(inputs));
    };
    auto prepared = prepare();
    if (!prepared) return Refuse(context, request.model_spec(), prepared.error());
    Reactor* reactor = context->DefaultReactor();
    Ask(std::move(prepared->first), std::move(prepared->second), CallerOf(context),
        [reactor, response, make](Answer<Answered> answered) {
          if (!answered) return reactor->Finish(ToGrpc(answered.error()));
          auto result = make(*answered->by.signature, answered->outputs);
          if (!result) return reactor->Finish(ToGrpc(result.error()));
          FillSpec(answered->by, response->mutable_model_spec());
          response->mutable_result()->Swap(&*result);
          reactor->Finish(grpc::Status::OK);
        });
    return reactor;
  }

  Models& models_;
  Counters& counters_;
  const Guard& guard_;
};

class ModelsFront : public tfs::ModelService::CallbackService {
 public:
  ModelsFront(Models& models, const Guard& guard, bool may_reload)
      : models_(models), guard_(guard), may_reload_(may_reload) {}

  Reactor* GetModelStatus(Context* context, const tfs::GetModelStatusRequest* request,
                          tfs::GetModelStatusResponse* response) override {
    const auto answer = [&]() -> Answer<> {
      TRY(guard_.CheckToken(Prediction::TokenOf(*context)));
      const Target target = TargetOf(request->model_spec());
      const auto versions = models_.StatusOf(target.model);
      if (!versions) TRY(models_.Find(target.model, std::nullopt, ""));  // which says what there is
      std::optional<int64_t> only = target.version;
      if (!target.label.empty())
        only = TRY(models_.Find(target.model, std::nullopt, target.label))->version();
      for (const VersionStatus& each : *versions) {
        if (only && each.version != *only) continue;
        auto* status = response->add_model_version_status();
        status->set_version(each.version);
        status->set_state(static_cast<tfs::ModelVersionStatus::State>(each.state));
        status->mutable_status()->set_error_code(static_cast<int>(each.status.code));
        status->mutable_status()->set_error_message(Readable(each.status.text));
      }
      if (only && response->model_version_status().empty())
        return Refused(Code::kNotFound,
                       fmt::format("model '{}' has no version {}", target.model, *only));
      return {};
    }();
    return Finished(context, answer ? grpc::Status::OK : ToGrpc(answer.error()));
  }

  Reactor* HandleReloadConfigRequest(Context* context, const tfs::ReloadConfigRequest* request,
                                     tfs::ReloadConfigResponse* response) override {
    const auto configs = [&]() -> Answer<std::vector<ModelConfig>> {
      TRY(guard_.CheckToken(Prediction::TokenOf(*context)));
      if (!may_reload_)
        return Refused(Code::kPermissionDenied,
                       "models are changed from this machine or with a token");
      auto parsed = FromProto(request->config());
      if (!parsed) return BadRequest(parsed.error().text());
      return std::move(*parsed);
    }();
    if (!configs) return Finished(context, ToGrpc(configs.error()));
    Reactor* reactor = context->DefaultReactor();
    models_.Reload(*configs, [reactor, response](Answer<> reloaded) {
      response->mutable_status()->set_error_code(0);
      reactor->Finish(reloaded ? grpc::Status::OK : ToGrpc(reloaded.error()));
    });
    return reactor;
  }

 private:
  Models& models_;
  const Guard& guard_;
  const bool may_reload_;
};

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const GrpcOptions& options) {
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back({options.key, options.certificate});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace

class GrpcServer::Services {
 public:
  Services(Models& models, Counters& counters, const Guard& guard, bool may_reload)
      : prediction(models, counters, guard), front(models, guard, may_reload) {}

  Prediction prediction;
  ModelsFront front;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

base::Result<std::unique_ptr<GrpcServer>> GrpcServer::Listen(const GrpcOptions& options,
                                                             Models& models, Counters& counters,
                                                             const Guard& guard) {
  auto services = std::make_unique<Services>(models, counters, guard, options.may_reload);
  const bool v6 = options.host.find(':') != std::string::npos;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      fmt::format("{}{}{}:{}", v6 ? "[" : "", options.host, v6 ? "]" : "", options.port),
      CredentialsOf(options), &services->port);
  builder.RegisterService(&services->prediction);
  builder.RegisterService(&services->front);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.most_bytes));
  builder.SetMaxSendMessageSize(-1);
  // Two servers on one port would share its clients between them.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  services->server = builder.BuildAndStart();
  if (!services->server || services->port == 0)
    return std::unexpected(base::Error(
        base::ErrorKind::kTaken,
        fmt::format("cannot listen on {} port {}: another program has it, or the address is not of "
                    "this machine",
                    options.host, options.port)));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(services)));
}

GrpcServer::GrpcServer(std::unique_ptr<Services> services) : services_(std::move(services)) {}
GrpcServer::~GrpcServer() { Stop({}); }
uint16_t GrpcServer::port() const { return static_cast<uint16_t>(services_->port); }

void GrpcServer::Stop(base::Duration patience) {
  if (!services_->server) return;
  services_->server->Shutdown(std::chrono::system_clock::now() + patience);
  services_->server->Wait();
  services_->server.reset();
}

}  // namespace serve
