// Field numbers are those of tensorflow/core/util/event.proto and
// tensorflow/core/framework/{summary,tensor,tensor_shape,types}.proto.

#include "events/event.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "events/wire.h"

namespace events {
namespace {

// tensorflow.DataType, the real numbers of it.
enum DataType : uint64_t {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

double FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0x1f) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double FromBfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <typename T>
std::optional<T> LoadAll(std::string_view bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// tensor_content: the bytes of the one element.
std::optional<double> FromContent(uint64_t dtype, std::string_view content) {
  const auto number = [](auto value) -> std::optional<double> {
    if (!value) return std::nullopt;
    return static_cast<double>(*value);
  };
  switch (dtype) {
    case kFloat:
      return number(LoadAll<float>(content));
    case kDouble:
      return number(LoadAll<double>(content));
    case kInt32:
      return number(LoadAll<int32_t>(content));
    case kUint8:
      return number(LoadAll<uint8_t>(content));
    case kInt16:
      return number(LoadAll<int16_t>(content));
    case kInt8:
      return number(LoadAll<int8_t>(content));
    case kInt64:
      return number(LoadAll<int64_t>(content));
    case kBool:
      return number(LoadAll<uint8_t>(content));
    case kUint16:
      return number(LoadAll<uint16_t>(content));
    case kUint32:
      return number(LoadAll<uint32_t>(content));
    case kUint64:
      return number(LoadAll<uint64_t>(content));
    case kHalf:
      if (const auto bits = LoadAll<uint16_t>(content)) return FromHalf(*bits);
      return std::nullopt;
    case kBfloat16:
      if (const auto bits = LoadAll<uint16_t>(content)) return FromBfloat16(*bits);
      return std::nullopt;
  }
  return std::nullopt;
}

// The field of TensorProto in which numbers of a type lie when tensor_content is not used.
uint32_t ValueFieldOf(uint64_t dtype) {
  switch (dtype) {
    case kFloat:
      return 5;
    case kDouble:
      return 6;
    case kInt32:
    case kUint8:
    case kInt16:
    case kInt8:
    case kUint16:
      return 7;
    case kInt64:
      return 10;
    case kBool:
      return 11;
    case kHalf:
    case kBfloat16:
      return 13;
    case kUint32:
      return 16;
    case kUint64:
      return 17;
  }
  return 0;
}

double FromVarint(uint64_t dtype, uint64_t value) {
  switch (dtype) {
    case kHalf:
      return FromHalf(static_cast<uint16_t>(value));
    case kBfloat16:
      return FromBfloat16(static_cast<uint16_t>(value));
    case kUint32:
      return static_cast<uint32_t>(value);
    case kUint64:
      return static_cast<double>(value);
    case kInt64:
      return static_cast<double>(static_cast<int64_t>(value));
    default:
      return static_cast<int32_t>(value);
  }
}

// The one number of a repeated field, packed or not; nothing when there are more.
std::optional<double> FromValueField(uint64_t dtype, const WireReader& field) {
  if (dtype == kFloat || dtype == kDouble) {
    if (field.type() == WireType::kBytes) return FromContent(dtype, field.bytes());
    if (dtype == kFloat && field.type() == WireType::kFixed32) return field.as_float();
    if (dtype == kDouble && field.type() == WireType::kFixed64) return field.as_double();
    return std::nullopt;
  }
  if (field.type() == WireType::kVarint) return FromVarint(dtype, field.number());
  if (field.type() != WireType::kBytes) return std::nullopt;
  uint64_t value;
  uint64_t another;
  WireReader elements(field.bytes());
  if (!elements.Varint(&value) || elements.Varint(&another)) return std::nullopt;
  return FromVarint(dtype, value);
}

struct Shape {
  int rank = 0;
  bool one_element = true;
};

bool DecodeShape(std::string_view bytes, Shape* shape) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.Is(3, WireType::kVarint) && reader.number()) shape->one_element = false;
    if (!reader.Is(2, WireType::kBytes)) continue;
    ++shape->rank;
    WireReader dimension(reader.bytes());
    uint64_t size = 0;
    while (dimension.Next()) {
      if (dimension.Is(1, WireType::kVarint)) size = dimension.number();
    }
    if (!dimension.ok()) return false;
    if (size != 1) shape->one_element = false;
  }
  return reader.ok();
}

enum class Plugin { kNone, kScalars, kOther };

// What is known of a Summary.Value once it was read to its end: its fields come in any order.
struct Value {
  std::string_view tag;
  bool has_number = false;
  double number = 0;
  int rank = 0;
  Plugin plugin = Plugin::kNone;

  void Set(std::optional<double> found) {
    has_number = found.has_value();
    number = found.value_or(0);
  }
};

