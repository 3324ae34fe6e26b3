#include "tensor/frame.h"

#include <cstring>

#include <gtest/gtest.h>

namespace tensor {
namespace {

Tensor Floats(Shape shape, std::vector<float> values) {
  Tensor out{.type = Type::kFloat, .shape = std::move(shape)};
  out.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

TEST(Frame, TensorsComeBackAsTheyWereSent) {
  const std::vector<Tensor> tensors = {
      Floats({2, 2}, {1, 2, 3, 4}),
      {.type = Type::kString, .shape = {2}, .strings = {"", std::string("a\0b", 3)}},
      {.type = Type::kInt64, .shape = {0, 5}},
      {.type = Type::kBool, .shape = {}, .bytes = std::string(1, 1)}};
  EXPECT_EQ(*DecodeTensors(EncodeTensors(tensors)), tensors);
}

TEST(Frame, ABatchIsItsRequestsOneBelowTheOther) {
  const std::vector<Tensor> one = {Floats({1, 2}, {1, 2})}, two = {Floats({2, 2}, {3, 4, 5, 6})};
  const std::vector<Tensor>* const requests[] = {&one, &two};
  std::string payload;
  AppendRun(7, requests, payload);
  const auto run = DecodeRun(payload);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->signature, 7U);
  EXPECT_EQ(run->inputs[0].shape, (Shape{3, 2}));
  EXPECT_EQ(run->inputs[0].bytes, Floats({3, 2}, {1, 2, 3, 4, 5, 6}).bytes);
}

TEST(Frame, ALoadAndAFailureComeBackAsTheyWereSent) {
  const Load load{.directory = "/m", .threads = 3, .signatures = {{{"x:0"}, {"y:0", "z:1"}}, {}}};
  EXPECT_EQ(*DecodeLoad(EncodeLoad(load)), load);
  const Failure failure{.code = 3, .text = "no"};
  EXPECT_EQ(*DecodeFailure(EncodeFailure(failure)), failure);
}

TEST(Frame, ABrokenByteAnywhereIsNoticed) {
  const std::string payload = EncodeTensors(std::vector{Floats({2}, {1, 2})});
  const std::string whole = Encode(Frame::kDone, 42, payload);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    const auto head = DecodeHead(broken.substr(0, kHeadBytes));
    EXPECT_FALSE(head && CheckPayload(*head, broken.substr(kHeadBytes))) << i;
  }
  const auto head = DecodeHead(whole.substr(0, kHeadBytes));
  ASSERT_TRUE(head && CheckPayload(*head, payload));
  EXPECT_EQ(head->call, 42U);
}

TEST(Frame, WhatIsCutShortIsRefusedWithoutMakingRoomForIt) {
  const std::string payload = EncodeTensors(std::vector{
      Floats({2}, {1, 2}), Tensor{.type = Type::kString, .shape = {1}, .strings = {"x"}}});
  for (size_t size = 0; size < payload.size(); ++size)
    EXPECT_FALSE(DecodeTensors(payload.substr(0, size))) << size;
  EXPECT_FALSE(DecodeTensors(payload + "x"));
  // A shape of a trillion strings, and none there.
  std::string huge = EncodeTensors(std::vector{Tensor{.type = Type::kString, .shape = {0}}});
  const int64_t count = int64_t{1} << 40;
  memcpy(huge.data() + huge.size() - sizeof count, &count, sizeof count);
  EXPECT_FALSE(DecodeTensors(huge));
}

TEST(Tensor, HalvesAreRoundedToTheNearestEven) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    if (value == value) {
      EXPECT_EQ(FloatToHalf(value), half) << half;
    }
  }
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1.0f + 1.0f / 2048), 0x3c00);  // half way, to the even one
  EXPECT_EQ(FloatToHalf(1.0f + 3.0f / 2048), 0x3c02);
}

TEST(Tensor, AShapeThatIsTooLargeOrNegativeHasNoElements) {
  EXPECT_EQ(ElementsOf({}), 1);
  EXPECT_EQ(ElementsOf({3, 0, 5}), 0);
  EXPECT_EQ(ElementsOf({1 << 20, 1 << 20}), int64_t{1} << 40);
  EXPECT_FALSE(ElementsOf({1 << 20, 1 << 20, 2}));
  EXPECT_FALSE(ElementsOf({-1, 2}));
  EXPECT_FALSE(ElementsOf({int64_t{1} << 40, int64_t{1} << 40, int64_t{1} << 40}));
}

}  // namespace
}  // namespace tensor
