#include "serve/predict_json.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace serve {
namespace {

using tensor::Tensor;
using tensor::Type;

Signature Taking(std::vector<End> inputs, std::vector<End> outputs = {}) {
  return {.name = "serving_default", .inputs = std::move(inputs), .outputs = std::move(outputs)};
}

template <typename Number>
Tensor Of(Type type, tensor::Shape shape, std::vector<Number> values) {
  Tensor out{.type = type, .shape = std::move(shape)};
  out.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  return out;
}

const End kX{.name = "x", .type = Type::kFloat}, kY{.name = "y", .type = Type::kInt32};
const End kText{.name = "t", .type = Type::kString};

// The inputs that a body means, or the error.
Answer<std::vector<Tensor>> Read(std::string_view text, const Signature& signature) {
  const PredictBody body = TRY(ReadPredictBody(text));
  return ReadInputs(body, signature);
}

std::string ErrorOf(std::string_view text, const Signature& signature) {
  const auto read = Read(text, signature);
  return read ? "" : read.error().text;
}

TEST(PredictJson, RowsOfTheOnlyInputNeedNoName) {
  const auto read = Read(R"({"instances": [[1, 2.5], [-3e2, 0]]})", Taking({kX}));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->at(0), Of<float>(Type::kFloat, {2, 2}, {1, 2.5, -300, 0}));
}

TEST(PredictJson, RowsMayNameTheirParts) {
  const auto read =
      Read(R"({"instances": [{"x": [1], "y": 5}, {"y": 6, "x": [2]}]})", Taking({kX, kY}));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->at(0), Of<float>(Type::kFloat, {2, 1}, {1, 2}));
  EXPECT_EQ(read->at(1), Of<int32_t>(Type::kInt32, {2}, {5, 6}));
}

TEST(PredictJson, ColumnsAreWholeTensors) {
  EXPECT_EQ(Read(R"({"inputs": 3})", Taking({kX}))->at(0), Of<float>(Type::kFloat, {}, {3}));
  EXPECT_EQ(Read(R"({"inputs": {"y": [[1, 2, 3]], "x": []}})", Taking({kX, kY}))->at(1),
            Of<int32_t>(Type::kInt32, {1, 3}, {1, 2, 3}));
  EXPECT_EQ(Read(R"({"inputs": [[], []]})", Taking({kX}))->at(0).shape, (tensor::Shape{2, 0}));
}

TEST(PredictJson, TheSignatureMayBeNamedBehindTheValues) {
  EXPECT_EQ(ReadPredictBody(R"({"instances": [1], "other": {"a": "]"}, "signature_name": "s"})")
                ->signature_name,
            "s");
}

TEST(PredictJson, AGuessIsRightOrRefused) {
  const auto guess = GuessPredictBody(R"( {"signature_name": "s", "instances": [[1], [2]] } )");
  ASSERT_TRUE(guess);
  EXPECT_EQ(guess->signature_name, "s");
  EXPECT_TRUE(guess->rows);
  EXPECT_EQ(ReadInputs(*guess, Taking({kX}))->at(0), Of<float>(Type::kFloat, {2, 1}, {1, 2}));
  for (const char* text :
       {R"({"instances": [1], "signature_name": "s"})", R"({"instances": [1], "instances": [2]})",
        R"({"instances": [1]}})", R"({"instances": [1], "other": []})", R"({"instances": })"}) {
    const auto wrong = GuessPredictBody(text);
    ASSERT_TRUE(wrong) << text;
    EXPECT_FALSE(ReadInputs(*wrong, Taking({kX}))) << text;
  }
  EXPECT_FALSE(GuessPredictBody(R"({"other": 1, "instances": [1]})"));
  EXPECT_FALSE(GuessPredictBody(R"({"instances": [1])"));
}

