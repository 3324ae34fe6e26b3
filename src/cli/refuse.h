// How a command says no: one line, exit status 2, nothing changed.
#pragma once

#include <string>

#include <fmt/core.h>

#include "base/result.h"

namespace cli {

inline constexpr int kRefused = 2;
inline constexpr int kExitLost = 69;  // contact: a supervisor is gone, a cluster does not answer

inline int Refuse(const std::string& text) {
  fmt::print(stderr, "trainyard: {}\n", text);
  return kRefused;
}

inline int Refuse(const base::Error& error) { return Refuse(error.text()); }

// The same for what may have failed for want of contact.
inline int Fail(const base::Error& error) {
  Refuse(error);
  return error.kind() == base::ErrorKind::kUnavailable ? kExitLost : kRefused;
}

}  // namespace cli
