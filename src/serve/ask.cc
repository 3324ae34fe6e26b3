#include "serve/ask.h"

namespace serve {

Answer<Asked> FindTarget(const Models& models, const Target& target) {
  Asked out;
  out.servable = TRY(models.Find(target.model, target.version, target.label));
  out.signature = TRY(out.servable->signatures().Find(target.signature));
  return out;
}

void CountRefused(const Models& models, Counters& counters, const std::string& model, Code code) {
  counters.Failed(models.StatusOf(model) ? model : "", "", code);
}

void Ask(Asked asked, std::vector<tensor::Tensor> inputs, Caller caller,
         std::move_only_function<void(Answer<Answered>)> done) {
  auto rows = CheckInputs(*asked.signature, inputs);
  if (!rows) {
    asked.servable->CountRefused(*asked.signature, rows.error().code);
    return done(std::unexpected(rows.error()));
  }
  Servable& servable = *asked.servable;
  const Signature& signature = *asked.signature;
  servable.Submit(signature, std::move(inputs), *rows, std::move(caller),
                  [asked = std::move(asked), done = std::move(done)](auto outputs) mutable {
                    if (!outputs) return done(std::unexpected(std::move(outputs.error())));
                    done(Answered{std::move(asked), std::move(*outputs)});
                  });
}

}  // namespace serve
