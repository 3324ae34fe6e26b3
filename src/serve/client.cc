#include "serve/client.h"

#include <chrono>

#include <fmt/core.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>

#include "base/strings.h"
#include "io/files.h"
#include "serve/image.h"
#include "serve/predict_json.h"
#include "serve/tensor_proto.h"
#include "serving.grpc.pb.h"

namespace serve {
namespace {

namespace tfs = tensorflow::serving;
using base::Result;

constexpr std::chrono::seconds kPatience(10);
constexpr int kRefused = 2;
constexpr int kLost = 69;  // no contact

class Server {
 public:
  Server(const Question& question, const std::string& token, const std::string& ca)
      : token_(token) {
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (!ca.empty()) credentials = grpc::SslCredentials({.pem_root_certs = ca});
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    const bool v6 = question.host.find(':') != std::string::npos;
    stub_ = tfs::PredictionService::NewStub(grpc::CreateCustomChannel(
        fmt::format("{}{}{}:{}", v6 ? "[" : "", question.host, v6 ? "]" : "", question.port),
        credentials, arguments));
  }

  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (tfs::PredictionService::StubInterface::*method)(
                        grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
    return ((*stub_).*method)(&context, request, response);
  }

 private:
  std::unique_ptr<tfs::PredictionService::StubInterface> stub_;
  std::string token_;
};

int Fail(const std::string& text, int status = kRefused) {
  fmt::print(stderr, "trainyard: {}\n", base::OneLine(text, 600));
  return status;
}

int Fail(const grpc::Status& status, const Question& question) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
      status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return Fail(fmt::format("no answer from {}:{}: {}", question.host, question.port,
                            status.error_message()),
                kLost);
  return Fail(status.error_message());
}

// The only input of the signature, which is to take the picture.
Result<End> InputOf(const tfs::GetModelMetadataResponse& metadata, const std::string& signature) {
  tfs::SignatureDefMap map;
  const auto field = metadata.metadata().find("signature_def");
  if (field == metadata.metadata().end() || !field->second.UnpackTo(&map))
    return base::Invalid("the server does not say what the model takes");
  const auto found = map.signature_def().find(signature);
  if (found == map.signature_def().end())
    return base::Invalid(fmt::format("the model has no signature '{}'", signature));
  if (found->second.inputs().size() != 1)
    return base::Invalid(fmt::format("signature '{}' takes {} inputs, and not a picture", signature,
                                     found->second.inputs().size()));
  const auto& [name, info] = *found->second.inputs().begin();
  End out{.name = name, .type = static_cast<tensor::Type>(info.dtype())};
  if (!info.tensor_shape().unknown_rank()) {
    out.shape.emplace();
    for (const auto& dim : info.tensor_shape().dim()) out.shape->push_back(dim.size());
  }
  return out;
}

// The outputs as the REST interface writes them, with the version that gave them.
int PrintJson(const tfs::PredictResponse& response, double seconds) {
  std::string out =
      fmt::format("{{\"model\":\"{}\",\"version\":{},\"seconds\":{:.6f},\"outputs\":{{",
                  response.model_spec().name(), response.model_spec().version().value(), seconds);
  bool first = true;
  for (const auto& [name, proto] : response.outputs()) {
    auto value = FromProto(proto);
    if (!value) return Fail(value.error().text);
    const Signature one{.outputs = {{.name = name}}};
    std::string text = WriteOutputs(one, {*value});
    text = text.substr(text.find(':') + 2);
    text.resize(text.rfind('\n'));
    out += fmt::format("{}\"{}\":{}", first ? "" : ",", name, text);
    first = false;
  }
  fmt::print("{}}}}}\n", out);
  return 0;
}

}  // namespace

Question QuestionFromJson(const base::Json& json) {
  Question out;
  out.host = base::StringOr(json, "host", out.host);
  out.port = base::IntOr(json, "port", out.port);
  out.image = base::StringOr(json, "image");
  out.index = base::IntOr(json, "index");
  out.model = base::StringOr(json, "model");
  out.signature = base::StringOr(json, "signature");
  out.scale = static_cast<double>(base::IntOr(json, "scale", 1));
  out.token_file = base::StringOr(json, "token_file");
  out.ca_file = base::StringOr(json, "ca_file");
  out.json = base::BoolOr(json, "json");
  return out;
}

int AskOnce(const Question& question) {
  const auto bytes = io::ReadFile(question.image);
  if (!bytes) return Fail(bytes.error().text());
  const auto image = DecodeImage(*bytes, question.index);
  if (!image) return Fail(question.image + ": " + image.error().text());
  std::string token, ca;
  for (const auto& [file, to] :
       {std::pair(question.token_file, &token), std::pair(question.ca_file, &ca)}) {
    if (file.empty()) continue;
    const auto text = io::ReadFile(file, 1 << 20);
    if (!text) return Fail(text.error().text());
    *to = base::Trim(*text);
  }
  const std::string signature = question.signature.empty() ? "serving_default" : question.signature;
  Server server(question, token, ca);
  tfs::GetModelMetadataRequest what;
  tfs::GetModelMetadataResponse metadata;
  what.mutable_model_spec()->set_name(question.model);
  what.add_metadata_field("signature_def");
  using Stub = tfs::PredictionService::StubInterface;
  if (const auto status = server.Call(&Stub::GetModelMetadata, what, &metadata); !status.ok())
    return Fail(status, question);
  const auto input = InputOf(metadata, signature);
  if (!input) return Fail(input.error().text());
  const auto row = ToRow(*image, *input, question.scale);
  if (!row) return Fail(question.image + ": " + row.error().text());
  tfs::PredictRequest request;
  request.mutable_model_spec()->set_name(question.model);
  request.mutable_model_spec()->set_signature_name(signature);
  ToProto(*row, (*request.mutable_inputs())[input->name]);
  const auto begun = std::chrono::steady_clock::now();
  tfs::PredictResponse response;
  if (const auto status = server.Call(&Stub::Predict, request, &response); !status.ok())
    return Fail(status, question);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (question.json) return PrintJson(response, took.count());
  std::string text;
  google::protobuf::TextFormat::PrintToString(response, &text);
  fmt::print("{}time elapsed: {:.6f}\n", text, took.count());
  return 0;
}

}  // namespace serve
