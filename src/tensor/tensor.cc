#include "tensor/tensor.h"

#include <array>
#include <bit>
#include <cmath>

namespace tensor {
namespace {

struct Fact {
  Type type;
  const char* name;
  size_t size;
};

constexpr std::array kFacts = {
    Fact{Type::kFloat, "DT_FLOAT", 4},   Fact{Type::kDouble, "DT_DOUBLE", 8},
    Fact{Type::kInt32, "DT_INT32", 4},   Fact{Type::kUint8, "DT_UINT8", 1},
    Fact{Type::kInt16, "DT_INT16", 2},   Fact{Type::kInt8, "DT_INT8", 1},
    Fact{Type::kString, "DT_STRING", 0}, Fact{Type::kInt64, "DT_INT64", 8},
    Fact{Type::kBool, "DT_BOOL", 1},     Fact{Type::kBfloat16, "DT_BFLOAT16", 2},
    Fact{Type::kUint16, "DT_UINT16", 2}, Fact{Type::kHalf, "DT_HALF", 2},
    Fact{Type::kUint32, "DT_UINT32", 4}, Fact{Type::kUint64, "DT_UINT64", 8},
};

const Fact* FactOf(Type type) {
  for (const Fact& fact : kFacts) {
    if (fact.type == type) return &fact;
  }
  return nullptr;
}

}  // namespace

std::string NameOf(Type type) {
  const Fact* fact = FactOf(type);
  return fact ? fact->name : "DT_" + std::to_string(static_cast<int>(type));
}

bool IsServed(Type type) { return FactOf(type) != nullptr; }

size_t SizeOf(Type type) {
  const Fact* fact = FactOf(type);
  return fact ? fact->size : 0;
}

std::optional<int64_t> ElementsOf(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t product = 1;
  for (const int64_t size : shape) {
    if (size < 0 || size > kMost) return std::nullopt;
    if (size != 0 && product > kMost / size) return std::nullopt;
    product *= size;
  }
  return product;
}

std::string ToString(const Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(shape[i]);
  }
  return out + ")";
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(value)) return sign | 0x7e00u;
  const float size = std::fabs(value);
  if (size >= 65520.0f) return sign | 0x7c00u;
  if (size < std::ldexp(1.0f, -14)) {
    // A multiple of 2^-24; the rounding mode is to the nearest, ties to even.
    return static_cast<uint16_t>(sign |
                                 static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 24))));
  }
  uint32_t rounded = (bits & 0x7fffffffu) + 0xfffu + ((bits >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace tensor
