#include "serve/rest.h"

#include <fmt/core.h>
#include <google/protobuf/util/json_util.h>

#include "base/json.h"
#include "base/metrics.h"
#include "base/strings.h"
#include "serve/examples_json.h"
#include "serve/gzip.h"
#include "serve/predict_json.h"
#include "serve/tensor_proto.h"
#include "serving.pb.h"
#include "web.h"

namespace serve {
namespace {

using base::JsonArray;
using base::JsonObject;
using io::ServerResponse;

constexpr std::string_view kModels = "/v1/models/";
constexpr std::string_view kJson = "application/json";

ServerResponse ToResponse(const Answer<std::string>& answer) {
  if (answer) return {.content_type = std::string(kJson), .body = *answer};
  const std::string text = Readable(answer.error().text);
  ServerResponse out{.status = HttpStatusOf(answer.error().code),
                     .content_type = std::string(kJson),
                     .body = base::CompactJson(JsonObject{{"error", text}}) + "\n"};
  if (out.status == 429) out.headers.emplace_back("Retry-After", "1");
  if (out.status == 401) out.headers.emplace_back("WWW-Authenticate", "Bearer");
  return out;
}

std::string_view NameOf(State state) {
  switch (state) {
    case State::kStart:
      return "START";
    case State::kLoading:
      return "LOADING";
    case State::kAvailable:
      return "AVAILABLE";
    case State::kUnloading:
      return "UNLOADING";
    case State::kEnd:
      return "END";
  }
  return "UNKNOWN";
}

std::string StatusJson(const std::vector<VersionStatus>& versions) {
  JsonArray list;
  for (const VersionStatus& each : versions) {
    list.push_back(
        JsonObject{{"version", std::to_string(each.version)},
                   {"state", NameOf(each.state)},
                   {"status", JsonObject{{"error_code", NameOf(each.status.code)},
                                         {"error_message", Readable(each.status.text)}}}});
  }
  return base::IndentedJson(JsonObject{{"model_version_status", std::move(list)}});
}

Answer<std::string> MetadataJson(const Servable& servable) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string signatures;
  const auto& definitions = *servable.signatures().definitions;
  if (!google::protobuf::util::MessageToJsonString(definitions, &signatures, options).ok())
    return Refused(Code::kInternal, "the signatures cannot be written as JSON");
  const auto parsed = base::ParseJson(signatures);
  if (!parsed) return Refused(Code::kInternal, "the signatures cannot be written as JSON");
  return base::IndentedJson(
      JsonObject{{"model_spec", JsonObject{{"name", servable.model()},
                                           {"signature_name", ""},
                                           {"version", std::to_string(servable.version())}}},
                 {"metadata", JsonObject{{"signature_def", *parsed}}}});
}

Answer<std::string> Predicted(const Answer<Answered>& answered, bool rows) {
  if (!answered) return std::unexpected(answered.error());
  return rows ? WritePredictions(*answered->by.signature, answered->outputs)
              : WriteOutputs(*answered->by.signature, answered->outputs);
}

struct Read {
  Asked asked;
  bool rows;
  std::vector<tensor::Tensor> inputs;
};

Answer<Read> ReadPredict(const Models& models, Target target, const PredictBody& body) {
  target.signature = body.signature_name;
  Asked asked = TRY(FindTarget(models, target));
  std::vector<tensor::Tensor> inputs = TRY(ReadInputs(body, *asked.signature));
  return Read{std::move(asked), body.rows, std::move(inputs)};
}

Answer<Read> ReadPredict(const Models& models, const Target& target, std::string_view text) {
  if (const auto guess = GuessPredictBody(text)) {
    if (auto read = ReadPredict(models, target, *guess)) return read;
  }
  return ReadPredict(models, target, TRY(ReadPredictBody(text)));
}

Caller CallerOf(const io::Reply& reply, base::Duration timeout) {
  return {.deadline = Steady::now() + timeout,
          .gone = [closed = reply.closed()] { return closed && closed->load(); }};
}

Answer<> Predict(const Models& models, const Target& target, std::string_view text, Caller caller,
                 io::Reply& reply) {
  Read read = TRY(ReadPredict(models, target, text));
  Ask(std::move(read.asked), std::move(read.inputs), std::move(caller),
      [reply = std::move(reply), rows = read.rows](auto answered) mutable {
        reply(ToResponse(Predicted(answered, rows)));
      });
  return {};
}

Answer<std::string> Judged(const Answer<Answered>& answered, bool classify) {
  if (!answered) return std::unexpected(answered.error());
  const Signature& signature = *answered->by.signature;
  if (classify) return WriteResult(TRY(Classification(signature, answered->outputs)));
  return WriteResult(TRY(Regression(signature, answered->outputs)));
}

Answer<> Judge(const Models& models, Target target, std::string_view text, bool classify,
               Caller caller, io::Reply& reply) {
  const ExamplesBody body = TRY(ReadExamplesBody(text));
  target.signature = body.signature_name;
  Asked asked = TRY(FindTarget(models, target));
  TRY(CheckMethod(*asked.signature, classify ? kClassifyMethod : kRegressMethod));
  std::vector<tensor::Tensor> inputs = TRY(ExamplesOf(*body.input, *asked.signature));
  Ask(std::move(asked), std::move(inputs), std::move(caller),
      [reply = std::move(reply), classify](auto answered) mutable {
        reply(ToResponse(Judged(answered, classify)));
      });
  return {};
}

// The page to try a model, which may load nothing from elsewhere and run nothing but its own
// script.
std::optional<ServerResponse> Page(std::string_view path) {
  ServerResponse out;
  if (path == "/") {
    out.content_type = "text/html; charset=utf-8";
    out.body = web::kTryHtml;
  } else if (path == "/try.css") {
    out.content_type = "text/css; charset=utf-8";
    out.body = web::kTryCss;
  } else if (path == "/try.js") {
    out.content_type = "text/javascript; charset=utf-8";
    out.body = web::kTryJs;
  } else {
    return std::nullopt;
  }
  out.headers = {{"Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                  "img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Cache-Control", "no-cache"}};
  return out;
}

}  // namespace

ServerResponse LateResponse(base::Duration timeout) {
  const auto seconds = std::chrono::duration<double>(timeout).count();
  return ToResponse(
      Refused(Code::kDeadlineExceeded, fmt::format("no answer within {:g} s", seconds)));
}

Answer<ModelPath> ParseModelPath(std::string_view path) {
  ModelPath out;
  const auto until = [&](std::string_view ends) {
    const std::string_view part = path.substr(0, path.find_first_of(ends));
    path.remove_prefix(part.size());
    return std::string(part);
  };
  out.target.model = until("/:");
  if (path.starts_with("/versions/")) {
    path.remove_prefix(std::string_view("/versions/").size());
    out.target.version = base::ParseInt(until("/:"));
    if (!out.target.version || *out.target.version < 0)
      return BadRequest("a version is a whole number");
  } else if (path.starts_with("/labels/")) {
    path.remove_prefix(std::string_view("/labels/").size());
    out.target.label = until("/:");
    if (out.target.label.empty()) return BadRequest("a label is missing");
  }
  if (!IsModelName(out.target.model)) return Refused(Code::kNotFound, "no model of such a name");
  out.rest = path;
  return out;
}

Answer<std::string> RestFront::GetModel(std::string_view path) const {
  const ModelPath parsed = TRY(ParseModelPath(path));
  const Target& target = parsed.target;
  if (parsed.rest == "/metadata") {
    const auto servable = TRY(models_.Find(target.model, target.version, target.label));
    return MetadataJson(*servable);
  }
  if (!parsed.rest.empty()) return Refused(Code::kNotFound, "there is nothing here");
  auto versions = models_.StatusOf(target.model);
  if (!versions) TRY(models_.Find(target.model, std::nullopt, ""));  // which says what there is
  std::optional<int64_t> only = target.version;
  if (!target.label.empty())
    only = TRY(models_.Find(target.model, std::nullopt, target.label))->version();
  if (only) {
    std::erase_if(*versions, [&](const VersionStatus& each) { return each.version != *only; });
    if (versions->empty())
      return Refused(Code::kNotFound,
                     fmt::format("model '{}' has no version {}", target.model, *only));
  }
  return StatusJson(*versions);
}

ServerResponse RestFront::Get(const io::ServerRequest& request) const {
  const std::string_view path = request.path;
  if (path.starts_with(kModels)) return ToResponse(GetModel(path.substr(kModels.size())));
  if (path == "/v1/models") {
    JsonArray names;
    for (const std::string& name : models_.names()) names.emplace_back(name);
    return ToResponse(base::IndentedJson(JsonObject{{"models", std::move(names)}}));
  }
  if (path == "/metrics" || path == "/monitoring/prometheus/metrics")
    return {.content_type = std::string(base::Metrics::kContentType), .body = counters_.Text()};
  return ToResponse(Refused(Code::kNotFound, "there is nothing here"));
}

Answer<> RestFront::Begin(const ModelPath& path, const io::ServerRequest& request,
                          io::Reply& reply) const {
  const std::string_view encoding = request.Header("content-encoding");
  std::string unpacked;
  std::string_view body = request.body;
  if (base::Lower(encoding) == "gzip") {
    unpacked = TRY(Gunzip(request.body, most_bytes_));
    body = unpacked;
  } else if (!encoding.empty() && base::Lower(encoding) != "identity") {
    return BadRequest(fmt::format("Content-Encoding {}: only gzip is understood",
                                  base::OneLine(encoding, 40)));
  }
  Caller caller = CallerOf(reply, timeout_);
  if (path.rest == ":predict")
    return Predict(models_, path.target, body, std::move(caller), reply);
  return Judge(models_, path.target, body, path.rest == ":classify", std::move(caller), reply);
}

void RestFront::Post(const io::ServerRequest& request, io::Reply reply) const {
  const auto refuse = [&](Status status, const std::string& model) {
    CountRefused(models_, counters_, model, status.code);
    reply(ToResponse(std::unexpected(std::move(status))));
  };
  const std::string_view path = request.path;
  if (!path.starts_with(kModels)) return refuse({Code::kNotFound, "there is nothing here"}, "");
  const auto parsed = ParseModelPath(path.substr(kModels.size()));
  if (!parsed) return refuse(parsed.error(), "");
  if (parsed->rest != ":predict" && parsed->rest != ":classify" && parsed->rest != ":regress")
    return refuse({Code::kNotFound, "a model can be asked to :predict, :classify or :regress"},
                  parsed->target.model);
  if (const auto begun = Begin(*parsed, request, reply); !begun)
    refuse(begun.error(), parsed->target.model);
}

void RestFront::Handle(io::ServerRequest request, io::Reply reply) {
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (get && request.path == "/healthz") return reply({.body = "ok\n"});
  if (get && request.path == "/readyz") {
    const bool ready = models_.ready();
    return reply({.status = ready ? 200 : 503, .body = ready ? "ready\n" : "not ready\n"});
  }
  if (get && request.path.starts_with("/readyz/")) {
    const auto found = models_.Find(std::string_view(request.path).substr(8), std::nullopt, "");
    const bool ready = found && (*found)->ready();
    return reply({.status = ready   ? 200
                            : found ? 503
                                    : HttpStatusOf(found.error().code),
                  .body = ready ? "ready\n" : "not ready\n"});
  }
  if (get) {
    if (auto page = Page(request.path)) return reply(std::move(*page));
  }
  if (const auto allowed = guard_.CheckHttp(request); !allowed) {
    counters_.Failed("", "", allowed.error().code);
    return reply(ToResponse(std::unexpected(allowed.error())));
  }
  if (get) return reply(Get(request));
  if (request.method == "POST") return Post(request, std::move(reply));
  reply({.status = 405, .body = "not by this method\n", .headers = {{"Allow", "GET, HEAD, POST"}}});
}

}  // namespace serve
