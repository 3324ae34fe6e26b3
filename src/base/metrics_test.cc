#include "base/metrics.h"

#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace base {
namespace {

// What a strict reader of the text format sees on a page; any fault of form is its first line. The
// rules are those of the format's documentation and of Prometheus' own parser.
struct Page {
  std::string fault;
  std::map<std::string, std::string> types;    // by family
  std::map<std::string, std::string> samples;  // value by name and labels, as written
};

Page Read(const std::string& text) {
  static const std::regex kHelp(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\]|\\[\\n])*))");
  static const std::regex kType(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram))");
  static const std::string kLabel = R"([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[\\"n])*")";
  static const std::regex kSample("(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{" + kLabel + "(?:," + kLabel +
                                  ")*\\})?) (NaN|[+-]Inf|[+-]?[0-9.]+(?:e[+-]?[0-9]+)?)");
  Page page;
  if (!text.empty() && text.back() != '\n') page.fault = "no line end at the end";
  std::string helped, family;
  for (std::string_view view : Split(text, '\n')) {
    const std::string line(view);
    std::smatch match;
    if (line.empty() && view.data() == text.data() + text.size()) break;
    if (std::regex_match(line, match, kHelp)) {
      helped = match[1];
    } else if (std::regex_match(line, match, kType)) {
      family = match[1];
      if (family != helped || !page.types.emplace(family, match[2]).second) page.fault = line;
    } else if (std::regex_match(line, match, kSample)) {
      std::string name = match[2];
      if (page.types[family] == "histogram") {
        name = std::regex_replace(name, std::regex("_(bucket|sum|count)$"), "");
      }
      if (name != family || !page.samples.emplace(match[1], match[3]).second) page.fault = line;
    } else {
      page.fault = line;
    }
    if (!page.fault.empty()) return page;
  }
  return page;
}

using Samples = std::map<std::string, std::string>;

TEST(Metrics, AnEmptyPageIsAPage) { EXPECT_EQ(Metrics().Text(), ""); }

TEST(Metrics, WritesAFamilyWithHelpTypeAndSeries) {
  Metrics metrics;
  auto& created = metrics.AddCounters("jobs_created_total", "Jobs seen.", {"job_namespace", "by"});
  created.With({"team-b", "tensorflow"}).Add(2);
  created.With({"team-a", "tensorflow"}).Add();
  EXPECT_EQ(metrics.Text(),
            "# HELP jobs_created_total Jobs seen.\n"
            "# TYPE jobs_created_total counter\n"
            "jobs_created_total{job_namespace=\"team-a\",by=\"tensorflow\"} 1\n"
            "jobs_created_total{job_namespace=\"team-b\",by=\"tensorflow\"} 2\n");
}

TEST(Metrics, ShowsASeriesWithZeroBeforeItsFirstEvent) {
  Metrics metrics;
  metrics.AddCounter("restarts_total", "Restarts.");
  metrics.AddGauges("depth", "Depth.", {"queue"}).With({"jobs"});
  EXPECT_EQ(Read(metrics.Text()).samples,
            (Samples{{"restarts_total", "0"}, {"depth{queue=\"jobs\"}", "0"}}));
}

TEST(Metrics, TheSameLabelsAreTheSameSeries) {
  Metrics metrics;
  auto& family = metrics.AddCounters("x_total", "X.", {"a"});
  EXPECT_EQ(&family.With({"1"}), &family.With({"1"}));
  EXPECT_NE(&family.With({"1"}), &family.With({"2"}));
}

TEST(Metrics, BucketsOfAHistogramAddUpAndABoundBelongsToItsBucket) {
  Metrics metrics;
  auto& took = metrics.AddHistograms("took_seconds", "Time.", {"of"}, {0.5, 1, 5}).With({"it"});
  for (double value : {0.25, 0.5, 0.75, 3.0, 100.0}) took.Observe(value);
  const Page page = Read(metrics.Text());
  EXPECT_EQ(page.types, (Samples{{"took_seconds", "histogram"}}));
  EXPECT_EQ(page.samples, (Samples{{R"(took_seconds_bucket{of="it",le="0.5"})", "2"},
                                   {R"(took_seconds_bucket{of="it",le="1"})", "3"},
                                   {R"(took_seconds_bucket{of="it",le="5"})", "4"},
                                   {R"(took_seconds_bucket{of="it",le="+Inf"})", "5"},
                                   {R"(took_seconds_sum{of="it"})", "104.5"},
                                   {R"(took_seconds_count{of="it"})", "5"}}));
}

TEST(Metrics, AHistogramWithoutLabelsHasOnlyTheBound) {
  Metrics metrics;
  metrics.AddHistograms("took_seconds", "Time.", {}, {1}).With({}).Observe(1);
  EXPECT_EQ(Read(metrics.Text()).samples["took_seconds_bucket{le=\"1\"}"], "1");
}

