#include "serve/warmup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "events/record_reader.h"
#include "io/files.h"
#include "serve/tensor_proto.h"
#include "serving.pb.h"

namespace serve {
namespace {

constexpr size_t kMostRecords = 1000;             // as TensorFlow Serving
constexpr int64_t kMostZeros = int64_t{1} << 24;  // elements; a larger row is not worth its time

Answer<WarmupRun> RunOf(const Signatures& signatures,
                        const tensorflow::serving::PredictionLog& log) {
  WarmupRun run;
  if (log.has_predict_log()) {
    const auto& request = log.predict_log().request();
    run.signature = TRY(signatures.Find(request.model_spec().signature_name()));
    run.inputs = TRY(InputsOf(request, *run.signature));
  } else {
    const bool classify = log.has_classify_log();
    const auto& spec = classify ? log.classify_log().request().model_spec()
                                : log.regress_log().request().model_spec();
    run.signature = TRY(signatures.Find(spec.signature_name()));
    run.inputs = TRY(ExamplesOf(
        classify ? log.classify_log().request().input() : log.regress_log().request().input(),
        *run.signature));
  }
  TRY(CheckInputs(*run.signature, run.inputs));
  return run;
}

}  // namespace

std::vector<tensor::Tensor> Zeros(const Signature& signature) {
  std::vector<tensor::Tensor> out;
  for (const End& end : signature.inputs) {
    tensor::Tensor zeros{.type = end.type, .shape = end.shape.value_or(tensor::Shape{})};
    for (int64_t& size : zeros.shape) size = size < 0 ? 1 : size;
    const int64_t elements = tensor::ElementsOf(zeros.shape).value_or(kMostZeros + 1);
    if (elements > kMostZeros) return {};
    zeros.bytes.resize(static_cast<size_t>(elements) * tensor::SizeOf(end.type));
    if (end.type == tensor::Type::kString) zeros.strings.resize(static_cast<size_t>(elements));
    out.push_back(std::move(zeros));
  }
  return out;
}

Warmup WarmupOf(const Signatures& signatures, const std::string& directory) {
  Warmup out;
  const std::string path = directory + "/assets.extra/tf_serving_warmup_requests";
  const io::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now{};
  if (file.valid() && fstat(file.get(), &now) == 0) {
    events::RecordReader reader;
    reader.Start(file.get(), 0, static_cast<uint64_t>(now.st_size));
    while (out.runs.size() < kMostRecords &&
           reader.Next() == events::RecordReader::Found::kRecord) {
      tensorflow::serving::PredictionLog log;
      const auto record = reader.record();
      if (!log.ParseFromArray(record.data(), static_cast<int>(record.size()))) break;
      // One that does not fit this model warms nothing, and does no harm.
      if (auto run = RunOf(signatures, log)) out.runs.push_back(std::move(*run));
    }
  }
  out.recorded = !out.runs.empty();
  if (out.recorded) return out;
  for (const auto& [name, signature] : signatures.by_name) {
    if (!signature.trouble.empty() || !signature.effect.empty()) continue;
    auto zeros = Zeros(signature);
    if (zeros.size() == signature.inputs.size())
      out.runs.push_back({.signature = &signature, .inputs = std::move(zeros)});
  }
  return out;
}

}  // namespace serve
