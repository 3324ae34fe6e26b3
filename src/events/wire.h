// Protocol Buffers' wire format, as far as reading needs it.
//
//   WireReader reader(bytes);
//   while (reader.Next()) {
//     if (reader.field() == 2 && reader.type() == WireType::kVarint) step = reader.number();
//   }
//   if (!reader.ok()) ...  // what came before the bad byte was given out all the same
//
// Each field is passed whole by Next, so one that is not asked about is skipped. Groups (dead since
// proto2, never used by TensorFlow) count as malformed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace events {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Inlined into each loop, where its members become registers: reading is half as fast otherwise.
  [[gnu::always_inline]] bool Next() {
    if (at_ == end_) return false;
    uint64_t key;
    if (!Varint(&key)) return Fail();
    field_ = static_cast<uint32_t>(key >> 3);
    type_ = static_cast<WireType>(key & 7);
    if (field_ == 0 || key > UINT32_MAX) return Fail();
    switch (type_) {
      case WireType::kVarint:
        return Varint(&number_) || Fail();
      case WireType::kFixed64:
        return Fixed<uint64_t>() || Fail();
      case WireType::kFixed32:
        return Fixed<uint32_t>() || Fail();
      case WireType::kBytes:
        return Bytes() || Fail();
    }
    return Fail();
  }

  bool ok() const { return ok_; }
  uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  bool Is(uint32_t field, WireType type) const { return field_ == field && type_ == type; }

  uint64_t number() const { return number_; }  // of a varint, fixed32 or fixed64
  double as_double() const { return std::bit_cast<double>(number_); }
  float as_float() const { return std::bit_cast<float>(static_cast<uint32_t>(number_)); }
  std::string_view bytes() const { return bytes_; }  // of a kBytes field

  // One varint where no field is: the elements of a packed field.
  bool Varint(uint64_t* value) {
    if (at_ == end_) return false;
    uint64_t byte = static_cast<unsigned char>(*at_++);
    if (byte < 0x80) {
      *value = byte;
      return true;
    }
    uint64_t result = byte & 0x7f;
    for (int shift = 7; shift < 64; shift += 7) {
      if (at_ == end_) return false;
      byte = static_cast<unsigned char>(*at_++);
      result |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;  // more than ten bytes
  }

 private:
  template <typename T>
  bool Fixed() {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return false;
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    number_ = value;
    return true;
  }

  bool Bytes() {
    uint64_t size;
    if (!Varint(&size) || size > static_cast<uint64_t>(end_ - at_)) return false;
    bytes_ = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }

  bool Fail() {
    ok_ = false;
    at_ = end_;
    return false;
  }

  const char* at_;
  const char* end_;
  uint32_t field_ = 0;
  WireType type_ = WireType::kVarint;
  uint64_t number_ = 0;
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace events
