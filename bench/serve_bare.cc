// How often a model runs by the bare C API, with nobody around it: what serving is compared with.
//
//   serve_bare LIBRARIES MODEL INPUT OUTPUTS ROWS SECONDS pool|caller
//
// OUTPUTS are names with commas between. The input is (ROWS,28,28,1) of floats. TensorFlow has one
// thread: of a pool, as it does by itself, or the one that asks. Prints runs a second.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "runtime/tensorflow.h"

namespace {

using runtime::TF_Output;
using runtime::TF_Tensor;

constexpr int kFloat = 1;

// ConfigProto: one thread within operations, one or the caller's between them.
constexpr std::string_view kPool("\x10\x01\x28\x01", 4);
constexpr std::string_view kCaller("\x10\x01\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);

class Bare {
 public:
  explicit Bare(const runtime::TensorFlow& tf) : tf_(tf), status_(tf.NewStatus()) {}

  bool Load(const char* model, std::string_view config) {
    auto* options = tf_.NewSessionOptions();
    tf_.SetConfig(options, config.data(), config.size(), status_);
    graph_ = tf_.NewGraph();
    const char* tags[] = {"serve"};
    session_ =
        tf_.LoadSessionFromSavedModel(options, nullptr, model, tags, 1, graph_, nullptr, status_);
    return tf_.GetCode(status_) == 0;
  }

  TF_Output Find(std::string_view name) {
    const size_t colon = name.rfind(':');
    return {tf_.GraphOperationByName(graph_, std::string(name.substr(0, colon)).c_str()),
            atoi(std::string(name.substr(colon + 1)).c_str())};
  }

  bool Run(TF_Output input, const std::vector<TF_Output>& outputs, int64_t rows) {
    const int64_t shape[] = {rows, 28, 28, 1};
    const size_t size = static_cast<size_t>(rows) * 784 * sizeof(float);
    TF_Tensor* const given = tf_.AllocateTensor(kFloat, shape, 4, size);
    memset(tf_.TensorData(given), 0, size);
    std::vector<TF_Tensor*> got(outputs.size());
    tf_.SessionRun(session_, nullptr, &input, &given, 1, outputs.data(), got.data(),
                   static_cast<int>(got.size()), nullptr, 0, nullptr, status_);
    tf_.DeleteTensor(given);
    for (TF_Tensor* each : got) {
      if (each) tf_.DeleteTensor(each);
    }
    return tf_.GetCode(status_) == 0;
  }

 private:
  const runtime::TensorFlow& tf_;
  runtime::TF_Status* status_;
  runtime::TF_Graph* graph_ = nullptr;
  runtime::TF_Session* session_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto tensorflow = runtime::OpenTensorFlow(argv[1]);
  if (!tensorflow) return 1;
  Bare model(*tensorflow);
  if (!model.Load(argv[2], strcmp(argv[7], "caller") == 0 ? kCaller : kPool)) return 1;
  const TF_Output input = model.Find(argv[3]);
  std::vector<TF_Output> outputs;
  for (const auto name : base::Split(argv[4], ',')) outputs.push_back(model.Find(name));
  const int64_t rows = atoi(argv[5]);
  for (int i = 0; i < 50; ++i) {
    if (!model.Run(input, outputs, rows)) return 1;
  }
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const auto until = begun + std::chrono::duration<double>(atof(argv[6]));
  int64_t count = 0;
  while (Clock::now() < until) {
    if (!model.Run(input, outputs, rows)) return 1;
    ++count;
  }
  printf("%.1f\n",
         static_cast<double>(count) / std::chrono::duration<double>(Clock::now() - begun).count());
  fflush(stdout);
  _Exit(0);  // TensorFlow's threads need no farewell
}
