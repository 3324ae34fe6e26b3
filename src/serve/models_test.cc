// Models, versions and requests, with a runtime that needs no TensorFlow: this program itself,
// started as the server starts a runtime. What its model computes is in the name of its output.
#include "serve/models.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/files.h"
#include "serving.pb.h"

namespace {

constexpr const char* kIsRuntime = "TRAINYARD_FAKE_RUNTIME";

bool ReadAll(char* to, size_t size) {
  while (size > 0) {
    const ssize_t got = read(3, to, size);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

void WriteAll(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t put = write(3, bytes.data() + done, bytes.size() - done);
    if (put <= 0) _exit(0);
    done += static_cast<size_t>(put);
  }
}

// "same": the input. "total": each value is the sum of all. "count": the number of runs, the first
// row of each input is counted. "wait": the input, once the file `go` is in the model's directory's
// parent.
std::vector<tensor::Tensor> Compute(const std::string& output, const std::string& directory,
                                    const tensor::TensorView& x) {
  static float count = 0;
  tensor::Tensor y{.type = x.type, .shape = x.shape, .bytes = std::string(x.bytes)};
  std::vector<float> values(y.bytes.size() / sizeof(float));
  memcpy(values.data(), y.bytes.data(), y.bytes.size());
  if (output == "total") {
    float sum = 0;
    for (const float value : values) sum += value;
    std::ranges::fill(values, sum);
  } else if (output == "count") {
    ++count;
    std::ranges::fill(values, count);
  } else if (output == "wait") {
    while (!std::filesystem::exists(directory + "/go")) usleep(1000);
  }
  memcpy(y.bytes.data(), values.data(), y.bytes.size());
  return {y};
}

int Runtime() {
  std::string output, directory;
  while (true) {
    char bytes[tensor::kHeadBytes];
    if (!ReadAll(bytes, sizeof bytes)) return 0;
    const auto head = tensor::DecodeHead({bytes, sizeof bytes});
    std::string payload(head->length, 0);
    if (!ReadAll(payload.data(), payload.size())) return 0;
    if (head->frame == tensor::Frame::kLoad) {
      const auto load = tensor::DecodeLoad(payload);
      output = load->signatures[0].outputs[0];
      directory = getenv(kIsRuntime);
      const tensor::Tensor version{.type = tensor::Type::kString, .strings = {"fake"}};
      WriteAll(tensor::Encode(tensor::Frame::kDone, head->call,
                              tensor::EncodeTensors({&version, 1})));
      continue;
    }
    const auto run = tensor::DecodeRun(payload);
    const auto outputs = Compute(output, directory, run->inputs[0]);
    WriteAll(tensor::Encode(tensor::Frame::kDone, head->call, tensor::EncodeTensors(outputs)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && getenv(kIsRuntime)) return Runtime();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

namespace serve {
namespace {

using namespace std::chrono_literals;
using tensor::Tensor;
using tensor::Type;
namespace fs = std::filesystem;

constexpr auto kPatience = 60s;

Tensor Row(float value) {
  Tensor out{.type = Type::kFloat, .shape = {1, 1}};
  out.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}

float ValueOf(const Tensor& row) {
  float out = 0;
  memcpy(&out, row.bytes.data(), sizeof out);
  return out;
}

class ModelsTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/models_test-XXXXXX";
    ASSERT_TRUE(mkdtemp(path));
    root_ = path;
    setenv(kIsRuntime, path, 1);
    engine_.program = fs::read_symlink("/proc/self/exe");
    engine_.libraries = "none";
  }
  void TearDown() override {
    models_.reset();
    fs::remove_all(root_);
    unsetenv(kIsRuntime);
  }

  // A SavedModel, as far as the server reads it.
  void Write(const std::string& model, int64_t version, const std::string& output = "same") {
    tensorflow::SavedModel saved;
    auto* graph = saved.add_meta_graphs();
    graph->mutable_meta_info_def()->add_tags("serve");
    auto* op = graph->mutable_meta_info_def()->mutable_stripped_op_list()->add_op();
    op->set_name("Op");
    op->set_is_stateful(output == "count" || output == "wait");
    auto* node = graph->mutable_graph_def()->add_node();
    node->set_name(output);
    node->set_op("Op");
    auto& signature = (*graph->mutable_signature_def())["serving_default"];
    for (auto* end : {&(*signature.mutable_inputs())["x"], &(*signature.mutable_outputs())["y"]}) {
      end->set_name(output);
      end->set_dtype(tensorflow::DT_FLOAT);
      end->mutable_tensor_shape()->add_dim()->set_size(-1);
      end->mutable_tensor_shape()->add_dim()->set_size(1);
    }
    const std::string directory = fmt::format("{}/{}/{}", root_, model, version);
    fs::create_directories(directory);
    ASSERT_TRUE(io::WriteFile(directory + "/saved_model.pb", saved.SerializeAsString()));
  }

  ModelConfig Config(const std::string& name, VersionPolicy policy = {},
                     std::map<std::string, int64_t> labels = {}) {
    return {.name = name, .base_path = root_ + "/" + name, .policy = policy, .labels = labels};
  }

  void Start(const std::vector<ModelConfig>& configs) {
    models_.emplace(engine_, counters_,
                    Models::Options{.poll = 10ms, .settled = 10ms, .say = [](const std::string&) {}});
    models_->Configure(configs);
    const auto until = Steady::now() + kPatience;
    const auto ready = models_->WaitUntilReady([&] { return Steady::now() > until; });
    ASSERT_TRUE(ready) << ready.error().text;
  }

  std::future<Answer<std::vector<Tensor>>> Submit(const std::string& model, float value,
                                                  Caller caller = {}, std::string_view label = "") {
    auto promise = std::make_shared<std::promise<Answer<std::vector<Tensor>>>>();
    const auto found = models_->Find(model, std::nullopt, label);
    if (!found) {
      promise->set_value(std::unexpected(found.error()));
      return promise->get_future();
    }
    const Signature& signature = **(*found)->signatures().Find("");
    std::vector<Tensor> inputs = {Row(value)};
    const auto rows = CheckInputs(signature, inputs);
    (*found)->Submit(signature, std::move(inputs), *rows, std::move(caller),
                     [promise, held = *found](auto answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }

  Answer<> Reload(const std::vector<ModelConfig>& configs) {
    auto promise = std::make_shared<std::promise<Answer<>>>();
    models_->Reload(configs, [promise](Answer<> answer) { promise->set_value(std::move(answer)); });
    return promise->get_future().get();
  }

  const Signature& SignatureOf(const std::string& model) {
    return **(*models_->Find(model, std::nullopt, ""))->signatures().Find("");
  }

  std::string root_;
  Engine engine_;
  Counters counters_;
  std::optional<Models> models_;
};

TEST_F(ModelsTest, RequestsShareABatchOnlyIfTheirRowsAreFoundToBeIndependent) {
  Write("same", 1);
  Write("total", 1, "total");
  Write("count", 1, "count");
  Start({Config("same"), Config("total"), Config("count")});
  EXPECT_TRUE(SignatureOf("same").batches) << SignatureOf("same").why_alone;
  EXPECT_FALSE(SignatureOf("total").batches);
  EXPECT_EQ(SignatureOf("count").why_alone, "it has side effects: Op");
}

TEST_F(ModelsTest, RequestsShareABatchIfTheUserAsksForIt) {
  engine_.batch_all = true;
  Write("total", 1, "total");
  Start({Config("total")});
  EXPECT_TRUE(SignatureOf("total").batches);
}

TEST_F(ModelsTest, NothingThatHasSideEffectsRunsBeforeSomebodyAsks) {
  Write("count", 1, "count");
  Start({Config("count")});
  EXPECT_EQ(ValueOf(Submit("count", 5).get()->front()), 1);
}

TEST_F(ModelsTest, RequestsThatNobodyWaitsForDoNotRun) {
  Write("wait", 1, "wait");
  Start({Config("wait")});
  auto running = Submit("wait", 1);
  std::atomic<bool> gone = false;
  auto cancelled = Submit("wait", 2, {.gone = [&] { return gone.load(); }});
  auto expired = Submit("wait", 3, {.deadline = Steady::now() + 10ms});
  auto stays = Submit("wait", 4);
  gone = true;
  // Both are answered while the runtime is busy.
  EXPECT_EQ(cancelled.get().error().code, Code::kCancelled);
  EXPECT_EQ(expired.get().error().code, Code::kDeadlineExceeded);
  ASSERT_TRUE(io::WriteFile(root_ + "/go", ""));
  EXPECT_EQ(ValueOf(running.get()->front()), 1);
  EXPECT_EQ(ValueOf(stays.get()->front()), 4);
  const std::string text = counters_.Text();
  EXPECT_NE(text.find(R"(status="CANCELLED"} 1)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(status="DEADLINE_EXCEEDED"} 1)"), std::string::npos) << text;
}

// The thread that delivers the answer then has the last reference to the model.
TEST_F(ModelsTest, TheServerStopsWhileAnAnswerIsDelivered) {
  Write("same", 1);
  Start({Config("same")});
  std::promise<void> delivering, stopping;
  auto found = *models_->Find("same", std::nullopt, "");
  const Signature& signature = **found->signatures().Find("");
  std::vector<Tensor> inputs = {Row(1)};
  const auto rows = CheckInputs(signature, inputs);
  Servable* const servable = found.get();
  servable->Submit(signature, std::move(inputs), *rows, {},
                   [&, held = std::move(found)](auto) {
                     delivering.set_value();
                     stopping.get_future().wait();
                     std::this_thread::sleep_for(50ms);  // so that the models go first
                   });
  delivering.get_future().wait();
  stopping.set_value();
  models_.reset();
}

TEST_F(ModelsTest, RequestsThatWaitWhenTheServerStopsAreAnswered) {
  Write("wait", 1, "wait");
  Start({Config("wait")});
  auto running = Submit("wait", 1);
  auto waiting = Submit("wait", 2);
  models_.reset();
  EXPECT_EQ(running.get().error().code, Code::kUnavailable);
  EXPECT_EQ(waiting.get().error().code, Code::kUnavailable);
}

TEST_F(ModelsTest, AReloadIsAnsweredWhenTheNewModelsAreServed) {
  Write("a", 1);
  Write("b", 7);
  Start({Config("a")});
  ASSERT_TRUE(Reload({Config("b", {}, {{"stable", 7}})}));
  EXPECT_TRUE(Submit("b", 1, {}, "stable").get());
  EXPECT_EQ(Submit("a", 1).get().error().code, Code::kNotFound);
}

TEST_F(ModelsTest, AReloadThatCannotBeServedChangesNothing) {
  Write("a", 1);
  Write("broken", 1);
  ASSERT_TRUE(io::WriteFile(root_ + "/broken/1/saved_model.pb", "nonsense"));
  Start({Config("a", {}, {{"stable", 1}})});
  const VersionPolicy two{.kind = VersionPolicy::Kind::kSpecific, .specific = {1, 2}};
  for (const auto& [config, why] : std::vector<std::pair<ModelConfig, std::string>>{
           {Config("nowhere"), "no version to serve in " + root_ + "/nowhere"},
           {Config("broken"), "broken version 1 does not load"},
           {Config("a", two), "no version 2 in " + root_ + "/a"},
           {Config("a", {}, {{"stable", 2}}), "label 'stable' names version 2"}}) {
    const auto answer = Reload({config});
    ASSERT_FALSE(answer) << why;
    EXPECT_NE(answer.error().text.find(why), std::string::npos) << answer.error().text;
    EXPECT_EQ(models_->names(), std::vector<std::string>{"a"});
    EXPECT_TRUE(Submit("a", 1, {}, "stable").get());
  }
}

// Run by ThreadSanitizer: requests by label while configurations and versions change.
TEST_F(ModelsTest, ALabelMovesWithoutAMissedRequest) {
  const VersionPolicy both{.kind = VersionPolicy::Kind::kAll};
  Write("m", 1);
  Start({Config("m", both, {{"stable", 1}})});
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0, answered = 0;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (!stop) {
        const auto answer = Submit("m", 1, {}, "stable").get();
        ++(answer ? answered : failed);
        models_->StatusOf("m");
        models_->names();
        models_->ready();
      }
    });
  }
  for (int64_t version = 2; version <= 5; ++version) {
    Write("m", version);
    ASSERT_TRUE(Reload({Config("m", both, {{"stable", version}})}));
    EXPECT_EQ((*models_->Find("m", std::nullopt, "stable"))->version(), version);
    fs::remove_all(fmt::format("{}/m/{}", root_, version - 1));
  }
  stop = true;
  clients.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(answered, 0);
}

TEST_F(ModelsTest, ReloadsEndWhenTheServerStops) {
  Write("a", 1);
  Start({Config("a")});
  models_->StopReloads();
  EXPECT_EQ(Reload({Config("a")}).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace serve
