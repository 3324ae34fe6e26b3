// Tensors as values, and the few facts about TensorFlow's types that everybody needs who passes one
// on. Knows nothing of TensorFlow itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensor {

// Numbered as TensorFlow's DataType.
enum class Type : int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// "DT_FLOAT"; "DT_8" for one that we do not serve.
std::string NameOf(Type type);
// Whether values of this type can be sent and received.
bool IsServed(Type type);
// Bytes an element has; 0 for strings and for types that are not served.
size_t SizeOf(Type type);

using Shape = std::vector<int64_t>;  // -1: unknown

// The number of elements; nothing when a size is negative or the product passes 2^40.
std::optional<int64_t> ElementsOf(const Shape& shape);
std::string ToString(const Shape& shape);  // "(-1,28,28,1)"

struct Tensor {
  Type type = Type::kInvalid;
  Shape shape;
  std::string bytes;                 // row by row, as this machine has them; not of strings
  std::vector<std::string> strings;  // one an element, of strings

  bool operator==(const Tensor&) const = default;
};

// IEEE half precision and bfloat16, to and from float; to the nearest, ties to even.
float HalfToFloat(uint16_t half);
uint16_t FloatToHalf(float value);
inline float Bfloat16ToFloat(uint16_t value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value) << 16);
}
uint16_t FloatToBfloat16(float value);

}  // namespace tensor
