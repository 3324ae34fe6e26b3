// Virtual time: what is to happen in a simulated cluster, in order.
//
// Everything that takes time in the simulation (a message on its way, a container that works, a
// stream that ends) is an entry here. What is due at one moment happens in an order drawn from the
// seed, so that no order between independent things is taken for granted, and the same seed gives
// the same order. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backend/sim/random.h"
#include "base/time.h"

namespace backend::sim {

class Agenda {
 public:
  using Deed = std::move_only_function<void()>;

  Agenda(uint64_t seed, base::Time begin) : random_(seed), now_(begin) {}

  base::Time now() const { return now_; }
  void At(base::Time when, Deed deed);
  void In(base::Duration delay, Deed deed) { At(now_ + delay, std::move(deed)); }

  // When the next entry is due; nothing: there is none.
  std::optional<base::Time> next() const;
  // Lets the next entry happen. False: there is none.
  bool Step();
  // Lets everything happen that is due up to `until`, and goes on to that time.
  void RunUntil(base::Time until);

 private:
  struct Entry {
    base::Time at;
    uint64_t tie = 0;
    uint64_t number = 0;
    Deed deed;
  };
  static bool Later(const Entry& a, const Entry& b);

  Random random_;
  base::Time now_;
  uint64_t number_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace backend::sim
