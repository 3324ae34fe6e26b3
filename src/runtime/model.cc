#include "runtime/model.h"

#include <cstring>
#include <memory>

#include "base/strings.h"

namespace runtime {
namespace {

using tensor::Failure;
using tensor::Type;

constexpr int32_t kInvalidArgument = 3;
constexpr int32_t kUnimplemented = 12;
constexpr int32_t kInternal = 13;

// A ConfigProto by hand: field 2, threads within an operation; field 5, threads that operations are
// shared between; field 7, a device that is not here is replaced by one that is; field 9, pools of
// this session's own. Where one thread does it all, it is the one that asks (-1): to wake another
// and to wait for it costs a small model more than its arithmetic.
std::string Config(int32_t threads) {
  const char count = static_cast<char>(std::min(std::max(threads, 1), 127));
  std::string out = {0x10, count, 0x38, 1};
  if (count == 1) return out + "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  return out + std::string{0x28, count, 0x48, 1};
}

}  // namespace

std::expected<std::vector<TF_Output>, Failure> Model::Find(
    const std::vector<std::string>& names) const {
  std::vector<TF_Output> out;
  for (const std::string& name : names) {
    const size_t colon = name.rfind(':');
    const auto index =
        colon == std::string::npos ? 0 : base::ParseInt(std::string_view(name).substr(colon + 1));
    TF_Operation* operation = tf_.GraphOperationByName(graph_, name.substr(0, colon).c_str());
    if (!operation || !index || *index < 0 || *index >= tf_.OperationNumOutputs(operation))
      return std::unexpected(Failure{
          kInvalidArgument, "the graph has no tensor '" + name + "' that its signature names"});
    out.push_back({operation, static_cast<int>(*index)});
  }
  return out;
}

std::expected<void, Failure> Model::Load(const tensor::Load& load) {
  const std::unique_ptr<TF_Status, void (*)(TF_Status*)> status(tf_.NewStatus(), tf_.DeleteStatus);
  const auto failed = [&] {
    return std::unexpected(Failure{tf_.GetCode(status.get()), tf_.Message(status.get())});
  };
  TF_SessionOptions* options = tf_.NewSessionOptions();
  const std::string config = Config(load.threads);
  tf_.SetConfig(options, config.data(), config.size(), status.get());
  if (tf_.GetCode(status.get()) != 0) return failed();
  graph_ = tf_.NewGraph();
  const char* tags[] = {"serve"};
  session_ = tf_.LoadSessionFromSavedModel(options, nullptr, load.directory.c_str(), tags, 1,
                                           graph_, nullptr, status.get());
  tf_.DeleteSessionOptions(options);
  if (tf_.GetCode(status.get()) != 0) return failed();
  for (const tensor::SignatureNames& names : load.signatures) {
    Ends ends;
    ends.inputs = TRY(Find(names.inputs));
    ends.outputs = TRY(Find(names.outputs));
    signatures_.push_back(std::move(ends));
  }
  return {};
}

TF_Tensor* Model::Make(const tensor::TensorView& view) const {
  const bool strings = view.type == Type::kString;
  const size_t size = strings ? view.strings.size() * sizeof(TF_TString) : view.bytes.size();
  TF_Tensor* out = tf_.AllocateTensor(static_cast<int>(view.type), view.shape.data(),
                                      static_cast<int>(view.shape.size()), size);
  if (!out) return nullptr;
  if (!strings) {
    if (size > 0) memcpy(tf_.TensorData(out), view.bytes.data(), size);
    return out;
  }
  auto* to = static_cast<TF_TString*>(tf_.TensorData(out));
  for (const std::string_view text : view.strings) {
    tf_.StringInit(to);
    tf_.StringCopy(to++, text.data(), text.size());
  }
  return out;
}

std::expected<tensor::Tensor, Failure> Model::Take(const TF_Tensor* from) const {
  tensor::Tensor out{.type = static_cast<Type>(tf_.TensorType(from))};
  if (!tensor::IsServed(out.type))
    return std::unexpected(
        Failure{kUnimplemented, "an output of type " + NameOf(out.type) + " cannot be served"});
  for (int i = 0; i < tf_.NumDims(from); ++i) out.shape.push_back(tf_.Dim(from, i));
  const auto count = static_cast<size_t>(tensor::ElementsOf(out.shape).value_or(0));
  const void* data = tf_.TensorData(from);
  if (out.type != Type::kString) {
    out.bytes.assign(static_cast<const char*>(data), count * SizeOf(out.type));
    return out;
  }
  const auto* texts = static_cast<const TF_TString*>(data);
  for (size_t i = 0; i < count; ++i)
    out.strings.emplace_back(tf_.StringGetDataPointer(texts + i), tf_.StringGetSize(texts + i));
  return out;
}

// Strings that we made are ours to free; those that TensorFlow made go with their tensor. An output
// may be an input, in the same memory, so outputs go first; and if the model itself has kept one,
// it stays.
void Model::Free(std::vector<TF_Tensor*>& tensors, bool ours) const {
  for (TF_Tensor* each : tensors) {
    if (!each) continue;
    if (ours && tf_.TensorType(each) == static_cast<int>(Type::kString) &&
        tf_.TensorMaybeMove(each)) {
      auto* texts = static_cast<TF_TString*>(tf_.TensorData(each));
      const size_t count = tf_.TensorByteSize(each) / sizeof(TF_TString);
      for (size_t i = 0; i < count; ++i) tf_.StringDealloc(texts + i);
    }
    tf_.DeleteTensor(each);
  }
  tensors.clear();
}

std::expected<std::string, Failure> Model::Run(const tensor::Run& run) const {
  if (run.signature >= signatures_.size() ||
      run.inputs.size() != signatures_[run.signature].inputs.size())
    return std::unexpected(Failure{kInternal, "a run that does not fit the model"});
  const Ends& ends = signatures_[run.signature];
  std::vector<TF_Tensor*> inputs;
  for (const tensor::TensorView& view : run.inputs) inputs.push_back(Make(view));
  std::vector<TF_Tensor*> outputs(ends.outputs.size(), nullptr);
  const std::unique_ptr<TF_Status, void (*)(TF_Status*)> status(tf_.NewStatus(), tf_.DeleteStatus);
  tf_.SessionRun(session_, nullptr, ends.inputs.data(), inputs.data(),
                 static_cast<int>(inputs.size()), ends.outputs.data(), outputs.data(),
                 static_cast<int>(outputs.size()), nullptr, 0, nullptr, status.get());
  std::expected<std::string, Failure> answer;
  if (tf_.GetCode(status.get()) != 0) {
    answer = std::unexpected(Failure{tf_.GetCode(status.get()), tf_.Message(status.get())});
  } else {
    std::vector<tensor::Tensor> taken;
    for (const TF_Tensor* each : outputs) {
      auto value = Take(each);
      if (!value) {
        answer = std::unexpected(value.error());
        break;
      }
      taken.push_back(std::move(*value));
    }
    if (answer) answer = tensor::EncodeTensors(taken);
  }
  Free(outputs, false);
  Free(inputs, true);
  return answer;
}

}  // namespace runtime
