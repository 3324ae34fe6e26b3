#include "serve/counters.h"

#include "base/strings.h"

namespace serve {
namespace {

const std::vector<double> kSeconds = {0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                      0.05,   0.1,    0.2,   0.5,   1,     2,    5};
const std::vector<double> kRows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

}  // namespace

Counters::Counters()
    : models_ready(
          metrics_.AddGauge("trainyard_serving_models_ready", "Versions of models that answer.")),
      requests_(metrics_.AddCounters("trainyard_serving_requests_total",
                                     "Requests by their result: ok, or the code of the error.",
                                     {"model", "signature", "result"})),
      seconds_(metrics_.AddHistograms("trainyard_serving_request_seconds",
                                      "From a request's arrival to its answer.",
                                      {"model", "signature"}, kSeconds)),
      rows_(metrics_.AddHistograms("trainyard_serving_batch_rows", "Rows that ran together.",
                                   {"model", "signature"}, kRows)),
      restarts_(metrics_.AddCounters("trainyard_serving_runtime_restarts_total",
                                     "Runtimes that ended and were started again.", {"model"})),
      waiting_(metrics_.AddGauges("trainyard_serving_waiting_requests",
                                  "Requests that wait for a runtime.", {"model"})),
      tensorflow_requests_(metrics_.AddCounters(":tensorflow:serving:request_count",
                                                "Requests, as TensorFlow Serving counts them.",
                                                {"model_name", "status"})) {}

Counters::OfSignature& Counters::OfModel::Signature(std::string_view name) {
  const std::lock_guard lock(all->mutex_);
  const auto found = by_signature.find(name);
  if (found != by_signature.end()) return found->second;
  return by_signature
      .emplace(name, OfSignature{.answered = all->requests_.With({model, name, "ok"}),
                                 .seconds = all->seconds_.With({model, name}),
                                 .rows = all->rows_.With({model, name})})
      .first->second;
}

void Counters::Failed(std::string_view model, std::string_view signature, Code code) {
  const std::string_view name = NameOf(code);
  requests_.With({model, signature, base::Lower(name)}).Add();
  tensorflow_requests_.With({model, name}).Add();
}

Counters::OfModel& Counters::Of(const std::string& model) {
  const std::lock_guard lock(mutex_);
  auto& of = models_[model];
  if (!of)
    of.reset(new OfModel{.model = model,
                         .all = this,
                         .ok = tensorflow_requests_.With({model, "OK"}),
                         .restarts = restarts_.With({model}),
                         .waiting = waiting_.With({model})});
  return *of;
}

}  // namespace serve
