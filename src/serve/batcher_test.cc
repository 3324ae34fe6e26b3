#include "serve/batcher.h"

#include <gtest/gtest.h>

namespace serve {
namespace {

using namespace std::chrono_literals;
using tensor::Tensor;
using tensor::Type;

const Steady::time_point kStart{1h};
const Signature kOne{.name = "one", .index = 0}, kOther{.name = "other", .index = 1};

Pending Request(const Signature& signature, int64_t rows, Steady::duration after = 0s,
                int64_t width = 4) {
  Pending out{.signature = &signature, .rows = rows, .arrived = kStart + after};
  out.inputs.push_back({.type = Type::kFloat, .shape = {rows, width}});
  return out;
}

std::vector<Pending> Taken(Batcher& batcher, Steady::time_point now) {
  std::vector<Pending> dropped;
  auto out = batcher.Take(now, dropped);
  EXPECT_TRUE(dropped.empty());
  return out;
}

void Put(Batcher& batcher, Pending request) { ASSERT_TRUE(batcher.Add(request)); }

TEST(Batcher, ThoseThatWaitGoTogetherUpToTheLimit) {
  Batcher batcher({.rows = 8});
  for (int i = 0; i < 5; ++i) Put(batcher, Request(kOne, 3));
  EXPECT_EQ(Taken(batcher, kStart).size(), 2U);
  EXPECT_EQ(Taken(batcher, kStart).size(), 2U);
  EXPECT_EQ(Taken(batcher, kStart).size(), 1U);
  EXPECT_TRUE(Taken(batcher, kStart).empty());
}

TEST(Batcher, OneThatIsLargerThanTheLimitGoesAlone) {
  Batcher batcher({.rows = 8});
  Put(batcher, Request(kOne, 100));
  Put(batcher, Request(kOne, 1));
  EXPECT_EQ(Taken(batcher, kStart).size(), 1U);
}

TEST(Batcher, OnlyThoseOfOneSignatureAndShapeGoTogetherOldestFirst) {
  Batcher batcher({});
  Put(batcher, Request(kOther, 1, 1ms));
  Put(batcher, Request(kOne, 1, 2ms));
  Put(batcher, Request(kOne, 1, 3ms, 5));
  Put(batcher, Request(kOther, 0, 4ms));  // runs alone
  EXPECT_EQ(Taken(batcher, kStart + 1s).front().signature, &kOther);
  EXPECT_EQ(Taken(batcher, kStart + 1s).front().inputs[0].shape[1], 4);
  EXPECT_EQ(Taken(batcher, kStart + 1s).front().inputs[0].shape[1], 5);
  EXPECT_EQ(Taken(batcher, kStart + 1s).size(), 1U);
}

TEST(Batcher, WithALingerABatchWaitsUntilItIsFullOrOld) {
  Batcher batcher({.rows = 2, .linger = 5ms});
  Put(batcher, Request(kOne, 1));
  EXPECT_TRUE(Taken(batcher, kStart + 4ms).empty());
  EXPECT_EQ(batcher.look_again(), kStart + 5ms);
  EXPECT_EQ(Taken(batcher, kStart + 5ms).size(), 1U);
  Put(batcher, Request(kOne, 1));
  Put(batcher, Request(kOne, 1));
  EXPECT_EQ(Taken(batcher, kStart).size(), 2U);
  EXPECT_FALSE(batcher.look_again());
}

TEST(Batcher, MoreThanMayWaitAreRefused) {
  Batcher batcher({.waiting = 2});
  Put(batcher, Request(kOne, 1));
  Put(batcher, Request(kOther, 1));
  Pending third = Request(kOne, 1);
  EXPECT_FALSE(batcher.Add(third));
  EXPECT_EQ(third.inputs.size(), 1U);  // still the caller's
  EXPECT_EQ(batcher.TakeAll().size(), 2U);
  EXPECT_EQ(batcher.waiting(), 0U);
}

TEST(Batcher, WhatIsPutBackComesFirstAndAloneIfNeedBe) {
  Batcher batcher({});
  Put(batcher, Request(kOne, 1, 1ms));
  Put(batcher, Request(kOne, 2, 2ms));
  auto both = Taken(batcher, kStart + 1s);
  Put(batcher, Request(kOne, 3, 3ms));
  batcher.PutBack(std::move(both), true);
  EXPECT_EQ(Taken(batcher, kStart + 1s).front().inputs[0].shape[0], 1);
  EXPECT_EQ(Taken(batcher, kStart + 1s).front().inputs[0].shape[0], 2);
  EXPECT_EQ(Taken(batcher, kStart + 1s).front().inputs[0].shape[0], 3);
}

TEST(Batcher, OutputsAreSharedOutByRows) {
  const std::vector<Tensor> outputs = {
      {.type = Type::kInt8, .shape = {3, 2}, .bytes = "abcdef"},
      {.type = Type::kString, .shape = {3}, .strings = {"x", "y", "z"}}};
  const auto parts = Share(outputs, {1, 2});
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0][0], (Tensor{.type = Type::kInt8, .shape = {1, 2}, .bytes = "ab"}));
  EXPECT_EQ((*parts)[1][0], (Tensor{.type = Type::kInt8, .shape = {2, 2}, .bytes = "cdef"}));
  EXPECT_EQ((*parts)[1][1].strings, (std::vector<std::string>{"y", "z"}));
  EXPECT_FALSE(Share({{.type = Type::kInt8, .shape = {}, .bytes = "a"}}, {1, 2}));
  EXPECT_FALSE(Share({{.type = Type::kInt8, .shape = {2}, .bytes = "ab"}}, {1, 2}));
}

TEST(Batcher, ARequestThatNobodyWaitsForIsDroppedBeforeItRuns) {
  Batcher batcher({});
  bool gone = false;
  Pending cancelled = Request(kOne, 1);
  cancelled.caller.gone = [&] { return gone; };
  Pending expired = Request(kOther, 1);
  expired.caller.deadline = kStart + 1s;
  Put(batcher, std::move(cancelled));
  Put(batcher, std::move(expired));
  Put(batcher, Request(kOne, 1));
  Put(batcher, Request(kOther, 0));
  EXPECT_TRUE(batcher.TakeDropped(kStart).empty());
  gone = true;
  std::vector<Pending> dropped;
  EXPECT_EQ(batcher.Take(kStart + 1s, dropped).size(), 1U);
  EXPECT_EQ(batcher.Take(kStart + 1s, dropped).size(), 1U);
  EXPECT_TRUE(batcher.Take(kStart + 1s, dropped).empty());
  ASSERT_EQ(dropped.size(), 2U);
  EXPECT_EQ(WhyDropped(dropped[0], kStart)->code, Code::kCancelled);
  EXPECT_EQ(WhyDropped(dropped[1], kStart + 1s)->code, Code::kDeadlineExceeded);
  EXPECT_EQ(batcher.waiting(), 0U);
}

TEST(Batcher, ThoseWhoseTimeIsOverAreFoundWhereverTheyWait) {
  Batcher batcher({});
  Put(batcher, Request(kOne, 1));
  Pending expired = Request(kOne, 1);
  expired.caller.deadline = kStart + 1s;
  Put(batcher, std::move(expired));
  EXPECT_EQ(batcher.TakeDropped(kStart + 2s).size(), 1U);
  EXPECT_EQ(batcher.waiting(), 1U);
}

}  // namespace
}  // namespace serve
