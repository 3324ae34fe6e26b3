#include "serve/config.h"

#include <gtest/gtest.h>

#include "serve/guard.h"
#include "serve/rest.h"
#include "serve/versions.h"

namespace serve {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseConfig(text);
  return parsed ? "" : parsed.error().text();
}

TEST(Config, IsReadAsTensorFlowServingsFile) {
  const auto parsed = ParseConfig(R"(
    # two of them
    model_config_list {
      config { name: 'a' base_path: '/models/a' model_platform: 'tensorflow' }
      config {
        name: "b" base_path: "/models/b"
        model_version_policy { specific { versions: 42 versions: 43 } }
        version_labels { key: 'stable' value: 42 }
        version_labels { key: 'canary' value: 43 }
      }
    })");
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ((*parsed)[0], (ModelConfig{.name = "a", .base_path = "/models/a"}));
  EXPECT_EQ((*parsed)[1],
            (ModelConfig{.name = "b",
                         .base_path = "/models/b",
                         .policy = {.kind = VersionPolicy::Kind::kSpecific, .specific = {42, 43}},
                         .labels = {{"stable", 42}, {"canary", 43}}}));
}

TEST(Config, ErrorsNameTheLineOrTheModel) {
  EXPECT_TRUE(ErrorOf("model_config_list {\n  confg {}\n}").starts_with("line 2, column "));
  EXPECT_EQ(ErrorOf(""), "no models in it: model_config_list { config { … } }");
  EXPECT_EQ(ErrorOf("model_config_list { config { name: 'a' base_path: 'x' } }"),
            "model 'a': base_path must be a directory, from / on");
  EXPECT_EQ(ErrorOf("model_config_list { config { name: 'a' base_path: '/x' } config { name: 'a' "
                    "base_path: '/y' } }"),
            "model 'a' is there twice");
  EXPECT_NE(ErrorOf("model_config_list { config { name: 'a/b' base_path: '/x' } }"), "");
  EXPECT_NE(
      ErrorOf("model_config_list { config { name: 'a' base_path: '/x' model_platform: 'x' } }"),
      "");
}

TEST(Config, APolicyChoosesAmongTheVersionsThatThereAre) {
  using Kind = VersionPolicy::Kind;
  const std::vector<int64_t> all = {3, 1, 20, 7};
  EXPECT_EQ(Wanted({}, all), (std::vector<int64_t>{20}));
  EXPECT_EQ(Wanted({.latest = 2}, all), (std::vector<int64_t>{7, 20}));
  EXPECT_EQ(Wanted({.latest = 9}, all), (std::vector<int64_t>{1, 3, 7, 20}));
  EXPECT_EQ(Wanted({.kind = Kind::kAll}, all), (std::vector<int64_t>{1, 3, 7, 20}));
  EXPECT_EQ(Wanted({.kind = Kind::kSpecific, .specific = {7, 8}}, all), (std::vector<int64_t>{7}));
}

TEST(Versions, AModelIsNotWholeBeforeAllOfItsFilesAreThere) {
  const auto missing = [](std::initializer_list<const char*> names) {
    Seen seen;
    for (const char* name : names) seen.push_back({.name = name, .size = 1});
    return MissingOf(seen);
  };
  const char *pb = "saved_model.pb", *index = "variables/variables.index";
  EXPECT_EQ(missing({pb}), "");  // has no variables
  EXPECT_NE(missing({index, "variables/variables.data-00000-of-00001"}), "");
  EXPECT_NE(missing({pb, "variables/variables.data-00000-of-00001"}), "");
  EXPECT_NE(missing({pb, index}), "");
  EXPECT_NE(missing({pb, index, "variables/variables.data-00000-of-00002"}), "");
  EXPECT_EQ(missing({pb, index, "variables/variables.data-00000-of-00001"}), "");
  EXPECT_NE(MissingOf({{.name = pb, .size = 0}}), "");
}

TEST(Rest, APathNamesAModelAVersionOrALabelAndWhatIsWanted) {
  const auto parsed = ParseModelPath("m/versions/12:predict");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->target.model, "m");
  EXPECT_EQ(parsed->target.version, 12);
  EXPECT_EQ(parsed->rest, ":predict");
  EXPECT_EQ(ParseModelPath("m/labels/stable/metadata")->target.label, "stable");
  EXPECT_EQ(ParseModelPath("m")->rest, "");
  for (const char* path : {"", ":predict", "m/versions/x", "m/versions/-1", "m/versions/",
                           "m/labels/", "m%2e", "m/versions/99999999999999999999"})
    EXPECT_FALSE(ParseModelPath(path)) << path;
}

TEST(Guard, WithATokenOnlyWhoHasItMayAsk) {
  const Guard guard("secret", "0.0.0.0");
  EXPECT_TRUE(guard.CheckToken("Bearer secret"));
  EXPECT_TRUE(guard.CheckToken("bearer  secret"));
  for (const char* wrong : {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets",
                            "Bearer xsecret", "Basic secret"})
    EXPECT_FALSE(guard.CheckToken(wrong)) << wrong;
}

TEST(Guard, PagesOfOthersAndNamesThatAreNotOursAreRefused) {
  const Guard guard("", "127.0.0.1");
  const auto allowed = [&](const char* host, const char* origin) {
    io::ServerRequest request{.method = "POST", .headers = {{"host", host}}};
    if (*origin) request.headers.emplace_back("origin", origin);
    return guard.CheckHttp(request).has_value();
  };
  EXPECT_TRUE(allowed("127.0.0.1:8501", ""));
  EXPECT_TRUE(allowed("localhost:8501", "http://localhost:8501"));
  EXPECT_TRUE(allowed("[::1]:8501", ""));
  EXPECT_FALSE(allowed("evil.example:8501", ""));
  EXPECT_FALSE(allowed("localhost:8501", "http://evil.example"));
  EXPECT_FALSE(allowed("localhost:8501", "null"));
  EXPECT_FALSE(allowed("localhost:8501", "http://localhost:9999"));
}

}  // namespace
}  // namespace serve
