// What can go wrong between a client and the API server.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace backend::sim {

// At one write. "Killed" is the client's whole process; what it had sent before still arrives.
enum class Fault {
  kNone,
  kKilledBefore,    // before the request leaves
  kKilledStored,    // after the server has done it, before the answer comes
  kKilledAnswered,  // after the answer has come, before anything else is sent
  kAnswerLost,      // done, and the connection breaks
  kErrorBefore,     // 500, nothing was done
  kErrorAfter,      // 500, and yet it was done
  kConflict,        // 409, nothing was done
  kThrottled,       // 429 with Retry-After, nothing was done
  kGone,            // history is compacted, and every watch ends with 410
  kStall,           // nothing moves for half a minute
};
inline constexpr Fault kAllFaults[] = {
    Fault::kKilledBefore, Fault::kKilledStored, Fault::kKilledAnswered, Fault::kAnswerLost,
    Fault::kErrorBefore,  Fault::kErrorAfter,   Fault::kConflict,       Fault::kThrottled,
    Fault::kGone,         Fault::kStall};
const char* Name(Fault fault);

// One fault at one write, counted from 0 over the whole life.
struct Plan {
  int32_t write = -1;
  Fault fault = Fault::kNone;
};

// Faults by chance, in percent, and delays.
struct Weather {
  base::Duration quickest{std::chrono::milliseconds(1)};
  base::Duration slowest{std::chrono::milliseconds(1)};  // of one way
  // Of requests.
  int32_t lost = 0;          // the answer; half of them with the request
  int32_t failed = 0;        // 500, before or after it was done
  int32_t refused = 0;       // 409 to a write
  int32_t throttled = 0;     // 429
  int32_t slow_answers = 0;  // take up to a minute
  // Of events on a stream.
  int32_t cut = 0;      // the connection breaks before this one
  int32_t ended = 0;    // the server ends the stream before this one
  int32_t doubled = 0;  // told twice
  int32_t held = 0;     // the stream stands still for up to a minute
  int32_t gone = 0;     // 410 instead of this one
  bool no_bookmarks = false;
  bool no_leases = false;  // requests about leases get lost
};

}  // namespace backend::sim
