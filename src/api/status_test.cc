#include "api/status.h"

#include <gtest/gtest.h>

#include "api/sample_status.h"

namespace api {
namespace {

TEST(Status, DecodesWhatItEncodes) {
  EXPECT_EQ(DecodeStatus(EncodeStatus(FullStatus())), FullStatus());
}

TEST(Status, SurvivesGarbage) {
  for (const char* text :
       {"null", "[]", "{\"conditions\":3}", "{\"units\":{\"x\":1,\"worker-0\":2}}",
        "{\"shards\":{\"replicas\":{\"x\":{},\"worker-0\":[],\"worker-1\":{\"recordsPerSecond\":{}}"
        "}}}",
        "{\"conditions\":[1,{}],\"completed\":{\"Worker\":\"3-,-,9-1,a\"},\"shape\":{\"a\":1}}"}) {
    DecodeStatus(*base::ParseJson(text));
  }
}

TEST(Status, AConditionWithoutATypeIsNone) {
  EXPECT_EQ(DecodeStatus(*base::ParseJson(R"({"conditions":[[],{},{"type":3}]})")), JobStatus());
}

TEST(ReplicaId, ReadsBothSpellings) {
  EXPECT_EQ(ReplicaIdFrom("worker-1"), (ReplicaId{Role::kWorker, 1}));
  EXPECT_EQ(ReplicaIdFrom("PS/0"), (ReplicaId{Role::kPs, 0}));
  for (const char* text : {"worker", "worker-", "worker--1", "cook/1", "worker-99999999999"}) {
    EXPECT_EQ(ReplicaIdFrom(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace api
