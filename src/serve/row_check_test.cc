#include "serve/row_check.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

namespace serve {
namespace {

using tensor::Tensor;
using tensor::Type;

const End kX{.name = "x", .type = Type::kFloat, .shape = tensor::Shape{-1, 4}};
const End kY{.name = "y", .type = Type::kFloat, .shape = tensor::Shape{-1, 4}};
const Signature kFloats{.name = "s", .inputs = {kX}, .outputs = {kY}, .has_rows = true};

using Matrix = std::vector<std::vector<float>>;

Matrix ToMatrix(const Tensor& x) {
  Matrix out(static_cast<size_t>(x.shape[0]), std::vector<float>(4));
  for (size_t i = 0; i < out.size(); ++i) memcpy(out[i].data(), x.bytes.data() + i * 16, 16);
  return out;
}

Tensor ToTensor(const Matrix& rows) {
  Tensor out{.type = Type::kFloat, .shape = {static_cast<int64_t>(rows.size()), 4}};
  for (const auto& row : rows) out.bytes.append(reinterpret_cast<const char*>(row.data()), 16);
  return out;
}

// Checks a model that is a function of a matrix.
std::string Why(const std::function<void(Matrix&)>& model) {
  return WhyNotRowWise(
      kFloats, 128,
      [&](std::vector<Tensor> inputs) -> Answer<std::vector<Tensor>> {
        Matrix rows = ToMatrix(inputs[0]);
        model(rows);
        return std::vector{ToTensor(rows)};
      },
      Steady::now() + std::chrono::minutes(1));
}

// A value of all rows in one column.
float Sum(const Matrix& rows, size_t column) {
  float out = 0;
  for (const auto& row : rows) out += row[column];
  return out;
}

TEST(RowCheck, AFunctionOfEachRowMayBeBatched) {
  EXPECT_EQ(Why([](Matrix& rows) {
              for (auto& row : rows) {
                for (float& value : row) value = std::tanh(value) * 3 + row[0];
              }
            }),
            "");
}

TEST(RowCheck, AddingInAnotherOrderIsNoInfluenceOfOtherRows) {
  EXPECT_EQ(Why([](Matrix& rows) {
              const float noise = rows.size() == 1 ? 1.000002F : 1;
              for (auto& row : rows) {
                for (float& value : row) value *= noise;
              }
            }),
            "");
}

TEST(RowCheck, ASoftmaxOverTheBatchIsFound) {
  EXPECT_EQ(Why([](Matrix& rows) {
              for (size_t k = 0; k < 4; ++k) {
                float sum = 0;
                for (auto& row : rows) sum += row[k] = std::exp(row[k]);
                for (auto& row : rows) row[k] /= sum;
              }
            }),
            "output 'y' of a row depends on the rows beside it");
}

TEST(RowCheck, AWeakInfluenceOfOtherRowsIsFound) {
  EXPECT_NE(Why([](Matrix& rows) {
              const float other = 1e-4F * Sum(rows, 0);
              for (auto& row : rows) row[0] += other;
            }),
            "");
}

TEST(RowCheck, SumsOverEarlierRowsAreFound) {
  EXPECT_NE(Why([](Matrix& rows) {
              for (size_t i = 1; i < rows.size(); ++i) rows[i][2] += rows[i - 1][2];
            }),
            "");
}

TEST(RowCheck, TheNumberOfRowsAndTheirPlacesAreFound) {
  EXPECT_NE(Why([](Matrix& rows) {
              for (auto& row : rows) row[0] /= static_cast<float>(rows.size());
            }),
            "");
  EXPECT_NE(Why([](Matrix& rows) {
              for (size_t i = 0; i < rows.size(); ++i) rows[i][0] += static_cast<float>(i);
            }),
            "");
  EXPECT_NE(Why([](Matrix& rows) {
              if (rows.size() > 100) rows[3][0] = 0;
            }),
            "");
}

TEST(RowCheck, OutputsThatDoNotDependOnTheInputsSayNothing) {
  EXPECT_EQ(Why([](Matrix& rows) {
              for (auto& row : rows) row = {1, 2, 3, 4};
            }),
            "its outputs do not depend on random inputs");
}

TEST(RowCheck, StringsAreNotTried) {
  const Signature strings{.inputs = {{.name = "x", .type = Type::kString, .shape = tensor::Shape{-1}}}};
  int runs = 0;
  EXPECT_NE(WhyNotRowWise(
                strings, 128,
                [&](std::vector<Tensor>) -> Answer<std::vector<Tensor>> {
                  ++runs;
                  return BadRequest("");
                },
                Steady::now() + std::chrono::minutes(1)),
            "");
  EXPECT_EQ(runs, 0);
}

// A table of five entries, looked up by whole numbers.
TEST(RowCheck, IndexesOfASmallTableAreFoundByTrying) {
  const End ids{.name = "ids", .type = Type::kInt64, .shape = tensor::Shape{-1}};
  const Signature lookup{.name = "s", .inputs = {ids}, .outputs = {ids}, .has_rows = true};
  const auto run = [](std::vector<Tensor> inputs) -> Answer<std::vector<Tensor>> {
    for (int64_t i = 0; i < inputs[0].shape[0]; ++i) {
      int64_t id = 0;
      memcpy(&id, inputs[0].bytes.data() + i * 8, 8);
      if (id >= 5) return BadRequest("not in [0, 5)");
    }
    return inputs;
  };
  EXPECT_EQ(WhyNotRowWise(lookup, 128, run, Steady::now() + std::chrono::minutes(1)), "");
}

TEST(RowCheck, AModelThatRefusesAllThatIsTriedRunsAlone) {
  const auto run = [](std::vector<Tensor>) -> Answer<std::vector<Tensor>> {
    return BadRequest("not these");
  };
  EXPECT_EQ(WhyNotRowWise(kFloats, 128, run, Steady::now() + std::chrono::minutes(1)),
            "random inputs do not run: not these");
}

TEST(RowCheck, ItEndsWhenItsTimeIsOver) {
  EXPECT_EQ(WhyNotRowWise(
                kFloats, 128,
                [](std::vector<Tensor> inputs) -> Answer<std::vector<Tensor>> { return inputs; },
                Steady::now() - std::chrono::seconds(1)),
            "the check takes too long");
}

}  // namespace
}  // namespace serve
