#include "base/yaml.h"

#include <random>

#include <gtest/gtest.h>

namespace base {
namespace {

std::string Json1(std::string_view yaml) {
  const auto node = ReadYaml(yaml);
  return node ? CompactJson(ToJson(*node)) : "error " + node.error().Text();
}

// Every row was compared with kubectl 1.32: kubectl annotate --local -f FILE x=y -o json.
TEST(ReadYaml, ResolvesPlainScalarsAsKubectl) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"yes", "true"},
      {"y", "true"},
      {"on", "true"},
      {"Off", "false"},
      {"N", "false"},
      {"TRUE", "true"},
      {"tRUE", "\"tRUE\""},
      {"~", "null"},
      {"Null", "null"},
      {"", "null"},
      {"0o17", "15"},
      {"017", "15"},
      {"-017", "-15"},
      {"08", "8"},
      {"0x1F", "31"},
      {"0X1f", "31"},
      {"-0x10", "-16"},
      {"0x", "\"0x\""},
      {"0o8", "\"0o8\""},
      {"0b11", "3"},
      {"-0b1", "-1"},
      {"0b2", "\"0b2\""},
      {"1_000", "1000"},
      {"1_", "1"},
      {"_1", "\"_1\""},
      {"+12", "12"},
      {"-0", "0"},
      {"--1", "\"--1\""},
      {"1e3", "1000"},
      {"1e", "\"1e\""},
      {"1.50", "1.5"},
      {".5", "0.5"},
      {"+.5", "0.5"},
      {"1.", "1"},
      {"5.e1", "50"},
      {"1_0.5", "10.5"},
      {".3_0", "0.3"},
      {".3__0", "\".3__0\""},
      {"._3", "\"._3\""},
      {"0.1e-2", "0.001"},
      {"1e400", "\"1e400\""},
      {"1e-400", "0"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"2001-01-01", "\"2001-01-01\""},
      {"12:30:45", "\"12:30:45\""},
      {"nan", "\"nan\""},
      {"Inf", "\"Inf\""},
      {"\"yes\"", "\"yes\""},
      {"'12'", "\"12\""},
      {"!!str 12", "\"12\""},
      {"! 12", "\"12\""},
      {"!!int '3'", "3"},
      {"!!bool yes", "true"},
  };
  for (const auto& [text, json] : table) {
    EXPECT_EQ(Json1("a: " + text + "\n"), "{\"a\":" + json + "}") << text;
  }
}

TEST(ReadYaml, KeepsLargeIntegersExact) {
  EXPECT_EQ(Json1("[18446744073709551615, 9223372036854775808]"),
            "[18446744073709551615,9223372036854775808]");
}

TEST(ReadYaml, TurnsNumbersAndBooleansUsedAsKeysIntoText) {
  EXPECT_EQ(Json1("{0x10: a, yes: b, 1.5: c, 2001-01-01: d}"),
            R"({"16":"a","true":"b","1.5":"c","2001-01-01":"d"})");
}

TEST(ReadYaml, KnowsThePlaceOfEveryValue) {
  const auto root = ReadYaml("# comment\na:\n  - b: é x\n    c: 1\n");
  ASSERT_TRUE(root);
  const Node& item = root->Find("a")->items[0];
  EXPECT_EQ(std::pair(item.line, item.column), std::pair(3, 5));
  EXPECT_EQ(std::pair(item.Find("b")->line, item.Find("b")->column), std::pair(3, 8));
  EXPECT_EQ(std::pair(item.members[1].line, item.members[1].column), std::pair(4, 5));
}

TEST(ReadYaml, FollowsAliasesAndMergesMaps) {
  EXPECT_EQ(Json1("a: &x {q: 1, r: 2}\nb: *x\nc: {<<: *x, q: 5}\nd: {<<: [*x, {r: 7, z: 8}]}\n"),
            R"({"a":{"q":1,"r":2},"b":{"q":1,"r":2},"c":{"q":5,"r":2},"d":{"q":1,"r":2,"z":8}})");
}

TEST(ReadYaml, LetsAWrittenKeyWinOverAMergedOneWhereverItStands) {
  EXPECT_EQ(Json1("a: &x {q: 1}\nb: {q: 6, <<: *x}\n"), R"({"a":{"q":1},"b":{"q":6}})");
}

