#include "io/clock.h"

namespace io {

base::Time Now() {
  return std::chrono::time_point_cast<base::Duration>(std::chrono::system_clock::now());
}

}  // namespace io
