// The protocol between the server and a runtime, its child process that has TensorFlow: frames over
// a stream socket. Pure; the fuzz target is runtime_frame_fuzz.
//
// A frame is a head of 32 bytes (mark, kind, number of the call, length, checksums of the payload
// and of the head) and a payload. Numbers are as this machine has them: both ends are on it. Each
// call of the server is answered once, with kDone or kFailed and its number, in any order. Neither
// end trusts the other: a runtime runs whatever model it was given, so a length, a count or a
// checksum that does not fit is an error of the whole stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace tensor {

inline constexpr size_t kHeadBytes = 32;
inline constexpr uint64_t kMostPayload = uint64_t{2} << 30;
inline constexpr size_t kMostRank = 254;  // TensorFlow's own

enum class Frame : uint32_t {
  kLoad = 1,    // server: the model and its signatures
  kRun = 2,     // server: a signature and its inputs
  kDone = 3,    // runtime: the outputs of a run; of a load, one string: the version of TensorFlow
  kFailed = 4,  // runtime: a code and a text
};

struct Head {
  Frame frame = Frame::kRun;
  uint64_t call = 0;
  uint64_t length = 0;
  uint32_t checksum = 0;  // of the payload
};

// Head and payload, ready to be sent.
std::string Encode(Frame frame, uint64_t call, std::string_view payload);
// Writes the head of a frame whose payload stands behind the first kHeadBytes of `bytes` already.
void FillHead(Frame frame, uint64_t call, std::string& bytes);
// `bytes` has kHeadBytes.
base::Result<Head> DecodeHead(std::string_view bytes);
base::Result<> CheckPayload(const Head& head, std::string_view payload);

struct SignatureNames {
  std::vector<std::string> inputs, outputs;  // tensors of the graph: "x:0"

  bool operator==(const SignatureNames&) const = default;
};

struct Load {
  std::string directory;
  bool temporary = false;  // has only links, and goes with the server if that dies first
  int32_t threads = 1;  // that TensorFlow may use for one run
  std::vector<SignatureNames> signatures;

  bool operator==(const Load&) const = default;
};

std::string EncodeLoad(const Load& load);
base::Result<Load> DecodeLoad(std::string_view payload);

// Appends the payload of a run to what `out` has. Of several requests in one batch: each input is
// their inputs one below the other, along the first dimension.
void AppendRun(uint32_t signature, std::span<const std::vector<Tensor>* const> requests,
               std::string& out);

std::string EncodeTensors(std::span<const Tensor> tensors);
base::Result<std::vector<Tensor>> DecodeTensors(std::string_view payload);

// A tensor where it lies in a payload.
struct TensorView {
  Type type = Type::kInvalid;
  Shape shape;
  std::string_view bytes;                 // not of strings
  std::vector<std::string_view> strings;  // of strings
};

struct Run {
  uint32_t signature = 0;
  std::vector<TensorView> inputs;
};
base::Result<Run> DecodeRun(std::string_view payload);

struct Failure {
  int32_t code = 0;  // as gRPC numbers them
  std::string text;

  bool operator==(const Failure&) const = default;
};
std::string EncodeFailure(const Failure& failure);
base::Result<Failure> DecodeFailure(std::string_view payload);

}  // namespace tensor