TEST(ReadYaml, TakesAQuotedMergeKeyAsAnOrdinaryKey) {
  EXPECT_EQ(Json1("{'<<': 1}"), R"({"<<":1})");
}

TEST(ReadYaml, RefusesWhatItCannotTrustAndSaysWhere) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"a: 1\nb: 2\na: 3\n", "error 3:1: the key a is given twice"},
      {"1: a\n'1': b\n", "error 2:1: the key 1 is given twice"},
      {"a: !foo x\n", "error 1:4: the tag !foo is not supported here"},
      {"a: !!binary aGk=\n", "error 1:4: the tag tag:yaml.org,2002:binary is not supported here"},
      {"a: !!int x\n", "error 1:4: the tag tag:yaml.org,2002:int is not supported here"},
      {"a: !!set {x}\n", "error 1:4: the tag tag:yaml.org,2002:set is not supported here"},
      {"a: .inf\n", "error 1:4: .inf has no JSON form"},
      {"a: .NaN\n", "error 1:4: .NaN has no JSON form"},
      {"~: 1\n", "error 1:1: a key must be text"},
      {"{[a]: 1}\n", "error 1:2: a key must be text"},
      {"a: *x\n", "error 1:4: no anchor &x before this alias"},
      {"a: &x [*x]\n", "error 1:8: no anchor &x before this alias"},
      {"{<<: 1}\n", "error 1:2: << takes a map or a list of maps"},
      {"a: 1\n---\nb: 2\n", "error 3:1: a second document begins here; one is expected"},
      {"a: [1\n", "error 2:1: did not find expected ',' or ']' while parsing a flow sequence"},
      {"a:\n\t- b\n",
       "error 2:1: found character that cannot start any token while scanning for the next token"},
      {"a: b\nc: \xFF\n", "error 2:4: invalid leading UTF-8 octet"},
      {"a: \x01\n", "error 1:4: control characters are not allowed"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(Json1(text), expected) << text;
}

TEST(ReadYaml, RefusesUtf16) {
  EXPECT_FALSE(
      ReadYaml(std::string_view("\xFF\xFE"
                                "a\0:\0 \0b\0",
                                10)));
}

TEST(ReadYaml, SkipsAByteOrderMark) {
  EXPECT_EQ(Json1("\xEF\xBB\xBF"
                  "a: 1\n"),
            R"({"a":1})");
}

TEST(ReadYaml, TakesNoNoticeOfEmptyDocuments) {
  EXPECT_EQ(Json1("---\n---\na: 1\n---\n"), R"({"a":1})");
  EXPECT_EQ(Json1(""), "null");
  EXPECT_EQ(Json1("# nothing\n"), "null");
}

TEST(ReadYamlDocuments, ReadsThemAll) {
  const auto documents = ReadYamlDocuments("a: 1\n---\n---\nb: &x 2\n---\nc: 3\n");
  ASSERT_TRUE(documents);
  ASSERT_EQ(documents->size(), 3u);
  EXPECT_EQ(CompactJson(ToJson((*documents)[1])), R"({"b":2})");
}

TEST(ReadYaml, StopsABillionLaughs) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 7; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) text += (j ? ", *a" : "*a") + std::to_string(i - 1);
    text += "]\n";
  }
  EXPECT_EQ(Json1(text), "error 5:5: more than 100000 values");
}

