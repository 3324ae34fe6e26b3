#include "kube/api.h"

#include <random>

#include <gtest/gtest.h>

namespace kube {
namespace {

using base::ErrorKind;
using base::Json;
using base::JsonArray;
using base::JsonObject;

Json J(std::string_view text) { return base::ParseJson(text).value(); }

TEST(Path, IsWhereTheObjectLives) {
  EXPECT_EQ(Path("v1", "nodes"), "/api/v1/nodes");
  EXPECT_EQ(Path("v1", "namespaces", "", "a"), "/api/v1/namespaces/a");
  EXPECT_EQ(Path("v1", "pods", "team-a", "x", "log"), "/api/v1/namespaces/team-a/pods/x/log");
  EXPECT_EQ(Path("kubeflow.org/v1", "tfjobs", "a", "b", "status"),
            "/apis/kubeflow.org/v1/namespaces/a/tfjobs/b/status");
  EXPECT_EQ(Path("kubeflow.org/v1", "tfjobs"), "/apis/kubeflow.org/v1/tfjobs");
}

TEST(Path, ANameCannotLeaveItsPlace) {
  EXPECT_EQ(Path("v1", "pods", "../x", "a/b?c#d%"),
            "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc%23d%25");
}

TEST(WithQuery, EncodesValuesAndLeavesOutEmptyOnes) {
  EXPECT_EQ(WithQuery("/a", {}), "/a");
  EXPECT_EQ(WithQuery("/a", {{"x", ""}, {"labelSelector", "a=b,c in (d)"}, {"limit", "5"}}),
            "/a?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
}

TEST(ErrorOf, IsNothingForSuccess) {
  EXPECT_FALSE(ErrorOf({.status = 200, .body = "x"}));
  EXPECT_FALSE(ErrorOf({.status = 201}));
}

TEST(ErrorOf, TellsReasonAndMessageOfAStatus) {
  const auto error = ErrorOf({.status = 403,
                              .body = R"({"kind":"Status","reason":"Forbidden",)"
                                      R"("message":"pods \"x\" is forbidden:\nexceeded quota"})"});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->text(), "403 Forbidden: pods \"x\" is forbidden:\\nexceeded quota");
}

TEST(ErrorOf, KindFollowsFromTheStatus) {
  const std::pair<int, ErrorKind> cases[] = {
      {400, ErrorKind::kInvalid},     {401, ErrorKind::kForbidden},
      {403, ErrorKind::kForbidden},   {404, ErrorKind::kNotFound},
      {405, ErrorKind::kInvalid},     {409, ErrorKind::kTaken},
      {410, ErrorKind::kUnavailable}, {422, ErrorKind::kInvalid},
      {429, ErrorKind::kUnavailable}, {500, ErrorKind::kUnavailable},
      {503, ErrorKind::kUnavailable}, {302, ErrorKind::kInternal},
      {0, ErrorKind::kInternal}};
  for (const auto& [status, kind] : cases) {
    const auto error = ErrorOf({.status = status});
    ASSERT_TRUE(error) << status;
    EXPECT_EQ(error->kind(), kind) << status;
  }
}

TEST(ErrorOf, AnAnswerThatIsNoStatusIsQuotedInShort) {
  EXPECT_EQ(ErrorOf({.status = 502, .body = "<html>\x1b[31m bad gateway\n"})->text(),
            "502: <html>\\x1b[31m bad gateway");
  EXPECT_EQ(ErrorOf({.status = 500, .body = "[1]"})->text(), "500");
  EXPECT_EQ(ErrorOf({.status = 500, .body = R"({"reason":5,"message":[]})"})->text(), "500");
  EXPECT_LT(ErrorOf({.status = 500, .body = std::string(1'000'000, 'x')})->text().size(), 300u);
}

TEST(MergePatch, NamesOnlyWhatChanged) {
  EXPECT_EQ(MergePatch(J(R"({"a":1,"b":{"c":[1,2],"d":"x"},"e":true})"),
                       J(R"({"a":1,"b":{"c":[1,3],"f":{}},"g":2})")),
            J(R"({"e":null,"b":{"d":null,"c":[1,3],"f":{}},"g":2})"));
  EXPECT_EQ(MergePatch(J(R"({"a":{"b":1}})"), J(R"({"a":{"b":1}})")), J("{}"));
}

// RFC 7386, section 2.
Json Apply(Json target, const Json& patch) {
  if (!patch.is_object()) return patch;
  if (!target.is_object()) target = JsonObject();
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      target.get_object().erase(key);
    } else {
      Json& member = target.get_object()[key];
      member = Apply(member, value);
    }
  }
  return target;
}

Json Random(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 6 : 4)) {
    case 0:
      return random() % 3;
    case 1:
      return random() % 2 == 0;
    case 2:
      return "text";
    case 3: {
      JsonArray array;
      for (auto n = random() % 3; n > 0; --n) array.push_back(Random(random, depth - 1));
      return array;
    }
    default: {
      JsonObject object;
      for (auto n = random() % 4; n > 0; --n) {
        object[std::string(1, static_cast<char>('a' + random() % 4))] = Random(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(MergePatch, AppliedGivesWhatWasWanted) {
  std::mt19937 random(4711);
  for (int i = 0; i < 50'000; ++i) {
    const Json from = Random(random, 4), to = Random(random, 4);
    const Json patch = MergePatch(from, to);
    ASSERT_EQ(Apply(from, patch), to) << from << " to " << to << " by " << patch;
  }
}

}  // namespace
}  // namespace kube
