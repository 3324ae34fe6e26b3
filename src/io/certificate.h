// What can be known of a certificate without trusting it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace io {

struct Validity {
  base::Time from;
  base::Time to;
};

// Of the first certificate in a PEM text.
base::Result<Validity> ValidityOf(const std::string& pem);

}  // namespace io
