#include "base/metrics.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/core.h>

#include "base/result.h"
#include "base/strings.h"

namespace base {
namespace {

bool IsName(std::string_view text, bool colons) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::ranges::all_of(text, [colons](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || (colons && c == ':');
         });
}

std::string Escaped(std::string_view text, bool quoted) {
  std::string out;
  for (char c : CleanUtf8(text)) {
    if (c == '\\' || (quoted && c == '"')) out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// name="value",name="value"
std::string LabelText(const std::vector<std::string>& names, auto value_of) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    out += fmt::format(R"({}{}="{}")", i ? "," : "", names[i], Escaped(value_of(i), true));
  }
  return out;
}

void WriteLine(std::string& out, std::string_view name, std::string_view labels,
               std::string_view value) {
  out += name;
  if (!labels.empty()) (out += '{').append(labels) += '}';
  (out += ' ').append(value) += '\n';
}

void Write(std::string& out, const std::string& name, const std::string& labels,
           const Counter& counter) {
  WriteLine(out, name, labels, std::to_string(counter.value()));
}

void Write(std::string& out, const std::string& name, const std::string& labels,
           const Gauge& gauge) {
  WriteLine(out, name, labels, Number(gauge.value()));
}

void Write(std::string& out, const std::string& name, const std::string& labels,
           const Histogram& histogram) {
  const std::vector<uint64_t> counts = histogram.counts();
  uint64_t seen = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    seen += counts[i];
    const std::string bound =
        i < histogram.bounds().size() ? Number(histogram.bounds()[i]) : "+Inf";
    WriteLine(out, name + "_bucket",
              fmt::format(R"({}{}le="{}")", labels, labels.empty() ? "" : ",", bound),
              std::to_string(seen));
  }
  WriteLine(out, name + "_sum", labels, Number(histogram.sum()));
  WriteLine(out, name + "_count", labels, std::to_string(seen));
}

}  // namespace

Histogram::Histogram(const std::vector<double>& bounds)
    : bounds_(bounds), counts_(bounds.size() + 1) {}

void Histogram::Observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value);  // a bound belongs to its bucket
  counts_[static_cast<size_t>(bucket - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<uint64_t> Histogram::counts() const {
  std::vector<uint64_t> out;
  for (const auto& count : counts_) out.push_back(count.load(std::memory_order_relaxed));
  return out;
}

template <typename Series>
Series& Family<Series>::With(std::initializer_list<std::string_view> values) {
  CHECK(values.size() == labels_.size());
  std::string key = LabelText(labels_, [&](size_t i) { return values.begin()[i]; });
  const std::lock_guard lock(mutex_);
  if (series_.size() >= kMostSeries && !series_.contains(key)) {
    key = LabelText(labels_, [](size_t) { return "(other)"; });
  }
  if constexpr (std::is_same_v<Series, Histogram>) {
    return series_.try_emplace(std::move(key), bounds_).first->second;
  } else {
    return series_.try_emplace(std::move(key)).first->second;
  }
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

const std::vector<double> Metrics::kSeconds = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};

void Metrics::Put(const std::string& name, Entry entry) {
  CHECK(IsName(name, true));
  const std::lock_guard lock(mutex_);
  const bool is_new = entries_.try_emplace(name, std::move(entry)).second;
  CHECK(is_new);
}

template <typename Series>
Family<Series>& Metrics::Add(const std::string& name, std::string_view type, std::string help,
                             Labels labels, std::vector<double> bounds) {
  for (const std::string& label : labels) CHECK(IsName(label, false) && label != "le");
  CHECK(std::ranges::adjacent_find(bounds, std::ranges::greater_equal()) == bounds.end());
  auto family = std::make_shared<Family<Series>>();
  family->labels_ = std::move(labels);
  family->bounds_ = std::move(bounds);
  Put(name, {type, std::move(help), [family, name](std::string& out) {
               const std::lock_guard lock(family->mutex_);
               for (const auto& [key, series] : family->series_) Write(out, name, key, series);
             }});
  return *family;
}

Family<Counter>& Metrics::AddCounters(const std::string& name, std::string help, Labels labels) {
  return Add<Counter>(name, "counter", std::move(help), std::move(labels), {});
}

Family<Gauge>& Metrics::AddGauges(const std::string& name, std::string help, Labels labels) {
  return Add<Gauge>(name, "gauge", std::move(help), std::move(labels), {});
}

Family<Histogram>& Metrics::AddHistograms(const std::string& name, std::string help, Labels labels,
                                          std::vector<double> bounds) {
  return Add<Histogram>(name, "histogram", std::move(help), std::move(labels), std::move(bounds));
}

Counter& Metrics::AddCounter(const std::string& name, std::string help) {
  return AddCounters(name, std::move(help), {}).With({});
}

Gauge& Metrics::AddGauge(const std::string& name, std::string help) {
  return AddGauges(name, std::move(help), {}).With({});
}

void Metrics::AskCounter(const std::string& name, std::string help, std::function<double()> value) {
  Put(name, {"counter", std::move(help), [name, value = std::move(value)](std::string& out) {
               WriteLine(out, name, "", Number(value()));
             }});
}

void Metrics::AskGauge(const std::string& name, std::string help, std::function<double()> value) {
  Put(name, {"gauge", std::move(help), [name, value = std::move(value)](std::string& out) {
               WriteLine(out, name, "", Number(value()));
             }});
}

std::string Metrics::Text() const {
  std::string out;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, Escaped(entry.help, false),
                       entry.type);
    entry.write(out);
  }
  return out;
}

}  // namespace base
