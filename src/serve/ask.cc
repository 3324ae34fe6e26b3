#include "serve/ask.h"

namespace serve {

Answer<Asked> FindTarget(const Models& models, const Target& target) {
  Asked out;
  out.servable = TRY(models.Find(target.model, target.version, target.label));
  out.signature = TRY(out.servable->signatures().Find(target.signature));
  return out;
}

void Ask(Asked asked, std::vector<tensor::Tensor> inputs,
         std::move_only_function<void(Answer<Answered>)> done) {
  auto rows = CheckInputs(*asked.signature, inputs);
  if (!rows) return done(std::unexpected(rows.error()));
  Servable& servable = *asked.servable;
  const Signature& signature = *asked.signature;
  servable.Submit(signature, std::move(inputs), *rows,
                  [asked = std::move(asked), done = std::move(done)](auto outputs) mutable {
                    if (!outputs) return done(std::unexpected(std::move(outputs.error())));
                    done(Answered{std::move(asked), std::move(*outputs)});
                  });
}

}  // namespace serve
