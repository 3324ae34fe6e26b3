#include "serve/image.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/base64.h"

namespace serve {
namespace {

using tensor::Type;

const End kImage{.name = "image", .type = Type::kFloat, .shape = tensor::Shape{-1, 2, 2, 1}};

std::string Idx(uint8_t count, uint8_t height, uint8_t width, std::string pixels) {
  std::string out("\0\0\x08\x03", 4);
  for (const uint8_t size : {count, height, width}) {
    out += std::string(3, '\0');
    out += static_cast<char>(size);
  }
  return out + pixels;
}

TEST(Image, APictureOfAnIdxFileIsFoundByItsNumber) {
  EXPECT_EQ(*DecodeImage(Idx(2, 1, 2, "abcd"), 1),
            (Image{.width = 2, .height = 1, .pixels = "cd"}));
  EXPECT_FALSE(DecodeImage(Idx(2, 1, 2, "abcd"), 2));
  EXPECT_FALSE(DecodeImage(Idx(2, 1, 2, "abc"), 1));
  EXPECT_FALSE(DecodeImage(Idx(2, 1, 2, "").substr(0, 10), 0));
}

TEST(Image, APngBecomesGrey) {
  // 2x1: white, black.
  const auto png = base::DecodeBase64(
      "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR4nGP4zwAAAgEBADK6K5IAAAAASUVORK5CYII"
      "=");
  const auto image = DecodeImage(*png, 0);
  ASSERT_TRUE(image) << image.error().text();
  EXPECT_EQ(*image, (Image{.width = 2, .height = 1, .pixels = std::string("\xff\0", 2)}));
  for (size_t size = 4; size < png->size() - 12; ++size)
    EXPECT_FALSE(DecodeImage(png->substr(0, size), 0)) << size;
}

TEST(Image, OtherFilesAreRefused) {
  EXPECT_FALSE(DecodeImage("", 0));
  EXPECT_FALSE(DecodeImage("GIF89a", 0));
}

TEST(Image, IsWhatTheInputTakesOrIsRefused) {
  const Image image{.width = 2, .height = 2, .pixels = std::string("\x00\xff\x80\x01", 4)};
  const auto row = ToRow(image, kImage, 255);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->shape, (tensor::Shape{1, 2, 2, 1}));
  float values[4];
  memcpy(values, row->bytes.data(), sizeof values);
  EXPECT_EQ(values[1], 1.0f);
  End flat = kImage;
  flat.shape = tensor::Shape{-1, 4};
  EXPECT_EQ(ToRow(image, flat, 1)->shape, (tensor::Shape{1, 4}));
  End bytes = kImage;
  bytes.type = Type::kUint8;
  EXPECT_EQ(ToRow(image, bytes, 1)->bytes, image.pixels);
  End larger = kImage;
  larger.shape = tensor::Shape{-1, 28, 28, 1};
  EXPECT_EQ(ToRow(image, larger, 1).error().text(),
            "a picture of 2x2 does not fit the input image: DT_FLOAT (-1,28,28,1)");
}

}  // namespace
}  // namespace serve