// Many forms, and those next to the middle between two floats above all. (Those at the very end of
// a text are read in another way.)
TEST(PredictJson, FloatsAreTheNearestToTheirText) {
  std::mt19937_64 random(1);
  const auto check = [](const std::string& text) {
    const auto read =
        Read("{\"inputs\": [" + text + std::string(50, ' ') + ", " + text + "]}", Taking({kX}));
    ASSERT_TRUE(read) << text << ": " << read.error().text;
    const float want = strtof(text.c_str(), nullptr);
    EXPECT_EQ(read->at(0), Of<float>(Type::kFloat, {2}, {want, want})) << text;
  };
  for (int i = 0; i < 30'000; ++i) {
    const double value = std::ldexp(static_cast<double>(random() >> 11), -53) *
                         std::pow(10.0, static_cast<double>(random() % 12) - 4);
    check(fmt::format("{:.{}f}", i % 2 ? -value : value, random() % 24));
    const float narrow = static_cast<float>(value);
    const double middle =
        (static_cast<double>(narrow) + static_cast<double>(std::nextafter(narrow, 1e30F))) / 2;
    check(fmt::format("{:.{}f}", middle, 8 + random() % 18));
    check(fmt::format("{:.{}e}", middle, random() % 25));
    check(fmt::format("{}", middle));
    check(
        fmt::format("{:.{}f}e{}", value, 1 + random() % 12, static_cast<int>(random() % 60) - 35));
    check(fmt::format("{}E+{}", random() % 100'000'000, random() % 30));
  }
}

// A text of lists of numbers, most of them of one shape, some with something wrong in it.
class AnyLists {
 public:
  std::string Body() {
    shape_.clear();
    for (size_t rank = 1 + random_() % 4; shape_.size() < rank;)
      shape_.push_back(1 + random_() % 5);
    odd_ = Once(2) ? 1 + random_() % 200 : 0;
    std::string out = Once(2) ? "{\"instances\":" : "{\"inputs\":";
    out += Spaces() + List(0) + Spaces() + "}";
    if (Once(8)) out.resize(1 + random_() % out.size());
    if (Once(8)) out[random_() % out.size()] = Mark();
    if (Once(8)) out.insert(random_() % out.size(), 1, Mark());
    return out;
  }

 private:
  bool Once(uint64_t in) { return random_() % in == 0; }
  bool Odd() { return odd_ > 0 && Once(odd_); }

  char Mark() {
    constexpr std::string_view kMarks = "[],:.-+e0159 \t\n{}\"NIn";
    return kMarks[random_() % kMarks.size()];
  }

  std::string Spaces() {
    static const char* const kSpaces[] = {"", "", "", " ", " ", "\n", "\t", "\r\n", "    "};
    return kSpaces[random_() % std::size(kSpaces)];
  }

  std::string List(size_t depth) {
    std::string out = "[";
    size_t size = depth < shape_.size() ? shape_[depth] : 2;
    if (Odd()) size += random_() % 3 - 1;
    for (size_t i = 0; i < size; ++i) {
      out += (i ? "," : "") + Spaces();
      const bool list = (depth + 1 < shape_.size()) != (depth < 5 && Odd());
      out += list ? List(depth + 1) : Number();
      out += Spaces();
    }
    return out + (Odd() ? "" : "]");
  }

  std::string Number() {
    if (Odd()) {
      static const char* const kOdd[] = {
          "nan", "null", "true", "\"1\"",  "01",  "1.",  ".5", "-",   "+1",    "1e", "1e+", "{}",
          "[]",  "-NaN", "1e39", "-1e400", "0x1", "1 2", "",   "--1", "1.5.5", "00", "-01"};
      return kOdd[random_() % std::size(kOdd)];
    }
    const auto whole = static_cast<int64_t>(random_()) >> (random_() % 64);
    const double real = std::ldexp(static_cast<double>(whole), -static_cast<int>(random_() % 70));
    switch (random_() % 10) {
      case 0:
        return "0";
      case 1:
        return fmt::format("{}", whole);
      case 2:
        return fmt::format("{:.{}e}", real, random_() % 20);
      case 3:
        return fmt::format("{:.{}f}", real, 1 + random_() % 25);
      case 4:
        return fmt::format("{}e-{}", whole % 1000, random_() % 60);
      case 5:
        return Once(5) ? "NaN" : Once(5) ? "-Infinity" : Once(5) ? "Infinity" : "-0.0";
      default:
        return fmt::format("{:.7f}", static_cast<double>(random_() % 1000) / 999);
    }
  }

  std::mt19937_64 random_{1};
  std::vector<size_t> shape_;
  uint64_t odd_ = 0;  // once in so many times something is
};