TEST(Metrics, WritesNumbersAsPrometheusReadsThem) {
  Metrics metrics;
  auto& gauges = metrics.AddGauges("g", "G.", {"n"});
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0"},
      {-1.5, "-1.5"},
      {1e300, "1e+300"},
      {1e-7, "1e-07"},
      {1767225600.25, "1767225600.25"},
      {infinity, "+Inf"},
      {-infinity, "-Inf"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"},
  };
  Samples want;
  for (const auto& [value, text] : cases) {
    gauges.With({text}).Set(value);
    want["g{n=\"" + text + "\"}"] = text;
  }
  EXPECT_EQ(Read(metrics.Text()).samples, want);
}

TEST(Metrics, EscapesWhatALabelOrHelpMayHold) {
  Metrics metrics;
  metrics.AddCounters("x_total", "back\\slash \"quote\"\nline", {"a"}).With({"b\\s \"q\"\nl} 7"});
  EXPECT_EQ(metrics.Text(),
            "# HELP x_total back\\\\slash \"quote\"\\nline\n"
            "# TYPE x_total counter\n"
            "x_total{a=\"b\\\\s \\\"q\\\"\\nl} 7\"} 0\n");
  EXPECT_EQ(Read(metrics.Text()).fault, "");
}

TEST(Metrics, ReplacesBytesThatAreNotUtf8) {
  Metrics metrics;
  metrics.AddCounters("x_total", "X.", {"a"}).With({"\xff\xc3\xa9\xc3"});
  EXPECT_EQ(Read(metrics.Text()).samples, (Samples{{"x_total{a=\"\ufffdé\ufffd\"}", "0"}}));
}

TEST(Metrics, LabelsWithoutEndShareOneSeries) {
  Metrics metrics;
  auto& family = metrics.AddCounters("x_total", "X.", {"a"});
  for (size_t i = 0; i < Family<Counter>::kMostSeries + 50; ++i) {
    family.With({fmt::to_string(i)}).Add();
  }
  family.With({"7"}).Add();
  Page page = Read(metrics.Text());
  EXPECT_EQ(page.samples.size(), Family<Counter>::kMostSeries + 1);
  EXPECT_EQ(page.samples["x_total{a=\"(other)\"}"], "50");
  EXPECT_EQ(page.samples["x_total{a=\"7\"}"], "2");
}

TEST(Metrics, AsksForAValueWhenThePageIsMade) {
  Metrics metrics;
  int asked = 0;
  metrics.AskCounter("asked_total", "Asked.", [&] { return ++asked; });
  metrics.AskGauge("half", "Half.", [] { return 0.5; });
  metrics.Text();
  EXPECT_EQ(Read(metrics.Text()).samples, (Samples{{"asked_total", "2"}, {"half", "0.5"}}));
}

TEST(Metrics, CountsFromManyThreadsAndIsReadMeanwhile) {
  Metrics metrics;
  auto& counters = metrics.AddCounters("c_total", "C.", {"a"});
  auto& gauge = metrics.AddGauge("g", "G.");
  auto& histogram = metrics.AddHistograms("h", "H.", {}, {1, 2}).With({});
  constexpr int kTimes = 10'000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        Counter& counter = counters.With({fmt::to_string(t % 2)});
        for (int i = 0; i < kTimes; ++i) {
          counter.Add();
          gauge.Add(1);
          histogram.Observe(i % 3);
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      Page page = Read(metrics.Text());
      EXPECT_EQ(page.fault, "");
      EXPECT_EQ(page.samples["h_count"], page.samples["h_bucket{le=\"+Inf\"}"]);
    }
  }
  Page page = Read(metrics.Text());
  EXPECT_EQ(page.samples["c_total{a=\"0\"}"], fmt::to_string(2 * kTimes));
  EXPECT_EQ(page.samples["g"], fmt::to_string(4 * kTimes));
  EXPECT_EQ(page.samples["h_count"], fmt::to_string(4 * kTimes));
}

TEST(MetricsDeath, ANameUsedTwiceOrWronglyIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Metrics metrics;
  metrics.AddCounter("x_total", "X.");
  EXPECT_DEATH(metrics.AddGauge("x_total", "X."), "CHECK failed");
  EXPECT_DEATH(metrics.AddCounter("x-total", "X."), "CHECK failed");
  EXPECT_DEATH(metrics.AddCounters("y_total", "Y.", {"le"}), "CHECK failed");
  EXPECT_DEATH(metrics.AddHistograms("h", "H.", {}, {1, 1}), "CHECK failed");
}

}  // namespace
}  // namespace base
