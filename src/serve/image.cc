#include "serve/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>
#include <png.h>

#include "serve/predict_json.h"

namespace serve {
namespace {

using base::Invalid;
using base::Result;
using tensor::Type;

constexpr int64_t kMostSide = 8192;

Result<Image> DecodePng(const std::string& bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()))
    return Invalid(fmt::format("a PNG that cannot be read: {}", png.message));
  if (png.width > kMostSide || png.height > kMostSide) {
    png_image_free(&png);
    return Invalid("the picture is too large");
  }
  png.format = PNG_FORMAT_GRAY;
  Image out{.width = png.width, .height = png.height};
  out.pixels.resize(PNG_IMAGE_SIZE(png));
  const png_color black{0, 0, 0};  // behind what is transparent
  if (!png_image_finish_read(&png, &black, out.pixels.data(), 0, nullptr))
    return Invalid(fmt::format("a PNG that cannot be read: {}", png.message));
  return out;
}

// Magic 00 00 08 03, then number, height and width, big-endian, then the pixels.
Result<Image> DecodeIdx(const std::string& bytes, int64_t index) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    memcpy(&value, bytes.data() + at, sizeof value);
    return static_cast<int64_t>(__builtin_bswap32(value));
  };
  if (bytes.size() < 16) return Invalid("an IDX file that is cut short");
  const int64_t count = number(4), height = number(8), width = number(12);
  if (height > kMostSide || width > kMostSide) return Invalid("the pictures are too large");
  if (index < 0 || index >= count)
    return Invalid(fmt::format("no picture {} in an IDX file of {}", index, count));
  const size_t size = static_cast<size_t>(height * width);
  const size_t begin = 16 + static_cast<size_t>(index) * size;
  if (bytes.size() < begin + size) return Invalid("an IDX file that is cut short");
  return Image{.width = width, .height = height, .pixels = bytes.substr(begin, size)};
}

void Put(tensor::Tensor& to, double value) {
  const auto put = [&](auto number) {
    to.bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  switch (to.type) {
    case Type::kFloat:
      return put(static_cast<float>(value));
    case Type::kDouble:
      return put(value);
    case Type::kHalf:
      return put(tensor::FloatToHalf(static_cast<float>(value)));
    case Type::kUint8:
      return put(static_cast<uint8_t>(std::lround(value)));
    case Type::kInt32:
      return put(static_cast<int32_t>(std::lround(value)));
    default:
      return put(static_cast<int64_t>(std::lround(value)));
  }
}

}  // namespace

Result<Image> DecodeImage(const std::string& bytes, int64_t index) {
  if (bytes.starts_with("\x89PNG")) return DecodePng(bytes);
  if (bytes.starts_with(std::string("\0\0\x08\x03", 4))) return DecodeIdx(bytes, index);
  return Invalid("neither a PNG nor an IDX file of pictures");
}

Result<tensor::Tensor> ToRow(const Image& image, const End& input, double scale) {
  constexpr Type kTypes[] = {Type::kFloat, Type::kDouble, Type::kHalf,
                             Type::kUint8, Type::kInt32,  Type::kInt64};
  const int64_t h = image.height, w = image.width;
  const tensor::Shape shapes[] = {{1, h, w, 1}, {1, h, w, 3}, {1, h, w}, {1, h * w}};
  const auto fits = [&](const tensor::Shape& shape) {
    return !input.shape || std::ranges::equal(shape, *input.shape, [](int64_t have, int64_t want) {
      return want < 0 || have == want;
    });
  };
  const auto shape = std::ranges::find_if(shapes, fits);
  if (shape == std::end(shapes) || std::ranges::find(kTypes, input.type) == std::end(kTypes))
    return Invalid(
        fmt::format("a picture of {}x{} does not fit the input {}", w, h, Describe(input)));
  tensor::Tensor out{.type = input.type, .shape = *shape};
  const int channels = shape->size() == 4 ? static_cast<int>(shape->back()) : 1;
  for (const char pixel : image.pixels) {
    for (int i = 0; i < channels; ++i) Put(out, static_cast<unsigned char>(pixel) / scale);
  }
  return out;
}

}  // namespace serve