TEST(PredictJson, ListsReadAtOnceAreWhatTheyAreValueByValue) {
  AnyLists any;
  int good = 0, bad = 0;
  const Signature signature = Taking({kX});
  for (int i = 0; i < 50'000; ++i) {
    const std::string text = any.Body();
    const auto body = GuessPredictBody(text);
    if (!body) continue;
    const auto at_once = ReadInputs(*body, signature);
    ASSERT_EQ(at_once, ReadInputsByValue(*body, signature)) << text;
    ++(at_once ? good : bad);
  }
  EXPECT_GT(good, 10'000);
  EXPECT_GT(bad, 10'000);
}

TEST(PredictJson, ListsWithoutValuesMayStandBesideEachOtherOnly) {
  EXPECT_EQ(Read(R"({"instances": [[[]], [[]]]})", Taking({kX}))->at(0).shape,
            (tensor::Shape{2, 1, 0}));
  EXPECT_EQ(ErrorOf(R"({"instances": [[1], []]})", Taking({kX})),
            "input 'x': JSON at byte 9: lists of 1 and of 0 in the same place");
  EXPECT_EQ(ErrorOf(R"({"instances": [[[]], [1]]})", Taking({kX})),
            "input 'x': JSON at byte 9: a list and a value in the same place");
}

TEST(PredictJson, StringsMayBeInBase64) {
  const auto read =
      Read(R"({"instances": ["a\u00fc\ud83d\ude00\n", {"b64": "AAE="}]})", Taking({kText}));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->at(0).strings, (std::vector<std::string>{"aü😀\n", std::string("\0\1", 2)}));
  EXPECT_EQ(Read(R"({"instances": [{"t": {"b64": "aGk="}}]})", Taking({kText}))->at(0).strings[0],
            "hi");
}

TEST(PredictJson, NumbersMustFitTheirType) {
  const auto of = [](Type type) { return Taking({{.name = "x", .type = type}}); };
  EXPECT_NE(ErrorOf(R"({"inputs": [1.5]})", of(Type::kInt32)), "");
  EXPECT_NE(ErrorOf(R"({"inputs": [256]})", of(Type::kUint8)), "");
  EXPECT_NE(ErrorOf(R"({"inputs": [-1]})", of(Type::kUint64)), "");
  EXPECT_NE(ErrorOf(R"({"inputs": [1e40]})", of(Type::kFloat)), "");
  EXPECT_NE(ErrorOf(R"({"inputs": [1]})", of(Type::kBool)), "");
  EXPECT_EQ(ErrorOf(R"({"inputs": [18446744073709551615]})", of(Type::kUint64)), "");
  EXPECT_EQ(Read(R"({"inputs": [1e-60, -1e-999]})", of(Type::kFloat))->at(0),
            Of<float>(Type::kFloat, {2}, {0, 0}));
  EXPECT_EQ(Read(R"({"inputs": [0.1]})", of(Type::kDouble))->at(0),
            Of<double>(Type::kDouble, {1}, {0.1}));
  const auto odd = Read(R"({"inputs": [-Infinity, NaN]})", of(Type::kFloat));
  ASSERT_TRUE(odd);
  float values[2];
  memcpy(values, odd->at(0).bytes.data(), sizeof values);
  EXPECT_EQ(values[0], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST(PredictJson, NumbersOfAnyLengthAreReadAlike) {
  for (const char* text :
       {"0", "-0", "0.5", "-17.25", "123456789012345", "1234567890123456", "0.1234567890123",
        "0.12345678901234567", "12345678901234567890", "3.4028234e38", "1e-5", "0.1"}) {
    const auto read = Read(fmt::format(R"({{"inputs": [{}, {} ]}})", text, text), Taking({kX}));
    ASSERT_TRUE(read) << text << " " << read.error().text;
    const auto want = static_cast<float>(strtod(text, nullptr));
    EXPECT_EQ(read->at(0), Of<float>(Type::kFloat, {2}, {want, want})) << text;
  }
}

TEST(PredictJson, WhatIsWrongIsNamed) {
  const Signature two = Taking({kX, kY});
  EXPECT_EQ(ErrorOf(R"({"instances": [{"x": 1}]})", two),
            "input 'y' is missing; signature 'serving_default' takes x: DT_FLOAT of any shape, y: "
            "DT_INT32 of any shape");
  EXPECT_TRUE(ErrorOf(R"({"instances": [{"x": 1, "z": 2}]})", two).starts_with("no input 'z'"));
  EXPECT_TRUE(ErrorOf(R"({"instances": [{"x": 1, "x": 2}]})", two).ends_with("is there twice"));
  EXPECT_TRUE(ErrorOf(R"({"instances": [1]})", two).starts_with("a value without a name"));
  EXPECT_EQ(ErrorOf("{}", two), "neither 'instances' nor 'inputs' in the request");
  EXPECT_NE(ErrorOf(R"({"instances": [1], "inputs": [1]})", two), "");
}

TEST(PredictJson, WhatIsNoJsonOrNoTensorIsRefused) {
  const Signature one = Taking({kX});
  for (const char* text : {"",
                           "[",
                           "{",
                           "null",
                           "[]",
                           R"({"instances")",
                           R"({"instances":})",
                           R"({"instances": []})",
                           R"({"instances": 1})",
                           R"({"instances": [1]} x)",
                           R"({"instances": [1)",
                           R"({"instances": [1,]})",
                           R"({"instances": [01]})",
                           R"({"instances": [1.]})",
                           R"({"instances": [+1]})",
                           R"({"instances": [.5]})",
                           R"({"instances": [1e]})",
                           R"({"instances": [nan]})",
                           R"({"instances": [--1]})",
                           R"({"instances": ["1"]})",
                           R"({"instances": [true]})",
                           R"({"instances": [null]})",
                           R"({"instances": [[1], 2]})",
                           R"({"instances": [1, [2]]})",
                           R"({"instances": [1, []]})",
                           R"({"instances": [[], 1]})",
                           R"({"instances": [[1, 2], [3]]})",
                           R"({"instances": [[[1]], [[1, 2]]]})",
                           R"({"instances": [1}]})",
                           R"({"instances": "\ud800"})",
                           R"({"signature_name": 5})",
                           R"({"instances": [1] "a": 2})"})
    EXPECT_NE(ErrorOf(text, one), "") << text;
  EXPECT_NE(ErrorOf(R"({"instances": )" + std::string(100'000, '[') + "}", one), "");
  EXPECT_NE(
      ErrorOf(R"({"inputs": )" + std::string(100, '[') + "1" + std::string(100, ']') + "}", one),
      "");
  for (const char* text : {R"({"instances": [{"b64": 1}]})", R"({"instances": [{"b64": "="}]})",
                           R"({"instances": [{"b64": "aGk=", "x": 1}]})", "{\"inputs\": \"a\nb\"}",
                           R"({"inputs": "\ud800x"})", R"({"inputs": "\u12"})"})
    EXPECT_NE(ErrorOf(text, Taking({kText})), "") << text;
}

TEST(PredictJson, AnswersAreRowsOrColumns) {
  const Signature one = Taking({}, {{.name = "y", .type = Type::kFloat}});
  const std::vector<Tensor> floats = {Of<float>(Type::kFloat, {2, 2}, {1, 0.1f, -2.5, 1e-20f})};
  EXPECT_EQ(*WritePredictions(one, floats),
            "{\n    \"predictions\": [[1.0, 0.1], [-2.5, 1e-20]]\n}");
  EXPECT_EQ(WriteOutputs(one, floats), "{\n    \"outputs\": [[1.0, 0.1], [-2.5, 1e-20]]\n}");
  const Signature two = Taking({}, {{.name = "a"}, {.name = "b_bytes"}});
  const std::vector<Tensor> both = {
      Of<int64_t>(Type::kInt64, {2}, {1, -2}),
      {.type = Type::kString, .shape = {2}, .strings = {"hi", "\xff"}}};
  EXPECT_EQ(*WritePredictions(two, both),
            "{\n    \"predictions\": [{\"a\": 1, \"b_bytes\": {\"b64\": \"aGk=\"}}, {\"a\": -2, "
            "\"b_bytes\": {\"b64\": \"/w==\"}}]\n}");
}

TEST(PredictJson, AnOutputWithoutRowsCannotAnswerRows) {
  const Signature one = Taking({}, {{.name = "y", .type = Type::kFloat}});
  EXPECT_FALSE(WritePredictions(one, {Of<float>(Type::kFloat, {}, {1})}));
}

TEST(PredictJson, TextThatIsNotUtf8IsWrittenInBase64) {
  const Signature one = Taking({}, {{.name = "t", .type = Type::kString}});
  EXPECT_EQ(
      WriteOutputs(one, {{.type = Type::kString, .shape = {2}, .strings = {"a\"\n", "\xff"}}}),
      "{\n    \"outputs\": [\"a\\\"\\u000a\", {\"b64\": \"/w==\"}]\n}");
}

}  // namespace
}  // namespace serve