// What tf.summary.scalar writes, byte for byte, is recognised as a whole: nearly every record of an
// event file has just this in it. Anything else takes the long way to the same result.
constexpr std::string_view kScalarFloat("\x08\x01\x12\x00\x22\x04", 6);  // then four bytes
constexpr std::string_view kScalarsPlugin("\x0a\x09\x0a\x07scalars", 11);

// A comparison of a length known when compiling, which then is no call.
template <size_t kSize>
bool Begins(std::string_view text, std::string_view with) {
  return std::memcmp(text.data(), with.data(), kSize) == 0;
}

bool DecodeTensor(std::string_view bytes, Value* value) {
  if (bytes.size() == kScalarFloat.size() + sizeof(float) &&
      Begins<kScalarFloat.size()>(bytes, kScalarFloat)) {
    value->Set(LoadAll<float>(bytes.substr(kScalarFloat.size())));
    value->rank = 0;
    return true;
  }
  value->has_number = false;
  uint64_t dtype = 0;
  Shape shape;
  std::string_view content;
  bool has_values = false;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kVarint)) {
      dtype = reader.number();
    } else if (reader.Is(2, WireType::kBytes)) {
      if (!DecodeShape(reader.bytes(), &shape)) return false;
    } else if (reader.Is(4, WireType::kBytes)) {
      content = reader.bytes();
    } else if (reader.field() > 4) {
      has_values = true;
    }
  }
  if (!reader.ok()) return false;
  value->rank = shape.rank;
  const uint32_t field = ValueFieldOf(dtype);
  if (!shape.one_element || field == 0) return true;
  if (!content.empty()) {
    value->Set(FromContent(dtype, content));
    return true;
  }
  if (!has_values) return true;
  WireReader again(bytes);  // dtype may come after the values it explains
  bool found = false;
  while (again.Next()) {
    if (again.field() != field) continue;
    value->Set(found ? std::nullopt : FromValueField(dtype, again));
    found = true;
  }
  return true;
}

bool DecodeMetadata(std::string_view bytes, Value* value) {
  if (bytes.size() == kScalarsPlugin.size() &&
      Begins<kScalarsPlugin.size()>(bytes, kScalarsPlugin)) {
    value->plugin = Plugin::kScalars;
    return true;
  }
  WireReader reader(bytes);
  while (reader.Next()) {
    if (!reader.Is(1, WireType::kBytes)) continue;
    WireReader plugin(reader.bytes());
    while (plugin.Next()) {
      if (!plugin.Is(1, WireType::kBytes)) continue;
      value->plugin = plugin.bytes() == "scalars" ? Plugin::kScalars
                      : plugin.bytes().empty()    ? Plugin::kNone
                                                  : Plugin::kOther;
    }
    if (!plugin.ok()) return false;
  }
  return reader.ok();
}

bool DecodeValue(std::string_view bytes, Event* event) {
  Value value;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) {
      value.tag = reader.bytes();
    } else if (reader.Is(2, WireType::kFixed32)) {
      value.Set(reader.as_float());
      value.rank = 0;
    } else if (reader.Is(8, WireType::kBytes)) {
      if (!DecodeTensor(reader.bytes(), &value)) return false;
    } else if (reader.Is(9, WireType::kBytes)) {
      if (!DecodeMetadata(reader.bytes(), &value)) return false;
    }
  }
  if (!reader.ok()) return false;
  const bool scalar =
      value.plugin == Plugin::kScalars || (value.plugin == Plugin::kNone && value.rank == 0);
  if (scalar && value.has_number) event->scalars.push_back({value.tag, value.number});
  return true;
}

bool DecodeSummary(std::string_view bytes, Event* event) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes) && !DecodeValue(reader.bytes(), event)) return false;
  }
  return reader.ok();
}

bool DecodeSessionLog(std::string_view bytes, Event* event) {
  constexpr uint64_t kStart = 1;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kVarint)) event->session_start = reader.number() == kStart;
  }
  return reader.ok();
}

}  // namespace

bool DecodeEvent(std::string_view record, Event* event) {
  event->wall_time = 0;
  event->step = 0;
  event->file_version = {};
  event->session_start = false;
  event->scalars.clear();

  WireReader reader(record);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kFixed64)) {
      event->wall_time = reader.as_double();
    } else if (reader.Is(2, WireType::kVarint)) {
      event->step = static_cast<int64_t>(reader.number());
    } else if (reader.Is(3, WireType::kBytes)) {
      event->file_version = reader.bytes();
    } else if (reader.Is(5, WireType::kBytes)) {
      if (!DecodeSummary(reader.bytes(), event)) return false;
    } else if (reader.Is(7, WireType::kBytes)) {
      if (!DecodeSessionLog(reader.bytes(), event)) return false;
    }
  }
  return reader.ok();
}

}  // namespace events