TEST(ReadYaml, StopsALongTextRepeatedByAliases) {
  std::string text = "a: &a " + std::string(900'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 30; ++i) text += ", *a";
  EXPECT_NE(Json1(text + "]\n").find("expands to more than 16 MiB"), std::string::npos);
}

TEST(ReadYaml, StopsTooManyAliases) {
  std::string text = "a: &a 1\nb: [*a";
  for (int i = 0; i < 64; ++i) text += ", *a";
  EXPECT_NE(Json1(text + "]\n").find("more than 64 aliases"), std::string::npos);
}

TEST(ReadYaml, StopsDeepNestingAlsoThroughAliases) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(ReadYaml(nested(64)));
  EXPECT_EQ(Json1(nested(65)), "error 1:65: nested deeper than 64 levels");
  EXPECT_FALSE(ReadYaml(std::string(500'000, '[')));
  EXPECT_FALSE(ReadYaml("a: &a " + nested(40) + "\nb: " + std::string(40, '[') + "*a" +
                        std::string(40, ']')));
}

TEST(ReadYaml, RefusesMoreThanAMebibyte) {
  EXPECT_EQ(Json1(std::string(kMaxYamlText + 1, ' ')), "error 1:1: larger than 1 MiB");
}

TEST(ReadYaml, ReadsJsonThatIsNoYaml) {
  EXPECT_EQ(Json1(R"({"smile": "\uD83D\uDE00", "a": [1, 2.5, null]})"),
            "{\"smile\":\"\xF0\x9F\x98\x80\",\"a\":[1,2.5,null]}");
  EXPECT_FALSE(ReadYaml(R"({"smile": "\uD83D"})"));
}

TEST(ReadYaml, RefusesDeepJsonThatIsNoYaml) {
  EXPECT_FALSE(ReadYaml(R"({"smile": "\uD83D\uDE00", "a": )" + std::string(100, '[') +
                        std::string(100, ']') + "}"));
}

TEST(WriteYaml, ReadsAsPeopleWriteIt) {
  const Json value = *ParseJson(R"({
    "kind": "TFJob", "empty": {}, "none": null, "list": [],
    "containers": [{"name": "tensorflow", "args": ["--steps=3", "-x", "yes", "017", "a: b", ""]}],
    "nested": [[1, 2], [{"a": 1.0}]],
    "script": "set -e\npython x.py\n"})");
  EXPECT_EQ(WriteYaml(value), R"(kind: TFJob
empty: {}
none: null
list: []
containers:
- name: tensorflow
  args:
  - --steps=3
  - -x
  - "yes"
  - "017"
  - "a: b"
  - ""
nested:
- - 1
  - 2
- - a: 1.0
script: |
  set -e
  python x.py
)");
}

// Text made of pieces that mean something to YAML.
std::string RandomText(std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"a",      "b c",    " ",   "  ",
                                                   "\n",     "\n\n",   "\t",  "#",
                                                   " #",     ":",      ": ",  "-",
                                                   "- ",     "---",    "...", "?",
                                                   "!",      "&x",     "*x",  "|",
                                                   ">",      "'",      "\"",  "\\",
                                                   "{",      "}",      "[",   "]",
                                                   ",",      "%",      "@",   "`",
                                                   "1",      "0x",     "yes", "~",
                                                   "null",   "1e3",    ".5",  "\r",
                                                   "\x7F",   "\x01",   "é",   "\u2028",
                                                   "\u0085", "\uFEFF", "😀",  "<<",
                                                   "=",      "_",      "-0",  std::string(1, '\0'),
                                                   "\uFFFF"};
  std::string text;
  for (size_t n = random() % 5; n > 0; --n) text += kPieces[random() % kPieces.size()];
  return text;
}

Json RandomValue(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 9 : 7)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<int64_t>(random()) - (int64_t{1} << 31);
    case 3:
      return static_cast<double>(random()) / (random() % 2 ? 1.0 : 7e9);
    case 4:
      return ~uint64_t{0} - random();
    case 7: {
      JsonArray array;
      for (size_t n = random() % 4; n > 0; --n) array.push_back(RandomValue(random, depth - 1));
      return array;
    }
    case 8: {
      JsonObject object;
      for (size_t n = random() % 4; n > 0; --n) {
        object[RandomText(random)] = RandomValue(random, depth - 1);
      }
      return object;
    }
    default:
      return Json(RandomText(random));
  }
}

TEST(WriteYaml, ReadsBackAsTheSameValue) {
  std::mt19937 random(20240501);
  for (int i = 0; i < 20'000; ++i) {
    const Json value = RandomValue(random, 4);
    if (value.is_null()) continue;
    const std::string text = WriteYaml(value);
    const auto back = ReadYaml(text);
    ASSERT_TRUE(back) << back.error().Text() << "\n" << text << "\n" << CompactJson(value);
    ASSERT_EQ(ToJson(*back), value) << text;
  }
}

TEST(WriteYaml, WritesKeysTooLongForOneLine) {
  JsonObject object;
  object[std::string(3000, 'k')] = JsonObject{{"a", JsonArray{1, 2}}};
  object["b"] = 1;
  EXPECT_EQ(ToJson(*ReadYaml(WriteYaml(object))), Json(object));
}

}  // namespace
}  // namespace base
