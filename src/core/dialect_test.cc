#include "core/dialect.h"

#include <gtest/gtest.h>

#include "core/testing.h"

namespace core {
namespace {

using namespace core::testing;

TEST(Dialect, NamesAReplicaAsItsSystemDoes) {
  api::Job job = MakeJob({.ps = 1, .worker = 2});
  job.metadata.name = "iris";
  EXPECT_EQ(ReplicaName(job, kWorker1), "iris-worker-1");
  EXPECT_EQ(MasterName(job), "iris-master");
  job.extensions.dialect = Dialect::kElasticDl;
  EXPECT_EQ(ReplicaName(job, kWorker1), "iris-edljob-worker-1");
  EXPECT_EQ(MasterName(job), "elasticdl-iris-master");
}

TEST(Dialect, ElasticDlHasTwoPorts) {
  EXPECT_EQ(ElasticDlPort(api::Role::kPs), 2222);
  EXPECT_EQ(ElasticDlPort(api::Role::kWorker), 3333);
  EXPECT_EQ(ElasticDlPort(api::Role::kEvaluator), 3333);
}

}  // namespace
}  // namespace core
