// Numbers about this program for Prometheus: counters, gauges and histograms, with labels, and the
// page that shows them (text exposition format 0.0.4).
//
//   base::Metrics metrics;
//   auto& created = metrics.AddCounters("jobs_created_total", "Jobs seen for the first time.",
//                                       {"job_namespace", "framework"});
//   created.With({"team-a", "tensorflow"}).Add();
//
// All of it may be used from any thread. Adding to a series is an atomic operation; With() takes a
// lock and looks the series up, so a hot path keeps the reference, which holds as long as the
// Metrics. A series is on the page, with 0, from the first With on.
//
// Names are ours, so a wrong one or one used twice is a CHECK. Label values may be the user's: they
// are escaped, a byte that is not UTF-8 becomes U+FFFD (one such byte would make Prometheus refuse
// the page), and a family holds at most kMostSeries of them; later ones share a series whose
// values are all "(other)".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace base {

class Counter {
 public:
  void Add(uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double change) { value_.fetch_add(change, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

class Histogram {
 public:
  explicit Histogram(const std::vector<double>& bounds);
  void Observe(double value);
  const std::vector<double>& bounds() const { return bounds_; }
  std::vector<uint64_t> counts() const;  // a bucket each, not cumulative; the last has no bound
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double>& bounds_;  // the family's
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// All series of one name.
template <typename Series>
class Family {
 public:
  static constexpr size_t kMostSeries = 10'000;

  // A value for each label, in their order.
  Series& With(std::initializer_list<std::string_view> values);

 private:
  friend class Metrics;
  mutable std::mutex mutex_;
  std::vector<std::string> labels_;
  std::vector<double> bounds_;            // of a histogram
  std::map<std::string, Series> series_;  // by their labels as they are written
};

class Metrics {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
  // 5 ms to 10 s, what client libraries of Prometheus use unless told.
  static const std::vector<double> kSeconds;

  using Labels = std::vector<std::string>;

  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Family<Counter>& AddCounters(const std::string& name, std::string help, Labels labels);
  Family<Gauge>& AddGauges(const std::string& name, std::string help, Labels labels);
  // Bounds grow; the bucket without a bound is added to them.
  Family<Histogram>& AddHistograms(const std::string& name, std::string help, Labels labels,
                                   std::vector<double> bounds = kSeconds);

  // Without labels.
  Counter& AddCounter(const std::string& name, std::string help);
  Gauge& AddGauge(const std::string& name, std::string help);
  // Asked each time the page is made, on the thread that makes it.
  void AskCounter(const std::string& name, std::string help, std::function<double()> value);
  void AskGauge(const std::string& name, std::string help, std::function<double()> value);

  // The page, sorted by name and labels.
  std::string Text() const;

 private:
  // One name on the page.
  struct Entry {
    std::string_view type;
    std::string help;
    std::function<void(std::string& out)> write;  // its lines
  };

  template <typename Series>
  Family<Series>& Add(const std::string& name, std::string_view type, std::string help,
                      Labels labels, std::vector<double> bounds);
  void Put(const std::string& name, Entry entry);

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace base
