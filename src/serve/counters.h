// What the server tells Prometheus, under our own names and under TensorFlow Serving's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/metrics.h"
#include "serve/status.h"

namespace serve {

class Counters {
 public:
  // Of one signature of a model.
  struct OfSignature {
    base::Counter& answered;
    base::Histogram& seconds;
    base::Histogram& rows;  // of a batch
  };
  struct OfModel {
    std::string model;
    Counters* all = nullptr;
    base::Counter& ok;  // as TensorFlow Serving counts
    base::Counter& restarts;
    base::Gauge& waiting;
    std::map<std::string, OfSignature, std::less<>> by_signature;  // filled when it is loaded

    OfSignature& Signature(std::string_view name);
  };

  Counters();
  // Holds as long as this.
  OfModel& Of(const std::string& model);
  // Counts a request that got no answer from the model. The names must be known ones, lest clients
  // make up metrics: empty for a model or a signature that was not found.
  void Failed(std::string_view model, std::string_view signature, Code code);
  std::string Text() const { return metrics_.Text(); }
  base::Metrics& metrics() { return metrics_; }

 private:
  friend struct OfModel;
  base::Metrics metrics_;

 public:
  base::Gauge& models_ready;  // versions that answer

 private:
  base::Family<base::Counter>& requests_;
  base::Family<base::Histogram>& seconds_;
  base::Family<base::Histogram>& rows_;
  base::Family<base::Counter>& restarts_;
  base::Family<base::Gauge>& waiting_;
  base::Family<base::Counter>& tensorflow_requests_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<OfModel>> models_;
};

}  // namespace serve
