// Frames of a runtime, which may be made to send anything: decoded, and if they can be, written
// again and found the same.
#include <cstdint>
#include <string_view>

#include "tensor/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() >= tensor::kHeadBytes) {
    const auto head = tensor::DecodeHead(bytes.substr(0, tensor::kHeadBytes));
    CHECK(!head || head->length <= tensor::kMostPayload);
    if (head) (void)tensor::CheckPayload(*head, bytes.substr(tensor::kHeadBytes)).has_value();
  }
  if (const auto tensors = tensor::DecodeTensors(bytes)) {
    const auto again = tensor::DecodeTensors(tensor::EncodeTensors(*tensors));
    CHECK(again && *again == *tensors);
  }
  if (const auto load = tensor::DecodeLoad(bytes)) {
    CHECK(tensor::EncodeLoad(*load) == bytes);
  }
  if (const auto failure = tensor::DecodeFailure(bytes)) {
    CHECK(tensor::EncodeFailure(*failure) == bytes);
  }
  const auto run = tensor::DecodeRun(bytes);
  CHECK(!run || run->inputs.size() <= size);
  return 0;
}
