#include "backend/cluster/tryouts.h"

#include <gtest/gtest.h>

#include "backend/cluster/testing.h"
#include "kube/testing.h"

namespace backend::cluster {
namespace {

using kube::testing::kStart;

constexpr const char* kTakes = R"({"kind":"Pod"})";
constexpr const char* kNever = R"({"kind":"Status","code":422,"reason":"Invalid","message":"no"})";

struct TryoutsTest : testing::WithDeeds {
  std::string woken;
  Tryouts tryouts{deeds, [this](const Key& key) { woken += key.name; }};
  std::string answers;  // names of jobs whose template is taken; "name!": it is not

  // A turn of this job: whether it waits for another's answer.
  bool Waits(const std::string& name) {
    api::Job job = testing::MakeJob();
    job.metadata.name = name;
    if (tryouts.Waits(job, api::Role::kWorker)) return true;
    tryouts.Try(
        std::make_shared<const api::Job>(job), api::Role::kWorker,
        [this, name](std::optional<base::Error> error) { answers += error ? name + "!" : name; });
    pacer.Advance(kStart);
    return false;
  }
};

TEST_F(TryoutsTest, ATemplateThatManyJobsBringAtOnceIsTriedOnce) {
  EXPECT_FALSE(Waits("a"));
  EXPECT_TRUE(Waits("b"));
  EXPECT_TRUE(Waits("c"));
  EXPECT_EQ(transport.asked.size(), 1u);
  transport.Reply(201, kTakes);
  EXPECT_EQ(woken, "bc");
  EXPECT_FALSE(Waits("b"));
  EXPECT_TRUE(transport.asked.empty());
  EXPECT_EQ(answers, "ab");
}

TEST_F(TryoutsTest, ARefusedTemplateIsTriedByEveryJobForItself) {
  EXPECT_FALSE(Waits("a"));
  EXPECT_TRUE(Waits("b"));
  transport.Reply(422, kNever);
  EXPECT_EQ(woken, "b");
  EXPECT_FALSE(Waits("b"));
  EXPECT_FALSE(Waits("c"));
  ASSERT_EQ(transport.asked.size(), 2u);
  EXPECT_NE(transport.asked[0].request.body.find("b-worker-0"), std::string::npos);
  transport.Reply(422, kNever);
  transport.Reply(422, kNever);
  EXPECT_EQ(answers, "a!b!c!");
}

TEST_F(TryoutsTest, ATemplateThatCouldNotBeTriedIsTakenLater) {
  EXPECT_FALSE(Waits("a"));
  transport.Reply(500, "{}");
  EXPECT_FALSE(Waits("b"));
  transport.Reply(201, kTakes);
  EXPECT_FALSE(Waits("c"));
  EXPECT_TRUE(transport.asked.empty());
  EXPECT_EQ(answers, "a!bc");
}

}  // namespace
}  // namespace backend::cluster
