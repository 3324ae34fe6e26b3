// Bodies of predict requests, read for signatures of several kinds; what can be read is as large as
// its shape says, and the answers made of it are JSON again.
#include <cstdint>
#include <string_view>

#include "serve/examples_json.h"
#include "serve/predict_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tensor::Type;
  static const std::vector<serve::Signature> kSignatures = {
      {.name = "a", .inputs = {{.name = "x", .type = Type::kFloat}}},
      {.name = "b", .inputs = {{.name = "t", .type = Type::kString}}},
      {.name = "c",
       .inputs = {{.name = "x", .type = Type::kInt8}, {.name = "y", .type = Type::kBool}}},
      {.name = "d",
       .inputs = {{.name = "x", .type = Type::kHalf}, {.name = "z", .type = Type::kUint64}}},
  };
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto body = serve::ReadPredictBody(text);
  const auto guess = serve::GuessPredictBody(text);
  for (const serve::Signature& signature : kSignatures) {
    // What is read by a guess is what is read without.
    if (const auto guessed =
            guess ? serve::ReadInputs(*guess, signature) : std::unexpected(serve::Status())) {
      CHECK(body && body->signature_name == guess->signature_name && body->rows == guess->rows);
      CHECK(serve::ReadInputs(*body, signature) == guessed);
    }
    if (!body) break;
    const auto inputs = serve::ReadInputs(*body, signature);
    CHECK(inputs == serve::ReadInputsByValue(*body, signature));
    if (!inputs) continue;
    for (const tensor::Tensor& input : *inputs) {
      const auto elements = tensor::ElementsOf(input.shape);
      CHECK(elements);
      const auto count = static_cast<size_t>(*elements);
      CHECK(input.type == Type::kString ? input.strings.size() == count
                                        : input.bytes.size() == count * tensor::SizeOf(input.type));
    }
    // What was asked is also what an answer could be, and it reads back the same.
    serve::Signature back = signature;
    back.outputs = back.inputs;
    const std::string out = serve::WriteOutputs(back, *inputs);
    const auto again = serve::ReadPredictBody("{\"inputs\": " + out.substr(out.find(':') + 1));
    CHECK(again);
  }
  (void)serve::ReadExamplesBody(text).has_value();
  return 0;
}
