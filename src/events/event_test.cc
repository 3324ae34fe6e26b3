#include "events/event.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "events/event_writer.h"

namespace events {
namespace {

std::vector<Scalar> ScalarsOf(const std::string& value) {
  static std::string record;  // the views point into it
  record = EventOf(3, 1.5, value);
  Event event;
  EXPECT_TRUE(DecodeEvent(record, &event));
  return event.scalars;
}

std::vector<Scalar> ScalarsOfTensor(const std::string& tensor) {
  return ScalarsOf(BytesField(1, "x") + BytesField(8, tensor) + MetadataOf("scalars"));
}

std::vector<Scalar> OneX(double value) { return {{"x", value}}; }

TEST(DecodeEvent, GivesTimeStepAndScalarsOfBothForms) {
  const std::string record = DoubleField(1, 1.25) + VarintField(2, 700) +
                             BytesField(5, BytesField(1, ScalarTf1("loss", 0.5f)) +
                                               BytesField(1, ScalarTf2("accuracy", 0.75f)));
  Event event;
  ASSERT_TRUE(DecodeEvent(record, &event));
  EXPECT_EQ(event.wall_time, 1.25);
  EXPECT_EQ(event.step, 700);
  EXPECT_EQ(event.scalars, (std::vector<Scalar>{{"loss", 0.5}, {"accuracy", 0.75}}));
}

TEST(DecodeEvent, TakesFieldsInAnyOrder) {
  const std::string value =
      MetadataOf("scalars") +
      BytesField(8, BytesField(4, Raw(0.5)) + BytesField(2, "") + VarintField(1, 2)) +
      BytesField(1, "loss");
  const std::string record = BytesField(5, BytesField(1, value)) + VarintField(2, 9);
  Event event;
  ASSERT_TRUE(DecodeEvent(record, &event));
  EXPECT_EQ(event.step, 9);
  EXPECT_EQ(event.scalars, (std::vector<Scalar>{{"loss", 0.5}}));
}

TEST(DecodeEvent, ReadsEveryRealTypeFromTensorContent) {
  const auto content = [](uint64_t dtype, const std::string& bytes) {
    return ScalarsOfTensor(TensorOf(dtype, BytesField(4, bytes)));
  };
  EXPECT_EQ(content(1, Raw(0.5f)), OneX(0.5));
  EXPECT_EQ(content(2, Raw(0.1)), OneX(0.1));
  EXPECT_EQ(content(3, Raw(int32_t{-7})), OneX(-7));
  EXPECT_EQ(content(4, Raw(uint8_t{200})), OneX(200));
  EXPECT_EQ(content(5, Raw(int16_t{-300})), OneX(-300));
  EXPECT_EQ(content(6, Raw(int8_t{-3})), OneX(-3));
  EXPECT_EQ(content(9, Raw(int64_t{-1} << 40)), OneX(-std::ldexp(1, 40)));
  EXPECT_EQ(content(10, Raw(true)), OneX(1));
  EXPECT_EQ(content(14, Raw(uint16_t{0x3fc0})), OneX(1.5));
  EXPECT_EQ(content(17, Raw(uint16_t{60'000})), OneX(60'000));
  EXPECT_EQ(content(19, Raw(uint16_t{0x3e00})), OneX(1.5));
  EXPECT_EQ(content(22, Raw(uint32_t{4'000'000'000})), OneX(4e9));
  EXPECT_EQ(content(23, Raw(uint64_t{1} << 63)), OneX(std::ldexp(1, 63)));
}

TEST(DecodeEvent, ReadsEveryRealTypeFromItsOwnField) {
  const auto value = [](uint64_t dtype, const std::string& field) {
    return ScalarsOfTensor(TensorOf(dtype, field));
  };
  EXPECT_EQ(value(1, FloatField(5, 0.5f)), OneX(0.5));
  EXPECT_EQ(value(1, BytesField(5, Raw(0.5f))), OneX(0.5));
  EXPECT_EQ(value(2, BytesField(6, Raw(0.1))), OneX(0.1));
  EXPECT_EQ(value(2, DoubleField(6, 0.1)), OneX(0.1));
  EXPECT_EQ(value(3, BytesField(7, VarintOf(static_cast<uint64_t>(-7)))), OneX(-7));
  EXPECT_EQ(value(5, VarintField(7, static_cast<uint64_t>(-300))), OneX(-300));
  EXPECT_EQ(value(9, BytesField(10, VarintOf(1 << 20))), OneX(1 << 20));
  EXPECT_EQ(value(10, BytesField(11, VarintOf(1))), OneX(1));
  EXPECT_EQ(value(14, BytesField(13, VarintOf(0x3fc0))), OneX(1.5));
  EXPECT_EQ(value(19, BytesField(13, VarintOf(0x3e00))), OneX(1.5));
  EXPECT_EQ(value(22, BytesField(16, VarintOf(4'000'000'000))), OneX(4e9));
  EXPECT_EQ(value(23, BytesField(17, VarintOf(5))), OneX(5));
}

TEST(DecodeEvent, KnowsTheCornersOfHalfFloats) {
  const auto half = [](uint16_t bits) {
    return ScalarsOfTensor(TensorOf(19, BytesField(4, Raw(bits)))).at(0).value;
  };
  EXPECT_EQ(half(0x0001), std::ldexp(1, -24));
  EXPECT_EQ(half(0x7bff), 65504);
  EXPECT_EQ(half(0xfc00), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(half(0x7e00)));
  EXPECT_EQ(half(0x8000), 0);
}

TEST(DecodeEvent, TakesOneElementOfAnyRankFromTheScalarsPluginOnly) {
  const std::string dimension = BytesField(2, VarintField(1, 1));
  const std::string tensor =
      VarintField(1, 1) + BytesField(2, dimension) + BytesField(4, Raw(0.5f));
  EXPECT_EQ(ScalarsOfTensor(tensor), OneX(0.5));
  EXPECT_EQ(ScalarsOf(BytesField(1, "x") + BytesField(8, tensor)), std::vector<Scalar>());
  const std::string scalar = TensorOf(1, BytesField(4, Raw(0.5f)));
  EXPECT_EQ(ScalarsOf(BytesField(1, "x") + BytesField(8, scalar)), OneX(0.5));
}

TEST(DecodeEvent, LeavesOutWhatIsNoScalar) {
  const std::string scalar = TensorOf(1, BytesField(4, Raw(0.5f)));
  const std::string two = BytesField(2, VarintField(1, 2));
  const std::string empty = BytesField(2, "");
  for (const std::string& value : {
           BytesField(8, scalar) + MetadataOf("histograms"),
           BytesField(8, TensorOf(7, BytesField(8, "text"))) + MetadataOf("text"),
           BytesField(8, VarintField(1, 1) + BytesField(2, two) + BytesField(4, Raw(0.5))),
           BytesField(8, VarintField(1, 1) + BytesField(2, empty)) + MetadataOf("scalars"),
           BytesField(8, TensorOf(1, BytesField(4, "abc"))),                 // content too short
           BytesField(8, TensorOf(1, "")),                                   // no number at all
           BytesField(8, TensorOf(1, BytesField(5, Raw(0.5)))),              // two floats
           BytesField(8, TensorOf(3, BytesField(7, VarintOf(1) + "\x02"))),  // two integers
           BytesField(8, TensorOf(99, BytesField(4, Raw(0.5f)))),            // no such type
           BytesField(5, "histogram"),
           BytesField(4, "image"),
           std::string(),
       }) {
    EXPECT_EQ(ScalarsOf(BytesField(1, "x") + value), std::vector<Scalar>());
  }
}

TEST(DecodeEvent, SkipsFieldsItDoesNotKnow) {
  const std::string unknown =
      VarintField(100, 1) + BytesField(101, "new") + DoubleField(102, 1) + FloatField(103, 1);
  const std::string record =
      unknown + EventOf(3, 1.5, unknown + ScalarTf2("x", 0.5f) + unknown) + unknown;
  Event event;
  ASSERT_TRUE(DecodeEvent(record, &event));
  EXPECT_EQ(event.scalars, OneX(0.5));
}

TEST(DecodeEvent, TellsWhenASessionBegan) {
  Event event;
  ASSERT_TRUE(DecodeEvent(SessionStart(300), &event));
  EXPECT_TRUE(event.session_start);
  EXPECT_EQ(event.step, 300);
  const std::string version = FileVersion();
  ASSERT_TRUE(DecodeEvent(version, &event));
  EXPECT_FALSE(event.session_start);
  EXPECT_EQ(event.file_version, "brain.Event:2");
}

TEST(DecodeEvent, RefusesWhatIsNoEvent) {
  Event event;
  for (const std::string& record : {
           std::string("\x09\x00\x00", 3),                         // a double cut short
           std::string("\x2a\x7f", 2),                             // longer than what follows
           std::string("\x10") + std::string(10, '\xff'),          // a number without end
           std::string("\x00\x00", 2),                             // no field has number 0
           std::string("\x0b\x0c", 2),                             // a group
           std::string("\x2a") + std::string(9, '\xff') + "\x01",  // a length near 2^64
           BytesField(5, "\x0a\x7f"),                              // a summary cut short
       }) {
    EXPECT_FALSE(DecodeEvent(record, &event));
  }
}

TEST(DecodeEvent, NeverReadsBeyondTheRecordWhereverItIsCut) {
  const std::string record =
      EventOf(300, 1.5, ScalarTf2("loss", 0.5f)) + EventOf(300, 1.5, ScalarTf1("loss", 0.5f));
  Event event;
  for (size_t size = 0; size <= record.size(); ++size) {
    const auto exact = std::make_unique<char[]>(size);  // so that a sanitizer sees its end
    std::memcpy(exact.get(), record.data(), size);
    if (!DecodeEvent({exact.get(), size}, &event)) continue;
    for (const Scalar& scalar : event.scalars) EXPECT_EQ(scalar, (Scalar{"loss", 0.5}));
  }
}

}  // namespace
}  // namespace events
