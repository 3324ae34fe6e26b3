// Writes event files byte by byte: what tests and benchmarks read.
//
// A message is a string of its serialized fields, put together with +:
//
//   Record(EventOf(step, wall_time, ScalarTf2("loss", 0.5)))
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/crc32c.h"

namespace events {

template <typename T>
std::string Raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string VarintOf(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string VarintField(uint32_t field, uint64_t value) {
  return VarintOf(field << 3) + VarintOf(value);
}

inline std::string BytesField(uint32_t field, std::string_view bytes) {
  return (VarintOf(field << 3 | 2) + VarintOf(bytes.size())).append(bytes);
}

inline std::string DoubleField(uint32_t field, double value) {
  return VarintOf(field << 3 | 1) + Raw(value);
}

inline std::string FloatField(uint32_t field, float value) {
  return VarintOf(field << 3 | 5) + Raw(value);
}

// Summary.Value as TF1 writes it.
inline std::string ScalarTf1(std::string_view tag, float value) {
  return BytesField(1, tag) + FloatField(2, value);
}

// TensorProto with no dimension: dtype and whatever field holds the number.
inline std::string TensorOf(uint64_t dtype, std::string_view number_field) {
  return (VarintField(1, dtype) + BytesField(2, "")).append(number_field);
}

inline std::string MetadataOf(std::string_view plugin) {
  return BytesField(9, BytesField(1, BytesField(1, plugin)));
}

// Summary.Value as TF2 writes it: tf.summary.scalar of a float.
inline std::string ScalarTf2(std::string_view tag, float value) {
  return BytesField(1, tag) + BytesField(8, TensorOf(1, BytesField(4, Raw(value)))) +
         MetadataOf("scalars");
}

// An Event with one Summary.Value.
inline std::string EventOf(int64_t step, double wall_time, std::string_view value) {
  return DoubleField(1, wall_time) + VarintField(2, static_cast<uint64_t>(step)) +
         BytesField(5, BytesField(1, value));
}

inline std::string FileVersion() { return DoubleField(1, 1.5e9) + BytesField(3, "brain.Event:2"); }

inline std::string SessionStart(int64_t step) {
  return VarintField(2, static_cast<uint64_t>(step)) + BytesField(7, VarintField(1, 1));
}

inline std::string Record(std::string_view data) {
  const std::string length = Raw<uint64_t>(data.size());
  return (length + Raw(base::Masked(base::Crc32c(length)))).append(data) +
         Raw(base::Masked(base::Crc32c(data)));
}

}  // namespace events
