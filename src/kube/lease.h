// One leader among several of us, by a Lease on the server: 15 s long, renewed every 2 s, given up
// by its holder after 10 s without a renewal.
//
// A courtesy, not a fence: nothing that leads() guards may rest on there being one leader only. Two
// at once make each other's work harder, not wrong.
//
// A step machine like the rest of this folder.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/transport.h"

namespace kube {

class Lease {
 public:
  struct Options {
    std::string name_space;
    std::string name;
    std::string identity;
  };

  Lease(Transport& transport, Options options);
  ~Lease();

  void Advance(base::Time now);
  std::optional<base::Time> next() const;

  bool leads() const;
  // Who holds it, as far as is known; empty: nobody.
  const std::string& holder() const;
  // Why it cannot be had; empty: no trouble.
  const std::string& trouble() const;

  // Gives it up, so that another need not wait for its end. Sent at once; leads() is false from
  // here on.
  void Resign(base::Time now);

 private:
  struct State;
  std::shared_ptr<State> state_;  // with the answer under way, which may outlive this
};

}  // namespace kube
